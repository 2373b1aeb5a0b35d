#!/usr/bin/env python3
"""Writes functions of the stages that have schedules of their own, of every head dimension and type.

Usage: stages.py DIRECTORY [COMPILER [128x128_bf16...]]. One file each, named <stage>_<K>x<V>_<type>.mlir; gdn-compile and
gdn-run take them. COMPILER, a gdn-compile, makes a cubin of each, or of these, by both schedules, which refuses stack and
spills.
"""

import pathlib
import subprocess
import sys

HEADS, KEY_HEADS = 32, 16
SCHEDULES = ["cta_per_head", "cta_per_v_tile"]


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}>"


def write(stage, width, data):
    """A function of one stage; sequences and tokens are open."""
    rows = tensor("?", "?", KEY_HEADS, width, data)
    values = tensor("?", "?", HEADS, width, data)
    small = tensor("?", "?", HEADS, "f32")
    state = tensor("?", HEADS, width, width, "f32")
    arguments = {"q": rows, "k": rows, "v": values}
    results = [values, state]
    if stage == "state_pass":
        arguments |= {"beta": small, "gate": small, "initial_state": state}
        results = [state]
    operands = " ".join(f"{name}(%{name} : {kind})" for name, kind in arguments.items())
    parameters = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    names = ", ".join(f"%r{index}" for index in range(len(results)))
    kinds = ", ".join(results)
    return (f"func.func @{stage}({parameters}) -> ({kinds}) {{\n"
            f"  {names} = gdn.stage.{stage} {operands} {{chunk_size = 32}} -> {kinds}\n"
            f"  return {names} : {kinds}\n}}\n")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for stage in ("state_pass", "linear_attention"):
        for width in (64, 128):
            for data in ("bf16", "f16"):
                path = directory / f"{stage}_{width}x{width}_{data}.mlir"
                path.write_text(write(stage, width, data))
                is_asked = not sys.argv[3:] or path.stem.removeprefix(f"{stage}_") in sys.argv[3:]
                for schedule in SCHEDULES if sys.argv[2:] and is_asked else []:
                    subprocess.run([sys.argv[2], path, f"--schedule={schedule}", "--target=sm_90a", "--emit=cubin",
                                    "-o", path.with_suffix(".cubin")], check=True)
                    print(path.stem, schedule, flush=True)


if __name__ == "__main__":
    main()
