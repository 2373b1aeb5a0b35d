# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls on a GPU in a form that no kernel has, converted to a form that a kernel has.

This is tried after the library has refused a call, so calls that a kernel serves pay nothing for it. Conversions are
elementwise operations of torch on the current stream. They wait for nothing, and a CUDA graph may capture them. They
round no float32, except for outputs that the caller wants in 16 bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch

from . import _library, _manifest
from ._arguments import Call, default_scale, factor_on_gpu, torch_type
from ._manifest import Form
from ._torch_outputs import with_data, without_data

_F32 = "float32"
_SHORT_TYPES = ("float16", "bfloat16")
_LOG, _LINEAR, _RAW = map(_library.GATE_DOMAINS.__getitem__, ("log", "linear", "raw"))
_GATE_NAMES = list(_library.GATE_DOMAINS)
_BETA_NAMES = [row["says"] for row in _library.MANIFEST["beta_domains"].values()]

_CHUNKS = _manifest.gpu_forms(_library.MANIFEST, "gdn.chunk_gated_delta_rule")
_TOKENS = _manifest.gpu_forms(_library.MANIFEST, "gdn.recurrent_gated_delta_rule")
_SEGMENTS = _manifest.segment_forms(_library.MANIFEST)
#: K and V of the kernels, the smallest heads first.
_CHANNELS = sorted({(form.k, form.v) for form in _CHUNKS | _TOKENS}, key=lambda sizes: (sizes[0] * sizes[1], sizes))
#: Longer sequences go by kernels of chunks, if these can be had by a conversion.
_FEW_TOKENS = 64


class Conversion(NamedTuple):
    """What is converted before or after a call on a GPU.

    Attributes:
        what: the arguments, and what becomes of them.
        bytes: bytes that are read and written.
        launches: kernels of torch that do it.
    """

    what: str
    bytes: int
    launches: int

    def __str__(self) -> str:
        return f"{self.what}: {self.bytes:.4g} bytes, {self.launches} launches"


# ----------------------------------------------------------------------------------------------------------------------
# Which form
# ----------------------------------------------------------------------------------------------------------------------


def _form_of(call: Call) -> Form | None:
    """What the call asks for, with g and beta in float32."""
    if call.q.dim() != 4 or call.v.dim() != 4:
        return None
    options, states = call.options, [x for x in (call.initial_state, call.final_state) if x is not None]
    ends = "None" if not states else "Final" if call.initial_state is None else "Both"
    if call.state_indices is not None:
        ends = "Pool"
    types = {torch_type(x) for x in states}
    return Form(
        k=call.q.shape[3],
        v=call.v.shape[3],
        q=torch_type(call.q),
        packed=call.cu_seqlens is not None,
        norm=_library.has_l2norm(options),
        ends=ends,
        v_first=_library.state_is_v_first(options),
        state=types.pop() if len(types) == 1 else _F32,
        gate_domain=_library.gate_domain_of(options),
        beta_domain=_library.beta_domain_of(options),
    )


def _has(forms: frozenset[Form], form: Form) -> bool:
    return (form if form.ends != "None" else form._replace(v_first=False, state=_F32)) in forms


def _candidates(form: Form, widens: bool) -> Iterator[Form]:
    """The forms that a call of this one can be brought to, what costs least first; with q, k and v in float32 if it
    `widens`."""
    channels = [sizes for sizes in _CHANNELS if sizes[0] >= form.k and sizes[1] >= form.v]
    types = [form.q, _F32] if widens and form.q in _SHORT_TYPES else [form.q]
    states = [(form.ends, form.state), (form.ends, _F32), ("Both", _F32)]
    if form.ends == "Pool":
        # It is the caller's, to be updated in place.
        channels, states = [(form.k, form.v)], [(form.ends, form.state)]
    gates = [form.gate_domain, _LOG] if form.gate_domain in (_LINEAR, _RAW) else [form.gate_domain]
    for k, v in channels:
        for q in types:
            for ends, state in states:
                for gate in gates:
                    for beta in (form.beta_domain, _library.BETA_VALUE):
                        yield form._replace(
                            k=k, v=v, q=q, ends=ends, state=state, gate_domain=gate, beta_domain=beta
                        )


