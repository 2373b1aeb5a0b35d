# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plug-in of SGLang: with GDN_SGLANG=1 its backend of Gated DeltaNet (Qwen3-Next, Qwen3.5) calls gdn's functions.

SGLang finds `register` by the entry point `sglang.srt.plugins` and calls it in each of its processes. Without the variable
it does nothing, and imports nothing. docs/Serving.md has what runs.

The backend keeps SGLang's convolutions, gates of prefills, metadata and pools: `GDNKernelDispatcher` gets kernels that call
gdn over the rows of the pool, and has its own ones behind them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

#: The versions whose backend this is, by what they begin with.
TESTED = ("0.5.23",)
_PACKAGE = "sglang.srt.layers.attention.linear"
#: What the dispatcher has.
_ROLES = ("decode_kernel", "extend_kernel", "verify_kernel", "tree_verify_kernel")
#: What SGLang asks a kernel: answered as by the one behind it, which may get the same call.
_FLAGS = (
    "supports_packed_decode", "supports_strided_target_verify_qkv", "supports_fused_chain_verify", "uses_state_checkpoints",
    "supports_track_state_snapshot",
)  # fmt: skip


def register() -> None:
    """Puts gdn under SGLang's backend where GDN_SGLANG is 1; may be called again."""
    if os.environ.get("GDN_SGLANG") != "1":
        return
    import importlib
    import importlib.metadata

    version = importlib.metadata.version("sglang")
    if not version.startswith(TESTED):
        from ._serving import log_of

        message = "gdn: expected SGLang %s*, got %s; its kernels stay as they are"
        log_of("sglang").warning(message, "* or ".join(TESTED), version)
        return
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    hooks.HookRegistry.register(f"{_PACKAGE}.gdn_backend.GDNAttnBackend.__init__", serve, hooks.HookType.AFTER)


def serve(_result: Any, backend: Any, *_arguments: Any, **_words: Any) -> None:
    """Behind the constructor of a backend: its dispatcher gets gdn's kernels, each with the one that was there behind it."""
    import importlib

    from ._serving import log_of

    dispatcher = backend.kernel_dispatcher
    kind = make_kernel(importlib.import_module(f"{_PACKAGE}.kernels.gdn_triton").TritonGDNKernel)
    made: dict[int, Any] = {}
    for role in _ROLES:
        own = getattr(dispatcher, role)
        if getattr(own, "is_gdn", False):
            continue
        if not type(own).__module__.startswith("sglang."):
            message = "gdn: expected SGLang's own %s, got %s of another plug-in, which stays"
            log_of("sglang").warning(message, role, type(own).__qualname__)
            continue
        if id(own) not in made:
            made[id(own)] = kind(backend, own)
        setattr(dispatcher, role, made[id(own)])
    dispatcher.supports_packed_decode = getattr(dispatcher.decode_kernel, "supports_packed_decode", False)


