# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plug-in of vLLM: with GDN_VLLM=1 the layers of Qwen3-Next and Qwen3.5 run gdn between convolution and norm.

vLLM finds `register` by the entry point `vllm.general_plugins` and calls it in each of its processes. Without the variable
it does nothing, and imports nothing. docs/Serving.md has what runs.

The layer keeps vLLM's projections, convolution, metadata and pools. Its states are read and written in the rows of the pool
that the metadata name: nothing is gathered, scattered, split or concatenated.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

#: The versions whose layer this is, by what they begin with.
TESTED = ("0.33.",)
#: The layer's class, by which vLLM looks up what to make instead of it.
_LAYER = "QwenGatedDeltaNetAttention"
#: Row 0 of vLLM's pools is nobody's, and padded rows of a batch name it or -1.
_FIRST_STATE = 1


#: What the kind of step is called that only verifies speculated tokens.
_VERIFYING = "speculated tokens"


class Part(NamedTuple):
    """Tokens of a step before or behind the convolution, and where their outputs go: to `out`, and from there to rows
    `where` of the layer's, if these are not it."""

    is_spec: bool
    x: Any
    b: Any
    a: Any
    out: Any
    where: Any


def register() -> None:
    """Puts gdn under vLLM's layer where GDN_VLLM is 1; may be called again."""
    if os.environ.get("GDN_VLLM") != "1":
        return
    import importlib
    import importlib.metadata

    version = importlib.metadata.version("vllm")
    if not version.startswith(TESTED):
        from ._serving import log_of

        log_of("vllm").warning("gdn: expected vLLM %s*, got %s; its layers stay as they are", "* or ".join(TESTED), version)
        return
    custom_op = importlib.import_module("vllm.model_executor.custom_op")
    engine = importlib.import_module("vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn")
    other = custom_op.op_registry_oot.get(_LAYER)
    if other is None:
        custom_op.PluggableLayer.register_oot(name=_LAYER)(make_layer(engine))
    elif not getattr(other, "is_gdn", False):
        from ._serving import log_of

        message = "gdn: expected vLLM's own %s, got %s of another plug-in, which stays"
        log_of("vllm").warning(message, _LAYER, other.__qualname__)


