# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of Hugging Face Transformers (5.17 to 5.24) with Gated DeltaNet or Kimi Delta Attention, run by gdn.

A model's file of Transformers has two functions, `torch_chunk_gated_delta_rule` and `torch_recurrent_gated_delta_rule`
(or `chunk_kimi_delta_attention` and `recurrent_kimi_delta_attention`), which are FLA's where FLA is installed and plain
torch otherwise. Its layers look both up by name at each call.
`install` binds these names to functions that run gdn, and that hand on to the former ones what gdn does not serve.

Transformers has two public ways too. Neither will do. `KernelConfig` needs the package `kernels`, and a call for each
model and mode after it was loaded. `register_patch_mapping` replaces whole layers, whose code differs from release to
release, and leaves a model alone that is there already. The names serve every model of the process, loaded before or
after, with and without FLA and `kernels`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

import torch

from . import _api, _kda
from ._explain import supported

#: The class of each model that runs the layers, and gives them all keywords that it does not know.
_STACKS = {
    "qwen3_next": "Qwen3NextModel", "qwen3_5": "Qwen3_5TextModel", "qwen3_5_moe": "Qwen3_5MoeTextModel",
    "qwen4_exp": "Qwen4ExpTextModel", "olmo_hybrid": "OlmoHybridModel", "lara_mini": "LaraMiniModel",
    "kimi_linear": "KimiLinearModel", "glm5_next": "Glm5NextTextModel", "bailing_hybrid": "BailingHybridModel",
}  # fmt: skip
#: The models whose files have the functions, in transformers.models.
MODELS = tuple(_STACKS)

#: What runs instead of a function of a model's file, which has both of one kind of layers.
_FUNCTIONS: tuple[dict[str, Callable[..., tuple[Any, Any]]], ...] = (
    {
        "torch_chunk_gated_delta_rule": _api.chunk_gated_delta_rule,
        "torch_recurrent_gated_delta_rule": _api.fused_recurrent_gated_delta_rule,
    },
    {
        "chunk_kimi_delta_attention": _kda.chunk_kda,
        "recurrent_kimi_delta_attention": _kda.fused_recurrent_kda,
    },
)
_CONVOLUTION = "causal_conv1d_fn"

#: Type and extents of a tensor, or None.
_Described = tuple[Any, tuple[int, ...]] | None

#: The names that are bound: a model's file, a name in it, and what it was and is now.
_bound: list[tuple[Any, str, Any, Any]] = []


def install() -> tuple[str, ...]:
    """Puts gdn under the layers of Gated DeltaNet and Kimi Delta Attention of Transformers, for all models of this process.

    From then on a layer's prefill runs `gdn.chunk_gated_delta_rule` (`gdn.chunk_kda`), and a token with a cache
    `gdn.fused_recurrent_gated_delta_rule` (`gdn.fused_recurrent_kda`). Models that were loaded before follow too. A call
    goes where it went before (FLA, a kernel of the Hub, or torch) under torch.export, and wherever `gdn.supported` says
    no, as for gradients of float32 on a GPU, or of gates per channel without a bound; the logger "gdn.transformers" has a
    warning then, once for each reason.

    Packed sequences, which a model gets as `cu_seq_lens_q`, are kept apart, also in layers of Kimi Delta Attention, whose
    functions in Transformers do not look at them. That includes the convolution before the layer, which gets zeros
    between them. Only causal-conv1d on a GPU keeps them apart itself, if the model gets
    `seq_idx` too. A cache that has tokens goes on with one sequence; several in such a call are a ValueError.
    `position_ids` alone tell of packed sequences too, where the masks of Transformers follow them: in a call of one row
    without `attention_mask` and cache. Elsewhere the logger has a warning, once. Compiled models do not look at them.

    Returns:
        The models that this version of Transformers has of `gdn.transformers.MODELS`.

    Raises:
        ImportError: Transformers is not installed, or has none of these models.

    Example:
        >>> import gdn.transformers
        >>> gdn.transformers.install()  # doctest: +SKIP
        ('qwen3_next', 'qwen3_5', 'qwen3_5_moe', 'qwen4_exp', 'olmo_hybrid', 'lara_mini', 'kimi_linear', ...)
    """
    uninstall()
    installed = []
    for name in MODELS:
        path = f"transformers.models.{name}.modeling_{name}"
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            # A version without the model; what the model itself misses is the caller's to know.
            if error.name is None or not path.startswith(error.name):
                raise
            continue
        functions = next((row for row in _FUNCTIONS if all(callable(getattr(module, name, None)) for name in row)), {})
        if not functions:
            continue
        for function, ours in functions.items():
            _bind(module, function, functools.partial(_around_rule, ours))
        if callable(getattr(module, _CONVOLUTION, None)):
            _bind(module, _CONVOLUTION, _around_convolution)
        if hasattr(module, _STACKS[name]):
            _bind(getattr(module, _STACKS[name]), "forward", _around_stack)
        installed.append(name)
    if not installed:
        raise ImportError(
            "gdn.transformers: expected Transformers 5.17 or newer (pip install 'transformers>=5.17'), "
            "got none with a model of Gated DeltaNet or Kimi Delta Attention"
        )
    cache = importlib.import_module("transformers.cache_utils").Cache
    if hasattr(cache, "update_conv_state"):
        _bind(cache, "update_conv_state", _around_cache)
    return tuple(installed)


