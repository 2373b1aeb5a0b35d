#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what the build makes of the manifest (gdn/kernels.json): generate.py [--manifest FILE] [OPTIONS] OUT.

OUT/NAME.mlir      the functions of each module, for gdn-compile
OUT/kernels.cmake  the modules' names and the options that they are compiled with
OUT/kernels.json   the manifest of these kernels, which the package reads
OUT/Manifest.inc   the tables of the manifest as macros, a line for each row, for C++
OUT/Kernels.inc, OUT/HopperKernels.inc   a line for each set of functions of a CPU, and for each entry of a GPU, for C++

With --cpu-only there are none for GPUs. With --sample the kernels are those of the manifest's `sample`: a build to test the package with.
A file that would stay the same is not written, and .mlir files of modules that are gone are removed. With --only, just
OUT/NAME.mlir of these modules is written.
"""

import argparse
import json
import pathlib
import re
import sys
from typing import Any

from layers import Manifest, _manifest
from modules import Module, modules_of


def _macro_rows(manifest: Manifest) -> dict[str, list[list[Any]]]:
    """The arguments of each macro's lines, by the macro's name."""
    hopper, arguments, quote = manifest["hopper"], manifest["arguments"], json.dumps
    # What a backward has in the place of the forward's results.
    backward = {name: manifest["operands"][f"d_{name}"] for name in hopper["results"]}
    numbers = {
        "Gradients": len(hopper["gradients"]),
        **{name: place.format(**manifest) for name, place in manifest["numbers"].items()},
    }
    return {
        "TYPE": [[key, row["bits"], row["dlpack"]] for key, row in manifest["types"].items()],
        "ARRAY": [
            [row["field"], quote(name), quote(backward.get(name, {"operand": name})["operand"]), quote(row["operand"]),
             quote(backward.get(name, row)["operand"])]
            for name, row in arguments.items()
        ],
        # As C++ has names: state_v_first is stateVFirst.
        "OPTION": [
            [re.sub("_(.)", lambda found: found[1].upper(), row["name"]), row["bits"]] for row in manifest["options"]
        ],
        "GATE_DOMAIN": [
            [key, quote(f"'{row['name']}'"), quote(row["fact"]),
             quote(str(row["lower_bound"])) if "lower_bound" in row else "nullptr"]
            for key, row in manifest["gate_domains"].items()
        ],
        "BETA_DOMAIN": [
            [key, quote(row["says"]), quote(row["fact"])] for key, row in manifest["beta_domains"].items()
        ],
        "DECAY": [[key, row["saved_tokens"]] for key, row in manifest["decays"].items()],
        "WORD": [[quote(fact), quote(word)] for fact, word in hopper["words"].items()],
        "NUMBER": [[name, value] for name, value in numbers.items()],
    }  # fmt: skip


def _includable(macros: list[str], lines: list[str]) -> str:
    """Lines of macros: a file includes them with those macros that it wants defined, and they are undefined behind it."""
    before = [line for name in macros for line in (f"#ifndef {name}", f"#define {name}(...)", "#endif")]
    return "\n".join([*before, *lines, *(f"#undef {name}" for name in macros), ""])


def _cmake_list(kind: str, option: str, modules: list[Module]) -> list[str]:
    """The modules' names as a list, and a list of options for each: `option`, which all have, and its own."""
    lines = [f"set(gdn_{kind}_kernels", *(f"  {module.name}" for module in modules), ")"]
    return lines + [f"set(gdn_options_of_{module.name} {' '.join([option, *module.options])})" for module in modules]


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes what the build makes of the manifest.")
    parser.add_argument("--manifest", type=pathlib.Path, help="another manifest than the package's")
    parser.add_argument("--sample", action="store_true", help="the kernels of the manifest's `sample` alone")
    parser.add_argument("--cpu-only", action="store_true", help="no kernels for GPUs")
    parser.add_argument("--only", action="append", metavar="NAME", help="write this module, and no table; may be repeated")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    out, manifest = arguments.out, _manifest.read(arguments.manifest or _manifest.PATH)
    sample = manifest["sample"]["kinds"] if arguments.sample else {}
    manifest = _manifest.sampled(manifest) if arguments.sample else manifest
    modules = [one for one in modules_of(manifest, sample) if not arguments.cpu_only or one.kind.startswith("CPU")]
    files = {f"{module.name}.mlir": module.text for module in modules}
    if arguments.only:
        if unknown := sorted(name for name in arguments.only if f"{name}.mlir" not in files):
            sys.exit(f"error: expected names of kernels of the manifest, got {', '.join(unknown)}")
        files = {f"{name}.mlir": files[f"{name}.mlir"] for name in arguments.only}
    else:
        for stale in {*out.glob("*.mlir")} - {out / name for name in files}:
            stale.unlink()
        # The package has threads of its own: each computes work items.
        kinds = (
            ("cpu", "Kernels.inc", ["GDN_KERNEL", "GDN_ITEMS"], "--parallel=false"),
            ("hopper", "HopperKernels.inc", ["GDN_ENTRY", "GDN_CONVERSION"], "--target=sm_90a --share-kernels"),
        )
        lists = []
        for kind, table, macros, option in kinds:
            ones = [module for module in modules if module.kind.startswith("CPU") == (kind == "cpu")]
            lists += _cmake_list(kind, option, ones)
            files[table] = _includable(macros, [line for module in ones for line in module.lines])
        files["Manifest.inc"] = "\n".join(
            _includable([f"GDN_{macro}"], [f"GDN_{macro}({', '.join(map(str, row))})" for row in rows])
            for macro, rows in _macro_rows(manifest).items()
        )
        files["kernels.json"] = json.dumps(manifest, indent=1)
        files["kernels.cmake"] = "\n".join([*lists, ""])
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = out / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
