# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradients of the torch operators, by `gdn::gated_delta_rule_backward`.

The forward keeps its inputs and nothing else. The backward computes again what it needs of the forward. A forward that
is asked to keep more is in `_torch_saved.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from . import _library, _torch_backward_gpu, _torch_saved
from ._arguments import NO_POOL, OUTPUTS, TENSORS
from ._torch_checks import refuse_derivatives


def declare(name: str) -> str:
    """A tensor of a call in an operator's schema, with a letter if it is written."""
    written = f"({'abc'[OUTPUTS.index(name)]}!)" if name in OUTPUTS else ""
    return f"Tensor{written}{'' if name in ('q', 'k', 'v', 'out') else '?'} {name}"


#: The inputs of a call in an operator's schema, and the gradients of those that have one.
INPUTS = ", ".join(map(declare, TENSORS[: TENSORS.index("out")]))
_GRADIENTS = f"({', '.join(['Tensor'] * 8)})"
_REST = "Tensor? d_o, Tensor? d_final_state"
#: The backward of inputs, the forward that saves, and the backward of what it saved: the forward's inputs, the gradients of
#: its outputs, the rest.
SCHEMAS = (
    f"gated_delta_rule_backward({INPUTS}, {_REST}, float? scale, int options) -> {_GRADIENTS}",
    f"gated_delta_rule_saving({INPUTS}, int options, bool output_final_state) -> (Tensor, Tensor, Tensor, Tensor)",
    f"gated_delta_rule_backward_saved({INPUTS}, {_REST}, Tensor states, int options) -> {_GRADIENTS}",
)
#: How many of the arguments are tensors of the forward, and how many of these have gradients.
_INPUTS, _DIFFERENTIABLE = 9, 8
#: What the tensors among the arguments are to those who differentiate.
_NAMES = (*TENSORS[:_INPUTS], "gradient of o", "gradient of final_state")


def _allocate(tensors: Iterable[Any], packed: bool) -> tuple[torch.Tensor | None, ...]:
    """The gradients of tensors. Those of tokens behind the last boundary are zeros."""
    make = torch.zeros_like if packed else torch.empty_like
    return tuple(
        None if tensor is None else make(tensor, memory_format=torch.contiguous_format) for tensor in tensors
    )


def _or_empty(gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor, ...]:
    """What the operator returns; an absent gradient has no elements."""
    q = gradients[0]
    assert q is not None
    return tuple(q.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _detach(arguments: Iterable[Any]) -> list[Any]:
    return [value.detach() if isinstance(value, torch.Tensor) else value for value in arguments]


def _kernel(compute: Callable[..., Any]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """What computes, as an operator's: of tensors that nobody differentiates."""
    return lambda *arguments: _or_empty(compute(*_detach(arguments)))


def _compute_on_cpu(*arguments: Any) -> tuple[torch.Tensor | None, ...]:
    *given, scale, options = arguments
    gradients = _allocate(given[:_DIFFERENTIABLE], given[_INPUTS - 1] is not None)
    _library.load().backward(*given, *NO_POOL, *gradients, scale, options, torch.get_num_threads(), 0)
    return gradients


def _compute_from_saved(*arguments: Any) -> tuple[torch.Tensor | None, ...]:
    *given, states, options = arguments
    return _torch_backward_gpu.compute(*given, None, options, states=states)


def _fake(*arguments: Any) -> tuple[torch.Tensor, ...]:
    return _or_empty(_allocate(arguments[:_DIFFERENTIABLE], packed=False))


#: What computes each operator on a GPU, and what stands for that without data.
_ON_GPU = {
    "gated_delta_rule_backward": (_kernel(_torch_backward_gpu.compute), _fake),
    "gated_delta_rule_saving": (_kernel(_torch_saved.compute_forward), _torch_saved.allocate),
    "gated_delta_rule_backward_saved": (_kernel(_compute_from_saved), _fake),
}


@contextlib.contextmanager
def _below() -> Iterator[None]:
    """Below autograd. An outer level of torch.func follows its own gradients and tangents there: a function of autograd
    turns them off while it runs."""
    with torch._C._AutoDispatchBelowAutograd(), torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
        yield


def _apply(function: Any, *arguments: Any) -> Any:
    """Applies a function of autograd in an operator, where transforms of torch.func have left a single level."""
    with enable_single_level_autograd_function():
        return function.apply(*arguments)


class _Function(_SingleLevelFunction):
    """A function of autograd that operators apply themselves: `torch.autograd.Function` asks transforms of torch.func
    first, which these have left already."""

    #: By what compiled autograd knows a backward: its class, as for `torch.autograd.Function`.
    _compiled_autograd_key = staticmethod(torch.autograd.Function._compiled_autograd_key)


class _Backward(_Function):
    """The operator of a backward, which has no derivative of its own."""

    @staticmethod
    def forward(operator: Any, *arguments: Any) -> Any:
        with _below():
            return operator(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        return None

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(
            "gdn: expected a loss that is differentiated once, got a double backward: the gradients of the gated "
            "delta rule have no derivative; call torch.autograd.grad without create_graph=True"
        )


def _backward_with_autograd(operator: Any, *names: str) -> Callable[..., Any]:
    """An operator of a backward for tensors that autograd may follow; `names` are those of its last tensors."""

    def run(*arguments: Any) -> Any:
        if refuse_derivatives(zip((*_NAMES, *names), arguments), reason=None):
            return _apply(_Backward, operator, *arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    return run


def trained(options: int, device: str) -> int:
    """The options of a forward that gradients are asked of. A CPU computes it in float32: with 16 bits the gradients of
    a model would be further from the exact ones than those of torch's code, which computes in float32 too."""
    return options | _library.FLOAT32_ARITHMETIC if device == "cpu" else options


class _Forward(_Function):
    """The forward with its gradients. On a GPU it may save states, and what tokens write in the place of v."""

    @staticmethod
    def forward(saves: bool, *arguments: Any) -> Any:
        *tensors, scale, options, max_seqlen, with_state = arguments
        with _below():
            if saves:
                return torch.ops.gdn.gated_delta_rule_saving.default(*tensors, options, with_state)
            options = trained(options, tensors[0].device.type)
            return torch.ops.gdn.gated_delta_rule.default(*tensors, scale, options, max_seqlen, with_state)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, q, k, v, *rest, scale, options, _, with_state = inputs
        _, state, *saved = output
        writes, *states = saved or (v,)
        ctx.save_for_backward(q, k, writes, *rest, *states)
        ctx.scale, ctx.options = scale, options
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*saved, *(() if with_state else (state,)))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved, ops = ctx.saved_tensors, torch.ops.gdn
        tensors, states = saved[:_INPUTS], saved[_INPUTS:]
        if states:
            found = ops.gated_delta_rule_backward_saved.default(*tensors, *gradients[:2], *states, ctx.options)
        else:
            found = ops.gated_delta_rule_backward.default(*tensors, *gradients, ctx.scale, ctx.options)
        # Those that are asked for, and None for all other arguments.
        asked = (gradient if needs else None for gradient, needs in zip(found, ctx.needs_input_grad[1:]))
        return None, *asked, *(None,) * 5


class _ForwardAlone(_Forward):
    """A recurrent call on a GPU that has no backward: it says so where a gradient is asked for."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        q, k, v, g = ctx.saved_tensors[:4]
        reason = _torch_backward_gpu.why_not(q, k, v, g, ctx.options)
        raise NotImplementedError(f"q: expected a tensor of a call with a backward: {reason}")


def forward_with_autograd(*arguments: Any) -> Any:
    """The operator `gdn::gated_delta_rule` for tensors that gradients are asked of."""
    *tensors, scale, options, _, _ = arguments
    q, k, v, g = tensors[:4]
    is_recurrent = q.device.type == "cuda" and _library.is_recurrent(options)
    # A call in chunks without a backward has been refused.
    if is_recurrent and _torch_backward_gpu.why_not(q, k, v, g, options):
        return _apply(_ForwardAlone, False, *arguments)
    return _apply(_Forward, _torch_saved.saves(tensors, scale, options), *arguments)[:2]


def implement(ops: torch.library.Library, fake: Callable[..., Any]) -> None:
    """Implements the operators of `SCHEMAS`. The forward that saves stands below autograd: `_Forward` applies it."""
    ops.impl("gated_delta_rule_backward", _kernel(_compute_on_cpu), "CPU")
    for name, (compute, without_data) in _ON_GPU.items():
        ops.impl(name, compute, "CUDA")
        fake(f"gdn::{name}", without_data, lib=ops)
    for name, names in (("gated_delta_rule_backward", ()), ("gated_delta_rule_backward_saved", ("states",))):
        operator = getattr(torch.ops.gdn, name).default
        ops.impl(name, _backward_with_autograd(operator, *names), "Autograd")
