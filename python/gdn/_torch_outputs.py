# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outputs of the caller's that kernels on a GPU do not write in place, and tensors without data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from ._arguments import Call


def as_written(output: torch.Tensor | None) -> torch.Tensor | None:
    """An output as kernels on a GPU write it: this one, or a dense one where its strides or address are in the way.
    Elements that share memory are the library's to refuse."""
    if output is None or output.dim() == 0 or torch._debug_has_internal_overlap(output) == 1:
        return output
    size = output.element_size()
    *outer, (channels, last) = zip(output.shape, output.stride())
    in_place = (channels == 1 or last == 1) and all(n == 1 or stride * size % 16 == 0 for n, stride in outer)
    if in_place and (output.is_meta or output.data_ptr() % 16 == 0):
        return output
    return torch.empty_like(output, memory_format=torch.contiguous_format)


def output_of_kernel(given: torch.Tensor | None, bare: torch.Tensor | None) -> torch.Tensor | None:
    """What a kernel writes of `given`, where `bare` stands for it without data."""
    if bare is None or as_written(given) is given:
        return bare
    return torch.empty_like(bare, memory_format=torch.contiguous_format)


def run_dense(run: Callable[[Call], None], call: Call) -> bool:
    """Runs a call that was refused once more, with dense outputs that are copied to the caller's. False if the outputs
    were not at fault."""
    out, final_state = map(as_written, (call.out, call.final_state))
    if call.state_indices is not None:
        # A pool is written where it is.
        final_state = call.final_state
    if out is call.out and final_state is call.final_state:
        return False
    run(call._replace(out=out, final_state=final_state))
    for given, dense in ((call.out, out), (call.final_state, final_state)):
        if given is not None and given is not dense:
            given.copy_(dense)
    return True


def without_data(tensors: Iterable[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Tensors like these on the meta device."""
    return [
        None if x is None else torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta") for x in tensors
    ]


def with_data(given: Iterable[Any], bare: Iterable[Any], taken: Iterable[Any]) -> list[Any]:
    """What a kernel takes: of what it reads as it was given, the tensor that has an address."""
    return [old if new is same else new for old, same, new in zip(given, bare, taken)]
