# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forward on a GPU that saves more than its inputs, and gradients from that (`save_for_backward="states"`).

It saves what each token writes in the place of v, and states: the backward has no recurrence of states to compute again.
The library may cut the sequences of the forward, of the backward, or of both into segments. Forms of a call without such
kernels save their inputs, as others do.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import _library, _manifest, _torch_checks
from . import _torch_backward_gpu as chain
from ._arguments import NO_POOL, default_scale
from ._manifest import GradientForm

Tensor = torch.Tensor
_TABLE = _library.MANIFEST["hopper"].get("saving", {})
_FORMS = _manifest.gradient_forms(_library.MANIFEST, "Saving")
_CHANNELS = frozenset(form.channels for form in _FORMS)
#: Where there are kernels that save. A CPU's gradients are computed in float32, and take no states of 16 bits.
_DEVICES = frozenset(["cuda"])
#: What bounds the segments of a call: tokens that one has at least, and segments times value heads.
_LEAST_SEGMENT, _MOST_ITEMS = _TABLE.get("least_segment", 1), _TABLE.get("most_items", 0)


def _disagreement(
    q: Tensor, k: Tensor, v: Tensor, g: Any, beta: Any, A_log: Any, dt_bias: Any, initial_state: Any, cu_seqlens: Any
) -> str | None:
    """What of a call has another shape than expected, None if all agree: what is packed and padded no longer shows it.
    Others save their inputs, and the library says which rule they break."""
    if q.dim() != 4 or v.dim() != 4:
        return f"q, v: expected 4 dimensions, got {tuple(q.shape)}, {tuple(v.shape)}"
    if cu_seqlens is not None and (cu_seqlens.dim() != 1 or cu_seqlens.shape[0] < 2 or q.shape[0] != 1):
        return f"cu_seqlens: expected [N + 1] beside one batch row, got {tuple(cu_seqlens.shape)} beside {q.shape[0]}"
    sequences = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    HV, K, V = v.shape[2], q.shape[3], v.shape[3]
    channels = () if g is None else (K,) * (g.dim() - 3)
    # Those of channels may lie in a row.
    biases = (HV * K,) if channels and dt_bias is not None and dt_bias.dim() == 1 else (HV, *channels)
    wanted = (
        ("k", k, q.shape), ("v", v, (*q.shape[:2], HV, V)), ("g", g, (*v.shape[:3], *channels)), ("beta", beta, v.shape[:3]),
        ("A_log", A_log, (HV,)), ("dt_bias", dt_bias, biases), ("initial_state", initial_state, (sequences, HV, K, V)),
    )  # fmt: skip
    for name, x, shape in wanted:
        if x is not None and tuple(x.shape) != tuple(shape):
            return f"{name}: expected {tuple(shape)}, got {tuple(x.shape)}"
    return None


def why_inputs(tensors: Any, scale: float | None, options: int, device: int | None = None) -> str | None:
    """Why a call on a GPU saves its inputs and not states, though it asks for them; None if it does save them. `device`
    is the GPU's number, of tensors that are on none."""
    q, k, v, g, beta, _, _, initial_state, _ = tensors[:9]
    reason = chain.why_not(q, k, v, g, options)
    if reason is not None:
        return reason
    if q.shape[-1] != v.shape[-1] or q.shape[-1] not in _CHANNELS:
        return f"K = {q.shape[-1]}, V = {v.shape[-1]}"
    if _disagreement(*tensors[:9]) is not None:
        return "shapes that disagree"
    if 0 in v.shape[:3]:
        return "no tokens or heads"
    if scale is not None and abs(scale / default_scale(q.shape) - 1) > 1e-6:
        return "scale"
    if initial_state is not None and initial_state.dtype != torch.float32:
        return "initial_state in another type than float32"
    form = chain.form_of(q, v, g, beta, options)
    # What torch would compute around the kernels is part of the forward here, and of its time. Beta is small beside gates
    # of channels.
    has_beta = form.decay == "Channel" or form.beta_domain == _library.beta_domain_of(options)
    if not has_beta or (form.norm, form.gate_domain) != (_library.has_l2norm(options), _library.gate_domain_of(options)):
        return "norms, gates or beta"
    if options & _library.BITWISE_MASK == _library.BITWISE:
        # Time is of no account.
        return None
    if _library.has_segment_length(options):
        # The bits of a sequence are to be the same whatever is beside it, and what is chosen here depends on that.
        return "segment_length"
    cu_seqlens = tensors[8]
    sequences = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    sizes = sequences, q.shape[0] * q.shape[1], q.shape[2], v.shape[2]
    if q.is_cuda:
        device = q.device.index or 0
    if device is not None and all(type(size) is int for size in sizes):
        gates = int(form.decay == "Channel"), int(chain.has_segments(form))
        if not _pays(device, *sizes, *gates, _library.segments_of(options, g is not None)):
            return "time: computing them again is predicted to take less"
    return None


