#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what the build makes of the manifest (gdn/kernels.json): generate.py [--manifest FILE] [OPTIONS] OUT.

OUT/NAME.mlir      the function of each kernel, for gdn-compile
OUT/kernels.cmake  the kernels' names and the options that they are compiled with
OUT/kernels.json   the manifest of these kernels, which the package reads
OUT/Manifest.inc   the tables of the manifest as macros, for C++
OUT/Kernels.inc, OUT/BackwardKernels.inc   a line for each kernel of a CPU, for C++
OUT/HopperKernels.inc   a line for each entry of a GPU

With --sample the kernels are those of the manifest's `sample` (sample.py): a build to test the package with.
A file that would stay the same is not written, and .mlir files of kernels that are gone are removed. With --only, just
OUT/NAME.mlir of these kernels is written.
"""

import argparse
import collections
import importlib.util
import itertools
import json
import pathlib
import sys
from typing import Any, NamedTuple

from backward_kernels import hopper_backward_kernels, saved_tokens, saving_kernels
from forward_kernels import forward_kernels
from kernel_traits import HERE, Kernel, fill
from sample import check_sample, choose_sample


def _load_reader() -> Any:
    """gdn/_manifest.py, without the package around it."""
    path = HERE.parent / "gdn" / "_manifest.py"
    spec = importlib.util.spec_from_file_location("_manifest", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ===----------------------------------------------------------------------===
# CPU kernels
# ===----------------------------------------------------------------------===


def _cpu_values(manifest: dict[str, Any], name: str, op: str, element: str, channels: int) -> dict[str, str]:
    """What stands for the names in a CPU kernel's template."""
    strided = "strided<[?, ?, ?, 1], offset: ?>"
    return {
        "name": name,
        "op": op,
        "data": f"memref<1x?x1x{channels}x{manifest['types'][element]['mlir']}, {strided}>",
        "state": f"memref<1x1x{channels}x{channels}xf32, {strided}>",
        "column": "memref<1x?x1xf32>",
    }


def cpu_kernels(manifest: dict[str, Any]) -> list[Kernel]:
    """All CPU kernels: algorithms x elements x channels x levels, where a level may list what it serves."""
    cpu, template = manifest["cpu"], (HERE / "forward.mlir.in").read_text()
    kernels = []
    for algorithm, element, channels, isa in itertools.product(
        cpu["algorithms"], cpu["elements"], cpu["channels"], cpu["isas"]
    ):
        level = cpu["isas"][isa]
        if algorithm not in level.get("algorithms", [algorithm]) or element not in level.get("elements", [element]):
            continue
        name = f"gdn_cpu_{algorithm}_{element}_{channels}_{isa}".lower()
        values = _cpu_values(manifest, name, cpu["algorithms"][algorithm]["op"], element, channels)
        line = f"GDN_KERNELS({algorithm}, {element}, {channels}, {isa}, {name})"
        traits = {"element": element, "channels": str(channels), "isa": isa}
        kernels.append(Kernel(name, fill(template, values), level["options"], line, f"CPU{algorithm}", traits))
    return kernels


def cpu_backward_kernels(manifest: dict[str, Any]) -> list[Kernel]:
    """The CPU kernels of the gradients: channels x levels. All arrays are copied to their one type."""
    cpu, template = manifest["cpu"], (HERE / "backward.mlir.in").read_text()
    backward, kernels = cpu["backward"], []
    for channels, isa in itertools.product(cpu["channels"], backward["isas"]):
        name = f"gdn_cpu_backward_{channels}_{isa}".lower()
        values = _cpu_values(manifest, name, backward["op"], backward["element"], channels)
        line = f"GDN_BACKWARD_KERNELS({channels}, {isa}, {name})"
        traits = {"channels": str(channels), "isa": isa}
        kernels.append(Kernel(name, fill(template, values), cpu["isas"][isa]["options"], line, "CPUBackward", traits))
    return kernels


# ===----------------------------------------------------------------------===
# Kernels that copy inputs
# ===----------------------------------------------------------------------===

