# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call would run, without running it."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import sys
from typing import Any

from . import _library
from ._api import BUILDERS
from ._arguments import TENSORS, Call
from ._explain_backward import Backward, ask_backward

#: DLPack's code and bits of the types that arrays have.
_TYPES = {
    "bfloat16": (4, 16),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "bool": (6, 8),
    "complex64": (5, 64),
    "complex128": (5, 128),
}
_OPAQUE = (3, 8)
_DEVICES = {"cpu": 1, "cuda": 2}
_MAX_RANK = 4
#: An array for the library: rank, type, device, its number, and address; extents and strides.
_ARRAY = struct.Struct(f"={5 + 2 * _MAX_RANK}q")


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy of inputs that no kernel on a GPU reads in place; views of one buffer have one together.

    Attributes:
        inputs: the names of the arguments.
        transposed: whether tokens lie side by side in them, as in [B, C, T].
        bytes: bytes that are read and written.
        seconds: predicted time.
    """

    inputs: tuple[str, ...]
    transposed: bool
    bytes: float
    seconds: float

    def __str__(self) -> str:
        how = "transposed" if self.transposed else "copied"
        return f"{', '.join(self.inputs)} {how}: {self.bytes:.4g} bytes, {self.seconds * 1e6:.3g} us"


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What is converted before a kernel on a GPU or behind it, as no kernel takes the call as it is.

    Attributes:
        what: the arguments, and what becomes of them.
        bytes: bytes that are read and written.
        launches: kernels that do it.
        seconds: predicted time.
    """

    what: str
    bytes: float
    launches: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.what}: {self.bytes:.4g} bytes, {self.launches} launches, {self.seconds * 1e6:.3g} us"


@dataclasses.dataclass(frozen=True)
class Split:
    """The segments that sequences are cut into on a GPU, or would best be cut into.

    Attributes:
        splits: whether they are cut.
        forced: whether the caller has decided it.
        length: tokens of a segment.
        longer_length: those of a segment of a sequence where no head, or half of them or more, keep a state over
            `length` tokens, by a sample of the gates on the device; 0 where all sequences are cut alike.
        parts: parts of a segment, of one length, for which its maps are made.
        late: whether segments that start on their own are launched when the maps are done, and not beside them.
        longest: segments of the longest sequence.
        segments: segments of all sequences that are not empty.
        schedule: of the kernel of chunks.
        map_seconds, scan_seconds, forward_seconds: predicted times of the kernels before the scan over segments, of
            the scan, and of the kernel of chunks, with gates of which a quarter of the heads does not decay.
        slow_gate_seconds: what the call takes more if all heads decay slowly.
        whole_seconds: predicted time without segments.
    """

    splits: bool
    forced: bool
    length: int
    longer_length: int
    parts: int
    late: bool
    longest: int
    segments: int
    schedule: str
    map_seconds: float
    scan_seconds: float
    forward_seconds: float
    slow_gate_seconds: float
    whole_seconds: float

    @property
    def seconds(self) -> float:
        """Predicted time in segments."""
        return self.map_seconds + self.scan_seconds + self.forward_seconds

    def __str__(self) -> str:
        parts = (("maps", self.map_seconds), ("scan", self.scan_seconds), ("chunks", self.forward_seconds))
        times = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in parts)
        cut = f" in {self.parts} parts" if self.parts > 1 else ""
        longer = f" (or {self.longer_length}, by their gates)" if self.longer_length else ""
        return (
            f"{self.segments} of {self.length} tokens{longer}{cut}, {self.longest} of them in the longest sequence: "
            f"{self.seconds * 1e3:.3g} ms predicted ({times}; {self.slow_gate_seconds * 1e3:+.2g} ms if all "
            f"heads decay slowly), {self.whole_seconds * 1e3:.3g} ms without"
        )


