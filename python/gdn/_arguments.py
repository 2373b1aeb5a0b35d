# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the arguments that people write to the ones that the library takes."""

from __future__ import annotations

import contextlib
import itertools
import numbers
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import _library

_CHUNK_SIZES = (16, 32, 64)


class Call(NamedTuple):
    """A forward call in the library's terms; tensors as the caller gave them."""

    q: Any
    k: Any
    v: Any
    g: Any
    beta: Any
    A_log: Any
    dt_bias: Any
    initial_state: Any
    cu_seqlens: Any
    out: Any
    final_state: Any
    state_indices: Any
    has_initial_state: Any
    step_states: Any
    step_indices: Any
    num_accepted: Any
    parents: Any
    step_starts: Any
    step_intervals: Any
    scale: float
    options: int
    output_final_state: bool
    max_seqlen: int

    @classmethod
    def of(cls, tensors: tuple[Any, ...], *rest: Any) -> Call:
        """The call of these tensors and the other fields; a scale of None is the default one."""
        call = cls(*tensors, *rest)
        return call if call.scale is not None else call._replace(scale=default_scale(shape_of("q", call.q)))

    @property
    def tensors(self) -> tuple[Any, ...]:
        """The tensors, in the library's order."""
        return self[: len(TENSORS)]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `of` takes."""
        return self.tensors, *self[len(TENSORS) :]


#: A caller's results from those of the call that is run for it.
Back = Callable[[Any, Any], tuple[Any, Any]]
#: The names of the tensors of a call, in the library's order.
TENSORS = tuple(_library.MANIFEST["arguments"])
#: Those that a call writes.
OUTPUTS = ("out", "final_state", "step_states")
#: The last ones of a call that keeps no states after tokens, and of one without a pool.
NO_STEPS, NO_POOL = ((None,) * (len(TENSORS) - TENSORS.index(name)) for name in ("step_states", "state_indices"))


def refuse(name: str, reason: str) -> None:
    """Refuses an argument that this version cannot serve."""
    raise NotImplementedError(f"{name}: {reason}")


def check_rules(error: type[Exception], *rules: tuple[bool, str]) -> None:
    """Raises the words of the first of another library's rules that does not hold."""
    for holds, message in rules:
        if not holds:
            raise error(message)


def old_arguments(kwargs: dict[str, Any], state_v_first: bool) -> bool:
    """Arguments of older FLA releases; returns `state_v_first`."""
    if "transpose_state_layout" in kwargs:
        if state_v_first:
            raise ValueError("Cannot pass both `state_v_first` and the deprecated `transpose_state_layout`.")
        warnings.warn(
            "`transpose_state_layout` is deprecated and renamed to `state_v_first`.",
            DeprecationWarning,
            stacklevel=3,
        )
        state_v_first = bool(kwargs.pop("transpose_state_layout"))
    if "head_first" in kwargs:
        raise DeprecationWarning("head_first has been removed. Inputs must be in `[B, T, H, ...]` format.")
    if kwargs:
        name = next(iter(kwargs))
        raise TypeError(f"{name}: expected an argument that the function has, got an unexpected one")
    return state_v_first


def number(name: str, value: Any) -> float:
    """An argument that is to be a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: expected a number or None, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name}: expected a finite number, got one beyond the range of a float") from error


def _integer(name: str, value: Any, others: str = "") -> int:
    """An argument that is to be an integer; `others` are the words for what else it may be."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}: expected an integer{others}, got {type(value).__name__}")
    return int(value)


def _gate_domain(name: str | None, raw: bool) -> int:
    """The gate's domain from `gate_domain` and FLA's `use_gate_in_kernel`."""
    if name is None:
        return _library.GATE_DOMAINS["raw" if raw else "log"]
    if not isinstance(name, str) or name not in _library.GATE_DOMAINS:
        known = ", ".join(map(repr, list(_library.GATE_DOMAINS)[:-1]))
        raise ValueError(f"gate_domain: expected {known} or {list(_library.GATE_DOMAINS)[-1]!r}, got {name!r}")
    if raw and _library.GATE_DOMAINS[name] not in _library.PARAMETRIC_GATES:
        raise ValueError(f"gate_domain: expected 'raw' with use_gate_in_kernel=True, got {name!r}")
    return _library.GATE_DOMAINS[name]