@functools.lru_cache(1024)
def _find_target(form: Form, recurrent: bool, is_long: bool, is_fixed: bool) -> Form | None:
    """The form to convert to, or None if there is no kernel for any. No length chooses one that `is_fixed`."""
    if form.k == 0 or form.v == 0:
        return None
    everything = _CHUNKS | _TOKENS
    # The function of tokens gets their float32 arithmetic. Others get 16-bit kernels as long as there are any.
    passes = [(_TOKENS, True)] if recurrent else [(_CHUNKS if is_long else everything, False)]
    for known, widens in [(_SEGMENTS, False)] if is_fixed else [*passes, (everything, False), (everything, True)]:
        for candidate in _candidates(form, widens):
            if _has(known, candidate):
                return candidate
    return None


def _count_sequences(call: Call) -> int:
    return int(call.q.shape[0] if call.cu_seqlens is None else call.cu_seqlens.shape[0] - 1)


def _target_of(call: Call, form: Form) -> Form | None:
    tokens = call.q.shape[0] * call.q.shape[1] // max(_count_sequences(call), 1)
    is_long, is_fixed = (call.max_seqlen or tokens) > _FEW_TOKENS, _library.has_segment_length(call.options)
    return _find_target(form, _library.is_recurrent(call.options), is_long and not is_fixed, is_fixed)


# ----------------------------------------------------------------------------------------------------------------------
# Conversions
# ----------------------------------------------------------------------------------------------------------------------


class _Run:
    """The operations of conversions."""

    def each(
        self, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, launches: int,
        inner: torch.dtype = torch.float32,
    ) -> torch.Tensor:  # fmt: skip
        """A function of the elements, in float32, of so many launches with this type between them."""
        return function(x).contiguous()

    def zeros(self, like: torch.Tensor, shape: Iterable[int], dtype: torch.dtype) -> torch.Tensor:
        return like.new_zeros(tuple(shape), dtype=dtype)

    def copy(self, to: torch.Tensor, given: torch.Tensor) -> None:
        to.copy_(given)


class _Plan(_Run):
    """The same without data, counted. (Elementwise operations on the meta device import torch's compiler.)"""

    def __init__(self) -> None:
        self.launches = self.bytes = 0

    def _count(self, *tensors: torch.Tensor) -> None:
        self.launches += 1
        self.bytes += sum(x.numel() * x.element_size() for x in tensors)

    def each(
        self, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, launches: int,
        inner: torch.dtype = torch.float32,
    ) -> torch.Tensor:  # fmt: skip
        made, between = (x.new_empty(x.shape, dtype=dtype) for dtype in (torch.float32, inner))
        steps = [x, *[between] * (launches - 1), made]
        for step in zip(steps, steps[1:]):
            self._count(*step)
        return made

    def zeros(self, like: torch.Tensor, shape: Iterable[int], dtype: torch.dtype) -> torch.Tensor:
        made = super().zeros(like, shape, dtype)
        self._count(made)
        return made

    def copy(self, to: torch.Tensor, given: torch.Tensor) -> None:
        self._count(to, given)


