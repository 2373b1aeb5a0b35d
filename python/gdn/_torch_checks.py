# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torch tensors must be before the library sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ._arguments import TENSORS


def check_shapes(q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None) -> None:
    """A look at the shapes that those of the outputs follow from."""
    for name, tensor in (("q", q), ("v", v)):
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expected the shape [B, T, H, K], got {list(tensor.shape)}")
    if cu_seqlens is not None and cu_seqlens.dim() != 1:
        raise ValueError(f"cu_seqlens: expected the shape [N + 1], got {list(cu_seqlens.shape)}")
    if cu_seqlens is not None and cu_seqlens.shape[0] == 0:
        raise ValueError("cu_seqlens: expected at least two boundaries, got 0")


def check_kinds(tensors: Sequence[Any]) -> None:
    """Refuses what is no tensor that the library can read, by the rule of its name."""
    device = tensors[0].device
    for name, value in zip(TENSORS, tensors):
        if value is None:
            if name in ("k", "v"):
                raise TypeError(f"{name}: expected a torch.Tensor, got None")
        elif not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor as q is, got {type(value).__name__}")
        elif value.device != device:
            raise ValueError(f"{name}: expected a tensor on {device} as q is, got one on {value.device}")
        elif value.layout is not torch.strided:
            raise TypeError(f"{name}: expected a tensor with strides, got one of the layout {value.layout}")
        elif value.is_nested:
            raise TypeError(f"{name}: expected a tensor with one shape, got a nested one")
        elif value.is_quantized:
            raise TypeError(f"{name}: expected a tensor of floats, got a quantized one")
        elif name in ("out", "final_state") and not torch.compiler.is_dynamo_compiling() and value.is_neg():
            raise ValueError(f"{name}: expected a tensor whose memory has its elements, got one with a negative bit")


def refuse_derivatives(named: Iterable[tuple[str, Any]]) -> None:
    """Refuses tensors that a derivative would be asked of, backward or forward: there is none yet, and never a
    wrong one."""
    backward = torch.is_grad_enabled()
    forward = forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled()
    if not (backward or forward):
        return
    for name, value in named:
        if not isinstance(value, torch.Tensor):
            continue
        if backward and value.requires_grad:
            got, way_out = "requires_grad=True", "call it under torch.no_grad() or torch.inference_mode(), or "
        elif forward and forward_ad.unpack_dual(value).tangent is not None:
            got, way_out = "one with a tangent (forward-mode differentiation)", ""
        else:
            continue
        raise NotImplementedError(
            f"{name}: expected a tensor that needs no gradient, got {got}; gdn has no backward yet: "
            f"{way_out}pass {name}.detach()"
        )