@dataclasses.dataclass(frozen=True)
class KernelChoice:
    """What a call runs and what that costs; `print` it for a table.

    Attributes:
        function: the function asked about.
        device: where it runs.
        kernel: the compiled kernel's name.
        algorithm: "chunk" or "recurrent" (token by token).
        isa: the CPU level that the kernel was compiled for.
        chunk_size: tokens of a chunk, 1 token by token.
        items: sequences times value heads, the work that threads share out.
        threads: threads that work on them; 0 on a GPU.
        schedule: "items" on a CPU; on a GPU "cta_per_head" (a block, CTA, a head) or "cta_per_v_tile" (a CTA for each
            half of its value channels).
        ctas: CTAs of the launch; 0 on a CPU.
        padded: whether heads are copied to `kernel_channels` channels.
        kernel_channels: channels of a head in the kernel.
        flop: floating-point operations, products of 64-token chunks as all libraries count them.
        bytes: bytes of all arrays, read or written once.
        workspace_bytes: memory that the call takes while it runs.
        seconds: predicted time.
        floor_seconds: on a GPU, the least time that its arithmetic or its memory takes; 0 on a CPU.
        longest: on a GPU, tokens of the longest sequence, as the choice takes it; 0 on a CPU.
        knows_longest: whether that is known, or guessed for want of `max_seqlen` or `cu_seqlens_cpu`.
        alternatives: other ways, each with the reason why it lost.
        copies: on a GPU, the copies of inputs that are not read in place.
        conversions: on a GPU, what is converted because no kernel has the call's form, or its scale.
        split: on a GPU, the segments that sequences are cut into, or those that lost; None where there are none.
        backward: on a GPU, what computes the gradients; None if no input requires one.
    """

    function: str
    device: str
    kernel: str
    algorithm: str
    isa: str
    chunk_size: int
    items: int
    threads: int
    schedule: str
    ctas: int
    padded: bool
    kernel_channels: int
    flop: float
    bytes: float
    workspace_bytes: int
    seconds: float
    floor_seconds: float
    longest: int
    knows_longest: bool
    alternatives: tuple[tuple[str, str], ...]
    copies: tuple[Copy, ...]
    conversions: tuple[Conversion, ...]
    split: Split | None
    backward: Backward | None

    def _schedule(self) -> str:
        items = f"{self.items} items (sequence x value head)"
        if self.threads:
            return f"{items} on {self.threads} threads"
        if self.split is not None and self.split.splits:
            return f"{items} in segments, {self.schedule}"
        return f"{items} in {self.ctas} CTAs, {self.schedule}"

    def _copy_rows(self) -> list[tuple[str, str]]:
        if self.copies:
            return [("copies", str(copy)) for copy in self.copies]
        return [("copies", f"to {self.kernel_channels} channels a head" if self.padded else "none")]

    def _gpu_rows(self) -> list[tuple[str, str]]:
        if self.threads:
            return []
        rows = [("converted", str(conversion)) for conversion in self.conversions]
        if self.backward is not None:
            rows.append(("backward", str(self.backward)))
        if self.split is not None:
            rows.append(("segments" if self.split.splits else "not segments", str(self.split)))
        if self.seconds:
            share = f"{100 * self.floor_seconds / self.seconds:.0f} % of the prediction"
            rows.append(("floor", f"{self.floor_seconds * 1e3:.3g} ms, {share}"))
        if not self.knows_longest:
            hint = "max_seqlen or cu_seqlens_cpu say it"
            rows.append(("guessed", f"a longest sequence of {self.longest} tokens ({hint})"))
        return rows

    def __str__(self) -> str:
        rows = [
            ("kernel", f"{self.kernel} ({self.algorithm}, {self.isa})"),
            ("schedule", self._schedule()),
            ("chunk", f"{self.chunk_size} tokens"),
            *self._copy_rows(),
            ("FLOP", f"{self.flop:.4g}"),
            ("bytes", f"{self.bytes:.4g}"),
            ("workspace", f"{self.workspace_bytes} bytes"),
            ("predicted", f"{self.seconds * 1e3:.3g} ms"),
            *self._gpu_rows(),
            *((f"not {name}", reason) for name, reason in self.alternatives),
        ]
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


def _pack(described: _Described | None, device: str) -> bytes:
    """One array as the integers that the library reads (Bridge.cpp)."""
    if described is None:
        return _ARRAY.pack(-1, *(0,) * (4 + 2 * _MAX_RANK))
    dtype, shape, strides, place, address = described
    code, bits = _TYPES.get(dtype, _OPAQUE)
    # Tensors without data go where the call would run.
    kind, _, index = (device if place == "meta" else place).partition(":")
    extents, steps = ((*numbers, *(0,) * _MAX_RANK)[:_MAX_RANK] for numbers in (shape, strides))
    return _ARRAY.pack(
        len(shape), code << 8 | bits, _DEVICES.get(kind, 0), int(index or 0), address, *extents, *steps
    )


