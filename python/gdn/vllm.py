# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plug-in of vLLM: with GDN_VLLM=1 layers of Gated DeltaNet and of Kimi Delta Attention run gdn between convolution and
norm.

vLLM finds `register` by the entry point `vllm.general_plugins` and calls it in each of its processes. Without the variable
it does nothing, and imports nothing. docs/Serving.md has what runs.

A layer keeps vLLM's projections, convolution, metadata and pools. Its states are read and written in the rows of the pool
that the metadata name: nothing is gathered, scattered, split or concatenated.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

#: The versions whose layers these are, by what they begin with.
TESTED = ("0.33.",)
_PACKAGE = "vllm.model_executor.layers.mamba.gdn"
#: The layers' classes, by which vLLM looks up what to make instead of them, and their modules.
LAYERS = {
    "QwenGatedDeltaNetAttention": "qwen_gdn_linear_attn",
    "OlmoHybridGatedDeltaNetAttention": "olmo_gdn_linear_attn",
    "KimiGatedDeltaNetAttention": "kimi_gdn_linear_attn",
}
#: Row 0 of vLLM's pools is nobody's, and padded rows of a batch name it or -1.
_FIRST_STATE = 1
#: What the kind of step is called that only verifies speculated tokens.
_VERIFYING = "speculated tokens"
#: Steps without prefills that stay vLLM's on a GPU, by kind, whether gates are a channel's, and bytes of an entry of a state:
#: its kernels are faster there (docs/experiments/work-items.md). So is its compiled kernel that verifies with gates a head and
#: has the norm inside; vLLM looks itself where that runs, and gdn has the steps that it would run without.
KEPT = {(_VERIFYING, True, 4)}


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
    """Puts gdn under vLLM's layers where GDN_VLLM is 1; may be called again."""
    if os.environ.get("GDN_VLLM") != "1":
        return
    import importlib

    from ._serving import asks_for_invariance, is_tested, leave

    if not is_tested("vLLM", TESTED) or asks_for_invariance("vLLM", "VLLM_BATCH_INVARIANT"):
        return
    custom_op = importlib.import_module("vllm.model_executor.custom_op")
    for name, module in LAYERS.items():
        other = custom_op.op_registry_oot.get(name)
        if other is None:
            layer = make_layer(importlib.import_module(f"{_PACKAGE}.{module}"), name)
            custom_op.PluggableLayer.register_oot(name=name)(layer)
        elif not getattr(other, "is_gdn", False):
            leave("vLLM", name, other)