def make_layer(engine: Any) -> type:
    """The layer's class over vLLM's own, which is in the module `engine`."""
    import gdn

    from . import _serving

    parent: Any = getattr(engine, _LAYER)

    class Layer(parent):  # type: ignore[misc]
        #: By which `register` knows it.
        is_gdn = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.asked, self.floats = _serving.Asked("vLLM"), _serving.Floats()

        def _forward_core(self, mixed_qkv: Any, b: Any, a: Any, core_attn_out: Any) -> None:
            steps = engine.get_forward_context().attn_metadata
            step = steps.get(self.prefix) if isinstance(steps, dict) else None
            if step is None or not self._serves(step, mixed_qkv, b, a, core_attn_out):
                super()._forward_core(mixed_qkv, b, a, core_attn_out)
                return
            for part in self._parts(step, mixed_qkv, b, a, core_attn_out):
                for name, call in self._calls(step, part._replace(x=self._convolve(part, step))):
                    getattr(gdn, name)(**call)
                if part.where is not None:
                    core_attn_out.index_copy_(0, part.where, part.out)

        def _can_use_fused_gdn_mtp_decode(self, attn_metadata: Any) -> bool:
            """Whether vLLM's kernel verifies speculated tokens: not where gdn does, or may do."""
            is_gdns = self.kv_cache[1].element_size() == 4 and self.asked.runs.get(_VERIFYING, True)
            return not is_gdns and super()._can_use_fused_gdn_mtp_decode(attn_metadata)

        def _parts(self, step: Any, *tensors: Any) -> Any:
            """The parts of a step: speculated tokens and others. Beside each other they are taken apart."""
            x, b, a, out = (tensor[: step.num_actual_tokens] for tensor in tensors)
            if step.spec_sequence_masks is None or not step.num_prefills:
                yield Part(step.spec_sequence_masks is not None, x, b, a, out, None)
                return
            for is_spec, where in ((True, step.spec_token_indx), (False, step.non_spec_token_indx)):
                taken = (tensor.index_select(0, where) for tensor in (x, b, a))
                yield Part._make((is_spec, *taken, out.new_empty(len(where), *out.shape[1:]), where))

        def _convolve(self, part: Part, step: Any) -> Any:
            """vLLM's convolution of a part's tokens, and its states."""
            states, rows = self.kv_cache[0], step.non_spec_state_indices_tensor
            if not engine.is_conv_state_dim_first():
                states = states.transpose(-1, -2)
            weight, bias = self.conv1d.weight.flatten(1), self.conv1d.bias
            if part.is_spec:
                slots = step.spec_state_indices_tensor
                return engine.causal_conv1d_update(
                    part.x, states, weight, bias, self.activation, conv_state_indices=slots[: step.num_spec_decodes, 0],
                    num_accepted_tokens=step.num_accepted_tokens, query_start_loc=step.spec_query_start_loc,
                    max_query_len=slots.shape[-1], validate_data=False,
                )  # fmt: skip
            if step.num_prefills == 0:
                return engine.causal_conv1d_update(
                    part.x, states, weight, bias, self.activation, conv_state_indices=rows[: len(part.x)],
                    validate_data=False,
                )  # fmt: skip
            return engine.causal_conv1d_fn(
                part.x.transpose(0, 1), weight, bias, activation=self.activation, conv_states=states,
                has_initial_state=step.has_initial_state, cache_indices=rows,
                query_start_loc=step.non_spec_query_start_loc, metadata=step,
            ).transpose(0, 1)  # fmt: skip

        def _calls(self, step: Any, part: Part) -> Any:
            """The calls of a part by function: tokens of decoding come first, one a sequence, then prefills."""
            count, rows = len(part.x), step.non_spec_state_indices_tensor
            # Without prefills a batch may be padded: its last rows are nobody's.
            decodes = step.num_decode_tokens if step.num_prefills else count
            heads = [n // self.tp_size for n in (self.num_k_heads, self.num_k_heads, self.num_v_heads)]
            widths = [n * d for n, d in zip(heads, (self.head_k_dim, self.head_k_dim, self.head_v_dim))]
            parts = [piece.unflatten(-1, (n, -1)) for piece, n in zip(part.x.split(widths, -1), heads)]
            tokens = dict(zip(("q", "k", "v", "g", "beta", "out"), (*parts, part.a, part.b, part.out)))
            pool = self.kv_cache[1]
            words = {
                "initial_state": pool, "final_state": pool, "first_state": _FIRST_STATE, "state_layout": "vk",
                "A_log": self.A_log, "dt_bias": self.floats.of(self.dt_bias), "use_gate_in_kernel": True,
                "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True,
            }  # fmt: skip
            if part.is_spec:
                n = step.num_spec_decodes
                yield "fused_recurrent_gated_delta_rule", {
                    **{name: x.unsqueeze(0) for name, x in tokens.items()}, **words,
                    "cu_seqlens": step.spec_query_start_loc[: n + 1], "state_indices": step.spec_state_indices_tensor[:n],
                    "num_accepted_tokens": step.num_accepted_tokens[:n],
                }  # fmt: skip
                return
            if decodes:
                given = {name: x[:decodes].unsqueeze(1) for name, x in tokens.items()}
                yield "fused_recurrent_gated_delta_rule", {**given, **words, "state_indices": rows[:decodes]}
            if step.num_prefills:
                given = {name: x[decodes:count].unsqueeze(0) for name, x in tokens.items()}
                yield "chunk_gated_delta_rule", {
                    **given, **words, "cu_seqlens": step.prefill_query_start_loc,
                    "state_indices": step.prefill_state_indices, "has_initial_state": step.prefill_has_initial_state,
                }  # fmt: skip

        def _serves(self, step: Any, mixed_qkv: Any, b: Any, a: Any, out: Any) -> bool:
            """Whether gdn runs a step. It is asked once for each kind, by all that a call itself checks."""
            is_spec = step.spec_sequence_masks is not None
            if getattr(step, "flashinfer_checkpoint_plan", None) is not None:
                return self.asked.decide("states inside a prefill", "gdn has no kernels for them")
            if mixed_qkv.is_cuda and not step.num_prefills and self.kv_cache[1].element_size() == 2:
                return self.asked.decide("decoding with states of 16 bits", "its kernels are faster with them")
            kind = _VERIFYING if is_spec else "decoding"
            if step.num_prefills:
                kind = f"prefill and {kind}" if is_spec or step.num_decodes else "prefill"

            def calls() -> Any:
                for part in self._parts(step, mixed_qkv, b, a, out):
                    yield from self._calls(step, part)

            return self.asked.serves(kind, calls, mixed_qkv.is_cuda)

    return Layer