def make_kernel(parent: Any) -> type:
    """The class of kernels over SGLang's `TritonGDNKernel`, by which SGLang knows what they can."""
    import torch

    import gdn

    from . import _serving
    from ._steps import states_of

    class Kernel(parent):  # type: ignore[misc]
        #: By which `serve` knows it.
        is_gdn = True

        def __init__(self, backend: Any, own: Any) -> None:
            super().__init__()
            self.backend, self.own, self.asked, self.floats = backend, own, _serving.Asked("SGLang"), _serving.Floats()
            for flag in _FLAGS:
                setattr(self, flag, getattr(own, flag, False))
            #: Rows of buffers of states that are made of the backend's own indices.
            self._rows: dict[tuple[int, int, int], Any] = {}

        def packed_decode(self, mixed_qkv: Any, a: Any, b: Any, **words: Any) -> Any:
            """One token of each row of `mixed_qkv`, the convolution's output."""
            if any(x is not None for name, x in words.items() if name.startswith("replayssm")):
                self.asked.decide("decoding by ReplaySSM", "gdn has no such kernels")
                return self.own.packed_decode(mixed_qkv, a, b, **words)
            pool, heads = words["ssm_states"], words["num_v_heads"]
            out = mixed_qkv.new_empty(len(mixed_qkv), 1, heads, words["head_v_dim"])

            def call() -> dict[str, Any]:
                values = heads * words["head_v_dim"]
                keys = (mixed_qkv.shape[1] - values) // 2
                parts = [part.unflatten(-1, (-1, n)) for part, n in zip(
                    mixed_qkv.split([keys, keys, values], -1), (pool.shape[-1], pool.shape[-1], words["head_v_dim"])
                )]  # fmt: skip
                tokens = {name: x.unsqueeze(1) for name, x in zip(("q", "k", "v", "g", "beta"), (*parts, a, b))}
                return {
                    **tokens, **self._raw(words["A_log"], words["dt_bias"]), "initial_state": pool, "final_state": pool,
                    "state_indices": words["cache_indices"], "scale": words["scale"], "out": out,
                }  # fmt: skip

            if self._decodes(mixed_qkv, pool) and self._run("decoding", "fused_recurrent_gated_delta_rule", call, mixed_qkv):
                return out.transpose(0, 1)
            return self.own.packed_decode(mixed_qkv, a, b, **words)

        def decode(self, q: Any, k: Any, v: Any, a: Any, b: Any, **words: Any) -> Any:
            """Tokens [1, T, H, K], one a sequence."""
            pool, out = words["ssm_states"], torch.empty_like(v, memory_format=torch.contiguous_format)

            def call() -> dict[str, Any]:
                ends = words["query_start_loc"]
                return {
                    "q": q, "k": k, "v": v, "g": a.unsqueeze(0), "beta": b.unsqueeze(0), "out": out, "cu_seqlens": ends,
                    **self._raw(words["A_log"], words["dt_bias"]), "initial_state": pool, "final_state": pool,
                    "state_indices": words["cache_indices"][: len(ends) - 1],
                }  # fmt: skip

            if self._decodes(q, pool) and self._run("decoding", "fused_recurrent_gated_delta_rule", call, q):
                return out
            return self.own.decode(q, k, v, a, b, **words)

        def extend(self, q: Any, k: Any, v: Any, g: Any, beta: Any, **words: Any) -> Any:
            """A prefill: log gates, values of beta, packed sequences."""
            pool, out = words["ssm_states"], words.get("output")
            if out is None:
                out = torch.empty_like(v, memory_format=torch.contiguous_format)

            def call() -> dict[str, Any]:
                ends = words["query_start_loc"]
                return {
                    "q": q, "k": k, "v": v, "g": g, "beta": beta, "out": out, "cu_seqlens": ends, "state_layout": "vk",
                    "use_qk_l2norm_in_kernel": True, "initial_state": pool, "final_state": pool,
                    "state_indices": words["cache_indices"][: len(ends) - 1],
                }  # fmt: skip

            if self._extends(words) and self._run("prefill", "chunk_gated_delta_rule", call, q):
                return out, None, None
            return self.own.extend(q, k, v, g, beta, **words)

        def target_verify(self, A_log: Any, dt_bias: Any, q: Any, k: Any, v: Any, a: Any, b: Any, **words: Any) -> Any:
            """Speculated tokens, as many a sequence: the pool stays, and a buffer gets the states after them."""
            out = torch.empty_like(v, memory_format=torch.contiguous_format)

            def call() -> dict[str, Any]:
                ends, (states, between) = words["query_start_loc"], states_of(words["intermediate_states_buffer"])
                count = len(ends) - 1
                parents = words["retrieve_parent_token"]
                return {
                    "q": q, "k": k, "v": v, "g": a.unsqueeze(0), "beta": b.unsqueeze(0), "out": out, "cu_seqlens": ends,
                    **self._raw(A_log, dt_bias), "initial_state": words["ssm_states"], "step_states": states,
                    "state_indices": words["cache_indices"][:count],
                    "step_indices": self._step_rows(words["intermediate_state_indices"], count, between, q.shape[1] // count),
                    "parents": None if parents is None else parents[:count],
                }  # fmt: skip

            kind = "speculated tokens" + (" in trees" if words["retrieve_parent_token"] is not None else "")
            if self._run(kind, "fused_recurrent_gated_delta_rule", call, q):
                return out
            return self.own.target_verify(A_log, dt_bias, q, k, v, a, b, **words)

        def _raw(self, A_log: Any, dt_bias: Any) -> dict[str, Any]:
            return {
                "A_log": self.floats.of(A_log), "dt_bias": self.floats.of(dt_bias), "use_gate_in_kernel": True,
                "use_beta_sigmoid_in_kernel": True, "use_qk_l2norm_in_kernel": True, "state_layout": "vk",
            }  # fmt: skip

        def _step_rows(self, indices: Any, count: int, between: int, tokens: int) -> Any:
            """Rows [N, S] of a buffer [slots, between, ...]. The backend's own indices never change: their rows stay, as a CUDA
            graph may have them."""
            key = count, between, tokens
            is_own = indices is getattr(self.backend, "verify_intermediate_state_indices", None)
            if is_own and key in self._rows:
                return self._rows[key]
            steps = torch.arange(tokens, dtype=torch.int32, device=indices.device)
            first = indices[:count, None].int()
            rows = torch.where(first < 0, -1, first * between + steps)
            # What a graph makes while it is captured is there only when it runs.
            if is_own and not (indices.is_cuda and torch.cuda.is_current_stream_capturing()):
                self._rows[key] = rows
            return rows

        def _decodes(self, x: Any, pool: Any) -> bool:
            if x.is_cuda and pool.element_size() == 2:
                return self.asked.decide("decoding with states of 16 bits", "Triton's kernels are faster with them")
            return True

        def _extends(self, words: dict[str, Any]) -> bool:
            if not words.get("inplace_update", True):
                return self.asked.decide("multi-item scoring", "gdn writes states where it reads them")
            step = self.backend.forward_metadata
            if getattr(step, "has_mamba_track_mask", False) and step.track_ssm_h_src.numel() > 0:
                return self.asked.decide("prefills that keep states inside", "gdn has no kernels for them")
            return True

        def _run(self, kind: str, name: str, call: Callable[[], dict[str, Any]], x: Any) -> bool:
            """Runs a call if gdn runs calls of this kind."""
            if not self.asked.serves(kind, lambda: [(name, call())], x.is_cuda):
                return False
            getattr(gdn, name)(**call())
            return True

    return Kernel