def v_first_of(state_v_first: bool, layout: str | None) -> bool:
    """Whether states are [N, HV, V, K], from FLA's flag and `state_layout`."""
    if layout is None:
        return bool(state_v_first)
    if not isinstance(layout, str) or layout not in ("kv", "vk"):
        raise ValueError(f"state_layout: expected 'kv' or 'vk', got {layout!r}")
    if state_v_first and layout == "kv":
        raise ValueError("state_layout: expected 'vk' with state_v_first=True, got 'kv'")
    return layout == "vk"


def default_scale(q_shape: Any) -> float:
    """The factor of the read-out, as the library takes it for None. A wrong shape is the library's to refuse."""
    return q_shape[-1] ** -0.5 if len(q_shape) and q_shape[-1] else 1.0


def shape_of(name: str, tensor: Any) -> tuple[int, ...]:
    """The shape of a required tensor of any kind."""
    try:
        shape = getattr(tensor, "shape", None)
    except RuntimeError as error:
        raise TypeError(f"{name}: expected a tensor with one shape, got a nested one") from error
    if shape is None or not (hasattr(tensor, "__dlpack__") or hasattr(tensor, "__array_interface__")):
        raise TypeError(
            f"{name}: expected a tensor (torch, NumPy, or with __dlpack__), got {type(tensor).__name__}"
        )
    return shape  # type: ignore[no-any-return]


def library_of(x: Any) -> Any:
    """torch, or NumPy for other arrays."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch
    import numpy

    return numpy


def viewed(name: str, x: Any) -> Any:
    """A tensor of torch, or NumPy's view of an array of this name."""
    if library_of(x).__name__ == "torch":
        return x
    from . import _arrays

    return _arrays.to_numpy(name, x)


def made(what: str, size: Any, like: Any, dtype: str | None = None) -> Any:
    """What the library's function of this name makes: of the type of a tensor or a NumPy array, and where that is."""
    library = library_of(like)
    where = {"device": like.device} if library.__name__ == "torch" else {}
    return getattr(library, what)(size, dtype=getattr(library, dtype) if dtype else like.dtype, **where)


def repeat_heads(x: Any, times: int, axis: int) -> Any:
    """A tensor or an array with each head `times` times in a row."""
    return x.repeat_interleave(times, axis) if hasattr(x, "repeat_interleave") else x.repeat(times, axis)


def options_of(
    raw_gate: Any,
    gate_domain: str | None,
    beta_sigmoid: Any,
    allow_neg_eigval: Any,
    l2norm: Any,
    state_v_first: Any,
    state_layout: str | None,
    recurrent: bool,
) -> int:
    """The options of a call as the library takes them."""
    if allow_neg_eigval and not beta_sigmoid:
        raise ValueError("`allow_neg_eigval=True` requires `use_beta_sigmoid_in_kernel=True`.")
    beta_domain = _library.BETA_VALUE
    if beta_sigmoid:
        beta_domain = _library.BETA_DOUBLED_LOGIT if allow_neg_eigval else _library.BETA_LOGIT
    domain = _gate_domain(gate_domain, raw_gate)
    return _library.pack_options(
        gate_domain=domain, beta_domain=beta_domain, l2norm=bool(l2norm),
        state_v_first=v_first_of(state_v_first, state_layout), recurrent=recurrent,
    )  # fmt: skip


def _list_options() -> Iterator[tuple[tuple[Any, ...], int]]:
    """All arguments of `options_of` that it takes, as far as these are booleans, names and None, with what it gives."""
    domains, layouts, flags = (None, *_library.GATE_DOMAINS), (None, "kv", "vk"), (False, True)
    for arguments in itertools.product(flags, domains, flags, flags, flags, flags, layouts, flags):
        with contextlib.suppress(ValueError):
            yield arguments, options_of(*arguments)


#: Tokens of a kernel's chunk: segments are cut between chunks.
_CHUNK_TOKENS = _library.MANIFEST["hopper"]["chunk_tokens"]


def split_of(context_parallel: Any, segment_length: Any) -> int:
    """What a call says about segments, as options."""
    if segment_length is not None:
        length = _integer("segment_length", segment_length, " or None")
        if context_parallel is not None and context_parallel is not True:
            raise ValueError(f"segment_length: expected None with context_parallel={context_parallel!r}")
        if not 0 < length <= _library.MOST_SPLIT_BY or length % _CHUNK_TOKENS:
            raise ValueError(
                f"segment_length: expected a multiple of {_CHUNK_TOKENS} of at most 2^32 - 1, got {segment_length}"
            )
        return _library.pack_segment_length(length)
    if context_parallel is None or context_parallel is True:
        return 0
    count = 0 if context_parallel is False else _integer("context_parallel", context_parallel, ", a boolean or None")
    if not 0 <= count <= _library.MOST_SPLIT_BY:
        raise ValueError(f"context_parallel: expected 0 to 2^32 - 1 segments, got {context_parallel}")
    return _library.NO_SEGMENTS if count < 2 else _library.pack_segments(count)


