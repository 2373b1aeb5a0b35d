# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plug-in of SGLang: with GDN_SGLANG=1 its backends of Gated DeltaNet and of Kimi Delta Attention call gdn's functions.

SGLang finds `register` by the entry point `sglang.srt.plugins` and calls it in each of its processes. Without the variable
it does nothing, and imports nothing. docs/Serving.md has what runs.

A backend keeps SGLang's convolutions, metadata and pools, and for Gated DeltaNet the gates of prefills: its dispatcher gets
kernels that call gdn over the rows of the pool.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

#: The versions whose backends these are, by what they begin with.
TESTED = ("0.5.23",)
_PACKAGE = "sglang.srt.layers.attention.linear"
BACKENDS = ("gdn_backend.GDNAttnBackend", "kda_backend.KDAAttnBackend")
#: Tokens of SGLang's chunks, between which it keeps states.
_CHUNK = 64
#: What a dispatcher may have.
_ROLES = ("decode_kernel", "extend_kernel", "verify_kernel", "tree_verify_kernel")


def register() -> None:
    """Puts gdn under SGLang's backends where GDN_SGLANG is 1; may be called again."""
    if os.environ.get("GDN_SGLANG") != "1":
        return
    import importlib

    from ._serving import is_tested

    if is_tested("SGLang", TESTED):
        hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
        for backend in BACKENDS:
            hooks.HookRegistry.register(f"{_PACKAGE}.{backend}.__init__", serve, hooks.HookType.AFTER)


def serve(_result: Any, backend: Any, *_arguments: Any, **_words: Any) -> None:
    """Behind the constructor of a backend: its dispatcher gets gdn's kernels, each over the one that was there."""
    from ._serving import asks_for_invariance, leave

    # Set by --enable-deterministic-inference.
    if asks_for_invariance("SGLang", "SGLANG_ENABLE_DETERMINISTIC_INFERENCE"):
        return
    made: dict[int, Any] = {}
    for role in _ROLES:
        own = getattr(backend.kernel_dispatcher, role, None)
        if own is None or getattr(own, "is_gdn", False):
            continue
        if not type(own).__module__.startswith("sglang."):
            leave("SGLang", role, type(own))
            continue
        if id(own) not in made:
            made[id(own)] = make_kernel(type(own))(backend, own)
        setattr(backend.kernel_dispatcher, role, made[id(own)])


def _has_channels(a: Any, b: Any) -> bool:
    """Whether raw gates are those of channels, beside a logit of beta a head: their shapes differ from call to call."""
    return bool(a.numel() > b.numel())