def _place(place: str, device: str | None) -> str:
    """Where a call runs whose q is on `place`."""
    where = (device or "cpu") if place == "meta" else place
    # The library takes numbers of 32 bits.
    if not re.fullmatch("(cpu|cuda)(:[0-9]{1,9})?", where):
        raise ValueError(f"device: expected 'cpu' or 'cuda', got {where!r}")
    return where


def _describe_arrays(call: Call) -> tuple[Call, str, list[_Described | None], int]:
    """The call, where it runs, its arrays, and the threads that it may use."""
    from . import _arrays

    call = _arrays.without_mixed_types(call)
    described = [None if value is None else _arrays.describe(name, value) for name, value in zip(TENSORS, call)]
    return call, "cpu", described, _arrays.num_threads()


def _describe_tensors(call: Call, device: str | None) -> tuple[Call, str, list[_Described | None], int]:
    """The same of torch tensors; on a GPU with the outputs."""
    import torch

    from . import _torch, _torch_backward, _torch_checks, _torch_mixed

    _torch_checks.check_kinds(call.tensors)
    where = _place(str(call.q.device), device)
    writes = call.out is not None or call.final_state is not None
    kind = where.split(":")[0]
    has_pool = call.state_indices is not None
    reason = _torch_checks.no_backward(kind, *call[:4], call.options, writes=writes, has_pool=has_pool)
    if _torch_checks.refuse_derivatives(zip(TENSORS, call), reason):
        call = call._replace(options=_torch_backward.trained(call.options, kind))
    call = _torch_mixed.without_mixed_types(call)
    if where.startswith("cuda"):
        call = _torch.with_outputs(call)
    described = [None if tensor is None else _torch.describe(tensor) for tensor in call.tensors]
    return call, where, described, torch.get_num_threads()


def _ask(call: Call, where: str, described: list[_Described | None], threads: int) -> dict[str, Any]:
    """What the library says of a call."""
    blob = b"".join(_pack(tensor, where) for tensor in described)
    facts: dict[str, Any] = json.loads(
        _library.load().explain(blob, call.scale, call.options, threads, call.max_seqlen)
    )
    return facts


def _alternatives(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    if "alternatives" in facts:
        return tuple((name, f"{name}: {reason}") for name, reason in facts["alternatives"])
    chunk, recurrent = facts["chunk_seconds"] * 1e3, facts["recurrent_seconds"] * 1e3
    if facts["fixed_kernels"]:
        return (("recurrent", "segment_length: no length of a sequence chooses the kernels"),)
    if facts["algorithm"] == "chunk":
        return (("recurrent", f"token by token: {recurrent:.3g} ms predicted, chunks {chunk:.3g} ms (one thread)"),)
    if facts["forced_recurrent"]:
        return (("chunk", f"the function computes token by token (chunks: {chunk:.3g} ms, one thread)"),)
    return (("chunk", f"chunks: {chunk:.3g} ms predicted, token by token {recurrent:.3g} ms (one thread)"),)


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
    call = given = BUILDERS[function](*args, **kwargs)
    torch, backward = sys.modules.get("torch"), None
    forward: dict[str, Any] = {}
    if torch is not None and isinstance(call.q, torch.Tensor):
        from . import _torch_sharded

        call = given = _torch_sharded.explained(call)
        call, where, described, threads = _describe_tensors(call, device)
    else:
        call, where, described, threads = _describe_arrays(call)
    facts = _ask(call, where, described, threads)
    if torch is not None and isinstance(given.q, torch.Tensor):
        backward, forward = ask_backward(given, where, _pack)
    alternatives = _alternatives(facts)
    copies = tuple(Copy(**{**copy, "inputs": tuple(copy["inputs"])}) for copy in facts.get("copies", ()))
    conversions = tuple(Conversion(**row) for row in facts.get("conversions", ()))
    # What only a choice of a GPU has.
    facts = {"floor_seconds": 0.0, "longest": 0, "knows_longest": True, "split": None, **facts}
    facts |= {"alternatives": alternatives, "copies": copies, "conversions": conversions, "backward": backward}
    if facts["split"] is not None:
        facts["split"] = Split(**facts["split"])
    facts |= forward
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
