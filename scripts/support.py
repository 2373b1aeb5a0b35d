#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks the compiler what it supports, and writes the support matrix of README.md.

Usage: scripts/support.py [--tools build/bin] [--check [--only NAME] | --reasons]

Each cell is one small layer that differs from the base (Gated DeltaNet, bf16, K = V = 128, log gates, beta as values,
initial and final states) in what its row names. For a CPU it is compiled to the llvm dialect (gdn-opt --gdn-to-llvm)
in rows of sizes and types, and to the tile level in the others: gdn-numerics compiles and runs what they name. For a
GPU it is compiled to the explicit form (gdn-compile --emit=warp), where registers and shared memory are allocated.
"yes" is a layer that compiles, "no" one that is refused with an error; --reasons prints these errors. --check writes
nothing and fails where the matrix in README.md is not current, or its rows of a name. Standard library only.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
BEGIN, END = "<!-- support: written by scripts/support.py -->", "<!-- /support -->"
OPS = {"forward": "gdn.chunk_gated_delta_rule", "backward": "gdn.chunk_gated_delta_rule_bwd",
       "token by token": "gdn.recurrent_gated_delta_rule"}
COLUMNS = [(op, target) for op in OPS for target in ("CPU", "sm_90a")]


@dataclasses.dataclass
class Layer:
    """A layer; the defaults are the base."""

    data: str = "bf16"
    keys: int = 128
    values: int = 128
    gate: str = "log"  # none, log, linear, softplus or bounded
    gate_type: str = "f32"
    per_channel: bool = False  # Kimi Delta Attention: a gate for each key channel.
    beta: str = "value"
    l2norm: bool = False
    initial: bool = True
    final: bool = True
    state: str = "f32"
    pool: str = ""  # The type of the rows of a pool, if states lie in one.
    layout: str = "kv"
    packed: str = ""
    query_heads: int = 2
    heads: int = 4
    chunk: int = 0
    dynamic_heads: bool = False


KDA = {"per_channel": True, "query_heads": 4}
#: Name and values of a row, and a layer for each value: a cell is "yes" if all of them compile.
MATRIX = [
    ("gate", "none: DeltaNet", [Layer(gate="none")]),
    ("gate", "Gated DeltaNet: `log`, `linear`", [Layer(), Layer(gate="linear")]),
    ("gate", "Gated DeltaNet, raw: `softplus`, `bounded`", [Layer(gate="softplus"), Layer(gate="bounded")]),
    ("gate", "Kimi Delta Attention: `log`", [Layer(**KDA)]),
    ("gate", "Kimi Delta Attention, raw: `softplus`, `bounded`",
     [Layer(**KDA, gate="softplus"), Layer(**KDA, gate="bounded")]),
    ("gate and beta", "bf16; beta `logit`, `doubled_logit`",
     [Layer(gate_type="bf16"), Layer(beta="logit"), Layer(beta="doubled_logit")]),
    ("type of q, k, v", "f16", [Layer(data="f16")]),
    ("type of q, k, v", "f32", [Layer(data="f32")]),
    ("K = V", "16, 32, 48", [Layer(keys=n, values=n) for n in (16, 32, 48)]),
    ("K = V", "64", [Layer(keys=64, values=64)]),
    ("K = V", "96, 192, 256", [Layer(keys=n, values=n) for n in (96, 192, 256)]),
    ("K = V", "100", [Layer(keys=100, values=100)]),
    ("K = 128, V", "64, 192, 256", [Layer(values=n) for n in (64, 192, 256)]),
    ("V = 64, K", "16, 32, 48", [Layer(keys=n, values=64) for n in (16, 32, 48)]),
    ("l2norm inside", "bf16", [Layer(l2norm=True)]),
    ("l2norm inside", "f16", [Layer(l2norm=True, data="f16")]),
    ("states", "none, final only, bf16, [V, K]",
     [Layer(initial=False, final=False), Layer(initial=False), Layer(state="bf16"), Layer(layout="vk")]),
    ("states", "in a pool: `state_indices` i32, i64", [Layer(pool=kind) for kind in ("i32", "i64")]),
    ("packed sequences", "`cu_seqlens` i32, i64", [Layer(packed=kind) for kind in ("i32", "i64")]),
    ("chunk length", "16, 32", [Layer(chunk=n) for n in (16, 32)]),
    ("chunk length", "64", [Layer(chunk=64)]),
    ("value heads per q/k head", "1, 2, 3, 4", [Layer(heads=2 * n) for n in (1, 2, 3, 4)]),
    ("dynamic", "Hq, H", [Layer(dynamic_heads=True)]),
]
#: Rows that go all the way to the llvm dialect of a CPU.
TO_LLVM = ("type of q, k, v", "K = V", "K = 128, V", "V = 64, K", "dynamic")


