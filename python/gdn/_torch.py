# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front end for torch: custom operators over the library's functions.

`gdn::gated_delta_rule` returns new tensors, `gdn::gated_delta_rule_out` writes into given ones. They are made by
`torch.library.Library`, whose calls cost less than those of the `custom_op` decorator. `_torch_backward.py` has the
gradients of the first.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from . import _library, _narrow, _registration, _torch_backward, _torch_checks, _torch_saved, _torch_sharded
from ._arguments import NO_POOL, TENSORS, Call, output_shapes, type_name, typed_as_output
from ._torch_checks import PLAIN, check_kinds, check_shapes, is_plain, no_backward, refuse_derivatives

# A type is a single object, so that `is` compares it at half the cost.
_F32 = torch.float32
_INPUTS = _torch_backward.INPUTS
_REST = "float scale, int options, int max_seqlen"
_SCHEMAS = (
    f"gated_delta_rule({_INPUTS}, {_REST}, bool output_final_state) -> (Tensor, Tensor)",
    f"gated_delta_rule_out({', '.join(map(_torch_backward.declare, TENSORS))}, {_REST}) -> ()",
)


def _new_output(q: torch.Tensor, v: torch.Tensor, options: int) -> torch.Tensor:
    # Shorter to say, and to do.
    if q.dtype is v.dtype and v.is_contiguous():
        return torch.empty_like(v)
    dtype = typed_as_output(q, v, options).dtype
    return torch.empty_like(v, dtype=dtype, memory_format=torch.contiguous_format)


def _new_state(
    q: torch.Tensor,
    v: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor | None,
    options: int,
) -> torch.Tensor:
    """The final state, in float32."""
    if initial_state is not None and initial_state.dtype is _F32 and initial_state.is_contiguous():
        return torch.empty_like(initial_state)
    shape = output_shapes(options, q.shape, v.shape, None if cu_seqlens is None else cu_seqlens.shape)[1]
    return v.new_empty(shape, dtype=_F32)


