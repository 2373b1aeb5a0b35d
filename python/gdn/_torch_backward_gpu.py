# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradients of a call on a GPU.

The manifest's rows say which forms of gates, beta and norms there are kernels for. What none of them has is computed
around one by operations of torch, on the current stream, with their chain rules. None of these operations waits for the
GPU, and a CUDA graph may capture them. The library converts types and channels, and adds what is absent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from . import _library, _manifest
from ._arguments import NO_POOL, Call, output_shapes, type_name
from ._manifest import GradientForm

_LOG, _LINEAR, _RAW, _BOUNDED = map(_library.GATE_DOMAINS.__getitem__, ("log", "linear", "raw", "bounded"))
#: What linear gates are raised to, so that the gradient holds at gates of 0: what it lets through of a state is below
#: what 16 bits round.
_LEAST_GATE = 2.0**-10
#: What kernels raise the logarithm of a gate to, or a little less.
_LEAST_LOG_GATE = -89.0
#: The forms of the kernels.
_FORMS = _manifest.gradient_forms(_library.MANIFEST)
#: Those of kernels of segments that save, and that read what is saved.
_CUT_FORMS = _manifest.gradient_forms(_library.MANIFEST, "Saving", "split")

Tensor = torch.Tensor
#: A gradient from that of what a conversion made.
_Chain = Callable[[Tensor], Tensor]


def decay_of(g: Tensor | None) -> str:
    """What a gate decays, as the manifest says it."""
    return "Channel" if g is not None and g.dim() == 4 else "Head"


@functools.cache
def _served(decay: str) -> tuple[list[str], list[int], list[int]]:
    """The types, the channels in ascending order, and the domains of gates of which there are gradients."""
    forms = [form for form in _FORMS if form.decay == decay]
    domains = {form.gate_domain for form in forms}
    if _LOG in domains:
        # What torch makes logarithms of.
        domains |= {_LINEAR, _RAW}
    return sorted({form.q for form in forms}), sorted({form.channels for form in forms}), sorted(domains)


def _name_gate(domain: int) -> str:
    """A domain of gates in the words of a call."""
    row = list(_library.MANIFEST["gate_domains"].values())[domain]
    return f"{row['name']!r}" + (f" (lower_bound={row['lower_bound']})" if "lower_bound" in row else "")


def why_not(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None, options: int) -> str | None:
    """Why the gradients of such a call have no kernel, or None if they have."""
    types, channels, domains = _served(decay_of(g))
    where = f"{' with gates per channel' if decay_of(g) == 'Channel' else ''} on a GPU in this version"
    if not q.dtype == k.dtype == v.dtype:
        return f"gdn has gradients of q, k and v of one type{where}, got {', '.join(map(type_name, (q, k, v)))}"
    for name, x in (("q", q), ("k", k), ("v", v)):
        if type_name(x) not in types:
            return f"gdn has gradients of {' and '.join(types)}{where}, got {name} of {type_name(x)}"
    K, V = (x.shape[-1] if x.dim() else 0 for x in (q, v))
    if max(K, V) > channels[-1]:
        return f"gdn has gradients of K and V up to {channels[-1]}{where}, got K = {K} and V = {V}"
    domain = _library.gate_domain_of(options)
    if g is not None and domain not in domains:
        known = " and ".join(map(_name_gate, domains))
        return f"gdn has gradients of the gate domains {known}{where}, got {_name_gate(domain)}; a CPU has all"
    return None


class KernelCall(NamedTuple):
    """The tensors of a call as the library takes them, packed, and what leads back."""

    options: int
    scale: float | None
    #: From q to cu_seqlens, in the library's order.
    given: tuple[Tensor | None, ...]
    d_o: Tensor | None
    d_final_state: Tensor | None
    #: From the gradients of gates and of beta to those of the caller's.
    back: tuple[_Chain, _Chain]
    #: What the gradients of gates are multiplied by in those of A_log, and of dt_bias, where the kernels have no such
    #: parameters.
    raw: tuple[Tensor, Tensor] | None


@functools.cache
def _choose(channels: int, q: str, norm: bool, gate_domain: int, beta_domain: int, decay: str) -> GradientForm:
    """The form of the kernels that leaves the least to do around them; the plain one takes everything."""
    for gate in (gate_domain, _LOG):
        for beta in (beta_domain, _library.BETA_VALUE):
            form = GradientForm(channels, q, norm, gate, beta, decay)
            if form in _FORMS:
                return form
    raise NotImplementedError(f"gdn has no gradients of {q} with {channels} channels on a GPU in this build")


