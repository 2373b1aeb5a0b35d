#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small Gated DeltaNet language model by several operators and compares the losses.

    train.py gdn recurrence                                     on a CPU, some seconds
    train.py gdn fla fla-torch --gpu --csv losses.csv           on a Hopper GPU, with FLA 0.6 (and FlashQLA)

The model and the data are the same for all operators: two layers, made from one seed, which learn to recall what
followed a token earlier in the sequence. The losses of each step go to --csv. The exit status is 0 if each operator's
losses fall, and stay as close to the first operator's as --tolerance says. `fla` is FLA's own function, which raises an
error where it has no right kernel (on Hopper with Triton 3.4 to 3.7.0 and no TileLang): that is told, and its column is
missing.
`fla-torch` is FLA's reference in chunks, which torch differentiates.
"""

import argparse
import csv
import math
import os
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional

# ===----------------------------------------------------------------------===
# Operators: q, k [B, T, H, K], v [B, T, H, V], raw gates a and logits b [B, T, H], A_log and dt_bias [H] -> o
# ===----------------------------------------------------------------------===


def by_gdn(q, k, v, a, b, A_log, dt_bias):
    """The norms and the formulas of the gates are the operator's, and so are their gradients."""
    import gdn

    return gdn.chunk_gated_delta_rule(
        q, k, v, a, b, A_log=A_log, dt_bias=dt_bias, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        use_qk_l2norm_in_kernel=True,
    )[0]  # fmt: skip


def gates(a, b, A_log, dt_bias):
    return -A_log.exp() * functional.softplus(a + dt_bias), b.sigmoid()


def by_fla(q, k, v, a, b, A_log, dt_bias):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    g, beta = gates(a, b, A_log, dt_bias)
    return chunk_gated_delta_rule(q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True)[0]


def by_flash_qla(q, k, v, a, b, A_log, dt_bias):
    from flash_qla import chunk_gated_delta_rule

    g, beta = gates(a, b, A_log, dt_bias)
    return chunk_gated_delta_rule(unit(q).to(v.dtype), unit(k).to(v.dtype), v.contiguous(), g, beta)[0]


def by_fla_torch(q, k, v, a, b, A_log, dt_bias):
    """FLA's reference, in float32; it takes rows with norms."""
    from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule

    g, beta = gates(a, b, A_log, dt_bias)
    return naive_chunk_gated_delta_rule(unit(q), unit(k), v, g, beta)[0].to(v.dtype)


def unit(x):
    """Rows with a norm of 1, in float32."""
    x = x.float()
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def by_recurrence(q, k, v, a, b, A_log, dt_bias):
    """Token by token, by torch alone, in float32."""
    g, beta = gates(a, b, A_log, dt_bias)
    decay, dtype = g.exp(), v.dtype
    q, k, v = unit(q) * q.shape[-1] ** -0.5, unit(k), v.float()
    state, rows = q.new_zeros(*q.shape[:1], *q.shape[2:], v.shape[-1]), []
    for t in range(q.shape[1]):
        state = state * decay[:, t, :, None, None]
        written = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * written[:, :, None, :]
        rows.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(rows, 1).to(dtype)


OPERATORS = {
    "gdn": by_gdn, "fla": by_fla, "fla-torch": by_fla_torch, "flash-qla": by_flash_qla, "recurrence": by_recurrence,
}  # fmt: skip

# ===----------------------------------------------------------------------===
# The model
# ===----------------------------------------------------------------------===


class Mixer(nn.Module):
    """A Gated DeltaNet layer: projections, a short causal convolution, the operator, a gated norm."""

    def __init__(self, width, heads, channels, operator, dtype):
        super().__init__()
        self.heads, self.channels, self.operator, self.dtype = heads, channels, operator, dtype
        inner = heads * channels
        self.project = nn.Linear(width, 4 * inner + 2 * heads, bias=False)
        self.convolution = nn.Conv1d(3 * inner, 3 * inner, 4, groups=3 * inner, padding=3, bias=False)
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 8).log())
        steps = torch.empty(heads).uniform_(math.log(1e-3), math.log(1e-1)).exp()
        self.dt_bias = nn.Parameter(steps.expm1().log())
        self.norm, self.back = nn.RMSNorm(channels), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        inner = self.heads * self.channels
        qkv, gate, a, b = self.project(x).split([3 * inner, inner, self.heads, self.heads], -1)
        qkv = functional.silu(self.convolution(qkv.mT)[..., : x.shape[1]].mT)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).to(self.dtype) for each in qkv.chunk(3, -1))
        o = self.operator(q, k, v, a, b, self.A_log, self.dt_bias).to(x.dtype)
        return self.back((self.norm(o) * functional.silu(gate.unflatten(-1, (self.heads, -1)))).flatten(-2))


