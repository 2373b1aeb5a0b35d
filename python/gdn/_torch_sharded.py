# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on tensors that lie on several devices (`torch.distributed.tensor.DTensor`).

Batch rows do not depend on one another, and neither do heads. So each device runs the call on its own rows or heads,
and nothing is sent. Along a dimension of the device mesh all tensors of a call are cut alike: those that are whole are
cut, and those that are partial sums are added up first. What is cut in another way, by tokens or by channels, is the
caller's to bring together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ._arguments import TENSORS, Call, output_shapes
from ._torch_checks import check_shapes

_Cut = dict[str, "int | None"]
#: The dimension of each tensor that is cut, for a cut of batch rows and for one of heads: None stays whole.
_ROWS: _Cut = {**dict.fromkeys(TENSORS, 0), "A_log": None, "dt_bias": None, "cu_seqlens": None}
_HEADS: _Cut = {
    **dict.fromkeys(TENSORS, 2), "A_log": 0, "dt_bias": 0, "initial_state": 1, "cu_seqlens": None, "final_state": 1,
}  # fmt: skip
_WHOLE: _Cut = dict.fromkeys(TENSORS)
#: The tensors that are cut as q is.
_TOKENS = ("q", "k", "v", "g", "beta")
_WAY_OUT = (
    "redistribute it, or call gdn on local tensors (.to_local(), or torch.distributed.tensor.experimental.local_map)"
)


def _is_dtensor(x: Any) -> bool:
    # There are none before their module is imported.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(x, module.DTensor)


def is_sharded(call: Call) -> bool:
    """Whether tensors of a call are DTensors."""
    return any([_is_dtensor(x) for x in call.tensors])


def refuse_sharded(op: str, named: Iterable[tuple[str, Any]]) -> None:
    """Refuses DTensors as arguments of an operator, which torch would look for a rule for."""
    for name, value in named:
        if _is_dtensor(value):
            raise NotImplementedError(
                f"{name}: expected a tensor of one device as an argument of torch.ops.gdn.{op}, got a DTensor; call "
                f"gdn's functions, or {_WAY_OUT}"
            )


def _check_kinds(call: Call) -> None:
    """All tensors of a call are DTensors on one mesh; boundaries may be there as they are."""
    for name, value in (("state_indices", call.state_indices), ("state_checkpoints", call.step_states)):
        if value is not None:
            raise NotImplementedError(f"{name}: expected None with DTensors, got a tensor; {_WAY_OUT}")
    first = next(x for x in call.tensors if _is_dtensor(x))
    for name, x in zip(TENSORS, call):
        if (x is None and name not in ("q", "k", "v")) or (name == "cu_seqlens" and not _is_dtensor(x)):
            continue
        if not _is_dtensor(x):
            raise TypeError(f"{name}: expected a DTensor as other tensors are, got {type(x).__name__}; {_WAY_OUT}")
        if x.device_mesh != first.device_mesh:
            raise ValueError(
                f"{name}: expected a DTensor on {first.device_mesh}, as others are, got one on {x.device_mesh}; "
                f"{_WAY_OUT}"
            )


def _cuts(call: Call) -> list[_Cut]:
    """How the tensors of a call are cut along each dimension of the mesh: as the first that is not whole there."""
    from torch.distributed.tensor import Replicate, Shard

    found = []
    for dim in range(call.q.device_mesh.ndim):
        cut = _WHOLE
        for name in _TOKENS:
            x = getattr(call, name)
            placement = Replicate() if x is None else x.placements[dim]
            if placement.is_replicate() or placement.is_partial():
                continue
            known = {0: _ROWS, 2: _HEADS}.get(placement.dim) if type(placement) is Shard else None
            if known is None or cut not in (_WHOLE, known):
                other = "Shard(0) or Shard(2)" if cut is _WHOLE else f"Shard({cut[name]}) as other tensors are"
                raise NotImplementedError(f"{name}: expected a DTensor of {other}, got {placement!r}; {_WAY_OUT}")
            cut = known
        if cut is _ROWS and call.cu_seqlens is not None:
            raise NotImplementedError(
                f"q: expected a DTensor that is cut by heads, Shard(2), or not at all with cu_seqlens, got one that is "
                f"cut by batch rows; {_WAY_OUT}"
            )
        found.append(cut)
    return found