def uninstall() -> None:
    """Undoes `install`: all names are what they were.

    Example:
        >>> import gdn.transformers
        >>> gdn.transformers.uninstall()
    """
    while _bound:
        module, name, before, after = _bound.pop()
        # Somebody may have put a function of theirs around ours, which then hands on.
        after.is_active = False
        if getattr(module, name) is after:
            setattr(module, name, before)


def _bind(module: Any, name: str, around: Callable[[Any], Any]) -> None:
    before = getattr(module, name)
    after = around(before)
    functools.update_wrapper(after, before)
    after.is_active = True
    setattr(module, name, after)
    _bound.append((module, name, before, after))


def _around_rule(ours: Callable[..., tuple[Any, Any]], before: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a model's file that runs `ours` where gdn serves the call, and `before` elsewhere."""
    name = ours.__name__

    def run(query: Any, key: Any, value: Any, *rest: Any, **kwargs: Any) -> Any:
        # The two functions order what follows beta differently; models say it by keyword.
        if run.is_active and len(rest) <= 2:  # type: ignore[attr-defined]
            named = {**dict(zip(("g", "beta"), rest)), **kwargs}
            # Layers of Kimi Delta Attention hand on what the model got.
            named.setdefault("cu_seqlens", named.get("cu_seq_lens_q"))
            tensors = (query, key, value, *map(named.get, _TENSORS))
            words = tuple([(word, named[word]) for word in _WORDS if named.get(word) is not None])
            if _serves(name, tensors, words):
                return ours(query, key, value, **dict(zip(_TENSORS, tensors[3:])), **dict(words))
        return before(query, key, value, *rest, **kwargs)

    return run


#: The tensors of a call that follow q, k and v, and what else a call says. Other keywords are a model's own, and ignored
#: as Transformers ignores them.
_TENSORS = ("g", "beta", "A_log", "dt_bias", "initial_state", "cu_seqlens")
_WORDS = (
    "scale", "output_final_state", "use_qk_l2norm_in_kernel", "use_gate_in_kernel", "use_beta_sigmoid_in_kernel",
    "allow_neg_eigval",
)  # fmt: skip
#: How many of the first extents of each tensor no answer depends on: those of sequences and tokens, so that few calls are
#: asked about. It depends on no strides.
_LEFT_OUT = (2, 2, 2, 2, 2, 0, 0, 1, None)

_logger = logging.getLogger(__name__)
#: Why calls went where they went before, as far as it was said.
_told: set[str] = set()


def _serves(function: str, tensors: tuple[Any, ...], words: tuple[tuple[str, Any], ...]) -> bool:
    """Whether gdn runs the call."""
    q = tensors[0]
    if torch.compiler.is_exporting() or not isinstance(q, torch.Tensor):
        return False
    device, index = q.device.type, q.device.index
    wants_gradients = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    described = tuple([_describe(x, left_out) for x, left_out in zip(tensors, _LEFT_OUT)])
    ask = _ask_while_compiling if torch.compiler.is_dynamo_compiling() else _ask
    # GPUs of one machine may be of several kinds.
    place = device if index is None else f"{device}:{index}"
    return ask(function, place, described, words, wants_gradients)


def _describe(tensor: Any, left_out: int | None) -> _Described:
    """A tensor as far as an answer depends on it: with 1 for the extents that are left out. Of boundaries, which have
    None, the one sequence of a batch of 1 has two."""
    if tensor is None:
        return None
    return tensor.dtype, (2,) if left_out is None else tuple([1] * left_out + list(tensor.shape[left_out:]))


@functools.lru_cache(maxsize=4096)
def _ask(
    function: str, device: str, described: tuple[_Described, ...], words: tuple[tuple[str, Any], ...],
    wants_gradients: bool,
) -> bool:  # fmt: skip
    q, k, v, *others = (
        None if x is None else torch.empty(x[1], dtype=x[0], device="meta") for x in described
    )
    assert q is not None
    with torch.set_grad_enabled(wants_gradients):
        answer = supported(
            q.requires_grad_(wants_gradients), k, v, **dict(zip(_TENSORS, others)), **dict(words), function=function,
            device=device,
        )  # fmt: skip
    if not answer:
        _tell(f"{function} runs what ran before gdn.transformers.install(): {'; '.join(answer.reasons)}")
    return answer.ok


def _tell(text: str) -> None:
    """Says once why a model is not faster."""
    if text not in _told:
        _told.add(text)
        _logger.warning(text)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _ask_while_compiling(*key: Any) -> bool:
    """The answer as a constant of the graph."""
    return _ask(*key)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _tell_while_compiling(text: str) -> None:
    _tell(text)


def _serves_packed() -> bool:
    """Whether causal-conv1d is below the models, found as Transformers finds it: one that cannot be loaded is none."""
    try:
        return getattr(importlib.import_module("causal_conv1d"), _CONVOLUTION, None) is not None
    except Exception:
        return False


def _around_convolution(before: Callable[..., Any]) -> Callable[..., Any]:
    """A convolution that keeps packed sequences apart. Whichever is below takes no `cu_seq_lens_q`, so it gets zeros
    between them. With `seq_idx`, causal-conv1d on a GPU keeps them apart itself, if a cache put nothing in front."""
    has_package = _serves_packed()

    def run(hidden_states: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
        boundaries = kwargs.get("cu_seq_lens_q")
        is_told = has_package and kwargs.get("seq_idx") is not None and hidden_states.device.type != "cpu"
        is_told = is_told and not torch.compiler.is_exporting() and not hasattr(hidden_states, _IN_FRONT)
        if not run.is_active or boundaries is None or is_told:  # type: ignore[attr-defined]
            return before(hidden_states, weight, *args, **kwargs)
        for name in ("cu_seq_lens_q", "seq_idx"):
            kwargs.pop(name, None)
        columns, gap = hidden_states.shape[-1], weight.shape[-1] - 1
        put_in_front, are_tokens = getattr(hidden_states, _IN_FRONT, (0, False))
        if are_tokens:
            if boundaries.numel() > 2:
                raise ValueError(
                    f"expected one sequence in cu_seq_lens_q for a cache that has tokens, got {boundaries.numel() - 1}: "
                    "the cache has the last columns of one"
                )
            return before(hidden_states, weight, *args, **kwargs)
        # Zeros in front of each sequence, as many as the convolution looks back.
        place = torch.arange(columns, dtype=boundaries.dtype, device=boundaries.device)
        place = place + gap * torch.searchsorted(boundaries + put_in_front, place, right=True)
        wide = hidden_states.new_zeros(*hidden_states.shape[:-1], columns + gap * boundaries.numel())
        wide = wide.index_copy(-1, place, hidden_states)
        return before(wide, weight, *args, **kwargs).index_select(-1, place)

    return run


#: What a cache put in front of a call's columns, for the convolution: how many columns, and whether they are of former
#: tokens. Otherwise they are zeros, up to the convolution's width.
_IN_FRONT = "_gdn_in_front"


def _around_cache(before: Callable[..., Any]) -> Callable[..., Any]:
    """A cache's `update_conv_state`, whose result says what is in front of the call's columns."""

    def run(cache: Any, conv_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> Any:
        has_tokens = run.is_active and cache.has_previous_state(layer_idx)  # type: ignore[attr-defined]
        columns = before(cache, conv_states, layer_idx, *args, **kwargs)
        put_in_front = columns.shape[-1] - conv_states.shape[-1]
        if run.is_active and put_in_front:  # type: ignore[attr-defined]
            setattr(columns, _IN_FRONT, (put_in_front, has_tokens))
        return columns

    return run


#: By what a call of a model hands over a cache: from then on it is asked for tokens of one sequence.
_CACHES = ("cache", "past_key_values")
_NOT_APART = (
    "position_ids begin anew within a row, as those of packed sequences do, and Gated DeltaNet layers do not keep "
    "these apart in a call with {}: pass cu_seq_lens_q, or one row without attention_mask and with use_cache=False"
)
_NOT_LOOKED_AT = (
    "position_ids of a model that is compiled, traced or captured are not looked at: if they are those of packed "
    "sequences, pass cu_seq_lens_q, or Gated DeltaNet layers do not keep these apart"
)


def _around_stack(before: Callable[..., Any]) -> Callable[..., Any]:
    """A model's `forward` that tells its layers of packed sequences which `position_ids` alone show."""
    names = list(inspect.signature(before).parameters)[1:]

    def run(model: Any, *args: Any, **kwargs: Any) -> Any:
        if run.is_active and kwargs.get("cu_seq_lens_q") is None:  # type: ignore[attr-defined]
            boundaries = _find_boundaries(model, {**dict(zip(names, args)), **kwargs})
            if boundaries is not None:
                kwargs["cu_seq_lens_q"] = boundaries
        return before(model, *args, **kwargs)

    return run


def _find_boundaries(model: Any, named: dict[str, Any]) -> torch.Tensor | None:
    """The boundaries of packed sequences that `position_ids` alone show. It waits for a GPU once in a call of a model,
    if that was given positions and no cache, as Transformers does for its masks."""
    positions = named.get("position_ids")
    if positions is None or any([named.get(cache) is not None for cache in _CACHES]):
        return None
    if positions.dim() == 3 and positions.shape[0] == 4:
        # Those of text, time, height and width.
        positions = positions[0]
    if positions.dim() != 2 or positions.shape[1] < 2:
        return None
    if torch.compiler.is_compiling():
        _tell_while_compiling(_NOT_LOOKED_AT)
        return None
    if torch._C._get_tracing_state() or (positions.is_cuda and torch.cuda.is_current_stream_capturing()):
        _tell(_NOT_LOOKED_AT)
        return None
    if type(positions) is not torch.Tensor or positions.is_meta:
        return None
    steps, reasons = positions.diff(dim=1), _why_not_apart(model, named)
    if not reasons:
        # The rule of Transformers' masks: a sequence begins wherever a position is not the next one.
        starts = (steps[0] != 1).nonzero().flatten().int() + 1
        pad = torch.nn.functional.pad
        return pad(pad(starts, (1, 0)), (0, 1), value=positions.shape[1]) if starts.numel() else None
    warning = _NOT_APART.format(" and ".join(reasons))
    if warning not in _told and _begin_anew(steps, named.get("attention_mask")):
        _tell(warning)
    return None


def _why_not_apart(model: Any, named: dict[str, Any]) -> list[str]:
    """What there is in a call for which Transformers' masks do not follow positions, or which no boundaries go with."""
    given, use_cache = named.get("input_ids"), named.get("use_cache")
    rows = (named["inputs_embeds"] if given is None else given).shape[0]
    if use_cache is None:
        use_cache = getattr(model.config, "use_cache", False)
    if model.training and getattr(model, "gradient_checkpointing", False):
        use_cache = False
    found = {"several rows": rows > 1, "attention_mask": named.get("attention_mask") is not None, "a cache": use_cache}
    return [reason for reason, is_there in found.items() if is_there]


def _begin_anew(steps: torch.Tensor, mask: Any) -> bool:
    """Whether positions begin anew among tokens that are no padding. Masks of another form than [rows, tokens] may be
    there for any positions."""
    begins = steps <= 0
    if mask is not None:
        if not isinstance(mask, torch.Tensor) or mask.dim() != 2 or mask.shape[1] != steps.shape[1] + 1:
            return False
        tokens = mask.bool()
        begins = begins & tokens[:, 1:] & tokens[:, :-1]
    return bool(begins.any())
