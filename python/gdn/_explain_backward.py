# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What computes the gradients of a call on a GPU, without running it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from . import _library
from ._arguments import Call


@dataclasses.dataclass(frozen=True)
class Backward:
    """What computes the gradients of a call on a GPU.

    Attributes:
        kernel: the compiled function's name.
        launches: its kernels. Operations of torch around them are not counted.
        segment_tokens: tokens of the segments that sequences are cut into; 0 where they are not.
        forward_segment_tokens: those of the forward, if it saves "states"; else 0.
        workspace_bytes: memory that it takes while it runs, besides gradients.
        saved_bytes: memory that the forward keeps for it.
        saves: what that is: "inputs", those of the call and nothing else, or "states", what tokens write in the place
            of v, and a state every 128 tokens, too.
        why_inputs: why a call that asks for "states" saves its inputs; None where it does not.
    """

    kernel: str
    launches: int
    segment_tokens: int
    forward_segment_tokens: int
    workspace_bytes: int
    saved_bytes: int
    saves: str = "inputs"
    why_inputs: str | None = None

    def __str__(self) -> str:
        cut = f"segments of {self.segment_tokens} tokens, " if self.segment_tokens else ""
        return (
            f"{self.kernel}: {self.launches} kernels, {cut}{self.workspace_bytes} bytes of workspace, "
            f"{self.saved_bytes} bytes saved ({self.saves}{f', for {self.why_inputs}' if self.why_inputs else ''})"
        )


def _facts_of_forward(forward: dict[str, Any]) -> dict[str, Any]:
    """What is different of a forward that saves states."""
    step, inputs = (forward.pop(name) * 1e3 for name in ("step_seconds", "inputs_seconds"))
    why = f"saving inputs: {inputs:.3g} ms predicted with its backward, {step:.3g} ms with states"
    return {**forward, "split": None, "copies": (), "alternatives": (("inputs", why),)}


def ask_backward(
    call: Call, where: str, pack: Callable[[Any, str], bytes]
) -> tuple[Backward | None, dict[str, Any]]:
    """What computes the gradients of a call of torch tensors on a GPU, if an input requires one, and what is then
    different of the forward; `pack` makes the integers that the library reads of a described tensor."""
    import torch

    from . import _torch, _torch_backward_gpu, _torch_saved

    given = call[:9]
    wants = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given)
    if not wants or not where.startswith("cuda") or _torch_backward_gpu.why_not(call.q, call.k, call.v):
        return None, {}
    form = _torch_backward_gpu.form_of(call.q, call.v, call.g, call.beta, call.options)
    options = _torch_backward_gpu.kernel_options(form, call.options, call.g)
    asks = bool(call.options & _library.SAVES_STATES)
    device = int(where.partition(":")[2] or 0)
    reason = _torch_saved.why_inputs(call, call.scale, call.options, device) if asks else None
    reads_saved = asks and reason is None
    described = [None if x is None else _torch.describe(x) for x in _torch_backward_gpu.without_data(call)]
    blob = b"".join(pack(tensor, where) for tensor in described)
    saved = sum(x.numel() * x.element_size() for x in given if x is not None)
    if reads_saved:
        # What tokens write is as large as v.
        options |= _library.SAVES_STATES
        saved += _torch_saved.bytes_of_states(call, call.options)
    facts = json.loads(_library.load().explain_backward(blob, call.scale, options, 1, 0))
    saves = "states" if reads_saved else "inputs"
    forward = facts.pop("forward")
    cut = forward.pop("segment_tokens") if forward else 0
    backward = Backward(**facts, forward_segment_tokens=cut, saved_bytes=saved, saves=saves, why_inputs=reason)
    return backward, _facts_of_forward(forward) if forward else {}