def pool_of(
    state_indices: Any, first_state: Any, has_initial_state: Any, output_final_state: Any, final_state: Any
) -> int:
    """What a call says about a pool of states, as options."""
    first = _integer("first_state", first_state)
    if not 0 <= first <= _library.MOST_FIRST_STATE:
        raise ValueError(f"first_state: expected 0 to {_library.MOST_FIRST_STATE}, got {first_state}")
    if state_indices is None:
        if first:
            raise ValueError(f"first_state: expected 0 without state_indices, got {first_state}")
        if has_initial_state is not None:
            raise ValueError("has_initial_state: expected None without state_indices, got a tensor")
        return 0
    if output_final_state and final_state is None:
        raise ValueError(
            "final_state: expected initial_state, the pool, with state_indices and output_final_state, got None"
        )
    return _library.pack_first_state(first)


#: What pools say whose first rows engines name: asking as above takes a token's call as long as reading the rest.
KNOWN_POOLS = {first: _library.pack_first_state(first) for first in (0, 1)}


def saves_of(what: Any) -> int:
    """What a call says about what its forward saves, as options."""
    if what not in ("inputs", "states"):
        raise ValueError(f"save_for_backward: expected 'inputs', 'states' or None, got {what!r}")
    return _library.SAVES_STATES if what == "states" else 0


#: A call looks its options up, which takes a third of the time.
KNOWN_OPTIONS = dict(_list_options())


def type_name(tensor: Any) -> str:
    """The name of the type of a tensor or an array, without that of torch."""
    return str(getattr(tensor.dtype, "name", tensor.dtype)).removeprefix("torch.")


def typed_as_output(q: Any, v: Any, options: int) -> Any:
    """The one whose type o has: FLA's choice where they have different ones."""
    return v if _library.is_recurrent(options) else q


def output_shapes(options: int, q_shape: Any, v_shape: Any, cu_shape: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of o and of the states."""
    sequences = q_shape[0] if cu_shape is None else cu_shape[0] - 1
    channels = (q_shape[3], v_shape[3])
    if _library.state_is_v_first(options):
        channels = channels[::-1]
    return (*q_shape[:2], *v_shape[2:4]), (max(sequences, 0), v_shape[2], *channels)


#: The largest number of tokens that the library can be told.
_MOST_TOKENS = 2**63 - 1


def longest_sequence(max_seqlen: Any, cu_seqlens_cpu: Any, chunk_indices: Any) -> int:
    """The longest sequence's tokens as the hints tell them, 0 if they do not. They change no result, but may still
    be mistaken for others."""
    longest = None if max_seqlen is None else _integer("max_seqlen", max_seqlen, " or None")
    for name, value in (("cu_seqlens_cpu", cu_seqlens_cpu), ("chunk_indices", chunk_indices)):
        if value is not None:
            shape_of(name, value)
    if longest is not None:
        if longest > _MOST_TOKENS:
            raise ValueError(f"max_seqlen: expected at most 2^63 - 1, got {max_seqlen}")
        return max(longest, 0)
    if cu_seqlens_cpu is None:
        return 0
    if str(getattr(cu_seqlens_cpu, "device", "cpu")) != "cpu":
        raise ValueError(f"cu_seqlens_cpu: expected a tensor on the CPU, got one on {cu_seqlens_cpu.device}")
    ends = cu_seqlens_cpu.tolist()
    if not isinstance(ends, list) or (ends and not hasattr(ends[0], "__index__")):
        raise ValueError(
            f"cu_seqlens_cpu: expected integers of the shape [N + 1], got {cu_seqlens_cpu.dtype} of the shape "
            f"{list(cu_seqlens_cpu.shape)}"
        )
    return max([0, *(int(end - begin) for begin, end in zip(ends, ends[1:]))])


def check_chunk_size(chunk_size: Any) -> None:
    """FLA's `chunk_size`; results do not depend on it here."""
    if chunk_size not in _CHUNK_SIZES:
        raise ValueError(f"`chunk_size` must be 16, 32, or 64 for Gated Delta Rule, got {chunk_size}.")
