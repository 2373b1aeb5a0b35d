#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the forward of gdn beside FlashInfer, FlashQLA and FLA, in one process on the same inputs.

Usage: compare_libraries.py [--libraries gdn,flashinfer,flash_qla,fla] [--only 2/8] [--replays 30] [--list]

The cases are the rows of docs/data/forward-h200.csv and forward-h200-more.csv. A time is that of a CUDA graph with one
call on each of several sets of inputs, so that no call finds its inputs in the L2 cache: the median of the replays, the
libraries in turn, per call. A library that is not installed, or fails, is reported and left out. --list needs no GPU.
"""

import argparse
import functools
import importlib
import math
import os
import statistics
import sys

import forward_plot

# FLA must run its own kernels, not those of the others (read when fla is imported).
os.environ.update(FLA_FLASH_QLA="0", FLA_INTRACARD_CP="0", FLA_GDN="0")
WIDTH, L2_BYTES = 128, 60 << 20


def make_inputs(torch, case, seed):
    """Unit q and k, log gates as in FlashQLA's benchmark (a quarter of the heads does not decay), beta in (0, 1)."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    tokens, count = sum(case.lengths), len(case.lengths)
    normal = functools.partial(torch.randn, device="cuda", generator=generator)
    unit = functools.partial(torch.nn.functional.normalize, dim=-1)
    gate = torch.nn.functional.logsigmoid(normal(1, tokens, case.heads)) / 16
    gate[:, :, 3::4] = 0
    starts = [sum(case.lengths[:i]) for i in range(count + 1)]
    return {
        "q": unit(normal(1, tokens, case.key_heads, WIDTH)).bfloat16(),
        "k": unit(normal(1, tokens, case.key_heads, WIDTH)).bfloat16(),
        "v": normal(1, tokens, case.heads, WIDTH).bfloat16(),
        "g": gate, "beta": normal(1, tokens, case.heads).sigmoid(),
        "state": normal(count, case.heads, WIDTH, WIDTH),
        "starts": torch.tensor(starts, dtype=torch.int32, device="cuda"),
    }


def prepare_gdn(_, x):
    call = importlib.import_module("gdn").chunk_gated_delta_rule
    return lambda: call(x["q"], x["k"], x["v"], x["g"], x["beta"], initial_state=x["state"], output_final_state=True,
                        cu_seqlens=x["starts"])


def prepare_fla(_, x):
    call = importlib.import_module("fla.ops.gated_delta_rule.chunk").chunk_gated_delta_rule_fwd
    indices = importlib.import_module("fla.ops.utils.index").prepare_chunk_indices(x["starts"], 64)
    return lambda: call(q=x["q"], k=x["k"], v=x["v"], g=x["g"], beta=x["beta"], scale=WIDTH ** -0.5,
                        initial_state=x["state"], output_final_state=True, cu_seqlens=x["starts"],
                        chunk_indices=indices)


def prepare_flash_qla(_, x):
    call = importlib.import_module("flash_qla").chunk_gated_delta_rule_fwd
    return lambda: call(x["q"], x["k"], x["v"], x["g"], x["beta"], scale=WIDTH ** -0.5, initial_state=x["state"],
                        cu_seqlens=x["starts"], auto_cp=True, output_final_state=True, output_h=False,
                        enable_fwd_cp_cache=False)


def prepare_flashinfer(torch, x):
    """FlashInfer takes linear gates, states [N, H, V, K] and buffers of the caller."""
    call = importlib.import_module("flashinfer.gdn_prefill").chunk_gated_delta_rule
    alpha, state = x["g"][0].exp(), x["state"].transpose(-1, -2).contiguous()
    starts = x["starts"].long()
    output, last = torch.empty_like(x["v"][0]), torch.empty_like(state)
    longest = int(starts.diff().max())
    return lambda: call(q=x["q"][0], k=x["k"][0], v=x["v"][0], g=alpha, beta=x["beta"][0], scale=WIDTH ** -0.5,
                        initial_state=state, output_final_state=True, cu_seqlens=starts, output=output,
                        output_state=last, max_seqlen=longest)


LIBRARIES = {"gdn": prepare_gdn, "flashinfer": prepare_flashinfer, "flash_qla": prepare_flash_qla, "fla": prepare_fla}


def capture(torch, runs):
    """A graph with one call on each set of inputs; what the calls return lives as long as it."""
    for run in [*runs, *runs[:2]]:
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.results = [run() for run in runs]
    graph.replay()
    torch.cuda.synchronize()
    return graph


def time_case(torch, case, names, replays):
    """Median ms of each library, or the reason why there is none."""
    size = sum(case.lengths) * 4 * (case.key_heads + case.heads) * WIDTH
    sets = [make_inputs(torch, case, seed) for seed in range(min(64, max(2, math.ceil(3 * L2_BYTES / size))))]
    graphs, rows = {}, {}
    for name in names:
        try:
            with torch.no_grad():
                graphs[name] = capture(torch, [LIBRARIES[name](torch, x) for x in sets])
        except Exception as error:  # Whatever another library raises.
            rows[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    events = {name: [] for name in graphs}
    for _ in range(replays):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            events[name].append((begin, end))
    torch.cuda.synchronize()
    for name, pairs in events.items():
        rows[name] = statistics.median(a.elapsed_time(b) for a, b in pairs) / len(sets)
    return rows


def print_row(case, rows, names):
    others = [ms for name, ms in rows.items() if name != "gdn" and not isinstance(ms, str)]
    cells = [f"{rows[name]:.4f}" if not isinstance(rows[name], str) else "-" for name in names]
    ratio = f"{rows['gdn'] / min(others):.3f}" if others and isinstance(rows.get("gdn"), float) else ""
    print(f"| {case.name()}, {case.key_heads} / {case.heads} | {case.floor_ms:.4f} | {' | '.join(cells)} | {ratio} |",
          flush=True)
    for name, reason in rows.items():
        if isinstance(reason, str):
            print(f"  {name}: {reason}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", default="gdn,flashinfer,flash_qla", help="of gdn, flashinfer, flash_qla and fla")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--replays", type=int, default=30)
    parser.add_argument("--list", action="store_true", help="print the cases and their floors")
    options = parser.parse_args()
    names = options.libraries.split(",")
    unknown = [name for name in names if name not in LIBRARIES]
    if unknown:
        sys.exit(f"error: expected libraries of {', '.join(LIBRARIES)}, got {', '.join(unknown)}")
    cases = forward_plot.read_cases(forward_plot.DATA) + forward_plot.read_cases(forward_plot.MORE)
    cases = [case for case in cases if options.only in f"{case.name()}, {case.key_heads}/{case.heads}"]
    if options.list:
        for case in cases:
            print(f"{case.name()}, {case.key_heads}/{case.heads}: floor {case.floor_ms:.4f} ms")
        return
    torch = importlib.import_module("torch")
    print(f"| sequences x tokens, q/k / value heads | floor ms | {' ms | '.join(names)} ms | gdn / best |")
    print("|---" * (len(names) + 3) + "|")
    for case in cases:
        print_row(case, time_case(torch, case, names, options.replays), names)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
