# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands for SGLang's dispatchers and backends in test_sglang.py, and sequences whose outputs float64 has."""

import types

import numpy as np
import pytest
import torch
from reference import gated_delta_rule

import gdn.sglang

KEY_HEADS, HEADS, CHANNELS, SLOTS, STEPS = 2, 4, 32, 7, 4
ROLES = ("decode_kernel", "extend_kernel", "verify_kernel", "tree_verify_kernel")


class Triton:
    """SGLang's kernel: it counts its calls."""

    __module__ = "sglang.srt.kernels"

    def __init__(self):
        self.ran = []

    def _call(self, name):
        self.ran.append(name)
        return name

    def packed_decode(self, mixed_qkv, a, b, **words):
        return self._call("packed_decode")

    def decode(self, q, k, v, a, b, **words):
        return self._call("decode")

    def extend(self, q, k, v, g, beta, **words):
        return self._call("extend")

    def target_verify(self, A_log, dt_bias, q, k, v, a, b, **words):
        return self._call("target_verify")


class Dispatcher:
    """SGLang's dispatcher of one kernel."""

    def __init__(self, kernel):
        vars(self).update(dict.fromkeys(ROLES, kernel))

    def packed_decode(self, *arguments, **words):
        return self.decode_kernel.packed_decode(*arguments, **words)

    def decode(self, *arguments, **words):
        return self.decode_kernel.decode(*arguments, **words)

    def extend(self, *arguments, **words):
        return self.extend_kernel.extend(*arguments, **words)

    def target_verify(self, **words):
        is_tree = words["retrieve_parent_token"] is not None
        return (self.tree_verify_kernel if is_tree else self.verify_kernel).target_verify(**words)


class Chosen(types.SimpleNamespace):
    """The choice of Triton's kernels, and of no others."""

    def __getattr__(self, name):
        return lambda: name == "is_triton"


def real_dispatcher(is_kda):
    """SGLang's own, where it can be imported."""
    name = "kda" if is_kda else "gdn"
    backends = pytest.importorskip(f"sglang.srt.layers.attention.linear.{name}_backend")
    return getattr(backends, f"{name.upper()}KernelDispatcher")(*[Chosen()] * (2 + is_kda))


class Sequence:
    """The state and outputs of one sequence in float64."""

    def __init__(self, row):
        self.row, self.state = row, None

    def expected(self, layer, q, k, v, a, b, commit=True):
        o, state = gated_delta_rule(
            *(x.double()[None] for x in (q, k, v, layer.of_heads(a), b)), initial_state=self.state, l2norm=True,
            gate_domain="raw" if layer.lower_bound is None else "bounded", lower_bound=layer.lower_bound,
            A_log=layer.A_log.double().flatten(), dt_bias=layer.dt_bias.double(), beta_domain="logit", v_first=True,
        )  # fmt: skip
        if commit:
            self.state = state
        return o[0], state


