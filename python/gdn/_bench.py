# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m gdn bench`: times of one layer over sequence lengths."""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import gdn


class Result(NamedTuple):
    """One line of the table."""

    name: str
    tokens: int
    milliseconds: float
    gflops: float


def make_inputs(batch: int, tokens: int, heads: int, value_heads: int, channels: int) -> list[Any]:
    """q, k, v, g and beta as NumPy arrays."""
    random = numpy.random.default_rng(0)
    q, k, v = (random.standard_normal((batch, tokens, count, channels), "float32") for count in (heads, heads, value_heads))
    q, k = (x / numpy.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    gates = (batch, tokens, value_heads)
    return [q, k, v, -random.random(gates, "float32"), random.random(gates, "float32")]


def to_gpu(arrays: list[Any], dtype: str) -> list[Any]:
    """q, k and v in `dtype`, g and beta as they are, on torch's current GPU."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"--device cuda: expected torch, got: {error}") from error
    if not torch.cuda.is_available():
        raise RuntimeError("--device cuda: expected a GPU that torch can use, got none")
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    return [tensor.to(getattr(torch, dtype)) for tensor in tensors[:3]] + tensors[3:]


def cast(arrays: list[Any], dtype: str) -> list[Any]:
    """q, k and v in `dtype`, g and beta as they are."""
    if dtype == "bfloat16":
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = numpy.dtype(dtype)
    return [array.astype(kind) for array in arrays[:3]] + arrays[3:]


class _Progress:
    """One line that shows how far it is, on a terminal alone."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def advance(self, text: str) -> None:
        self.done += 1
        if not sys.stderr.isatty():
            return
        filled = 30 * self.done // self.total
        end = "\n" if self.done == self.total else ""
        print(f"\r[{'#' * filled:<30}] {self.done}/{self.total} {text:<24}", end=end, file=sys.stderr, flush=True)


def _time(call: Callable[[], Any], runs: int, advance: Callable[[], None], finish: Callable[[], None]) -> float:
    """The median of `runs` calls in seconds, after one that is not counted; `finish` waits for what a call began."""
    call()
    seconds = []
    for _ in range(runs):
        finish()
        start = time.perf_counter()
        call()
        finish()
        seconds.append(time.perf_counter() - start)
        advance()
    return statistics.median(seconds)


def _synchronize() -> None:
    import torch

    torch.cuda.synchronize()


def _ours(arrays: list[Any]) -> Callable[[], Any]:
    q, k, v, g, beta = arrays
    return lambda: gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)


def _naive(arrays: list[Any], dtype: str) -> Callable[[], Any]:
    """FLA's function in plain torch on the same numbers; it wants as many key as value heads."""
    try:
        import torch
        from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule
    except ImportError as error:
        raise ImportError(f"--fla: expected torch and flash-linear-attention 0.6, got: {error}") from error
    q, k, v, g, beta = (torch.from_numpy(array) for array in arrays)
    group = v.shape[2] // q.shape[2]
    q, k, v = (x.to(getattr(torch, dtype)) for x in (q.repeat_interleave(group, 2), k.repeat_interleave(group, 2), v))

    def call() -> Any:
        with torch.inference_mode():
            return naive_chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)

    return call


def _plot(results: list[Result], file: str) -> bool:
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for name in dict.fromkeys(result.name for result in results):
        line = [result for result in results if result.name == name]
        axes.plot([r.tokens for r in line], [r.milliseconds for r in line], marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="ms a call", title="Gated DeltaNet forward")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=120)
    return True


def run(options: argparse.Namespace) -> int:
    """Times, prints a table and draws."""
    for name, values in (
        ("--tokens", options.tokens),
        ("--heads", options.heads),
        ("--batch", [options.batch]),
        ("--runs", [options.runs]),
        ("--channels", [options.channels]),
    ):
        if min(values) < 1:
            raise ValueError(f"{name}: expected positive numbers, got {min(values)}")
    on_gpu, (heads, value_heads) = options.device == "cuda", options.heads
    dtype = options.dtype or ("bfloat16" if on_gpu else "float32")
    progress = _Progress(len(options.tokens) * options.runs * (2 if options.fla else 1))
    results = []
    for tokens in options.tokens:
        arrays = make_inputs(options.batch, tokens, heads, value_heads, options.channels)
        own = to_gpu(arrays, dtype) if on_gpu else cast(arrays, dtype)
        choice = gdn.explain(*own, output_final_state=True)
        calls = {"gdn": _ours(own)}
        if options.fla:
            calls["FLA naive (torch)"] = _naive(arrays, dtype)
        for name, call in calls.items():
            advance = functools.partial(progress.advance, f"{name}, {tokens} tokens")
            seconds = _time(call, options.runs, advance, _synchronize if on_gpu else lambda: None)
            results.append(Result(name, tokens, seconds * 1e3, choice.flop / seconds / 1e9))
    print(f"B = {options.batch}, H = {heads}, HV = {value_heads}, K = V = {options.channels}, "
          f"{dtype}, {options.device}, median of {options.runs}")
    print(f"{'what':<18} {'tokens':>8} {'ms':>10} {'GFLOP/s':>9}")
    for result in results:
        print(f"{result.name:<18} {result.tokens:>8} {result.milliseconds:>10.3f} {result.gflops:>9.1f}")
    file = options.plot or "gdn-bench.png"
    if _plot(results, file):
        print(f"plot: {file}")
    elif options.plot:
        raise ImportError("--plot: expected matplotlib (pip install matplotlib), got none")
    return 0