def _fit(run: _Run, tensor: torch.Tensor, sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The tensor in this type, with zeros up to these last extents."""
    outer, given = tensor.shape[: -len(sizes)], tensor.shape[-len(sizes) :]
    if given == sizes and tensor.dtype == dtype:
        return tensor
    make = tensor.new_empty if given == sizes else functools.partial(run.zeros, tensor)
    wide = make((*outer, *sizes), dtype=dtype)
    run.copy(_corner(wide, tensor), tensor)
    return wide


def _corner(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The first elements of each dimension, as many as `like` has."""
    return tensor[tuple(map(slice, like.shape))]


def _float(run: _Run, tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype == torch.float32 else run.each(torch.Tensor.float, tensor, 1)


def raw_gate(g: torch.Tensor, A_log: torch.Tensor, dt_bias: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """The logarithms -exp(A_log) softplus(x), x = g + dt_bias, with x and -exp(A_log), in float64: float32 has no room
    for the factors of many a gate that it has room for."""
    x = g.double() if dt_bias is None else g.double() + dt_bias
    rate = A_log.double().exp().neg_()
    # Above 40 softplus(x) is x in float64.
    return torch.nn.functional.softplus(x, threshold=40.0).mul_(rate), x, rate


def _convert_gate(run: _Run, call: Call, target: Form) -> Call:
    """g in float32; as logarithms if the target has these."""
    domain = _library.gate_domain_of(call.options)
    if call.g is None:
        return call
    g, A_log, dt_bias = _float(run, call.g), call.A_log, call.dt_bias
    if domain == target.gate_domain:
        return call._replace(g=g)
    if domain == _LINEAR:
        return call._replace(g=run.each(torch.log, g, 1))

    # Of these launches three for A_log have no bytes to speak of.
    launches = 7 if dt_bias is None else 8
    g = run.each(lambda x: raw_gate(x, A_log, dt_bias)[0].float(), g, launches, torch.float64)
    return call._replace(g=g, A_log=None, dt_bias=None)


def _convert_beta(run: _Run, call: Call, target: Form) -> Call:
    """beta in float32; as values if the target has these."""
    domain = _library.beta_domain_of(call.options)
    if call.beta is None:
        return call
    beta = _float(run, call.beta)
    if domain == target.beta_domain:
        return call._replace(beta=beta)
    if domain == _library.BETA_DOUBLED_LOGIT:
        return call._replace(beta=run.each(lambda x: x.sigmoid().mul_(2), beta, 2))
    return call._replace(beta=run.each(torch.sigmoid, beta, 1))


def _convert_data(run: _Run, call: Call, target: Form) -> Call:
    """q, k and v in the target's type and channels, and memory for such outputs."""
    dtype = getattr(torch, target.q)
    q, k, v = (_fit(run, x, (size,), dtype) for x, size in zip(call[:3], (target.k, target.k, target.v)))
    out = call.out
    if out.dtype != dtype or out.shape[3] != target.v:
        out = out.new_empty((*out.shape[:3], target.v), dtype=dtype)
    return call._replace(q=q, k=k, v=v, out=out)


def _convert_states(run: _Run, call: Call, target: Form) -> Call:
    """States in the target's type and channels."""
    if target.ends in ("None", "Pool"):
        return call
    initial, final, dtype = call.initial_state, call.final_state, getattr(torch, target.state)
    sizes = (target.v, target.k) if target.v_first else (target.k, target.v)
    shape = (_count_sequences(call), call.v.shape[2], *sizes)
    if initial is not None:
        initial = _fit(run, initial, sizes, dtype)
    elif target.ends == "Both":
        initial = run.zeros(call.v, shape, dtype)
    if final is None or final.dtype != dtype or final.shape[2:] != sizes:
        # A state that was made here is the kernel's to write.
        final = call.v.new_empty(shape, dtype=dtype) if initial is call.initial_state else initial
    return call._replace(initial_state=initial, final_state=final)


def _set_options(run: _Run, call: Call, target: Form) -> Call:
    """The options and the scale of the converted call."""
    scale = default_scale(call.q.shape) if call.scale is None else call.scale
    options = _library.with_domains(call.options, target.gate_domain, target.beta_domain)
    return call._replace(scale=scale, options=options)


#: All that happens before a call. The scale follows from the caller's q, and the domains are looked at before they
#: are changed.
_BEFORE: tuple[Callable[[_Run, Call, Form], Call], ...] = (
    _convert_gate, _convert_beta, _set_options, _convert_data, _convert_states,
)  # fmt: skip


def _finish(run: _Run, call: Call, converted: Call) -> None:
    """Brings the outputs of the converted call to those of the caller's."""
    for given, made in ((call.out, converted.out), (call.final_state, converted.final_state)):
        if given is not None and given is not made:
            run.copy(given, _corner(made, given))


def _convert_and_run(compute: Callable[..., None], call: Call, form: Form) -> bool:
    """Runs a call that the library refuses by `compute`, in another form. False if there is none, or nothing to do."""
    target = _target_of(call, form)
    if target is None:
        return False
    run, converted = _Run(), call
    for convert in _BEFORE:
        converted = convert(run, converted, target)
    if all(x is y for x, y in zip(call.tensors, converted)) and call.options == converted.options:
        return False
    *tensors, scale, options, _, max_seqlen = converted
    compute(*tensors, scale, options, max_seqlen)
    _finish(run, call, converted)
    return True


#: Calls that the library refused and a conversion brought to a kernel, by their options: a refusal costs the host 0.5 ms.
_refused: dict[int, set[Any]] = {}
#: Most of them that are remembered with the same options.
_MOST_REFUSED = 1024
#: Most options whose calls are remembered: a segment_length is a part of them.
MOST_OPTIONS = 256


def run_in_any_form(call_library: Callable[..., None], compute: Callable[..., None], call: Call) -> None:
    """Runs the library; a call that it refuses, by `compute` in a form that a kernel has."""
    tensors, options = call.tensors, call.options
    if not call.output_final_state:
        # A state that nobody asked for is not brought back.
        call = call._replace(final_state=None)
    known = _refused.get(options)
    if known is not None and _key_of(call) in known:
        form = _form_of(call)
        if form is not None and _convert_and_run(compute, call, form):
            return
    try:
        call_library(tensors, call.scale, options, 1, call.max_seqlen)
    except NotImplementedError:
        form = _form_of(call)
        if form is None or not _convert_and_run(compute, call, form):
            raise
        if options not in _refused and len(_refused) >= MOST_OPTIONS:
            _refused.clear()
        known = _refused.setdefault(options, set())
        if len(known) >= _MOST_REFUSED:
            known.clear()
        known.add(_key_of(call))


def _key_of(call: Call) -> tuple[Any, ...]:
    """All that the library's rules of a call look at beside the options, so that conversions need none of their own."""
    tensors = call.tensors
    return tuple([x if x is None else (x.dtype, x.shape, x.stride(), x.device) for x in tensors])


# ----------------------------------------------------------------------------------------------------------------------
# What `explain` says
# ----------------------------------------------------------------------------------------------------------------------


def _changes(form: Form, target: Form) -> Iterator[str]:
    """What each step of `_BEFORE` changes, in words."""
    before, after = _GATE_NAMES[form.gate_domain], _GATE_NAMES[target.gate_domain]
    yield "g to float32" if before == after else f"g from {before} to {after} gates"
    values = _BETA_NAMES[form.beta_domain], _BETA_NAMES[target.beta_domain]
    yield "beta to float32" if values[0] == values[1] else f"beta from {values[0]} to {values[1]}"
    yield ""
    types = "" if form.q == target.q else f" from {form.q} to {target.q}"
    padded = (form.k, form.v) != (target.k, target.v)
    zeros = f" with zeros from K = {form.k}, V = {form.v} to K = {target.k}, V = {target.v}" if padded else ""
    yield f"q, k, v{types}{zeros}"
    yield f"initial_state{zeros} in {target.state}"


def as_scaled(q: torch.Tensor, o: torch.Tensor, scale: float) -> tuple[Conversion, ...]:
    """What a scale that no kernel on a GPU has comes to."""
    factor = factor_on_gpu(q.shape, scale)
    if factor == 1.0:
        return ()
    holds = "; float16 must hold o with K^(-1/2)" if o.dtype == torch.float16 and abs(factor) < 1 else ""
    what = f"o times {factor:.4g} after the kernel{holds}"
    return (Conversion(what, 2 * o.numel() * o.element_size(), 1),)


def as_converted(call: Call) -> tuple[Call, tuple[Conversion, ...]] | None:
    """The call that runs for one that the library refuses, and what converts it. Nothing runs: tensors that the
    conversions make have no data here."""
    if not call.output_final_state:
        call = call._replace(final_state=None)
    bare = call.with_tensors(without_data(call.tensors))
    form = _form_of(bare)
    target = None if form is None else _target_of(bare, form)
    if form is None or target is None:
        return None
    found, converted = [], bare
    for convert, what in zip(_BEFORE, _changes(form, target)):
        plan = _Plan()
        converted = convert(plan, converted, target)
        if plan.launches:
            found.append(Conversion(what, plan.bytes, plan.launches))
    plan = _Plan()
    _finish(plan, bare, converted)
    if plan.launches:
        found.append(Conversion("outputs back", plan.bytes, plan.launches))
    return converted.with_tensors(with_data(call.tensors, bare, converted)), tuple(found)
