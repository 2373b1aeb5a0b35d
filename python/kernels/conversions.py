# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of kernels that bring a call's arrays to what another kernel takes.

The manifest's `conversions` lists them. What is not a cast is computed in float64 and rounded once: a GPU approximates
f32 functions less nearly than torch does.
"""

from __future__ import annotations

import json
import pathlib
import re

from modules import Manifest, Module

#: Channels that a warp takes at a time.
_WIDTH = 128


class _Tile:
    """The ops of a program on tiles, as text: those before its loop, and those of a row."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.row: list[str] = []
        self.lines, self.count = self.before, 0

    def begin_row(self) -> None:
        """What is added from now on is of a row."""
        self.lines = self.row

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, text: str) -> str:
        """Adds an op whose text ends in its types, and returns the name of its result."""
        value = self._name()
        operation, _, types = text.rpartition(" : ")
        self.lines.append(f'    {value} = {operation} {{gdn_tile.step = "state"}} : {types}')
        return value

    def load(self, array: str, place: str, axis: int, limit: str, element: str, memref: str) -> str:
        return self.add(
            f"gdn_tile.load {array}[{place}] axes [{axis}] until({limit}, dim = {axis}) : {memref} -> {_tile(element)}"
        )

    def cast(self, value: str, element: str, to: str) -> str:
        """The tile in another float type."""
        if element == to:
            return value
        bits = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}
        op = "extf" if bits[element] < bits[to] else "truncf"
        return self.add(f"arith.{op} {value} : {_tile(element)} to {_tile(to)}")

    def op(self, name: str, *values: str, element: str = "f64") -> str:
        return self.add(f"{name} {', '.join(values)} : {_tile(element)}")

    def constant(self, value: float) -> str:
        name = self._name()
        self.lines.append(f"    {name} = arith.constant dense<{value}> : {_tile('f64')}")
        return name

    def splat(self, scalar: str, element: str) -> str:
        return self.add(f"tensor.splat {scalar} : {_tile(element)}")


def _tile(element: str) -> str:
    return f"tensor<{_WIDTH}x{element}>"


def _softplus(tile: _Tile, x: str) -> str:
    """max(x, 0) + log(1 + e^-|x|)."""
    small = tile.op("math.exp", tile.op("arith.negf", tile.op("math.absf", x)))
    above = tile.op("arith.maxnumf", x, tile.constant(0.0))
    return tile.op("arith.addf", above, tile.op("math.log1p", small))


def _vector(tile: _Tile, name: str) -> str:
    """Channels of a parameter, zeros where it ends."""
    return tile.cast(tile.load(f"%{name}", "%c", 0, f"%{name}_end", "f32", "memref<?xf32, #vector>"), "f32", "f64")


def _value_of(tile: _Tile, kind: str, source: str, target: str) -> str:
    """What is stored of a row, in the target's type."""
    if kind == "softplus_to_log":
        rate, bias = tile.op("math.exp", _vector(tile, "a_log")), _vector(tile, "dt_bias")
    elif kind != "linear_to_log":
        factor = tile.cast(tile.splat("%factor", "f32"), "f32", "f64" if kind == "logit_to_value" else "f32")
    if kind == "fill":
        found = tile.cast(factor, "f32", target)
        tile.begin_row()
        return found
    tile.begin_row()
    x = tile.load("%x", "%batch, %t, %h, %c", 3, "%limit", source, f"memref<?x?x?x?x{source}, #any>")
    x = tile.cast(x, source, "f32")
    if kind == "cast":
        return tile.cast(tile.op("arith.mulf", x, factor, element="f32"), "f32", target)
    x = tile.cast(x, "f32", "f64")
    if kind == "linear_to_log":
        found = tile.op("math.log", x)
    elif kind == "softplus_to_log":
        softplus = _softplus(tile, tile.op("arith.addf", x, bias))
        found = tile.op("arith.negf", tile.op("arith.mulf", softplus, rate))
    else:
        decay = tile.op("math.exp", tile.op("arith.negf", x))
        found = tile.op("arith.divf", factor, tile.op("arith.addf", tile.constant(1.0), decay))
    return tile.cast(found, "f64", target)


#: The types of what a kernel takes beside arrays, as values of a function.
_EXTRAS = {"factor": "f32", "a_log": "tensor<?xf32>", "dt_bias": "tensor<?xf32>"}


def _in_memory(kind: str) -> str:
    """The type of a program's argument for one of a function's."""
    layout = "#any" if "?x?" in kind else "#vector"
    return kind.replace("tensor", "memref").replace(">", f", {layout}>")


def _fields(kind: str, takes: list[str], source: str, target: str) -> dict[str, str]:
    """What stands for the names in the template, for MLIR types of elements."""
    arrays = {"x": f"tensor<?x?x?x?x{source}>"} if source else {}
    arrays |= {"like": f"tensor<?x?x?x?x{target}>", **{extra: _EXTRAS[extra] for extra in takes}}
    memory = {array: _in_memory(text) for array, text in arrays.items()}
    before = [f"  %{extra}_end = memref.dim %{extra}, %c0 : {memory[extra]}" for extra in takes if extra != "factor"]
    body, tile = [], _Tile()
    if source:
        before += [f"  %x_{what} = memref.dim %x, %c{dim} : {memory['x']}" for what, dim in (("rows", 1), ("end", 3))]
        body = [
            "    %inside = arith.cmpi slt, %t, %x_rows : index",
            "    %limit = arith.select %inside, %x_end, %c0 : index",
        ]
    result = _value_of(tile, kind, source, target)
    # Float64 takes registers.
    is_long = kind not in ("cast", "fill")
    notes = {array: f' {{gdn.name = "{"input" if array == "x" else array}"' for array in arrays}
    notes |= {array: note + ("" if array == "factor" else ", gdn.strided") + "}" for array, note in notes.items()}
    return {
        "target": target, "result": result,
        "ctas": "4" if is_long else "8", "registers": "128" if is_long else "64",
        "parameters": ", ".join(f"%{array}: {text}" for array, text in memory.items()),
        "arguments": ", ".join(f"%{array}: {text}{notes[array]}" for array, text in arrays.items()),
        "inputs": f"{', '.join(f'%{array}' for array in arrays)} : {', '.join(arrays.values())}",
        "before": "\n".join(before + tile.before), "body": "\n".join(body + tile.row),
    }  # fmt: skip


def conversion_modules(manifest: Manifest) -> list[Module]:
    """The modules of the manifest's conversions: kinds by the types of what is read and written."""
    template, modules = pathlib.Path(__file__).with_name("conversion.mlir.in").read_text(), []
    for kind, row in manifest["hopper"]["conversions"].items():
        if kind == "about":
            continue
        for source, target in ((source, target) for source, targets in row["types"].items() for target in targets):
            name = "_".join(filter(None, ["gdn_hopper", kind, source, target])).lower()
            elements = (manifest["types"][key]["mlir"] if key else "" for key in (source, target))
            values = {"name": name, "says": row["says"], **_fields(kind, row.get("takes", []), *elements)}
            text = re.sub("@([a-z_]+)@", lambda found: values[found[1]], template)
            types = f"{f'GDN_DTYPE_{source}' if source else 0}, GDN_DTYPE_{target}"
            factors = row.get("factors", {kind: 1})
            lines = [f"GDN_CONVERSION({name}, {json.dumps(way)}, {types}, {factor})" for way, factor in factors.items()]
            traits = {"kind": kind, "source": source, "target": target}
            modules.append(Module(name, text, [], lines, "Conversion", traits))
    return modules