#: How an input lies: the strides that a kernel knows, the order of its array's dimensions, the tile's axes in it.
_SOURCES = {
    "Tokens": {
        "says": "tokens lie side by side, the array is [B, H, C, T]",
        "strides": "[?, ?, ?, 1]", "place": "%batch, %h, %c, %t", "axes": "[3, 2]",
        "head_dim": "1", "channel_dim": "2", "token_dim": "3",
    },
    "Any": {
        "says": "any strides, the array is [B, T, H, C]",
        "strides": "[?, ?, ?, ?]", "place": "%batch, %t, %h, %c", "axes": "[1, 3]",
        "token_dim": "1", "head_dim": "2", "channel_dim": "3",
    },
}  # fmt: skip
#: Elements of so many bits, as the kernels name them: they are copied whatever they stand for.
_BITS = {"16": "bf16", "32": "f32"}
#: Bytes of a row of a tile.
_ROW_BYTES = 128


def relayout_kernels() -> list[Kernel]:
    """The kernels that copy an input whose strides the others do not take."""
    template = (HERE / "relayout.mlir.in").read_text()
    kernels = []
    for (source, values), (bits, element) in itertools.product(_SOURCES.items(), _BITS.items()):
        name = f"gdn_hopper_relayout_{source}_{bits}".lower()
        width = str(_ROW_BYTES * 8 // int(bits))
        text = fill(template, {**values, "name": name, "bits": bits, "element": element, "width": width})
        line = f"GDN_COPY({name}, {int(source == 'Tokens')}, {bits})"
        traits = {"source": source, "bits": bits}
        kernels.append(Kernel(name, text, [], line, "Relayout", traits))
    return kernels


# ===----------------------------------------------------------------------===
# Tables for C++
# ===----------------------------------------------------------------------===


def _quote(text: str) -> str:
    return json.dumps(text)


def _macro_rows(manifest: dict[str, Any], reader: Any) -> dict[str, list[list[Any]]]:
    """The arguments of each macro's lines, by the macro's name."""
    hopper, cpu, types = manifest["hopper"], manifest["cpu"], manifest["types"]

    fields = reader.option_fields(manifest)
    gates = manifest["gate_domains"].items()
    rows = {
        "TYPE": [[key, _quote(row["name"]), row["bits"], row["dlpack"]] for key, row in types.items()],
        "ARRAY": [[row["field"], _quote(name)] for name, row in manifest["arguments"].items()],
        "OPTION": [[name, field.shift, field.bits] for name, field in fields.items()],
        "GATE_DOMAIN": [
            [key, _quote(f"'{row['name']}'"), row["cpu"] or "None", str("takes" in row).lower(), _quote(row["fact"])]
            for key, row in gates
        ],
        "BETA_DOMAIN": [
            [key, _quote(row["says"]), row["sigmoid"], _quote(row["fact"])] for key, row in manifest["beta_domains"].items()
        ],
        "CPU_ALGORITHM": [[key] for key in cpu["algorithms"]],
        "CPU_ISA": [[key, _quote(row["name"])] for key, row in cpu["isas"].items()],
        "HOPPER_ARGUMENT": [
            [manifest["arguments"][name]["field"], _quote(manifest["arguments"][name]["operand"]), _quote(name)]
            for name in (*hopper["arguments"], *hopper["results"])
        ],
    }
    for macro, use in (("DATA", "data"), ("GATES_AND_STATES", "gates_and_states"), ("BOUNDARIES", "boundaries")):
        rows[f"{macro}_TYPE"] = [[key] for key in manifest["accepted_types"][use]]
    rows["HOPPER_NORM"] = [[key, _quote(row["says"])] for key, row in hopper["norms"].items()]
    saving = hopper.get("saving", {})
    numbers = {
        "MaxChannels": max(*cpu["channels"], *(max(row["k"], row["v"]) for row in hopper["channels"].values())),
        "CPUChunkTokens": cpu["chunk_tokens"],
        "HopperChunkTokens": hopper["chunk_tokens"],
        "HopperResults": len(hopper["results"]),
        "HopperSavedTokens": saved_tokens(manifest),
        "HopperSavedSegmentTokens": saving.get("least_segment", 1),
        "HopperSavedItems": saving.get("most_items", 0),
    }
    rows["NUMBER"] = [[name, value] for name, value in numbers.items()]
    return rows


def tables(manifest: dict[str, Any], reader: Any) -> str:
    """Manifest.inc: a file includes it with the macros that it wants defined, and gets a line for each row."""
    lines = []
    for macro, rows in _macro_rows(manifest, reader).items():
        name = f"GDN_{macro}"
        lines += [f"#ifndef {name}", f"#define {name}(...)", "#endif"]
        lines += [f"{name}({', '.join(map(str, row))})" for row in rows]
        lines += [f"#undef {name}", ""]
    return "\n".join(lines)


def check_options(manifest: dict[str, Any], reader: Any) -> None:
    """Ends the program where a table has more rows than its bits of a call's options can tell apart."""
    fields = reader.option_fields(manifest)
    for option, table in (("gate_domain", "gate_domains"), ("beta_domain", "beta_domains")):
        bits, rows = fields[option].bits, len(manifest[table])
        if rows > 1 << bits:
            sys.exit(f"error: expected at most {1 << bits} {table}, for option {option} has {bits} bits, got {rows}")


# ===----------------------------------------------------------------------===
# Files
# ===----------------------------------------------------------------------===


def _cmake_list(kind: str, option: str, kernels: list[Kernel]) -> list[str]:
    """The kernels' names as a list, and a list of options for each: `option`, which all have, and its own."""
    lines = [f"set(gdn_{kind}_kernels", *(f"  {kernel.name}" for kernel in kernels), ")"]
    return lines + [f"set(gdn_options_of_{kernel.name} {' '.join([option, *kernel.options])})" for kernel in kernels]


def _write(path: pathlib.Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


class Kernels(NamedTuple):
    """All kernels of a manifest, by the table of C++ that lists them."""

    cpu: list[Kernel]
    cpu_backward: list[Kernel]
    hopper: list[Kernel]
    hopper_backward: list[Kernel]
    saving: list[Kernel]

    def names(self) -> list[str]:
        return [kernel.name for kernels in self for kernel in kernels]


def kernels_of(manifest: dict[str, Any], reader: Any) -> Kernels:
    """The kernels; ends the program if two have one name."""
    rows, gradients = reader.gpu_rows(manifest), reader.gradient_rows(manifest)
    hopper = forward_kernels(manifest, rows)
    kernels = Kernels(
        cpu_kernels(manifest), cpu_backward_kernels(manifest), hopper + relayout_kernels(),
        hopper_backward_kernels(manifest, gradients), saving_kernels(manifest, gradients),
    )  # fmt: skip
    names = collections.Counter(kernels.names())
    if twice := sorted(name for name, count in names.items() if count > 1):
        sys.exit(f"error: expected each kernel once in the manifest, got {', '.join(twice)} twice")
    return kernels


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes what the build makes of the manifest.")
    parser.add_argument("--manifest", type=pathlib.Path, help="another manifest than the package's")
    parser.add_argument("--sample", action="store_true", help="the kernels of the manifest's `sample` alone")
    parser.add_argument("--only", action="append", metavar="NAME", help="write this kernel, and no table; may be repeated")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    reader = _load_reader()
    manifest = reader.read(arguments.manifest or reader.PATH)
    check_options(manifest, reader)
    kernels = kernels_of(manifest, reader)
    if arguments.sample:
        whole, manifest = kernels, reader.sampled(manifest)
        kernels = Kernels(*choose_sample(manifest, kernels_of(manifest, reader)))
        check_sample(itertools.chain(*whole), itertools.chain(*kernels))
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.only:
        if unknown := sorted(set(arguments.only) - set(kernels.names())):
            sys.exit(f"error: expected names of kernels of the manifest, got {', '.join(unknown)}")
        for kernel in itertools.chain(*kernels):
            if kernel.name in arguments.only:
                _write(out / f"{kernel.name}.mlir", kernel.text)
        return 0
    for kernel in itertools.chain(*kernels):
        _write(out / f"{kernel.name}.mlir", kernel.text)
    names = set(kernels.names())
    for stale in out.glob("*.mlir"):
        if stale.stem not in names:
            stale.unlink()
    hopper = [*kernels.hopper, *kernels.hopper_backward, *kernels.saving]
    for file, table in (
        ("Kernels.inc", kernels.cpu),
        ("BackwardKernels.inc", kernels.cpu_backward),
        ("HopperKernels.inc", hopper),
    ):
        _write(out / file, "".join(f"{kernel.line}\n" for kernel in table))
    _write(out / "Manifest.inc", tables(manifest, reader))
    _write(out / "kernels.json", json.dumps(manifest, indent=1))
    cpu = [*kernels.cpu, *kernels.cpu_backward]
    # The package has threads of its own: each computes work items.
    lists = [*_cmake_list("cpu", "--parallel=false", cpu), *_cmake_list("hopper", "--target=sm_90a --share-kernels", hopper)]
    _write(out / "kernels.cmake", "\n".join([*lists, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
