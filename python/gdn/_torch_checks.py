# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torch tensors must be before the library sees them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from . import _library, _torch_backward_gpu
from ._arguments import OUTPUTS, TENSORS, Call


#: Types whose operations nobody but torch itself sees; None is an absent tensor.
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter, type(None)))

#: What may have a say in an operation beside the tensors: looked up once, for a call asks all of them. Of compilers
#: Dynamo alone follows Python; what else traces a call does it by a mode.
_is_compiling = torch.compiler.is_dynamo_compiling
_count_modes = torch._C._len_torch_dispatch_stack
_has_autocast = torch._C._is_any_autocast_enabled
_peek_transform = torch._C._functorch.peek_interpreter_stack
_has_gradients, _is_negative = torch.is_grad_enabled, torch.Tensor.is_neg


def is_plain(tensors: Sequence[Any]) -> bool:
    """Whether nobody but the kernel has a say in a call: no autograd, autocast, compiler, mode or subclass. In others
    the operator asks them all, which takes longer on the host than the rest of a call."""
    if (
        _is_compiling()
        or _count_modes()
        or _has_autocast()
        or _peek_transform() is not None
        or forward_ad._current_level >= 0
        or tensors[1] is None
        or tensors[2] is None
    ):
        return False
    given = [tensor for tensor in tensors if tensor is not None]
    if not PLAIN.issuperset(map(type, given)):
        return False
    # The imaginary part of a conjugate is stored without its sign, which the operator sees to. Complex numbers of
    # bfloat16 there are none; of q, k and v either all are bfloat16, or the library says no.
    if any(map(_is_negative, given if given[0].dtype is not torch.bfloat16 else given[3:])):
        return False
    return not _has_gradients() or True not in [tensor.requires_grad for tensor in given]


def check_shapes(q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None) -> None:
    """A look at the shapes that those of the outputs follow from."""
    for name, tensor in (("q", q), ("v", v)):
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expected the shape [B, T, H, K], got {list(tensor.shape)}")
    if cu_seqlens is not None and cu_seqlens.dim() != 1:
        raise ValueError(f"cu_seqlens: expected the shape [N + 1], got {list(cu_seqlens.shape)}")
    if cu_seqlens is not None and cu_seqlens.shape[0] == 0:
        raise ValueError("cu_seqlens: expected at least two boundaries, got 0")


def check_kinds(call: Sequence[Any]) -> None:
    """Refuses what is no tensor that the library can read among a call's fields, by the rule of its name."""
    device = call[0].device
    for name, value in zip(TENSORS, call):
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
        elif name in OUTPUTS and not torch.compiler.is_dynamo_compiling() and value.is_neg():
            raise ValueError(f"{name}: expected a tensor whose memory has its elements, got one with a negative bit")


#: Whether boundaries and rows of a pool on a GPU are looked at on the host before each call, which waits for the GPU.
CHECKS_VALUES = os.environ.get("GDN_CHECK") == "1"


#: The tensors that this is about.
_CHECKED = ("q", "initial_state", "cu_seqlens", "state_indices")


def check_values(tensors: Sequence[Any], options: int) -> None:
    """The CPU's checks of what lies on a GPU, of a call's tensors. A graph that is captured cannot wait; the library
    refuses other shapes and types."""
    q, pool, cu_seqlens, rows = (tensors[TENSORS.index(name)] for name in _CHECKED)
    if q.dim() != 4 or (q.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    states = pool.shape[0] if pool is not None and pool.dim() else None
    lists = [x if x is None else x.cpu() for x in (cu_seqlens, rows if states is not None else None)]
    _library.load().check_values(*lists, q.shape[1], _library.first_state_of(options), states or 0)


def no_backward(
    device: str, q: Any, k: Any, v: Any, g: Any, options: int, *, writes: bool, has_pool: bool = False
) -> str | None:
    """Why a call whose inputs require gradients is refused, or None. As FLA's, a recurrent call is not refused for having
    no backward: it raises where a gradient is asked for."""
    if has_pool:
        return "gdn has no backward of calls with state_indices"
    if writes:
        return "gdn has no backward of calls with out or final_state"
    if device != "cuda" or _library.is_recurrent(options):
        return None
    return _torch_backward_gpu.why_not(q, k, v, g, options)


def refuse_call(call: Call, device: str, *, writes: bool) -> bool:
    """Refuses a call on a device whose derivatives are asked of and that there are not, and returns whether a tensor
    requires a gradient."""
    has_pool = call.state_indices is not None
    reason = no_backward(device, *call[:4], call.options, writes=writes, has_pool=has_pool)
    return refuse_derivatives(zip(TENSORS, call), reason)


def refuse_derivatives(named: Iterable[tuple[str, Any]], reason: str | None) -> bool:
    """Refuses tensors that a derivative would be asked of that there is not, and never gives a wrong one: forward, and
    backward where there is a reason. Returns whether a tensor requires a gradient."""
    backward = torch.is_grad_enabled()
    forward = forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled()
    if not (backward or forward):
        return False
    required = False
    for name, value in named:
        if not isinstance(value, torch.Tensor):
            continue
        if forward and forward_ad.unpack_dual(value).tangent is not None:
            got, way_out = "one with a tangent (forward-mode differentiation)", "gdn has no derivative of this kind: "
        elif backward and value.requires_grad and reason:
            got = "requires_grad=True"
            way_out = f"{reason}: call it under torch.no_grad() or torch.inference_mode(), or "
        else:
            required |= backward and value.requires_grad
            continue
        raise NotImplementedError(
            f"{name}: expected a tensor that needs no gradient, got {got}; {way_out}pass {name}.detach()"
        )
    return required
