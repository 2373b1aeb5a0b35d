# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of the states after tokens, for functions of engines and of FlashInfer."""

from __future__ import annotations

from typing import Any

from . import _library
from ._arguments import _integer, library_of, shape_of

#: States in between are kept after multiples of so many tokens, by whether gates decay channels.
_KEPT_TOKENS = tuple(_library.MANIFEST["decays"][decay]["kept_tokens"] for decay in ("Head", "Channel"))

#: The tables that calls were made with: a CUDA graph may have one, so none goes.
_TABLES: dict[tuple[str, int, int, int], Any] = {}


def numbers_of_rows(like: Any, batch: int, steps: int, between: int) -> Any:
    """The table [batch, steps] of n `between` + t, or of -1 for a negative `between`. One of torch is made once, and is
    there before any stream reads it; a CUDA graph whose call was not made before has one of its own."""
    torch = library_of(like)
    if torch.__name__ == "numpy":
        table = torch.arange(batch, dtype="int32")[:, None] * between + torch.arange(steps, dtype="int32")
        return table if between >= 0 else torch.full_like(table, -1)
    is_plain = type(like) is torch.Tensor and not torch.compiler.is_compiling()
    key = (str(like.device), batch, steps, between)
    if is_plain and key in _TABLES:
        return _TABLES[key]
    is_kept = is_plain and not (like.is_cuda and torch.cuda.is_current_stream_capturing())
    device = "cpu" if is_kept else like.device
    first = torch.arange(batch, dtype=torch.int32, device=device)[:, None]
    rows = first * between + torch.arange(steps, dtype=torch.int32, device=device)
    rows = rows if between >= 0 else torch.full_like(rows, -1)
    if is_kept:
        # The copy to a GPU is waited for.
        rows = _TABLES[key] = rows.to(like.device)
    return rows


def checkpoints_of(
    q: Any, g: Any, cu_seqlens: Any, states: Any, starts: Any, every: Any, rows: Any, split: int
) -> tuple[Any, ...]:
    """The last tensors of a call that keeps states in between."""
    if split & (_library.SPLIT_MASK & ~_library.NO_SEGMENTS):
        raise NotImplementedError("state_checkpoints: expected None with segments (segment_length, context_parallel)")
    if rows is None and (states is None or starts is None or every is None):
        raise ValueError(
            "state_checkpoints, checkpoint_cu_starts, checkpoint_every_n_tokens: expected all three or none, got some"
        )
    if rows is not None and (starts is not None or every is None):
        name, got = ("checkpoint_cu_starts", "a tensor") if starts is not None else ("checkpoint_every_n_tokens", "None")
        rule = "None" if starts is not None else "an integer or a tensor"
        raise ValueError(f"{name}: expected {rule} with checkpoint_state_indices, got {got}")
    if not hasattr(every, "shape"):
        number = _integer("checkpoint_every_n_tokens", every, " or a tensor")
        unit = _KEPT_TOKENS[g is not None and len(shape_of("g", g)) == 4]
        if number <= 0 or number % unit:
            raise ValueError(f"checkpoint_every_n_tokens: expected a positive multiple of {unit}, got {number}")
        shape = shape_of("q", q) if cu_seqlens is None else shape_of("cu_seqlens", cu_seqlens)
        # The library refuses arrays of another rank.
        count = (shape[0] if shape else 0) - (cu_seqlens is not None)
        # A list that has memory for one: row 1 of a table whose rows are so far apart.
        every = library_of(q).broadcast_to(numbers_of_rows(q, 2, 1, number)[1], (max(count, 0),))
    if rows is not None and len(shape_of("checkpoint_state_indices", rows)) == 1:
        rows = rows[:, None]
    return states, rows, None, None, starts, every


def states_of(buffer: Any) -> tuple[Any, int]:
    """A buffer [B, S, HV, V, K] as states [R, HV, V, K], and how far apart those of two sequences are there."""
    batch, steps, *state = buffer.shape
    is_torch = not hasattr(buffer, "strides")
    strides = buffer.stride() if is_torch else buffer.strides
    if batch > 1 and strides[0] % strides[1] != 0:
        # As FlashInfer says it.
        raise AssertionError(
            "intermediate_states_buffer batch stride must be a whole number of cache steps; "
            f"got stride(0)={strides[0]} and step size={strides[1]}"
        )
    between = strides[0] // strides[1] if batch > 1 else steps
    shape = ((batch - 1) * between + steps, *state)
    if is_torch:
        return buffer.as_strided(shape, strides[1:]), between
    import numpy

    return numpy.lib.stride_tricks.as_strided(buffer, shape, strides[1:]), between
