#!/usr/bin/env python3
"""Checks and times the forward kernel that is written by hand in the explicit form.

Usage: forward_kernel.py DIRECTORY [CASE...], where DIRECTORY holds forward.cubin and forward.json of
test/Target/PTX/forward.mlir (gdn-translate --gdn-to-cubin and --gdn-to-launch-json). Needs an H100 or
H200, PyTorch and numpy. Prints the errors against the recurrence in float32 and three times in ms: the
median of single launches and the mean of 30 after 0.2 s of rest, and the mean of 200 after 600.
"""

import pathlib
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/Integration/sm90"))
import warp_ops  # noqa: E402

WIDTH = 128
# Sequences, tokens, q/k heads, value heads.
CASES = {"8192x4 16/64": (4, 8192, 16, 64), "8192x4 32/32": (4, 8192, 32, 32),
         "4096x1 16/64": (1, 4096, 16, 64), "4096x8 16/64": (8, 4096, 16, 64),
         "1024x8 16/64": (8, 1024, 16, 64)}


class Array:
    """A tensor as warp_ops.Kernel takes it."""

    def __init__(self, tensor):
        self.tensor, self.pointer = tensor, tensor.data_ptr()
        self.shape, self.strides = list(tensor.shape), list(tensor.stride())


def make_inputs(sequences, tokens, heads_q, heads):
    """Keys that are alike (cosine 0.3), gates of which a quarter is 0."""
    make = torch.Generator(device="cuda")
    make.manual_seed(1)
    normal = lambda *shape: torch.randn(*shape, device="cuda", generator=make)
    unit = torch.nn.functional.normalize
    q = unit(normal(sequences, tokens, heads_q, WIDTH), dim=-1).bfloat16()
    k = normal(sequences, tokens, heads_q, WIDTH) * 0.7 ** 0.5 + normal(WIDTH) * 0.3 ** 0.5
    v = normal(sequences, tokens, heads, WIDTH).bfloat16()
    g = torch.nn.functional.logsigmoid(normal(sequences, tokens, heads)) / 16
    g[:, :, 3::4] = 0
    return q, unit(k, dim=-1).bfloat16(), v, g, torch.sigmoid(normal(sequences, tokens, heads))


def recurrence(q, k, v, g, beta, scale):
    """Token by token in float32: the output and the last state, rows V."""
    sequences, tokens, heads, _ = v.shape
    state = torch.zeros(sequences * heads, WIDTH, WIDTH, device="cuda")
    o = torch.empty(v.shape, device="cuda")
    share = heads // q.shape[2]
    rows = lambda x, t: x[:, t].float().repeat_interleave(share, 1).reshape(-1, WIDTH, 1)
    for t in range(tokens):
        kt = rows(k, t)
        state *= g[:, t].exp().reshape(-1, 1, 1)
        error = v[:, t].float().reshape(-1, WIDTH, 1) - torch.bmm(state, kt)
        state.baddbmm_(beta[:, t].reshape(-1, 1, 1) * error, kt.transpose(1, 2))
        o[:, t] = scale * torch.bmm(state, rows(q, t)).reshape(sequences, heads, WIDTH)
    return o, state.reshape(sequences, heads, WIDTH, WIDTH)


def relative(got, expected):
    """Error over expectation in the 2-norm; NaN counts as infinite."""
    error = float((got.double() - expected.double()).norm() / expected.double().norm())
    return error if error == error else float("inf")


def measure(run, count):
    """Mean ms of `count` launches."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def main():
    directory, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    torch.zeros(1, device="cuda")
    kernel = warp_ops.Kernel(warp_ops.Driver(), directory, "forward")
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    wrong = 0
    for name in names:
        sequences, tokens, heads_q, heads = CASES[name]
        inputs = make_inputs(sequences, tokens, heads_q, heads)
        o = torch.full_like(inputs[2], float("nan"))
        state = torch.full((sequences, heads, WIDTH, WIDTH), float("nan"), device="cuda")
        scale = WIDTH ** -0.5
        run = kernel.prepare(min(multiprocessors, sequences * heads),
                             *(Array(x) for x in (*inputs, o, state)), scale)
        run()
        expected = recurrence(*inputs, scale)
        errors = [relative(got, want) for got, want in zip((o, state), expected)]
        wrong += max(errors) > 3.8e-3
        torch.cuda.synchronize()
        time.sleep(0.2)
        single = sorted(measure(run, 1) for _ in range(25))[12]
        rested = measure(run, 30)
        measure(run, 600)
        print(f"{name}: o {errors[0]:.1e} state {errors[1]:.1e} | ms: single {single:.4f}, "
              f"30 {rested:.4f}, after 600 {measure(run, 200):.4f}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
