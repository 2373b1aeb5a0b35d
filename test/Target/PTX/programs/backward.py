#!/usr/bin/env python3
"""Writes functions of a backward with several value heads a query/key head, with and without a gate, of every head
dimension and type.

Usage: backward.py DIRECTORY COMPILER [NAME...]: those of these names, or all. One file each; COMPILER, a gdn-compile, makes a
cubin of it, which refuses stack and spills.
"""

import pathlib
import subprocess
import sys

KEY_HEADS = 4
# Value heads a query/key head, a gate or none, K = V, type.
CASES = [(1, True, 128, "bf16"), (2, True, 128, "bf16"), (4, False, 128, "bf16"), (8, True, 128, "bf16")]
CASES += [(2, True, 128, "f16"), (2, True, 64, "bf16"), (4, False, 64, "f16")]


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}>"


def write(group, gated, width, data):
    """A backward of packed sequences with states."""
    heads = group * KEY_HEADS
    rows = tensor(1, "?", KEY_HEADS, width, data)
    values = tensor(1, "?", heads, width, data)
    small = tensor(1, "?", heads, "f32")
    state = tensor("?", heads, width, width, "f32")
    arguments = {"q": rows, "k": rows, "v": values, "beta": small, "initial_state": state, "cu_seqlens": tensor("?", "i32"),
                 "d_o": values, "d_final_state": state}
    results = [rows, rows, values, small, state]
    if gated:
        arguments = dict(list(arguments.items())[:4] + [("gate", small)] + list(arguments.items())[4:])
        results.insert(4, small)
    operands = " ".join(f"{name}(%{name} : {kind})" for name, kind in arguments.items())
    parameters = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    names = ", ".join(f"%r{index}" for index in range(len(results)))
    kinds = ", ".join(results)
    return (f"func.func @layer({parameters}) -> ({kinds}) {{\n"
            f"  {names} = gdn.chunk_gated_delta_rule_bwd {operands} -> {kinds}\n"
            f"  return {names} : {kinds}\n}}\n")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for group, gated, width, data in CASES:
        name = f"{group}_{'gated' if gated else 'plain'}_{width}_{data}"
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        path = directory / f"{name}.mlir"
        path.write_text(write(group, gated, width, data))
        subprocess.run([sys.argv[2], path, "--target=sm_90a", "--emit=cubin", "-o", path.with_suffix(".cubin")], check=True)
        print(path.stem, flush=True)


if __name__ == "__main__":
    main()