def make_kernel(parent: Any) -> type:
    """The class of kernels over one of SGLang's: it says what that can, and runs as that if gdn does not."""
    import torch

    import gdn

    from . import _serving
    from ._steps import numbers_of_rows, states_of

    class Kernel(parent):  # type: ignore[misc]
        #: By which `serve` knows it.
        is_gdn = True
        #: A backend asks for one state inside each prefill, in float32, rather than for all between chunks.
        supports_track_state_snapshot = True

        def __init__(self, backend: Any, own: Any) -> None:
            self.__dict__.update(vars(own))
            self.backend, self.served = backend, _serving.Served("SGLang")
            #: Rows of buffers of states that are made of the backend's own indices.
            self._rows: dict[tuple[int, int, int], Any] = {}

        def packed_decode(self, mixed_qkv: Any, a: Any, b: Any, **words: Any) -> Any:
            """One token of each row of `mixed_qkv`, the convolution's output."""
            pool = words["ssm_states"]
            out = mixed_qkv.new_empty(len(mixed_qkv), 1, *pool.shape[1:3])

            def call() -> dict[str, Any]:
                parts = {name: part.unsqueeze(1) for name, part in _serving.heads_of(mixed_qkv, pool).items()}
                return {
                    **self._tokens(parts, a, b, out, words), "initial_state": pool, "final_state": pool,
                    "state_indices": words["cache_indices"], "scale": words["scale"],
                }  # fmt: skip

            if self._decodes(mixed_qkv, a, b, words) and self._runs("decoding", call, mixed_qkv):
                return out.transpose(0, 1)
            return super().packed_decode(mixed_qkv, a, b, **words)

        def decode(self, q: Any, k: Any, v: Any, a: Any, b: Any, **words: Any) -> Any:
            """Tokens [1, T, H, K], one a sequence."""
            pool, out = words["ssm_states"], torch.empty_like(v, memory_format=torch.contiguous_format)

            def call() -> dict[str, Any]:
                ends = words["query_start_loc"]
                return {
                    **self._tokens({"q": q, "k": k, "v": v}, a, b, out, words), "cu_seqlens": ends, "initial_state": pool,
                    "final_state": pool, "state_indices": words["cache_indices"][: len(ends) - 1],
                }  # fmt: skip

            if self._decodes(q, a, b, words) and self._runs("decoding", call, q):
                return out
            return super().decode(q, k, v, a, b, **words)

        def extend(self, q: Any, k: Any, v: Any, g: Any, beta: Any, **words: Any) -> Any:
            """A prefill of packed sequences: log gates and values of beta, or for Kimi Delta Attention raw ones."""
            pool, out, kept = words["ssm_states"], words.get("output"), words.get("track_state")
            if out is None:
                out = torch.empty_like(v, memory_format=torch.contiguous_format)
            # Kernels keep states in the pool's type, in which SGLang stores them in the end.
            states = kept if kept is None or kept.dtype == pool.dtype else torch.empty_like(kept, dtype=pool.dtype)

            def call() -> dict[str, Any]:
                ends, given = words["query_start_loc"], {"q": q, "k": k, "v": v, "g": g, "beta": beta, "out": out}
                count = len(ends) - 1
                if words.get("A_log") is not None:
                    given = self._tokens({"q": q, "k": k, "v": v}, g, beta, out, words)
                if kept is not None:
                    given["state_checkpoints"] = states
                    given["checkpoint_cu_starts"] = numbers_of_rows(q, 1, count + 1, 0)[0]
                    given["checkpoint_every_n_tokens"] = words["track_chunk_idx"][:count] * _CHUNK
                return {
                    **given, "use_beta_sigmoid_in_kernel": words.get("beta_is_raw", False), "state_layout": "vk",
                    "use_qk_l2norm_in_kernel": True, "cu_seqlens": ends, "initial_state": pool, "final_state": pool,
                    "state_indices": words["cache_indices"][:count],
                }  # fmt: skip

            kind = "prefill" + ("" if kept is None else " with states inside")
            if self._extends(words) and self._runs(kind, call, q, is_prefill=True):
                if kept is not None and states is not kept:
                    kept.copy_(states)
                if g.ndim < 4:
                    return out, None, None
                return (out, None) if words.get("return_intermediate_states") else out
            done = super().extend(q, k, v, g, beta, **words)
            if kept is not None and not getattr(parent, "supports_track_state_snapshot", False):
                # The last result is all states between chunks.
                step = self.backend.forward_metadata
                kept[step.track_ssm_h_batch_src] = done[-1][0, step.track_ssm_h_src].to(kept.dtype)
            return done

        def target_verify(self, A_log: Any, dt_bias: Any, q: Any, k: Any, v: Any, a: Any, b: Any, **words: Any) -> Any:
            """Speculated tokens of sequences: the pool stays, and a buffer gets the states after them."""
            out = torch.empty_like(v, memory_format=torch.contiguous_format)
            parents = words["retrieve_parent_token"]

            def call() -> dict[str, Any]:
                ends, (states, between) = words["query_start_loc"], states_of(words["intermediate_states_buffer"])
                count, steps = len(ends) - 1, words["cache_steps"]
                gates = {**words, "A_log": A_log, "dt_bias": dt_bias}
                return {
                    **self._tokens({"q": q, "k": k, "v": v}, a, b, out, gates), "cu_seqlens": ends,
                    "initial_state": words["ssm_states"], "step_states": states,
                    "state_indices": words["cache_indices"][:count],
                    "step_indices": self._step_rows(words["intermediate_state_indices"], count, between, steps),
                    "parents": None if parents is None else parents[:count],
                }  # fmt: skip

            kind = "speculated tokens" + ("" if parents is None else " in trees")
            if self._takes("verification", words) and self._runs(kind, call, q):
                return out
            return super().target_verify(A_log=A_log, dt_bias=dt_bias, q=q, k=k, v=v, a=a, b=b, **words)

        def _tokens(self, parts: dict[str, Any], a: Any, b: Any, out: Any, words: dict[str, Any]) -> dict[str, Any]:
            """What a call says of its tokens [B, T, ...], from raw gates and logits of any shape with as many elements."""
            shape, is_kda = parts["v"].shape[:3], _has_channels(a, b)
            return {
                **parts, "g": a.reshape(*shape, -1) if is_kda else a.reshape(shape), "beta": b.reshape(shape),
                "out": out, **self.served.raw(words["A_log"], words["dt_bias"]),
                **({"lower_bound": words.get("lower_bound")} if is_kda else {}),
            }  # fmt: skip

        def _step_rows(self, indices: Any, count: int, between: int, tokens: int) -> Any:
            """Rows [N, S] of a buffer [slots, between, ...]: none for a negative index. The backend's own indices never change:
            their rows stay, as a CUDA graph may have them."""
            key = count, between, tokens
            is_own = indices is getattr(self.backend, "verify_intermediate_state_indices", None)
            if is_own and key in self._rows:
                return self._rows[key]
            steps = torch.arange(tokens, dtype=torch.int32, device=indices.device)
            rows = indices[:count, None].int() * between + steps
            # What a graph makes while it is captured is there only when it runs.
            if is_own and not (indices.is_cuda and torch.cuda.is_current_stream_capturing()):
                self._rows[key] = rows
            return rows

        def _takes(self, kind: str, words: dict[str, Any]) -> bool:
            """Whether states alone are what a call goes on from."""
            others = ("replayssm_", "fused_accept_")
            for name, given in words.items():
                if given is not None and name.startswith(others):
                    return self.served.decide(f"{kind} with {name}", "gdn has no kernels for it")
            return True

        def _decodes(self, x: Any, a: Any, b: Any, words: dict[str, Any]) -> bool:
            if x.is_cuda and words["ssm_states"].element_size() == 2 and _has_channels(a, b):
                return self.served.decide("decoding with states of 16 bits", "Triton's kernels may be faster with them")
            return self._takes("decoding", words)

        def _extends(self, words: dict[str, Any]) -> bool:
            if not words.get("inplace_update", True):
                return self.served.decide("multi-item scoring", "gdn writes states where it reads them")
            if words.get("is_spec_decode"):
                return self.served.decide("prefills of drafts", "gdn writes states that may be taken back")
            return True

        def _runs(self, kind: str, call: Callable[[], dict[str, Any]], x: Any, is_prefill: bool = False) -> bool:
            """Runs a call if gdn runs calls of this kind."""

            def calls() -> Any:
                words = call()
                yield _serving.functions_of(words["g"].ndim == 4)[is_prefill], words

            if not self.served.serves(kind, calls, x.is_cuda):
                return False
            for name, words in calls():
                getattr(gdn, name)(**words)
            return True

    return Kernel
