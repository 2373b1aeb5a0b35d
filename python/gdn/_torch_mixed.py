# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on torch tensors whose q, k and v have different types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._arguments import TENSORS, Call, check_output, has_mixed_types, torch_type, typed_as_output
from ._torch_checks import no_backward, refuse_derivatives


def is_mixed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether these have different types that a call takes."""
    return has_mixed_types(*(torch_type(tensor) for tensor in (q, k, v)))


def forward_mixed(forward: Callable[..., tuple[Any, Any]], call: Call) -> tuple[Any, Any]:
    """Runs such a call by `forward`, in float32."""
    if call.out is not None:
        has_pool = call.state_indices is not None
        reason = no_backward(call.q.device.type, *call[:4], call.options, writes=True, has_pool=has_pool)
        refuse_derivatives(zip(TENSORS, call), reason)
    wide = call._replace(q=call.q.float(), k=call.k.float(), v=call.v.float(), out=None)
    o, state = forward(*wide)
    o = o.to(typed_as_output(call).dtype)
    if call.out is None:
        return o, state
    check_output(call.out, o)
    return call.out.copy_(o), state


def without_mixed_types(call: Call) -> Call:
    """The call that is run for this one. Nothing runs: tensors that it makes have no data here."""
    if not is_mixed(call.q, call.k, call.v):
        return call
    q, k, v = (torch.empty_like(tensor, dtype=torch.float32, device="meta") for tensor in call[:3])
    return call._replace(q=q, k=k, v=v, out=None)