def _check_heads(call: Call, cuts: list[_Cut]) -> None:
    """Each device has the q/k heads of its value heads."""
    parts = 1
    for dim, cut in enumerate(cuts):
        parts *= call.q.device_mesh.size(dim) if cut is _HEADS else 1
    heads = call.q.shape[2]
    # If there are as many of both, they are cut alike, whatever their number.
    if heads % parts and heads != call.v.shape[2]:
        raise ValueError(
            f"q: expected a multiple of {parts} heads, of which the mesh makes {parts} parts, got {heads}; {_WAY_OUT}"
        )


def _placements(cuts: list[_Cut], name: str) -> tuple[Any, ...]:
    """Where a tensor lies that is cut so."""
    from torch.distributed.tensor import Replicate, Shard

    dims = [cut[name] for cut in cuts]
    return tuple([Replicate() if dim is None else Shard(dim) for dim in dims])


def _to_local(cuts: list[_Cut], name: str, x: Any, sends: bool) -> Any:
    """This device's part of an input. What is whole beside batch rows that are cut gets a gradient from each part. If
    nothing is to be sent, a partial sum stays what it is, with the shape of the sum."""
    from torch.distributed.tensor import DTensor, Partial, Replicate

    if not _is_dtensor(x):
        return x
    placements = _placements(cuts, name)
    for placement, wanted in zip(x.placements, placements):
        if not (placement == wanted or placement.is_replicate() or placement.is_partial()):
            raise NotImplementedError(f"{name}: expected a DTensor of {wanted!r}, got {placement!r}; {_WAY_OUT}")
    gradients = [
        Partial() if cut is _ROWS and cut[name] is None else placement for cut, placement in zip(cuts, placements)
    ]
    if not sends:
        kept = [Replicate() if placement.is_partial() else placement for placement in x.placements]
        x = DTensor.from_local(
            x.to_local(), x.device_mesh, kept, run_check=False, shape=x.shape, stride=x.stride()
        )
    return x.redistribute(placements=placements).to_local(grad_placements=gradients)


def _written(cuts: list[_Cut], name: str, x: Any) -> Any:
    """This device's part of an output of the caller's."""
    placements = _placements(cuts, name)
    if x is not None and x.placements != placements:
        raise ValueError(f"{name}: expected a DTensor of {placements}, got one of {x.placements}; {_WAY_OUT}")
    return None if x is None else x.to_local()


def _local_call(call: Call, sends: bool) -> tuple[Call, list[_Cut]]:
    """The call on the parts that lie here, and how its tensors are cut."""
    _check_kinds(call)
    check_shapes(call.q, call.v, call.cu_seqlens)
    cuts = _cuts(call)
    _check_heads(call, cuts)
    local = {name: _to_local(cuts, name, x, sends) for name, x in zip(TENSORS[:9], call)}
    local |= {name: _written(cuts, name, getattr(call, name)) for name in ("out", "final_state")}
    return call._replace(**local), cuts


def explained(call: Call) -> Call:
    """The call whose kernel is explained for this one: that on the parts that lie here. Nothing is sent."""
    return _local_call(call, sends=False)[0] if is_sharded(call) else call


def run_local(forward: Callable[..., tuple[Any, Any]], call: Call) -> tuple[Any, Any]:
    """Runs a call by `forward` on the parts of its tensors that lie here."""
    from torch.distributed.tensor import DTensor

    local, cuts = _local_call(call, sends=True)
    mesh = call.q.device_mesh
    o, state = forward(*local.arguments)

    def whole(name: str, given: Any, part: Any, shape: tuple[int, ...]) -> Any:
        if given is not None or part is None:
            return given
        return DTensor.from_local(
            part, mesh, _placements(cuts, name), run_check=False, shape=torch.Size(shape),
            stride=torch.empty(shape, device="meta").stride(),
        )

    ends = None if call.cu_seqlens is None else call.cu_seqlens.shape
    shape, state_shape = output_shapes(call.options, call.q.shape, call.v.shape, ends)
    return whole("out", call.out, o, shape), whole("final_state", call.final_state, state, state_shape)