def make_layer(engine: Any, name: str) -> type:
    """The class over vLLM's own of this name, which is in the module `engine`."""
    import gdn

    from . import _serving

    parent: Any = getattr(engine, name)

    class Layer(parent):  # type: ignore[misc]
        #: By which `register` knows it.
        is_gdn = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.served = _serving.Served("vLLM")

        def _runs(self, x: Any, b: Any, a: Any, out: Any) -> bool:
            """Runs the convolution and the rule of a step: projections [T, C], logits and raw gates [T, ...], outputs [T, HV,
            V]. If gdn does not run it, nothing has happened."""
            steps = engine.get_forward_context().attn_metadata
            step = steps.get(self.prefix) if isinstance(steps, dict) else None
            if step is None or not self._serves(step, x, b, a, out):
                return False
            for part in self._parts(step, x, b, a, out):
                for function, call in self._calls(step, part._replace(x=self._convolve(part, step))):
                    getattr(gdn, function)(**call)
                    if "checkpoint_state_indices" in call:
                        self._keep_inputs(step, part.x)
                if part.where is not None:
                    out.index_copy_(0, part.where, part.out)
            return True

        def _parts(self, step: Any, *tensors: Any) -> Any:
            """The parts of a step: speculated tokens and others. Beside each other they are taken apart."""
            x, b, a, out = (tensor[: step.num_actual_tokens] for tensor in tensors)
            if step.spec_sequence_masks is None or not step.num_prefills:
                yield Part(step.spec_sequence_masks is not None, x, b, a, out, None)
                return
            for is_spec, where in ((True, step.spec_token_indx), (False, step.non_spec_token_indx)):
                taken = (tensor.index_select(0, where) for tensor in (x, b, a))
                yield Part._make((is_spec, *taken, out.new_empty(len(where), *out.shape[1:]), where))

        def _inputs_before(self) -> Any:
            """The convolution's states [blocks, C, tokens]."""
            states = self.kv_cache[0]
            return states if engine.is_conv_state_dim_first() else states.transpose(-1, -2)

        def _convolve(self, part: Part, step: Any) -> Any:
            """vLLM's convolution of a part's tokens, and its states. The output is dense: rows of a projection may begin where
            kernels cannot load from."""
            states, rows = self._inputs_before(), step.non_spec_state_indices_tensor
            weight, bias = self.conv1d.weight.flatten(1), self.conv1d.bias
            if part.is_spec:
                slots = step.spec_state_indices_tensor
                return engine.causal_conv1d_update(
                    part.x, states, weight, bias, "silu", conv_state_indices=slots[: step.num_spec_decodes, 0],
                    num_accepted_tokens=step.num_accepted_tokens, query_start_loc=step.spec_query_start_loc,
                    max_query_len=slots.shape[-1], validate_data=False, out=part.x.new_empty(part.x.shape),
                )  # fmt: skip
            if step.num_prefills == 0:
                return engine.causal_conv1d_update(
                    part.x, states, weight, bias, "silu", conv_state_indices=rows[: len(part.x)], validate_data=False,
                    out=part.x.new_empty(part.x.shape),
                )  # fmt: skip
            return engine.causal_conv1d_fn(
                part.x.transpose(0, 1), weight, bias, activation="silu", conv_states=states,
                has_initial_state=step.has_initial_state, cache_indices=rows,
                query_start_loc=step.non_spec_query_start_loc, metadata=step,
            ).transpose(0, 1)  # fmt: skip

        def _calls(self, step: Any, part: Part) -> Any:
            """The calls of a part by function: tokens of decoding come first, one a sequence, then prefills."""
            count, rows, pool = len(part.x), step.non_spec_state_indices_tensor, self.kv_cache[1]
            # Without prefills a batch may be padded: its last rows are nobody's.
            decodes = step.num_decode_tokens if step.num_prefills else count
            tokens = {**_serving.heads_of(part.x, pool), "g": part.a, "beta": part.b, "out": part.out}
            is_kda = part.a.ndim == 3
            recurrent, chunk = _serving.functions_of(is_kda)
            words = {
                "initial_state": pool, "final_state": pool, "first_state": _FIRST_STATE,
                **self.served.raw(self.A_log, self.dt_bias), "allow_neg_eigval": getattr(self, "allow_neg_eigval", False),
                **({"lower_bound": self.gate_lower_bound} if is_kda else {}),
            }  # fmt: skip
            if part.is_spec:
                n = step.num_spec_decodes
                yield recurrent, {
                    **{name: x.unsqueeze(0) for name, x in tokens.items()}, **words,
                    "cu_seqlens": step.spec_query_start_loc[: n + 1], "state_indices": step.spec_state_indices_tensor[:n],
                    "num_accepted_tokens": step.num_accepted_tokens[:n],
                }  # fmt: skip
                return
            if decodes:
                given = {name: x[:decodes].unsqueeze(1) for name, x in tokens.items()}
                yield recurrent, {**given, **words, "state_indices": rows[:decodes]}
            if step.num_prefills:
                given = {name: x[decodes:count].unsqueeze(0) for name, x in tokens.items()}
                if step.flashinfer_checkpoint_plan is not None:
                    # One state a prefill, in the block that a prefix cache has for it.
                    of_prefills = self._checkpoint_of_prefills(step)
                    words["checkpoint_state_indices"] = of_prefills.state_indices
                    words["checkpoint_every_n_tokens"] = of_prefills.checkpoint_offsets
                yield chunk, {
                    **given, **words, "cu_seqlens": step.prefill_query_start_loc,
                    "state_indices": step.prefill_state_indices, "has_initial_state": step.prefill_has_initial_state,
                }  # fmt: skip

        def _checkpoint_of_prefills(self, step: Any) -> Any:
            """Which prefixes of prefills a cache keeps, and their blocks."""
            first = step.num_decodes
            return dataclasses.replace(
                step.checkpoint, checkpoint_offsets=step.checkpoint.checkpoint_offsets[first:],
                state_indices=step.checkpoint.state_indices[first:],
            )  # fmt: skip

        def _keep_inputs(self, step: Any, x: Any) -> None:
            """vLLM's copy of the convolution's inputs before kept states, of prefills `x`, into blocks."""
            self._checkpoint_exporter.export(
                self._checkpoint_of_prefills(step), raw_qkv=x[step.num_decode_tokens :], conv_state=self._inputs_before(),
                cu_seqlens=step.prefill_query_start_loc,
            )  # fmt: skip

        def _keeps(self, kind: str, is_kda: bool) -> bool:
            """Whether vLLM's kernels run steps without prefills."""
            return (kind, is_kda, self.kv_cache[1].element_size()) in KEPT

        def _serves(self, step: Any, *tensors: Any) -> bool:
            """Whether gdn runs a step. It is asked once for each kind, by all that a call itself checks."""
            is_spec, on_gpu = step.spec_sequence_masks is not None, tensors[0].is_cuda
            kind = _VERIFYING if is_spec else "decoding"
            if on_gpu and not step.num_prefills and self._keeps(kind, tensors[2].ndim == 3):
                states = str(self.kv_cache[1].dtype).removeprefix("torch.")
                return self.served.decide(f"{kind} with states in {states}", "its kernels may be faster with them")
            if step.num_prefills:
                kind = f"prefill and {kind}" if is_spec or step.num_decodes else "prefill"
                kind += "" if step.flashinfer_checkpoint_plan is None else " with states inside"

            def calls() -> Any:
                for part in self._parts(step, *tensors):
                    yield from self._calls(step, part._replace(x=part.x.new_empty(part.x.shape)))

            return self.served.serves(kind, calls, on_gpu)

    class GatedLayer(Layer):
        """Gates of a head. The core is a call of its own in vLLM's layer."""

        def _forward_core(self, mixed_qkv: Any, b: Any, a: Any, core_attn_out: Any) -> None:
            if not self._runs(mixed_qkv, b, a, core_attn_out):
                super()._forward_core(mixed_qkv, b, a, core_attn_out)

    class KimiLayer(Layer):
        """Gates of key channels. The core and the norm behind it are one call in vLLM's layer."""

        def _forward(self, mixed_qkv: Any, g1: Any, g2: Any, beta: Any, core_attn_out: Any) -> None:
            if self._runs(mixed_qkv, beta[0], g1[0], core_attn_out[0]):
                core_attn_out.copy_(self.o_norm(core_attn_out, g2))
            else:
                super()._forward(mixed_qkv=mixed_qkv, g1=g1, g2=g2, beta=beta, core_attn_out=core_attn_out)

    if hasattr(parent, "_forward_core"):
        return GatedLayer
    # Where graphs are captured in pieces, the core stays between them.
    KimiLayer._forward = engine.eager_break_during_capture(KimiLayer._forward)  # type: ignore[method-assign]
    return KimiLayer
