# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m gdn`: what is installed, and whether it computes what it should; `python -m gdn bench`: times of one layer over
sequence lengths."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

import gdn

from . import _library

#: Largest relative error of the self-test, by type: docs/Testing.md.
_TOLERANCES = {"float32": 1e-5, "float16": 6e-3, "bfloat16": 6e-3}


def _rows() -> list[tuple[str, str]]:
    library = json.loads(_library.load().kernels())
    return [
        ("gdn", gdn.__version__),
        ("library", str(_library.path())),
        ("cpu", library["isa"]),
        ("gpu", _library.load().gpus()),
        ("kernels", f"{len(library['kernels'])} for CPUs, {len(library['gpu_kernels'])} for GPUs"),
        ("of gradients", f"{len(library['backward_kernels'])} for CPUs"),
    ]


def _make_inputs(batch: int, tokens: int, heads: int, value_heads: int, channels: int) -> list[Any]:
    """q, k, v, g and beta as NumPy arrays."""
    random = numpy.random.default_rng(0)
    q, k, v = (random.standard_normal((batch, tokens, count, channels), "float32") for count in (heads, heads, value_heads))
    q, k = (x / numpy.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    gates = (batch, tokens, value_heads)
    return [q, k, v, -random.random(gates, "float32"), random.random(gates, "float32")]


def _to_gpu(arrays: list[Any], dtype: str) -> list[Any]:
    """q, k and v in `dtype`, g and beta as they are, on torch's current GPU."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"--device cuda: expected torch, got: {error}") from error
    if not torch.cuda.is_available():
        raise RuntimeError("--device cuda: expected a GPU that torch can use, got none")
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    return [tensor.to(getattr(torch, dtype)) for tensor in tensors[:3]] + tensors[3:]


def _cast(arrays: list[Any], dtype: str) -> list[Any]:
    """q, k and v in `dtype`, g and beta as they are."""
    if dtype == "bfloat16":
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = numpy.dtype(dtype)
    return [array.astype(kind) for array in arrays[:3]] + arrays[3:]


def _reference(q: Any, k: Any, v: Any, g: Any, beta: Any) -> Any:
    """The outputs in float64, token by token, for as many query as value heads."""
    q, k, v, g, beta = (x.astype(numpy.float64) for x in (q, k, v, g, beta))
    o = numpy.zeros_like(v)
    state = numpy.zeros((*v.shape[:1], v.shape[2], q.shape[3], v.shape[3]))
    for t in range(q.shape[1]):
        state *= numpy.exp(g[:, t])[..., None, None]
        write = beta[:, t][..., None] * (v[:, t] - numpy.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state += k[:, t][..., None] * write[..., None, :]
        o[:, t] = q.shape[3] ** -0.5 * numpy.einsum("bhkv,bhk->bhv", state, q[:, t])
    return o


def _test(function: str, device: str, dtype: str, channels: int) -> tuple[float, float]:
    """The relative error of a small layer, and the seconds that it took."""
    arrays = _make_inputs(1, 96, 2, 2, channels)
    arguments = _to_gpu(arrays, dtype) if device == "cuda" else _cast(arrays, dtype)

    def read(x: Any) -> Any:
        return x.float().cpu().numpy() if device == "cuda" else x

    start = time.perf_counter()
    o, _ = getattr(gdn, function)(*arguments[:4], beta=arguments[4])
    o = read(o)
    seconds = time.perf_counter() - start
    expected = _reference(*map(read, arguments))
    return float(numpy.sqrt(numpy.mean((o - expected) ** 2) / numpy.mean(expected**2))), seconds


def _has_torch_gpu() -> bool:
    """Whether torch is there and its current GPU is one that the kernels run on."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def _self_test() -> bool:
    """Runs a small layer on every device, in every type and size, prints the errors, and says whether all are small."""
    cases = [
        (function, "cpu", dtype, channels)
        for function in ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule")
        for dtype in ("float32", "float16")
        for channels in map(int, _library.MANIFEST["cpu"]["channels"])
    ]
    if json.loads(_library.load().kernels())["gpu_kernels"] and _has_torch_gpu():
        cases += [
            ("chunk_gated_delta_rule", "cuda", dtype, channels)
            for channels in sorted({row["k"] for row in _library.MANIFEST["hopper"]["channels"].values()})
            for dtype in ("bfloat16", "float16")
        ]
    print(f"\n{'function':<34} {'device':<6} {'type':<9} {'K = V':>5} {'error':>9} {'ms':>7}  result")
    good = True
    for function, device, dtype, channels in cases:
        error, seconds = _test(function, device, dtype, channels)
        passed = error < _TOLERANCES[dtype]
        good &= passed
        print(
            f"{function:<34} {device:<6} {dtype:<9} {channels:>5} {error:>9.1e} {seconds * 1e3:>7.2f}  "
            f"{'pass' if passed else 'FAIL'}"
        )
    return good


def _info(_: argparse.Namespace) -> int:
    for name, text in _rows():
        print(f"{name:<8} {text}")
    for package in ("torch", "fla", "flashinfer"):
        there = importlib.util.find_spec(package) is not None
        print(f"{package:<8} {'installed' if there else 'not installed'}")
    good = _self_test()
    print("\nself-test passed" if good else "\nself-test FAILED")
    return 0 if good else 1


class _Result(NamedTuple):
    """One line of the table."""

    name: str
    tokens: int
    milliseconds: float
    gflops: float


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


def _plot(results: list[_Result], file: str) -> bool:
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


def _bench(options: argparse.Namespace) -> int:
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
        arrays = _make_inputs(options.batch, tokens, heads, value_heads, options.channels)
        own = _to_gpu(arrays, dtype) if on_gpu else _cast(arrays, dtype)
        choice = gdn.explain(*own, output_final_state=True)
        calls = {"gdn": _ours(own)}
        if options.fla:
            calls["FLA naive (torch)"] = _naive(arrays, dtype)
        for name, call in calls.items():
            advance = functools.partial(progress.advance, f"{name}, {tokens} tokens")
            seconds = _time(call, options.runs, advance, _synchronize if on_gpu else lambda: None)
            results.append(_Result(name, tokens, seconds * 1e3, choice.flop / seconds / 1e9))
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


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m gdn", description="Versions, devices and kernels of gdn, with a self-test."
    )
    parser.set_defaults(run=_info)
    bench = parser.add_subparsers(title="commands").add_parser(
        "bench", help="times a layer over sequence lengths, and draws a plot where matplotlib is"
    )
    bench.set_defaults(run=_bench)
    bench.add_argument("--tokens", type=int, nargs="+", default=[256, 1024, 4096], help="sequence lengths")
    bench.add_argument("--batch", type=int, default=1, help="sequences")
    bench.add_argument("--heads", type=int, nargs=2, default=[16, 32], metavar=("H", "HV"), help="key, value heads")
    bench.add_argument("--channels", type=int, default=128, help="K = V")
    bench.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where (cuda: torch's current GPU)")
    bench.add_argument(
        "--dtype", choices=["float32", "float16", "bfloat16"], help="default: float32 on a CPU, bfloat16 on a GPU"
    )
    bench.add_argument("--runs", type=int, default=7, help="timed calls of each length")
    bench.add_argument("--fla", action="store_true", help="time FLA's naive torch function beside")
    bench.add_argument("--plot", metavar="FILE", default=None, help="where to draw (default: gdn-bench.png)")
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (ImportError, ValueError, RuntimeError, OSError) as error:
        print(f"python -m gdn: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