class Model(nn.Module):
    def __init__(self, options, operator, dtype):
        super().__init__()
        width = options.width
        self.embed = nn.Embedding(options.vocabulary, width)
        self.layers = nn.ModuleList()
        for _ in range(2):
            mixer = Mixer(width, options.heads, options.channels, operator, dtype)
            mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
            self.layers.extend(nn.Sequential(nn.RMSNorm(width), part) for part in (mixer, mlp))
        self.head = nn.Sequential(nn.RMSNorm(width), nn.Linear(width, options.vocabulary, bias=False))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def batches(options):
    """Pairs of a key and a value: which value belongs to a key is drawn anew for each sequence."""
    generator, half = torch.Generator().manual_seed(options.seed), options.vocabulary // 2

    def draw(most, *shape):
        return torch.randint(most, shape, generator=generator)

    for _ in range(options.steps):
        values = half + draw(half, options.batch, options.keys)
        keys = draw(options.keys, options.batch, options.tokens // 2)
        yield torch.stack([keys, values.gather(1, keys)], 2).flatten(1)


def train(name, options):
    """The losses of all steps, and the seconds."""
    # Else torch sums some gradients by atomics, and no two runs are alike.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(options.seed)
    model = Model(options, OPERATORS[name], getattr(torch, options.dtype)).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    losses, begin = [], time.perf_counter()
    for ids in batches(options):
        ids = ids.to(options.device)
        # What can be known are the values, which follow the keys.
        logits = model(ids)[:, :-1:2]
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1::2].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    found = torch.stack(losses).tolist()
    return found, time.perf_counter() - begin


# ===----------------------------------------------------------------------===
# The comparison
# ===----------------------------------------------------------------------===

#: What --gpu stands for; further options change it.
LARGER = {
    "device": "cuda", "dtype": "bfloat16", "batch": 16, "tokens": 256, "keys": 16, "vocabulary": 64, "width": 256,
    "heads": 4, "channels": 128, "rate": 3e-3,
}  # fmt: skip


def parse():
    parser = argparse.ArgumentParser(description="Trains a small model by several operators and compares the losses.")
    parser.add_argument("operators", nargs="+", choices=OPERATORS, help="the first is what others are compared with")
    parser.add_argument("--gpu", action="store_true", help="a larger model on a GPU, with q, k and v in bfloat16")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", help="of q, k and v; the rest is float32")
    parser.add_argument("--csv", type=pathlib.Path, help="where the losses go")
    parser.add_argument("--tolerance", type=float, default=0.01, help="most mean difference, in parts of the first loss")
    numbers = {"steps": 200, "batch": 8, "tokens": 48, "keys": 4, "vocabulary": 16, "width": 32, "heads": 2,
               "channels": 16, "seed": 0}  # fmt: skip
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.set_defaults(**(LARGER if parser.parse_known_args()[0].gpu else {}))
    return parser.parse_args()


def write(runs, path):
    """After each operator: what has been trained is there, whatever comes after."""
    if path:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", *runs])
            writer.writerows([step, *row] for step, row in enumerate(zip(*runs.values())))


def main():
    # cuBLAS reads it when it begins.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    options, runs, failed = parse(), {}, False
    for name in options.operators:
        try:
            runs[name], seconds = train(name, options)
        except Exception as error:
            # That another library cannot train here says nothing of ours.
            if name in ("gdn", "recurrence"):
                raise
            print(f"{name:<10} does not train here: {type(error).__name__}: {str(error)[:250]}", flush=True)
            continue
        write(runs, options.csv)
        first, last = runs[name][0], sum(runs[name][-10:]) / len(runs[name][-10:])
        falls = last < 0.5 * first
        differences = [abs(a - b) for a, b in zip(runs[name], next(iter(runs.values())))]
        mean = sum(differences) / len(differences) / first
        failed |= not falls or not mean < options.tolerance
        print(f"{name:<10} loss {first:.4f} -> {last:.4f}, {seconds:.1f} s, from {next(iter(runs))}: "
              f"mean {mean:.1e}, most {max(differences) / first:.1e} of the first loss", flush=True)  # fmt: skip
    failed |= not runs
    print("losses differ, or do not fall" if failed else "losses agree and fall")
    return failed


if __name__ == "__main__":
    sys.exit(main())
