# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences that go on with the bits of one call of `chunk_gated_delta_rule` with `bitwise`."""

from __future__ import annotations

from typing import Any

from . import _api, _bitwise, _kda, _library

_CHUNK = _bitwise.CHUNK
#: By whether gates are those of channels.
_FUNCTIONS = _api.chunk_gated_delta_rule, _kda.chunk_kda


def _present(*inputs: Any) -> dict[str, Any]:
    """The inputs of tokens that there are, by name."""
    return {name: x for name, x in zip(("q", "k", "v", "g", "beta"), inputs) if x is not None}


def _function_of(given: dict[str, Any]) -> Any:
    """The function of such inputs."""
    return _FUNCTIONS["g" in given and given["g"].ndim == 4]


class OpenChunks:
    """Decoding with the bits that a whole sequence has in `chunk_gated_delta_rule` (or `chunk_kda`) with `bitwise=True`, as in
    the forward of a step of training.

    Where kernels of chunks compute such calls, on a GPU, a step computes the chunk of 64 tokens that each sequence is in again,
    from the state at its begin; so inputs of as many tokens are kept beside the states. Elsewhere a token is computed alone.
    Nothing of `decode` waits for the host, and a CUDA graph may capture it.

    Args:
        states: torch's [N, HV, K, V] (with `state_v_first` [N, HV, V, K]) in float32, of sequences that have a multiple of
            64 tokens, as zeros at first. They are updated in place, and are those at the begin of the open chunks.
        words: the other arguments of that function that say how inputs are read, as `use_qk_l2norm_in_kernel`, `A_log`.

    Attributes:
        states: as above.
        tokens: [N], int64: how many tokens each open chunk has.
        inputs: by name, [N, 64, ...]: the inputs of these tokens. What stands behind them changes no bit.

    Example:
        >>> import gdn, torch
        >>> q, k, v = (torch.randn(2, 100, heads, 64) / 8 for heads in (2, 2, 4))
        >>> g, beta = -torch.rand(2, 100, 4), torch.rand(2, 100, 4)
        >>> whole, _ = gdn.chunk_gated_delta_rule(q, k, v, g, beta, bitwise=True)
        >>> chunks = gdn.OpenChunks(torch.zeros(2, 4, 64, 64))
        >>> o = chunks.prefill(*(x[:, :70] for x in (q, k, v, g, beta)))
        >>> next_o = chunks.decode(*(x[:, 70:71] for x in (q, k, v, g, beta)))
        >>> torch.equal(whole[:, :71], torch.cat([o, next_o], 1))
        True
    """

    def __init__(self, states: Any, **words: Any) -> None:
        import torch

        if not isinstance(states, torch.Tensor):
            raise TypeError(f"states: expected a torch.Tensor, got {type(states).__name__}")
        self.states, self._words = states, words
        self.tokens = torch.zeros(len(states), dtype=torch.int64, device=states.device)
        self.inputs: dict[str, Any] = {}
        #: Whether tokens are computed alone; None before the first call.
        self._by_token: bool | None = None

    def prefill(self, q: Any, k: Any, v: Any, g: Any, beta: Any, cu_seqlens: Any = None) -> Any:
        """Outputs of the next tokens of all sequences, whose numbers of tokens are multiples of 64 before: batch rows
        [N, T, ...], or packed ones. It waits for boundaries on a GPU.

        Raises:
            ValueError: a sequence is inside a chunk; what `chunk_gated_delta_rule` raises.
        """
        import torch

        given = _present(q, k, v, g, beta)
        if cu_seqlens is None:
            ends = [n * q.shape[1] for n in range(q.shape[0] + 1)]
            given = {name: x.reshape(1, -1, *x.shape[2:]) for name, x in given.items()}
        else:
            ends = cu_seqlens.tolist()
        if self.tokens.any():
            raise ValueError("prefill: expected sequences at the begin of a chunk of 64 tokens, got one inside")
        lengths = [end - begin for begin, end in zip(ends, ends[1:])]
        if len(lengths) != len(self.states):
            raise ValueError(f"q: expected tokens of {len(self.states)} sequences, got {len(lengths)}")
        with torch.no_grad():
            if self._computes_by_token(given):
                bounds = torch.tensor(ends, device=q.device)
                return self._call(given, final_state=self.states, cu_seqlens=bounds)[0].view(v.shape)
            return self._prefill(given, ends, lengths).view(v.shape)

    def _prefill(self, given: dict[str, Any], ends: list[int], lengths: list[int]) -> Any:
        """Whole chunks, with the rest of each sequence as one more, whose outputs are made anew from the state before it."""
        import torch

        device, rest = self.states.device, [length % _CHUNK for length in lengths]
        bounds = [x for end, count in zip(ends[1:], rest) for x in (end - count, end)]
        states = self.states.repeat_interleave(2, 0)
        o, states = self._call(
            given, initial_state=states, output_final_state=True, cu_seqlens=torch.tensor([ends[0], *bounds], device=device)
        )
        self.states.copy_(states[::2])
        self.tokens.copy_(torch.tensor(rest))
        numbers = [(n, t, end - count + t) for n, (end, count) in enumerate(zip(ends[1:], rest)) for t in range(count)]
        if numbers:
            rows, places, source = torch.tensor(numbers, device=device).T
            for name, x in given.items():
                self.inputs[name][rows, places] = x[0, source]
            o[0, source] = self._call(self.inputs)[0][rows, places]
        return o

    def decode(self, q: Any, k: Any, v: Any, g: Any, beta: Any) -> Any:
        """Outputs of the next token of each sequence [N, 1, ...].

        Raises:
            What `chunk_gated_delta_rule` raises.
        """
        import torch

        given = _present(q, k, v, g, beta)
        with torch.no_grad():
            if self._computes_by_token(given):
                return self._call(given, final_state=self.states)[0]
            rows = torch.arange(len(self.states), device=self.states.device)
            for name, x in given.items():
                self.inputs[name][rows, self.tokens] = x[:, 0]
            o, states = self._call(self.inputs, output_final_state=True)
            o = o[rows, self.tokens, None]
            is_full = (self.tokens == _CHUNK - 1).view(-1, 1, 1, 1)
            torch.where(is_full, states, self.states, out=self.states)
            self.tokens.add_(1).remainder_(_CHUNK)
            return o

    def _call(self, given: dict[str, Any], **words: Any) -> tuple[Any, Any]:
        words = {"g": None, "beta": None, "initial_state": self.states, "bitwise": True, **self._words, **words}
        o, state = _function_of(given)(**words | given)
        return o, state

    def _computes_by_token(self, given: dict[str, Any]) -> bool:
        """Whether kernels token by token compute such calls. If not, there is memory for inputs."""
        if self._by_token is None:
            words = {"g": None, "beta": None, **self._words}
            call = _api.BUILDERS[_function_of(given).__name__](**words | given, bitwise=True)
            settled, _ = _bitwise.settled(call, self.states.device.type)
            self._by_token = bool(_library.is_recurrent(settled.options))
        if not self._by_token and not self.inputs:
            shape = len(self.states), _CHUNK
            self.inputs = {name: x.new_zeros((*shape, *x.shape[2:])) for name, x in given.items()}
        return self._by_token
