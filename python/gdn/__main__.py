# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m gdn`: what is installed, and whether it computes what it should."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from typing import Any

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


def _reference(q: Any, k: Any, v: Any, g: Any, beta: Any) -> Any:
    """The outputs in float64, token by token, for as many query as value heads."""
    import numpy

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
    import numpy

    from . import _bench

    arrays = _bench.make_inputs(1, 96, 2, 2, channels)
    arguments = _bench.to_gpu(arrays, dtype) if device == "cuda" else _bench.cast(arrays, dtype)

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


def _bench(options: argparse.Namespace) -> int:
    from . import _bench

    return _bench.run(options)


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