def tensor(*shape):
    return "tensor<" + "x".join(map(str, shape)) + ">"


def write(layer, op):
    """The layer as a function of MLIR."""
    batch, tokens = ("1", "?") if layer.packed else ("2", "?")
    sequences = "?" if layer.packed or layer.pool else batch
    heads, query_heads = ("?", "?") if layer.dynamic_heads else (layer.heads, layer.query_heads)
    keys, values = layer.keys, layer.values
    row = tensor(batch, tokens, query_heads, keys, layer.data)
    value = tensor(batch, tokens, heads, values, layer.data)
    small = tensor(batch, tokens, heads, layer.gate_type)
    gate = tensor(batch, tokens, heads, keys, layer.gate_type) if layer.per_channel else small
    state = tensor(sequences, heads, *((keys, values) if layer.layout == "kv" else (values, keys)), layer.state)
    final = state if layer.initial else state.replace("bf16>", "f32>")
    arguments, attributes = {"q": row, "k": row, "v": value, "beta": small}, []
    if layer.gate != "none":
        arguments["gate"] = gate
        attributes.append(f"gate_domain = #gdn.gate_domain<{layer.gate}>")
    if layer.initial:
        arguments["initial_state"] = state
    if layer.pool:
        arguments["state_indices"] = tensor(batch, layer.pool)
    if layer.packed:
        arguments["cu_seqlens"] = tensor("?", layer.packed)
    raw = layer.gate in ("softplus", "bounded")
    bias = tensor(heads, keys, "f32") if layer.per_channel else tensor(heads, "f32")
    if raw:
        arguments |= {"a_log": tensor(heads, "f32"), "dt_bias": bias}
    attributes += [f"beta_domain = #gdn.beta_domain<{layer.beta}>", f"state_layout = #gdn.state_layout<{layer.layout}>"]
    attributes += ["lower_bound = -5.0 : f64"] * (layer.gate == "bounded") + ["qk_l2norm"] * layer.l2norm
    results = [value]
    if op == "backward":
        arguments["d_o"] = value
        if layer.final:
            arguments["d_final_state"] = final
        results = [row, row, value, small] + [gate] * (layer.gate != "none") + [state] * layer.initial
        results += [tensor(heads, "f32"), bias] * raw
    elif layer.final:
        attributes.append("output_final_state")
        results.append(final)
    if layer.chunk and op != "token by token":
        attributes.append(f"chunk_size = {layer.chunk} : i64")
    operands = " ".join(f"{name}(%{name} : {kind})" for name, kind in arguments.items())
    notes = {"initial_state": " {bufferization.writable = true}"} if layer.pool else {}
    parameters = ", ".join(f"%{name}: {kind}{notes.get(name, '')}" for name, kind in arguments.items())
    count, kinds = len(results), ", ".join(results)
    names = ", ".join(f"%r#{i}" for i in range(count)) if count > 1 else "%r"
    return (f"func.func @layer({parameters}) -> ({kinds}) {{ "
            f"%r{f':{count}' if count > 1 else ''} = {OPS[op]} {operands} {{{', '.join(attributes)}}} -> {kinds} "
            f"return {names} : {kinds} }}")