def _allocate(
    q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None, options: int, with_state: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the operator returns; an absent state has no elements."""
    check_shapes(q, v, cu_seqlens if with_state else None)
    return _new_output(q, v, options), _new_state(q, v, None, cu_seqlens, options) if with_state else v.new_empty(0)


@functools.cache
def _exchange_functions() -> int:
    """The address of DLPack's exchange functions for torch's tensors, or 0: torch has them from 2.10 on. The first call asks
    for it, because the operators are registered without the library."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None or sys.implementation.name != "cpython":
        return 0
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found: int = address(capsule, b"dlpack_exchange_api")
    return found if _library.load().reads_objects(found) else 0


#: The tensors of a call, in the library's order.
_Tensors = tuple["torch.Tensor | None", ...]
#: Where those of a pool begin, and where the states after tokens are among these.
_POOL = TENSORS.index("state_indices")
_STEPS = TENSORS.index("step_states") - _POOL


def _call_library(
    tensors: _Tensors, scale: float | None, options: int, threads: int, max_seqlen: int
) -> None:
    """Calls the library: by the address of the tensors where it can read them, which takes half the time."""
    exchange = _exchange_functions()
    if exchange:
        _library.load().forward_objects(exchange, id(tensors), scale, options, threads, max_seqlen)
    else:
        _library.load().forward(*tensors, scale, options, threads, max_seqlen)


def _compute_on_cpu(tensors: _Tensors, scale: float | None, options: int, max_seqlen: int) -> None:
    """Runs the library, on as many threads as torch uses."""
    _call_library(tensors, scale, options, torch.get_num_threads(), max_seqlen)


def _compute_on_gpu(tensors: _Tensors, scale: float | None, options: int, max_seqlen: int) -> None:
    """Runs the library on the current stream of the tensors' GPU."""
    if options & _library.BITWISE_MASK == _library.BITWISE:
        _torch_saved.compute_bitwise(tensors, options)
        return
    if _torch_checks.CHECKS_VALUES:
        _torch_checks.check_values(tensors, options)
    _call_library(tensors, scale, options, 1, max_seqlen)


#: What runs the library, by device.
_DEVICES = {"cpu": _compute_on_cpu, "cuda": _compute_on_gpu}


def _run(compute: Callable[..., None], *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    q, _, v, *_, cu_seqlens, scale, options, max_seqlen, with_state = arguments
    o, state = _allocate(q, v, cu_seqlens, options, with_state)
    compute((*arguments[:9], o, state if with_state else None, *NO_POOL), scale, options, max_seqlen)
    return o, state


def _run_into(compute: Callable[..., None], *arguments: Any) -> None:
    """A pool that is written is the final state alone: an operator that also reads it would have it cloned by
    torch.compile."""
    *tensors, scale, options, max_seqlen = arguments
    *inputs, initial_state, cu_seqlens, o, state = tensors[: -len(NO_POOL)]
    pool = tensors[-len(NO_POOL) :]
    if pool[0] is not None and initial_state is None:
        initial_state = state
    compute((*inputs, initial_state, cu_seqlens, o, state, *pool), scale, options, max_seqlen)


def _fake(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    q, _, v, *_, cu_seqlens, _, options, _, with_state = arguments
    return _allocate(q, v, cu_seqlens, options, with_state)


def _fake_into(*arguments: Any) -> None:
    return None


def _with_autograd(op: Any) -> Any:
    """The operator for tensors that autograd may follow. One that writes into given tensors has no gradient."""
    names = [argument.name for argument in op._schema.arguments]
    options = names.index("options")
    pool = names.index("state_indices") if "state_indices" in names else None

    def run(*arguments: Any) -> Any:
        q, k, v, g = arguments[:4]
        _torch_sharded.refuse_sharded(op._schema.name.removeprefix("gdn::"), zip(names, arguments))
        has_pool = pool is not None and arguments[pool] is not None
        reason = no_backward(q.device.type, q, k, v, g, arguments[options], writes=op is _into, has_pool=has_pool)
        if refuse_derivatives(zip(names, arguments), reason):
            return _torch_backward.forward_with_autograd(*arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return op(*arguments)

    return run


def _autocast(op: Any, device: str) -> Any:
    """Casts q, k and v (and nothing else: gates and states are float32 on purpose)."""
    off = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device.upper()}"))

    def run(*arguments: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        cast = [
            tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
            for tensor in arguments[:3]
        ]
        with torch._C._ExcludeDispatchKeyGuard(off):
            return op(*cast, *arguments[3:])

    return run


def _implement(ops: torch.library.Library) -> None:
    """Implements the operators of `_SCHEMAS`."""
    for device, compute in _DEVICES.items():
        ops.impl("gated_delta_rule", functools.partial(_run, compute), device.upper())
        ops.impl("gated_delta_rule_out", functools.partial(_run_into, compute), device.upper())
    for name, fake in (("gated_delta_rule", _fake), ("gated_delta_rule_out", _fake_into)):
        op = getattr(torch.ops.gdn, name).default
        ops.impl(name, _with_autograd(op), "Autograd")
        for device in _DEVICES:
            ops.impl(name, _autocast(op, device), f"Autocast{device.upper()}")
        torch.library.register_fake(f"gdn::{name}", fake, lib=ops)
    _torch_backward.implement(ops, torch.library.register_fake)


_registration.register_operators((*_SCHEMAS, *_torch_backward.SCHEMAS), _implement)
_functional, _into = torch.ops.gdn.gated_delta_rule.default, torch.ops.gdn.gated_delta_rule_out.default


def forward(
    tensors: tuple[Any, ...], scale: float | None, options: int, wants_state: bool, max_seqlen: int
) -> tuple[Any, Any]:
    """Runs the call of these arguments (`Call.of`) on torch tensors and returns (o, final state or None)."""
    q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out, final_state = tensors[:_POOL]
    o, state, pool = out, final_state, tensors[_POOL:]
    if not is_plain(tensors) or not (q.is_cuda or q.is_cpu):
        return _forward_by_operator(Call.of(tensors, scale, options, wants_state, max_seqlen))
    compute = _compute_on_gpu if q.is_cuda else _compute_on_cpu
    try:
        if o is None:
            o = _new_output(q, v, options)
        else:
            _count_write(o)
        if pool[_STEPS] is not None:
            _count_write(pool[_STEPS])
        if state is not None:
            _count_write(state)
        elif wants_state:
            state = _new_state(q, v, initial_state, cu_seqlens, options)
        made = (q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, o, state)
        compute(made + pool, scale, options, max_seqlen)
    except Exception:
        # What the operator would have said first.
        check_kinds(tensors)
        if _narrow.has_narrow(call := Call.of(tensors, scale, options, wants_state, max_seqlen)):
            return _narrow.run(forward, call)
        if out is None or (final_state is None and wants_state):
            check_shapes(q, v, cu_seqlens)
        raise
    return o, state


def _forward_by_operator(call: Call) -> tuple[Any, Any]:
    """Runs a call that others than the kernel have a say in."""
    if _torch_sharded.is_sharded(call):
        return _torch_sharded.run_local(forward, call)
    o, state, wants_state = call.out, call.final_state, call.output_final_state
    check_kinds(call)
    if o is None and state is None and call.state_indices is None and call.step_states is None:
        o, state = _functional(*call[:9], call.scale, call.options, call.max_seqlen, wants_state)
        return o, state if wants_state else None
    if o is None or (state is None and wants_state):
        new_o, new_state = _allocate(call.q, call.v, call.cu_seqlens, call.options, wants_state)
        o = new_o if o is None else o
        state = new_state if state is None and wants_state else state
    initial_state = None if call.state_indices is not None and call.initial_state is state else call.initial_state
    inputs = call._replace(initial_state=initial_state)[:9]
    _into(*inputs, o, state, *call.tensors[-len(NO_POOL) :], call.scale, call.options, call.max_seqlen)
    return o, state


def _count_write(given: torch.Tensor) -> None:
    """Tells autograd, as an operator that writes into its arguments does."""
    if not given.is_inference():
        torch.autograd.graph.increment_version(given)


def with_outputs(call: Call) -> Call:
    """The call with outputs as `forward` makes them. Nothing runs: these have no data here."""
    check_shapes(call.q, call.v, call.cu_seqlens)
    o, state = call.out, call.final_state
    if state is None and call.output_final_state:
        state = _new_state(call.q, call.v.to("meta"), None, call.cu_seqlens, call.options)
    if o is None:
        # torch's empty_like of a tensor without memory imports SymPy, which takes seconds.
        dtype = typed_as_output(call.q, call.v, call.options).dtype
        o = call.v.new_empty(call.v.shape, dtype=dtype, device="meta")
    return call._replace(out=o, final_state=state)


def describe(tensor: torch.Tensor | None) -> tuple[str, torch.Size, tuple[int, ...], str, int] | None:
    """Type, extents, strides, device and address of a tensor; the address is 0 where there is none."""
    if tensor is None:
        return None
    try:
        # Of a subclass (FakeTensor) the address is nobody's business.
        address = tensor.data_ptr() if type(tensor) in PLAIN else 0
    except RuntimeError:
        # A tensor that stands for others (torch.func).
        address = 0
    return type_name(tensor), tensor.shape, tensor.stride(), str(tensor.device), address