class Layer:
    """What SGLang's backend gives its dispatcher: the parameters, the pool, tokens behind the convolution."""

    def __init__(self, is_real=False, dtype=torch.float32, pool=torch.float32, is_kda=False, lower_bound=None):
        self.random, self.dtype = torch.Generator().manual_seed(5), dtype
        self.is_kda, self.lower_bound = is_kda, lower_bound
        self.key_heads, self.gates = (HEADS, CHANNELS) if is_kda else (KEY_HEADS, 1)
        self.A_log, self.dt_bias = self.draw(HEADS).float(), self.draw(HEADS * self.gates)
        if is_kda:
            self.A_log, self.dt_bias = self.A_log.reshape(1, 1, -1, 1), self.dt_bias.float()
        # Slot 0 is for padded rows. Pages are longer than states.
        size = HEADS * CHANNELS**2
        self.pool = torch.zeros(SLOTS, size + 40, dtype=pool)[:, :size].unflatten(1, (HEADS, CHANNELS, CHANNELS))
        self.own = Triton()
        self.dispatcher = real_dispatcher(is_kda) if is_real else Dispatcher(self.own)
        step = types.SimpleNamespace(has_mamba_track_mask=False, track_ssm_h_src=torch.empty(0))
        self.backend = types.SimpleNamespace(
            kernel_dispatcher=self.dispatcher, forward_metadata=step,
            verify_intermediate_state_indices=torch.arange(SLOTS, dtype=torch.int32),
        )  # fmt: skip
        gdn.sglang.serve(None, self.backend)

    def of_heads(self, a):
        """Raw gates as float64 takes them."""
        return a.unflatten(-1, (HEADS, CHANNELS)) if self.is_kda else a

    def draw(self, *shape):
        return torch.randn(*shape, generator=self.random).to(self.dtype)

    def tokens(self, count):
        """q, k, v as views of the convolution's output; a; b; and that output."""
        mixed = self.draw(count, (2 * self.key_heads + HEADS) * CHANNELS)
        keys = self.key_heads * CHANNELS
        parts = [x.unflatten(1, (-1, CHANNELS)) for x in mixed.split([keys, keys, HEADS * CHANNELS], 1)]
        return parts, self.draw(count, HEADS * self.gates), self.draw(count, HEADS), mixed

    def words(self, rows, ends=None):
        numbers = lambda values: torch.tensor(values, dtype=torch.int32)  # noqa: E731
        words = {"ssm_states": self.pool, "cache_indices": numbers(rows)}
        return words if ends is None else {**words, "query_start_loc": numbers(ends)}

    @property
    def parameters(self):
        bound = {"lower_bound": self.lower_bound} if self.is_kda else {}
        return {"A_log": self.A_log, "dt_bias": self.dt_bias, **bound}

    def extend(self, sequences, lengths, chunks=None):
        """A prefill; outputs and those of float64, and with `chunks`, a number for each sequence or -1, the states between chunks
        that are kept, and those of float64."""
        parts, a, b, _ = self.tokens(sum(lengths))
        ends = np.cumsum([0, *lengths]).tolist()
        words = {**self.words([s.row for s in sequences], ends), "track_state": None, "track_chunk_idx": None}
        kept = []
        if chunks:
            words["track_state"] = torch.full((len(lengths) + 1, HEADS, CHANNELS, CHANNELS), torch.nan)
            words["track_chunk_idx"] = torch.tensor([*chunks, -1], dtype=torch.int32)
            for s, begin, count in zip(sequences, ends, chunks):
                tokens = slice(begin, begin + 64 * count)
                kept.append(s.expected(self, *(x[tokens] for x in (*parts, a, b)), commit=False)[1] if count > 0 else None)
        if self.is_kda:
            words |= {**self.parameters, "beta_is_raw": True, "return_intermediate_states": chunks is not None}
            out = self.dispatcher.extend(*(x[None] for x in parts), self.of_heads(a)[None], b[None], **words)
            out = out[0] if chunks else out
        else:
            g = -self.A_log.exp() * torch.nn.functional.softplus(a.float() + self.dt_bias.float())
            out, _, _ = self.dispatcher.extend(*(x[None] for x in parts), g[None], b.float().sigmoid()[None], **words)
        done = out[0], self.wanted(sequences, ends, parts, a, b)
        return (*done, words["track_state"], kept) if chunks else done

    def wanted(self, sequences, ends, parts, a, b):
        pieces = [
            s.expected(self, *(x[i:j] for x in (*parts, a, b)))[0] for s, i, j in zip(sequences, ends, ends[1:]) if s.row > 0
        ]
        return np.concatenate(pieces)

    def decode(self, sequences, packed):
        """A token of each sequence, in the call that SGLang makes if a kernel takes the convolution's output, and in the other."""
        parts, a, b, mixed = self.tokens(len(sequences))
        ends = list(range(len(sequences) + 1))
        rows = [s.row for s in sequences]
        if packed:
            shape = {"scale": CHANNELS**-0.5, "num_v_heads": HEADS, "head_v_dim": CHANNELS}
            b = b[None] if self.is_kda else b
            out = self.dispatcher.packed_decode(mixed, a, b, **self.parameters, **self.words(rows), **shape)
        else:
            out = self.dispatcher.decode(*(x[None] for x in parts), a, b, **self.parameters, **self.words(rows, ends))
        assert not out[0, [n for n, row in enumerate(rows) if row < 0]].any()
        there = [n for n, row in enumerate(rows) if row > 0]
        return out[0, there], self.wanted(sequences, ends, parts, a, b.reshape(-1, HEADS))