def ask_cpu(tools, layers, pipeline):
    """For each of `layers`, of one process: None, or the error that refuses it."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "layers.mlir"
        path.write_text("\n// -----\n".join(layers) + "\n")
        done = subprocess.run([tools / "gdn-opt", "--split-input-file", pipeline, "--verify-each=false", path,
                               "-o", "/dev/null"], capture_output=True, text=True, check=False)
    errors = [None] * len(layers)
    for line, text in re.findall(r"^[^\n]*?layers\.mlir:(\d+):\d+: error: ([^\n]*)", done.stderr, re.M):
        place = int(line) // 2
        errors[place] = errors[place] or text
    if done.returncode not in (0, 1) or (done.returncode == 1) != any(errors):
        sys.exit(f"error: expected layers that compile or are refused, got {done.returncode}: {done.stderr[-500:]}")
    return errors


def ask_gpu(tools, layers):
    """The same, a process a layer: the compiler chooses schedule and V tiles for each."""
    def ask(text):
        done = subprocess.run([tools / "gdn-compile", "-", "--target=sm_90a", "--emit=warp", "--verify-each=false", "-o",
                               "/dev/null"], input=text, capture_output=True, text=True, check=False)
        found = re.search(r"error: ([^\n]*)", done.stderr)
        if done.returncode not in (0, 1) or (done.returncode == 1) != bool(found):
            sys.exit(f"error: expected a layer that compiles or is refused, got {done.returncode}: {done.stderr[:500]}")
        return found and found.group(1)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(ask, layers))


def ask_all(tools, names):
    """The errors of each row and column; of the rows of these names, if there are any."""
    layers = {(name, text): several for name, text, several in MATRIX if not names or name in names}

    def ask_part(part):
        (op, target), pipeline = part
        flat = [(row, write(layer, op)) for row, several in layers.items() for layer in several
                if target != "CPU" or (row[0] in TO_LLVM) == (pipeline == "--gdn-to-llvm")]
        texts = [text for _, text in flat]
        return part[0], flat, ask_cpu(tools, texts, pipeline) if target == "CPU" else ask_gpu(tools, texts)

    parts = [(column, pipeline) for column in COLUMNS
             for pipeline in (("--gdn-to-llvm", "--gdn-to-tile") if column[1] == "CPU" else ("",))]
    answers = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for column, flat, errors in pool.map(ask_part, parts):
            for (row, _), error in zip(flat, errors):
                answers.setdefault((row, column), []).append(error)
    return answers


def summarise(errors):
    """Of the values of a row."""
    refused = sum(error is not None for error in errors)
    return "yes" if not refused else "no" if refused == len(errors) else "in part"


def make_table(answers):
    names = " | ".join(f"{op}, {target}" for op, target in COLUMNS)
    lines = [f"| | | {names} |", "|---" * (len(COLUMNS) + 2) + "|"]
    last = None
    for name, text, _ in MATRIX:
        if ((name, text), COLUMNS[0]) in answers:
            cells = [summarise(answers[(name, text), column]) for column in COLUMNS]
            lines.append(f"| {'' if name == last else name} | {text} | {' | '.join(cells)} |")
        last = name
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/bin", help="their folder (build/bin)")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where README.md is not current")
    parser.add_argument("--reasons", action="store_true", help="print the errors of what is refused")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="check the rows of this name alone")
    options = parser.parse_args()
    if unknown := sorted({*options.only} - {name for name, *_ in MATRIX}):
        sys.exit(f"error: expected --only of names of rows, got {', '.join(unknown)}")
    if options.only and not options.check:
        sys.exit("error: expected --only beside --check, for the whole matrix is written")
    answers = ask_all(options.tools, options.only)
    if options.reasons:
        for ((name, text), (op, target)), errors in answers.items():
            for error in sorted({error for error in errors if error}):
                print(f"{name}, {text}; {op}, {target}: {error}")
        return
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"error: expected one '{BEGIN}' and one '{END}' in README.md")
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    lines, found = make_table(answers).splitlines(), table.strip().splitlines()
    wanted = "\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"])
    if options.check and lines != ([line for line in found if line in lines] if options.only else found):
        sys.exit("error: expected a current support matrix in README.md; run scripts/support.py")
    if not options.check:
        PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
