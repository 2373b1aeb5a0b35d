# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call would run, without running it."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

from . import _bitwise, _library
from ._api import BUILDERS
from ._arguments import TENSORS, Call

T = TypeVar("T")


def _documented(record: type[T]) -> type[T]:
    """Adds what stands beside the fields of a record to its page."""
    lines = [f"{record.__doc__}\n\n    Attributes:"]
    for name, hint in typing.get_type_hints(record, include_extras=True).items():
        text = f"{name}: {hint.__metadata__[0]}."
        lines.append(textwrap.fill(text, 120, initial_indent=" " * 8, subsequent_indent=" " * 12))
    record.__doc__ = "\n".join([*lines, "    "])
    return record


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


@_documented
@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy of inputs that no kernel on a GPU reads in place; views of one buffer have one together."""

    inputs: Annotated[tuple[str, ...], "the names of the arguments"]
    transposed: Annotated[bool, "whether tokens lie side by side in them, as in [B, C, T]"]
    bytes: Annotated[float, "bytes that are read and written"]
    seconds: Annotated[float, "predicted time"]

    def __str__(self) -> str:
        how = "transposed" if self.transposed else "copied"
        return f"{', '.join(self.inputs)} {how}: {self.bytes:.4g} bytes, {self.seconds * 1e6:.3g} us"


@_documented
@dataclasses.dataclass(frozen=True)
class Conversion:
    """What is converted before a kernel on a GPU or behind it, as no kernel takes the call as it is."""

    what: Annotated[str, "the arguments, and what becomes of them"]
    bytes: Annotated[float, "bytes that are read and written"]
    launches: Annotated[int, "kernels that do it"]
    seconds: Annotated[float, "predicted time"]

    def __str__(self) -> str:
        return f"{self.what}: {self.bytes:.4g} bytes, {self.launches} launches, {self.seconds * 1e6:.3g} us"


@_documented
@dataclasses.dataclass(frozen=True)
class Split:
    """The segments that sequences are cut into on a GPU, or would best be cut into. The predicted times of its kernels are
    with gates of which a quarter of the heads does not decay."""

    splits: Annotated[bool, "whether they are cut"]
    forced: Annotated[bool, "whether the caller has decided it"]
    length: Annotated[int, "tokens of a segment"]
    longer_length: Annotated[
        int,
        "those of a segment of a sequence that the device cuts otherwise, all of them or more to leave it whole: where "
        "by a sample no head, or half of them or more, keep a state over `length` tokens; with gates a channel for heads "
        "that do; 0 where all sequences are cut alike",
    ]
    parts: Annotated[int, "parts of a segment, of one length, for which its maps are made"]
    late: Annotated[
        bool, "whether segments that start on their own are launched when the maps are done, and not beside them"
    ]
    longest: Annotated[int, "segments of the longest sequence"]
    segments: Annotated[int, "segments of all sequences that are not empty"]
    schedule: Annotated[str, "of the kernel of chunks"]
    map_seconds: Annotated[float, "predicted time of the kernels before the scan over segments"]
    scan_seconds: Annotated[float, "predicted time of the scan"]
    forward_seconds: Annotated[float, "predicted time of the kernel of chunks"]
    slow_gate_seconds: Annotated[float, "what the call takes more if all heads decay slowly"]
    whole_seconds: Annotated[float, "predicted time without segments"]

    @property
    def seconds(self) -> float:
        """Predicted time in segments."""
        return self.map_seconds + self.scan_seconds + self.forward_seconds

    def __str__(self) -> str:
        parts = (("maps", self.map_seconds), ("scan", self.scan_seconds), ("chunks", self.forward_seconds))
        times = ", ".join(f"{name} {_milliseconds(seconds)}" for name, seconds in parts)
        cut = f" in {self.parts} parts" if self.parts > 1 else ""
        longer = f" (or {self.longer_length}, by their gates)" if self.longer_length else ""
        return (
            f"{self.segments} of {self.length} tokens{longer}{cut}, {self.longest} of them in the longest sequence: "
            f"{_milliseconds(self.seconds)} predicted ({times}; {self.slow_gate_seconds * 1e3:+.2g} ms if all "
            f"heads decay slowly), {_milliseconds(self.whole_seconds)} without"
        )


@_documented
@dataclasses.dataclass(frozen=True)
class Backward:
    """What computes the gradients of a call on a GPU."""

    kernel: Annotated[str, "the compiled function's name"]
    launches: Annotated[int, "its kernels; operations of torch around them are not counted"]
    segment_tokens: Annotated[int, "tokens of the segments that sequences are cut into; 0 where they are not"]
    forward_segment_tokens: Annotated[int, 'those of the forward, if it saves "states"; else 0']
    workspace_bytes: Annotated[int, "memory that it takes while it runs, besides gradients"]
    saved_bytes: Annotated[int, "memory that the forward keeps for it"]
    saves: Annotated[
        str,
        'what that is: "inputs", those of the call and nothing else, or "states", what tokens write in the place of v, and '
        "a state every 128 tokens, too",
    ] = "inputs"
    why_inputs: Annotated[
        str | None, 'why a call that asks for "states" saves its inputs; None where it does not'
    ] = None

    def __str__(self) -> str:
        cut = f"segments of {self.segment_tokens} tokens, " if self.segment_tokens else ""
        return (
            f"{self.kernel}: {self.launches} kernels, {cut}{self.workspace_bytes} bytes of workspace, "
            f"{self.saved_bytes} bytes saved ({self.saves}{f', for {self.why_inputs}' if self.why_inputs else ''})"
        )


@_documented
@dataclasses.dataclass(frozen=True)
class KernelChoice:
    """What a call runs and what that costs; `print` it for a table."""

    function: Annotated[str, "the function asked about"]
    device: Annotated[str, "where it runs"]
    kernel: Annotated[str, "the compiled kernel's name"]
    algorithm: Annotated[str, '"chunk" or "recurrent" (token by token)']
    isa: Annotated[str, "the CPU level that the kernel was compiled for"]
    chunk_size: Annotated[int, "tokens of a chunk, 1 token by token"]
    items: Annotated[int, "sequences times value heads, the work that threads share out"]
    threads: Annotated[int, "threads that work on them; 0 on a GPU"]
    schedule: Annotated[
        str,
        '"items" on a CPU; on a GPU "cta_per_head" (a block, CTA, a head) or "cta_per_v_tile" (a CTA for each half of its '
        "value channels)",
    ]
    ctas: Annotated[int, "CTAs of the launch; 0 on a CPU"]
    padded: Annotated[bool, "whether heads are copied to `kernel_channels` channels"]
    kernel_channels: Annotated[int, "channels of a head in the kernel"]
    flop: Annotated[float, "floating-point operations, products of 64-token chunks as all libraries count them"]
    bytes: Annotated[float, "bytes of all arrays, read or written once"]
    workspace_bytes: Annotated[int, "memory that the call takes while it runs"]
    seconds: Annotated[float, "predicted time"]
    floor_seconds: Annotated[float, "on a GPU, the least time that its arithmetic or its memory takes; 0 on a CPU"] = 0.0
    longest: Annotated[int, "on a GPU, tokens of the longest sequence, as the choice takes it; 0 on a CPU"] = 0
    knows_longest: Annotated[bool, "whether that is known, or guessed for want of `max_seqlen` or `cu_seqlens_cpu`"] = True
    alternatives: Annotated[tuple[tuple[str, str], ...], "other ways, each with the reason why it lost"] = ()
    copies: Annotated[tuple[Copy, ...], "on a GPU, the copies of inputs that are not read in place"] = ()
    conversions: Annotated[
        tuple[Conversion, ...], "on a GPU, what is converted because no kernel has the call's form, or its scale"
    ] = ()
    split: Annotated[
        Split | None,
        "on a GPU, the segments that sequences are cut into, or those that lost; None where there are none",
    ] = None
    backward: Annotated[
        Backward | None, "on a GPU, what computes the gradients; None if no input requires one"
    ] = None

    def _rows(self) -> Iterator[tuple[str, str]]:
        """What the table says, line by line."""
        splits = self.split is not None and self.split.splits
        where = "in segments" if splits else f"in {self.ctas} CTAs"
        where = f"on {self.threads} threads" if self.threads else f"{where}, {self.schedule}"
        padding = f"to {self.kernel_channels} channels a head" if self.padded else "none"
        yield "kernel", f"{self.kernel} ({self.algorithm}, {self.isa})"
        yield "schedule", f"{self.items} items (sequence x value head) {where}"
        yield "chunk", f"{self.chunk_size} tokens"
        yield from (("copies", str(copy)) for copy in self.copies or (padding,))
        yield "FLOP", f"{self.flop:.4g}"
        yield "bytes", f"{self.bytes:.4g}"
        yield "workspace", f"{self.workspace_bytes} bytes"
        yield "predicted", _milliseconds(self.seconds)
        yield from (("converted", str(conversion)) for conversion in self.conversions)
        if self.backward is not None:
            yield "backward", str(self.backward)
        if self.split is not None:
            yield "segments" if splits else "not segments", str(self.split)
        if self.seconds and not self.threads:
            share = f"{100 * self.floor_seconds / self.seconds:.0f} % of the prediction"
            yield "floor", f"{_milliseconds(self.floor_seconds)}, {share}"
        if not self.knows_longest:
            yield "guessed", f"a longest sequence of {self.longest} tokens (max_seqlen or cu_seqlens_cpu say it)"
        yield from ((f"not {name}", reason) for name, reason in self.alternatives)

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        lines = [f"{self.function} on {self.device}"]
        return "\n".join(lines + [f"  {name:<{width}}  {text}" for name, text in rows])


@dataclasses.dataclass(frozen=True)
class Support:
    """Whether a call can run: true or false as it stands, with `reasons` where it cannot."""

    ok: bool
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


#: Type, extents, strides in elements, device and address of a tensor.
_Described = tuple[str, Any, Any, str, int]
#: DLPack's codes of the kinds of types that arrays have, and the code and bits of others.
_CODES, _OPAQUE = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}, (3, 8)
_DEVICES = {"cpu": 1, "cuda": 2}
_MAX_RANK = 4
#: An array for the library: rank, type, device, its number, and address; extents and strides.
_ARRAY = struct.Struct(f"={5 + 2 * _MAX_RANK}q")


def _pack(described: _Described | None, device: str) -> bytes:
    """One array as the integers that the library reads (Bridge.cpp)."""
    if described is None:
        return _ARRAY.pack(-1, *(0,) * (4 + 2 * _MAX_RANK))
    dtype, shape, strides, place, address = described
    kind = re.fullmatch("([a-z]+)([0-9]*)", dtype)
    code, bits = (_CODES[kind[1]], int(kind[2] or 8)) if kind and kind[1] in _CODES else _OPAQUE
    # Tensors without data go where the call would run.
    name, _, index = (device if place == "meta" else place).partition(":")
    extents, steps = ((*numbers, *(0,) * _MAX_RANK)[:_MAX_RANK] for numbers in (shape, strides))
    return _ARRAY.pack(
        len(shape), code << 8 | bits, _DEVICES.get(name, 0), int(index or 0), address, *extents, *steps
    )


def _ask(question: str, described: Iterable[_Described | None], where: str, *words: Any) -> dict[str, Any]:
    """What a function of the library says of the call of these arrays."""
    arrays = b"".join(_pack(tensor, where) for tensor in described)
    facts: dict[str, Any] = json.loads(getattr(_library.load(), question)(arrays, *words))
    return facts


def _settled(call: Call, device: str) -> Call:
    """The call as its device decides about `bitwise`."""
    is_bitwise = call.options & _library.BITWISE_MASK == _library.BITWISE
    return _bitwise.settled(call, device)[0] if is_bitwise else call


def _facts_of_arrays(call: Call) -> dict[str, Any]:
    """What the library says of a call of arrays."""
    from . import _arrays

    call = _settled(call, "cpu")
    described = [None if value is None else _arrays.describe(name, value) for name, value in zip(TENSORS, call)]
    return _ask("explain", described, "cpu", call.scale, call.options, _arrays.num_threads(), call.max_seqlen)


def _facts_of_tensors(given: Call, device: str | None) -> dict[str, Any]:
    """The same of torch tensors; on a GPU with the outputs, and with what computes the gradients."""
    import torch

    from . import _narrow, _torch, _torch_backward, _torch_checks, _torch_sharded

    call = given = _torch_sharded.explained(given)
    _torch_checks.check_kinds(call)
    place = str(call.q.device)
    where = (device or "cpu") if place == "meta" else place
    # The library takes numbers of 32 bits.
    if not re.fullmatch("(cpu|cuda)(:[0-9]{1,9})?", where):
        raise ValueError(f"device: expected 'cpu' or 'cuda', got {where!r}")
    kind = where.split(":")[0]
    call = given = _narrow.explained(_settled(call, kind))
    if _torch_checks.refuse_call(call, kind, writes=call.out is not None or call.final_state is not None):
        call = call._replace(options=_torch_backward.trained(call.options, kind))
    if kind == "cuda":
        call = _torch.with_outputs(call)
    words = (call.scale, call.options, torch.get_num_threads(), call.max_seqlen)
    facts = _ask("explain", map(_torch.describe, call.tensors), where, *words)
    return {**facts, **_facts_of_gradients(given, where)}


def _facts_of_gradients(call: Call, where: str) -> dict[str, Any]:
    """What computes the gradients of a call on a GPU, if an input requires one, and what is then different of the forward."""
    import torch

    from . import _torch, _torch_backward_gpu, _torch_saved

    given = call[:9]
    wants = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given)
    saves = call.options & _library.BITWISE_MASK == _library.BITWISE
    if not (wants or saves) or not where.startswith("cuda") or _torch_backward_gpu.why_not(*call[:4], call.options):
        return {}
    form = _torch_backward_gpu.form_of(call.q, call.v, call.g, call.beta, call.options)
    options = _torch_backward_gpu.kernel_options(form, call.options, call.g)
    asks, reason = bool(call.options & _library.SAVES_STATES), None
    if asks:
        reason = _torch_saved.why_inputs(call, call.scale, call.options, int(where.partition(":")[2] or 0))
    saved = sum(x.numel() * x.element_size() for x in given if x is not None)
    reads_saved = asks and reason is None
    if reads_saved:
        # What tokens write is as large as v.
        options |= _library.SAVES_STATES
        saved += _torch_saved.bytes_of_states(call, call.options)
    described = [*map(_torch.describe, _torch_backward_gpu.without_data(call))]
    rest = (described, where, call.scale, options, 1, 0)
    forward = _ask("explain_saving", *rest) if reads_saved else {}
    if not wants:
        forward.pop("segment_tokens", 0)
        return forward
    backward = Backward(
        **_ask("explain_backward", *rest), forward_segment_tokens=forward.pop("segment_tokens", 0), saved_bytes=saved,
        saves="states" if reads_saved else "inputs", why_inputs=reason,
    )  # fmt: skip
    return {**forward, "backward": backward}


def explain(
    *args: Any, function: str = "chunk_gated_delta_rule", device: str | None = None, **kwargs: Any
) -> KernelChoice:
    """What `function` would run for these arguments: the kernel, its schedule and cost, and why not another.

    Nothing runs, and torch tensors on the meta device will do. Of contents the boundaries alone are read, and these
    on a CPU alone.

    Args:
        *args, **kwargs: the arguments of the function.
        function: "chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule", "chunk_kda" or "fused_recurrent_kda".
        device: where torch tensors on the meta device would be: "cpu" (the default) or "cuda". Others are where
            they are.

    Returns:
        The `KernelChoice`, which prints as a table.

    Raises:
        TypeError, ValueError, NotImplementedError, RuntimeError: what the call itself would raise.

    Example:
        >>> import gdn, numpy
        >>> q = numpy.zeros((1, 4096, 16, 128), "float32")
        >>> g = numpy.zeros((1, 4096, 16), "float32")
        >>> gdn.explain(q, q, q, g, g).algorithm
        'chunk'
    """
    if function not in BUILDERS:
        raise ValueError(f"function: expected one of {', '.join(BUILDERS)}, got {function!r}")
    call, torch = BUILDERS[function](*args, **kwargs), sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(call.q, torch.Tensor)
    facts = _facts_of_tensors(call, device) if is_tensor else _facts_of_arrays(call)
    facts["alternatives"] = tuple(map(tuple, facts["alternatives"]))
    facts["copies"] = tuple(Copy(**{**copy, "inputs": tuple(copy["inputs"])}) for copy in facts.get("copies", ()))
    facts["conversions"] = tuple(Conversion(**row) for row in facts.get("conversions", ()))
    if facts.get("split") is not None:
        facts["split"] = Split(**facts["split"])
    names = {field.name for field in dataclasses.fields(KernelChoice)} & facts.keys()
    return KernelChoice(function=function, **{name: facts[name] for name in names})


def supported(*args: Any, **kwargs: Any) -> Support:
    """Whether a call with these arguments can run, with reasons if not; takes what `explain` takes.

    Example:
        >>> import gdn, numpy
        >>> q, g = numpy.zeros((1, 64, 2, 300), "float32"), numpy.zeros((1, 64, 2), "float32")
        >>> answer = gdn.supported(q, q, q, g, g)
        >>> bool(answer), answer.reasons
        (False, ('q: expected K of 1 to 256, got K = 300',))
    """
    try:
        explain(*args, **kwargs)
    except (TypeError, ValueError, NotImplementedError, RuntimeError, DeprecationWarning) as error:
        return Support(False, (str(error),))
    return Support(True)