@functools.lru_cache(maxsize=1024)
def _pays(*sizes: int) -> bool:
    """Whether a step that saves is predicted to take less time than one that does not, True of a device that does not
    answer. Sizes that are not known are not asked for."""
    try:
        return bool(_library.load().saving_pays(*sizes))
    except RuntimeError:
        return True


def saves(tensors: Any, scale: float | None, options: int) -> bool:
    """Whether the forward of a call that gradients are asked of saves states."""
    asks = bool(options & _library.SAVES_STATES) and tensors[0].device.type in _DEVICES
    return asks and why_inputs(tensors, scale, options) is None


def _count_states(q: Tensor, v: Tensor, cu_seqlens: Tensor | None, form: GradientForm, options: int) -> tuple[int, int]:
    """The sequences, and the states that there is memory for. The states of sequence n, which begins at token b, have the
    numbers from floor(b / L) + n on, L tokens apart. Kernels of segments ask for one state more in each segment. How many segments
    there are is the choice of the library's cost model: this is the most."""
    sequences = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    tokens, more = q.shape[0] * q.shape[1], 0
    is_whole = _library.segments_of(options) in (_library.NO_SEGMENTS, _library.BITWISE)
    if chain.has_segments(form) and not is_whole:
        more = torch.sym_min(tokens // _LEAST_SEGMENT, _MOST_ITEMS // torch.sym_max(v.shape[2], 1))
    apart = _library.MANIFEST["decays"][form.decay]["saved_tokens"]
    return sequences, tokens // apart + sequences + more


def bytes_of_states(call: Any, options: int) -> int:
    """The memory of the states that a call saves."""
    q, _, v, g, beta, *_, cu_seqlens = call[:9]
    form = chain.form_of(q, v, g, beta, options)
    states = _count_states(q, v, cu_seqlens, form, options)[1]
    return int(states * v.shape[2] * v.shape[3] * q.shape[3] * v.element_size())


def _allocate_saved(q: Tensor, v: Tensor, g: Any, beta: Any, cu_seqlens: Any, options: int) -> tuple[int, Tensor, Tensor]:
    """The sequences of a call, and memory for what tokens write and for states."""
    sequences, kept = _count_states(q, v, cu_seqlens, chain.form_of(q, v, g, beta, options), options)
    writes = torch.empty_like(v, memory_format=torch.contiguous_format)
    return sequences, writes, v.new_empty((kept, v.shape[2], v.shape[3], q.shape[3]))


def allocate(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the operator of these arguments makes: o, the final states (of no sequences unless they are asked for), what
    tokens write, and states."""
    q, _, v, g, beta, *_, cu_seqlens, options, with_state = arguments
    sequences, writes, states = _allocate_saved(q, v, g, beta, cu_seqlens, options)
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    state = v.new_empty((sequences, *states.shape[1:]) if with_state else 0, dtype=torch.float32)
    return o, state, writes, states


def compute_forward(*given: Any, into: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `allocate` makes, computed; o and the final states, or None, in those of `into` if there are such."""
    q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, options, with_state = given
    if (reason := _disagreement(*given[:9])) is not None:
        raise ValueError(f"gdn: {reason}")
    if _torch_checks.CHECKS_VALUES:
        _torch_checks.check_values((*given[:9], None, None, *NO_POOL), options)
    form = chain.form_of(q, v, g, beta, options)
    if into is None:
        o, state, writes, states = allocate(*given)
    else:
        (o, state), (_, writes, states) = into, _allocate_saved(q, v, g, beta, cu_seqlens, options)
    betas, _ = chain.convert_beta(beta, _library.beta_domain_of(options), form)
    tokens = map(chain.packed, (q, k, v, g, betas))
    _library.load().forward_saving(
        *tokens, A_log, dt_bias, initial_state, chain.boundaries(q) if cu_seqlens is None else cu_seqlens,
        chain.packed(o), state if with_state else None, *NO_POOL, chain.packed(writes), states, None,
        chain.kernel_options(form, options, g), 1, 0,
    )  # fmt: skip
    return o, state, writes, states


def compute_bitwise(tensors: Any, options: int) -> None:
    """A call with `bitwise` that nobody differentiates, by the kernels that save: theirs are the bits of the forward of a
    step of training. What they save goes."""
    o, state, *others = tensors[9:]
    if any(x is not None for x in others):
        raise NotImplementedError(
            "bitwise: expected no state_indices and no state_checkpoints with kernels of chunks on a GPU in this version"
        )
    # Batch rows are packed as they are.
    dense = o if o.shape[0] == 1 or o.is_contiguous() else torch.empty_like(o, memory_format=torch.contiguous_format)
    compute_forward(*tensors[:9], options, state is not None, into=(dense, state))
    if dense is not o:
        o.copy_(dense)