def form_of(q: Tensor, v: Tensor, g: Tensor | None, beta: Tensor | None, options: int) -> GradientForm:
    """The form of the kernels that serve a call."""
    decay = decay_of(g)
    return _choose(
        next(channels for channels in _served(decay)[1] if channels >= max(q.shape[3], v.shape[3])),
        type_name(q), _library.has_l2norm(options),
        _LOG if g is None else _library.gate_domain_of(options),
        _library.BETA_VALUE if beta is None else _library.beta_domain_of(options),
        decay,
    )  # fmt: skip


def has_segments(form: GradientForm) -> bool:
    """Whether there are kernels that compute the gradients of this form from saved states in segments."""
    return form in _CUT_FORMS


def kernel_options(form: GradientForm, options: int, g: Tensor | None) -> int:
    """The options of a call as the kernels of this form have it."""
    own = _library.pack_options(
        gate_domain=form.gate_domain, beta_domain=form.beta_domain, l2norm=form.norm,
        state_v_first=_library.state_is_v_first(options),
    )  # fmt: skip
    return own | _library.segments_of(options, decays=g is not None)


# ----------------------------------------------------------------------------------------------------------------------
# Conversions
# ----------------------------------------------------------------------------------------------------------------------


def _same(gradient: Tensor) -> Tensor:
    return gradient


def _raw_gate(g: Tensor, A_log: Tensor | None, dt_bias: Tensor | None, domain: int) -> tuple[Tensor, ...]:
    """The logarithms of raw gates, and what their gradients are multiplied by in those of A_log and of g, in float64:
    float32 has no room for the factors of many a gate that it has room for. Biases of channels may lie in a row."""
    x = g.double() if dt_bias is None else g.double() + dt_bias.reshape(g.shape[2:])
    rate = 1.0 if A_log is None else A_log.reshape(A_log.shape[0], *(1,) * (g.dim() - 3)).double().exp()
    if domain == _BOUNDED:
        part = (x * rate).sigmoid_()
        slope = part * (1.0 - part) * (rate * _library.BOUND)
        return part * _library.BOUND, slope * x, slope
    # Above 40 softplus(x) is x in float64.
    log = torch.nn.functional.softplus(x, threshold=40.0).mul_(-rate)
    return log, log, x.sigmoid_() * -rate


def _gate(
    g: Tensor | None, A_log: Any, dt_bias: Any, domain: int, form: GradientForm
) -> tuple[Tensor | None, _Chain, Any]:
    """The gates as the kernels take them, the way back, and what the gradients of a raw gate's parameters need where
    the kernels do not compute them."""
    if g is None or domain == form.gate_domain:
        return g, _same, None
    if domain == _LINEAR:
        x = g.float().clamp_min(_LEAST_GATE)
        return x.log().contiguous(), lambda gradient: gradient / x, None
    if domain not in (_RAW, _BOUNDED):
        raise AssertionError("gates are logarithms, linear, raw or bounded")
    log, of_rate, slope = _raw_gate(g, A_log, dt_bias, domain)
    # Kernels raise gates to this. One below has no gradient, and what rounding leaves of it may meet a huge rate.
    forgets = log < _LEAST_LOG_GATE
    of_rate, slope = (factor.masked_fill(forgets, 0.0).float() for factor in (of_rate, slope))
    log = log.masked_fill_(forgets, _LEAST_LOG_GATE).float().contiguous()
    return log, lambda gradient: gradient * slope, (of_rate, slope)


def convert_beta(beta: Tensor | None, domain: int, form: GradientForm) -> tuple[Tensor | None, _Chain]:
    """beta as the kernels take it, and the way back."""
    if beta is None or domain == form.beta_domain:
        return beta, _same
    most = 2.0 if domain == _library.BETA_DOUBLED_LOGIT else 1.0
    part = beta.float().sigmoid().contiguous()
    values = part * most if most != 1.0 else part
    return values, lambda gradient: gradient * values * (1.0 - part)


def packed(x: Tensor | None) -> Tensor | None:
    """Batch rows one behind the other."""
    return x if x is None or x.shape[0] == 1 else x.flatten(0, 1)[None]


def boundaries(q: Tensor) -> Tensor:
    """Those of batch rows, which may have no tokens."""
    return torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device) * q.shape[1]


def convert(
    q: Tensor, k: Tensor, v: Tensor, g: Any, beta: Any, A_log: Any, dt_bias: Any, initial_state: Any, cu_seqlens: Any,
    d_o: Any, d_final_state: Any, scale: float | None, options: int,
) -> KernelCall:  # fmt: skip
    """Brings a call to the form that the kernels have."""
    form = form_of(q, v, g, beta, options)
    gates, back_g, raw = _gate(g, A_log, dt_bias, _library.gate_domain_of(options), form)
    betas, back_beta = convert_beta(beta, _library.beta_domain_of(options), form)
    parameters = (A_log, dt_bias) if form.gate_domain in _library.PARAMETRIC_GATES else (None, None)
    tokens = map(packed, (q, k, v, gates, betas))
    ends = boundaries(q) if cu_seqlens is None else cu_seqlens
    return KernelCall(
        kernel_options(form, options, g), scale, (*tokens, *parameters, initial_state, ends),
        None if d_o is None else packed(d_o.to(v.dtype)), d_final_state,
        back=(back_g, back_beta), raw=raw,
    )  # fmt: skip


