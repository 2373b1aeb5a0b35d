# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front end for torch: two custom operators over the library's one function.

`gdn::gated_delta_rule` returns new tensors, `gdn::gated_delta_rule_out` writes into given ones. They are made by
`torch.library.Library`, whose calls cost less than those of the `custom_op` decorator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _library
from ._arguments import GPU_SCALE, TENSORS, Call, factor_on_gpu, widened_on_gpu

#: Devices with kernels.
_DEVICES = ("cpu", "cuda")

_INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? g, Tensor? beta, Tensor? A_log, Tensor? dt_bias, "
    "Tensor? initial_state, Tensor? cu_seqlens, "
)
_REST = "float scale, int options, int max_seqlen"

_ops = torch.library.Library("gdn", "DEF")
_ops.define(f"gated_delta_rule({_INPUTS}{_REST}, bool output_final_state) -> (Tensor, Tensor)")
_ops.define(
    f"gated_delta_rule_out({_INPUTS}Tensor(a!) out, Tensor(b!)? final_state, {_REST}) -> ()",
)
_functional = torch.ops.gdn.gated_delta_rule.default
_into = torch.ops.gdn.gated_delta_rule_out.default


def _new_output(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """o, after a look at the shapes that it follows from."""
    for name, tensor in (("q", q), ("v", v)):
        if tensor.dim() != 4:
            raise ValueError(f"{name}: expected the shape [B, T, H, K], got {list(tensor.shape)}")
    return torch.empty_like(v, memory_format=torch.contiguous_format)


def _new_state(q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None, options: int) -> torch.Tensor:
    """The final state, in float32."""
    if cu_seqlens is not None and cu_seqlens.dim() != 1:
        raise ValueError(f"cu_seqlens: expected the shape [N + 1], got {list(cu_seqlens.shape)}")
    q_shape, v_shape = q.shape, v.shape
    sequences = q_shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    rows, columns = q_shape[3], v_shape[3]
    if _library.state_is_v_first(options):
        rows, columns = columns, rows
    return v.new_empty((sequences, v_shape[2], rows, columns), dtype=torch.float32)


def _allocate(
    q: torch.Tensor, v: torch.Tensor, cu_seqlens: torch.Tensor | None, options: int, with_state: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the operator returns; an absent state has no elements."""
    o = _new_output(q, v)
    return o, _new_state(q, v, cu_seqlens, options) if with_state else v.new_empty(0)


def _compute(
    inputs: Sequence[Any], o: torch.Tensor, state: torch.Tensor | None, scale: float, options: int, max_seqlen: int
) -> None:
    """Runs the library, on the CPU or on the tensors' GPU."""
    if o.is_cuda:
        _compute_on_gpu(inputs, o, state, scale, options, max_seqlen)
    else:
        threads = torch.get_num_threads()
        _library.load().forward(*inputs, o, state, scale, options, threads, max_seqlen)


#: The places of the gate tensors among the inputs, and the types of beta that need no copy.
_GATES = {"g": 3, "beta": 4, "A_log": 5, "dt_bias": 6}
_BETAS = (torch.float32, torch.bfloat16)


def _adapt_gates(inputs: Sequence[Any], options: int) -> list[Any]:
    """Gate tensors as the kernels take them: all that the domain has are there, in the types that are shipped."""
    adapted = list(inputs)
    v = inputs[2]
    if adapted[3] is None:
        # A logarithm of 0 is no decay; where the domain needs a gate, the library says so.
        adapted[3] = v.new_zeros(v.shape[:3], dtype=torch.float32) if options & 3 == 0 else None
    if adapted[4] is None:
        adapted[4] = v.new_ones(v.shape[:3], dtype=torch.float32) if options >> 2 & 3 == 0 else None
    if adapted[5] is not None and adapted[6] is None:
        adapted[6] = torch.zeros_like(adapted[5], dtype=torch.float32)
    types = {name: None if adapted[at] is None else str(adapted[at].dtype)[6:] for name, at in _GATES.items()}
    for name in widened_on_gpu(options, types):
        adapted[_GATES[name]] = adapted[_GATES[name]].float()
    return adapted


def _compute_on_gpu(
    inputs: Sequence[Any], o: torch.Tensor, state: torch.Tensor | None, scale: float, options: int, max_seqlen: int
) -> None:
    """Launches on the current stream of the tensors' device."""
    g, beta, initial_state = inputs[3], inputs[4], inputs[7]
    domain = options & 3
    if domain or g is None or beta is None or g.dtype != torch.float32 or beta.dtype not in _BETAS:
        inputs = _adapt_gates(inputs, options)
    final_state = state
    if initial_state is not None:
        # The kernels that take a state give one, of the same type.
        if state is None:
            state = torch.empty_like(initial_state, memory_format=torch.contiguous_format)
        elif state.dtype != initial_state.dtype:
            inputs = (*inputs[:7], initial_state.float(), *inputs[8:])
            state = state if state.dtype == torch.float32 else torch.empty_like(state, dtype=torch.float32)
    factor = 1.0 if scale == GPU_SCALE else factor_on_gpu(inputs[0].shape, scale)
    # The default stream is that of the current device.
    device = o.get_device()
    before = torch._C._cuda_exchangeDevice(device)
    try:
        _library.load().forward(*inputs, o, state, scale / factor, options, 1, max_seqlen)
    finally:
        if before != device:
            torch._C._cuda_exchangeDevice(before)
    if factor != 1.0:
        o.mul_(factor)
    if final_state is not None and state is not None and final_state is not state:
        final_state.copy_(state)


def _run_into(*arguments: Any) -> None:
    *inputs, o, state, scale, options, max_seqlen = arguments
    _compute(inputs, o, state, scale, options, max_seqlen)


def _run(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    *inputs, scale, options, max_seqlen, with_state = arguments
    o, state = _allocate(inputs[0], inputs[2], inputs[8], options, with_state)
    _compute(inputs, o, state if with_state else None, scale, options, max_seqlen)
    return o, state


def _fake(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
    q, _, v, *_, cu_seqlens, _, options, _, with_state = arguments
    return _allocate(q, v, cu_seqlens, options, with_state)


def _fake_into(*arguments: Any) -> None:
    return None


def _below_autograd(op: Any) -> Any:
    """The operator's gradient: none yet, and never a wrong one."""

    def run(*arguments: Any) -> Any:
        if torch.is_grad_enabled():
            for schema, value in zip(op._schema.arguments, arguments):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    raise NotImplementedError(
                        f"{schema.name}: expected a tensor that needs no gradient, got requires_grad=True; "
                        "gdn has no backward yet: call it under torch.no_grad() or torch.inference_mode(), or "
                        f"pass {schema.name}.detach()"
                    )
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


for _name, _op, _kernel in (("gated_delta_rule", _functional, _run), ("gated_delta_rule_out", _into, _run_into)):
    _ops.impl(_name, _below_autograd(_op), "Autograd")
    for _device in _DEVICES:
        _ops.impl(_name, _kernel, _device.upper())
        _ops.impl(_name, _autocast(_op, _device), f"Autocast{_device.upper()}")
torch.library.register_fake("gdn::gated_delta_rule", _fake, lib=_ops)
torch.library.register_fake("gdn::gated_delta_rule_out", _fake_into, lib=_ops)


def _check_kinds(call: Call) -> None:
    device = call.q.device
    for name, value in zip(TENSORS, call):
        if value is None:
            if name in ("k", "v"):
                raise TypeError(f"{name}: expected a torch.Tensor, got None")
        elif not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor as q is, got {type(value).__name__}")
        elif value.device != device:
            raise ValueError(f"{name}: expected a tensor on {device} as q is, got one on {value.device}")


#: Types whose operations nobody but torch itself sees.
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_plain(call: Call) -> bool:
    """Whether nobody but the kernel has a say in the call: no autograd, autocast, compiler, mode or subclass. The
    operator asks them all, which takes longer on the host than the rest of a call."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return False
    on_gpu = call.q.is_cuda
    if torch.is_autocast_enabled("cuda" if on_gpu else "cpu") or torch._C._functorch.peek_interpreter_stack():
        return False
    with_gradients = torch.is_grad_enabled()
    for value in call[:11]:
        if value is None:
            continue
        if type(value) not in _PLAIN or not (value.is_cuda if on_gpu else value.is_cpu):
            return False
        if with_gradients and value.requires_grad:
            return False
    return call.k is not None and call.v is not None


def forward(call: Call) -> tuple[Any, Any]:
    """Runs a call on torch tensors and returns (o, final state or None)."""
    if _is_plain(call):
        return _forward_plainly(call)
    o, state = call.out, call.final_state
    wants_state = call.output_final_state
    _check_kinds(call)
    if o is None and state is None:
        o, state = _functional(*call[:9], call.scale, call.options, call.max_seqlen, wants_state)
        return o, state if wants_state else None
    if o is None or (state is None and wants_state):
        new_o, new_state = _allocate(call.q, call.v, call.cu_seqlens, call.options, wants_state)
        o = new_o if o is None else o
        state = new_state if state is None else state
    _into(*call[:9], o, state, call.scale, call.options, call.max_seqlen)
    return o, state


def _forward_plainly(call: Call) -> tuple[Any, Any]:
    """Runs a call that only the kernel has a say in."""
    o, state = call.out, call.final_state
    for given in (o, state):
        # As an operator that writes into its arguments does.
        if given is not None and not given.is_inference():
            torch.autograd.graph.increment_version(given)
    if o is None:
        o = _new_output(call.q, call.v)
    if state is None and call.output_final_state:
        state = _new_state(call.q, call.v, call.cu_seqlens, call.options)
    _compute(call[:9], o, state, call.scale, call.options, call.max_seqlen)
    return o, state


def describe(tensor: torch.Tensor) -> tuple[str, torch.Size, tuple[int, ...], str]:
    """Type, extents, strides and device of a tensor, which may have no data."""
    return str(tensor.dtype).removeprefix("torch."), tensor.shape, tensor.stride(), str(tensor.device)
