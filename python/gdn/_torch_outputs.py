# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outputs of the caller's that kernels on a GPU do not write in place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch


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


def run_dense(call: Callable[..., None], tensors: tuple[torch.Tensor | None, ...], *options: Any) -> bool:
    """Runs a call that was refused once more, with dense outputs that are copied to the caller's. False if the outputs,
    the last two tensors, were not at fault."""
    given = tensors[-2:]
    dense = tuple(map(as_written, given))
    if all(map(operator.is_, given, dense)):
        return False
    call((*tensors[:-2], *dense), *options)
    for output, copy in zip(given, dense):
        if output is not None and copy is not None and output is not copy:
            output.copy_(copy)
    return True