def without_data(call: Call) -> tuple[Tensor | None, ...]:
    """The tensors of a call that is differentiated as the library takes them, in its order, without data: out and the
    final state stand for their gradients."""
    given: list[Any] = [None if x is None else torch.empty(x.shape, dtype=x.dtype, device="meta") for x in call[:9]]
    q, _, v, *_, state, cu_seqlens = given
    shape = None if state is None else state.shape
    if shape is None and call.output_final_state:
        shape = output_shapes(call.options, q.shape, v.shape, None if cu_seqlens is None else cu_seqlens.shape)[1]
    final = None if shape is None else torch.empty(shape, device="meta")
    given += [v, final, call.scale, call.options]
    kernel = convert(*given)
    return *kernel.given, kernel.d_o, kernel.d_final_state, *NO_POOL


# ----------------------------------------------------------------------------------------------------------------------
# The operator
# ----------------------------------------------------------------------------------------------------------------------


def _without_tokens(arguments: Any) -> tuple[Tensor | None, ...]:
    """The gradients of a call that gives its states back as they are."""
    *found, d_state = (None if x is None else torch.zeros_like(x) for x in arguments[:8])
    if d_state is not None and arguments[10] is not None:
        d_state.copy_(arguments[10])
    return *found, d_state


def _launch(call: KernelCall, rows: tuple[int, int], states: Tensor | None) -> tuple[Any, ...]:
    """The kernels' gradients of q, k, v, g and beta, as [B, T, ...], of A_log, dt_bias, and of the initial state. With
    `states` of a forward that saved them v is what tokens wrote."""
    *given, ends = call.given
    found = [None if x is None else torch.empty_like(x, memory_format=torch.contiguous_format) for x in given]
    arguments = (*given, ends, call.d_o, call.d_final_state, *NO_POOL, *found)
    if states is None:
        _library.load().backward(*arguments, call.scale, call.options, 1, 0)
    else:
        _library.load().backward_saved(*arguments, call.given[2], states, None, call.options, 1, 0)
    tokens = (None if x is None else x.view(*rows, *x.shape[2:]) for x in found[:5])
    return *tokens, *found[5:]


def _keeper(T: int, cu_seqlens: Tensor | None) -> Callable[[Tensor], Tensor]:
    """What makes zeros of the gradients of tokens in no sequence, whatever these hold."""
    if cu_seqlens is None:
        return _same
    place = torch.arange(T, dtype=cu_seqlens.dtype, device=cu_seqlens.device)
    inside = (place >= cu_seqlens[0]) & (place < cu_seqlens[-1])
    return lambda x: x.where(inside.view(T, *(1,) * (x.dim() - 2)), 0.0)


def compute(*arguments: Any, states: Tensor | None = None) -> tuple[Tensor | None, ...]:
    """The gradients of the eight inputs; None for an absent one. With `states` v is what tokens wrote."""
    q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, *_, options = arguments
    reason = why_not(q, k, v, g, options)
    if reason is not None:
        raise NotImplementedError(reason)
    if 0 in v.shape[:2]:
        return _without_tokens(arguments)
    call = convert(*arguments)
    d_q, d_k, d_v, d_g, d_beta, d_A_log, d_dt_bias, d_state = _launch(call, v.shape[:2], states)
    keep = _same if all(back is _same for back in call.back) else _keeper(v.shape[1], cu_seqlens)

    def chain(like: Tensor | None, found: Tensor | None, back: _Chain) -> Tensor | None:
        if like is None or found is None or back is _same:
            return found
        return keep(back(found.float())).to(like.dtype).contiguous()

    if call.raw is not None:
        # Of tokens, and for A_log of the gates of a head.
        dims = (0, 1, *range(3, g.dim())), (0, 1)
        d_A_log, d_dt_bias = (
            None if x is None else keep(y * d_g).sum(dim).reshape(x.shape).to(x.dtype)
            for x, y, dim in zip((A_log, dt_bias), call.raw, dims)
        )
    back_g, back_beta = call.back
    return d_q, d_k, d_v, chain(g, d_g, back_g), chain(beta, d_beta, back_beta), d_A_log, d_dt_bias, d_state
