#!/usr/bin/env python3
"""Compiles layers of every kind for sm_90a, through the gates of ptxas: no remark, no stack, no spill.

Usage: matrix.py [--compiler gdn-compile] [--sample N [--seed S] | --all | --list] [--only AXIS=VALUE]...

Crossed in full: what an input may be. Drawn for each layer: what a kernel has another constant for.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile

OPS = {"chunk": "gdn.chunk_gated_delta_rule", "token": "gdn.recurrent_gated_delta_rule"}
CROSSED = {
    "op": list(OPS),
    "data": ["bf16", "f16", "f32"],
    "gate": ["none", "log", "linear", "softplus", "bounded", "channel-log", "channel-softplus", "channel-bounded"],
    "beta": ["value", "logit", "doubled_logit"],
    "l2norm": ["no", "yes"],
    "states": ["none", "out", "in", "inout", "in-pool-out"],
    "boundaries": ["none", "i32", "i64"],
}
DRAWN = {
    "parameters": ["f32", "bf16"],
    "layout": ["kv", "vk"],
    "state": ["f32", "bf16", "f16"],
    "group": ["1", "2", "3", "4"],
    "dims": ["128x128", "128x64", "64x128", "64x64"],
    "heads": ["2", "48"],  # Query heads: with few a part of V has a CTA of its own, with many a head.
    "sizes": ["dynamic", "static"],
}


def is_lowered(layer):
    """Whether there are kernels of such layers: in chunks for operands of 16 bits and a gate a head."""
    return layer["op"] == "token" or (layer["data"] != "f32" and not layer["gate"].startswith("channel"))


def draw(seed, crossed):
    """A layer of these values; the rest depends on them and the seed alone."""
    source = random.Random(f"{seed} {crossed}")
    return dict(crossed, **{axis: source.choice(values) for axis, values in DRAWN.items()})


def tensor(*shape):
    return "tensor<" + "x".join(map(str, shape)) + ">"


def write(layer):
    """The layer as MLIR."""
    packed, static = layer["boundaries"] != "none", layer["sizes"] == "static"
    batch, tokens = ("1" if packed else "2"), ("1000" if static else "?")
    sequences = ("3" if static else "?") if packed else batch
    query_heads = int(layer["heads"])
    heads = query_heads * int(layer["group"])
    k, v = layer["dims"].split("x")
    parameters, domain = layer["parameters"], layer["gate"].removeprefix("channel-")
    per_head = (heads, k) if domain != layer["gate"] else (heads,)
    small = tensor(batch, tokens, heads, parameters)
    rows = tensor(batch, tokens, query_heads, k, layer["data"])
    values = tensor(batch, tokens, heads, v, layer["data"])
    has_pool = "pool" in layer["states"]
    states = sequences if not has_pool else "9" if static else "?"
    state = tensor(states, heads, *((k, v) if layer["layout"] == "kv" else (v, k)), layer["state"])
    arguments = {"q": rows, "k": rows, "v": values, "beta": small}
    attributes = [f"beta_domain = #gdn.beta_domain<{layer['beta']}>",
                  f"state_layout = #gdn.state_layout<{layer['layout']}>"]
    if layer["gate"] != "none":
        arguments["gate"] = tensor(batch, tokens, *per_head, parameters)
        attributes.append(f"gate_domain = #gdn.gate_domain<{domain}>")
    if layer["states"].startswith("in"):
        arguments["initial_state"] = state
    if packed:
        arguments["cu_seqlens"] = tensor(4 if static else "?", layer["boundaries"])
    if domain in ("softplus", "bounded"):
        arguments |= {"a_log": tensor(heads, "f32"), "dt_bias": tensor(*per_head, "f32")}
    if has_pool:
        arguments["state_indices"] = tensor(sequences, layer["boundaries"] if packed else "i32")
    if domain == "bounded":
        attributes.append("lower_bound = -5.0 : f64")
    if layer["l2norm"] == "yes":
        attributes.append("qk_l2norm")
    results = values
    if layer["states"].endswith("out"):
        attributes.append("output_final_state")
        final = state if "initial_state" in arguments else state.rsplit("x", 1)[0] + "xf32>"
        results += f", {final}"
    count = results.count("tensor<")
    operands = "\n      ".join(f"{name}(%{name} : {kind})" for name, kind in arguments.items())
    writable = " {bufferization.writable = true}"
    parameter_list = ",\n    ".join(f"%{name}: {kind}{writable if has_pool and kind == state else ''}"
                                    for name, kind in arguments.items())
    returned = ", ".join(f"%r#{i}" for i in range(count)) if count > 1 else "%r"
    left = f"%r:{count}" if count > 1 else "%r"
    return (f"func.func @layer({parameter_list}) -> ({results}) {{\n"
            f"  {left} = {OPS[layer['op']]}\n      {operands}\n"
            f"      {{{', '.join(attributes)}}} -> {results}\n"
            f"  return {returned} : {results}\n}}\n")


def compile_layer(compiler, directory, number, layer):
    """What is wrong with the layer, or None."""
    path = pathlib.Path(directory) / f"layer-{number}.mlir"
    path.write_text(write(layer))
    done = subprocess.run([compiler, path, "--target=sm_90a", "--emit=cubin", "-o", path.with_suffix(".cubin")],
                          capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{done.stderr}{path.read_text()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="gdn-compile")
    parser.add_argument("--sample", type=int, default=6, help="layers to draw (6)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="the whole product")
    parser.add_argument("--list", action="store_true", help="print the layers, compile nothing")
    parser.add_argument("--only", action="append", default=[], metavar="AXIS=VALUE")
    arguments = parser.parse_args()
    only = dict(text.split("=", 1) for text in arguments.only)
    for axis, value in only.items():
        if value not in (CROSSED | DRAWN).get(axis, []):
            parser.error(f"expected --only of an axis and one of its values, got '{axis}={value}'")
    layers = [draw(arguments.seed, dict(zip(CROSSED, values))) | only
              for values in itertools.product(*CROSSED.values())]
    layers = list({str(layer): layer for layer in layers if is_lowered(layer)}.values())
    if not arguments.all:
        layers = random.Random(arguments.seed).sample(layers, min(arguments.sample, len(layers)))
    names = [" ".join(f"{axis}={value}" for axis, value in layer.items()) for layer in layers]
    if arguments.list:
        print(*names, sep="\n")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = pool.map(lambda job: compile_layer(arguments.compiler, directory, *job), enumerate(layers))
        for name, error in zip(names, errors):
            if error:
                failed += 1
                print(f"FAIL {name}\n{error}", flush=True)
    print(f"{len(layers) - failed} passed, {failed} failed")
    return 1 if failed or not layers else 0


if __name__ == "__main__":
    sys.exit(main())
