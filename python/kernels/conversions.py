# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of kernels that bring a call's arrays to what another kernel takes.

The manifest's `conversions` lists them. What is not a cast is computed in float64 and rounded once: a GPU approximates
less nearly than torch does.
"""

from __future__ import annotations

import json
import math
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

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"%{kind}{self.count}"

    def add(self, text: str) -> str:
        """Adds an op whose text ends in its types, and returns the name of its result."""
        value = self._name("v")
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

    def op(self, name: str, *values: str, kind: str = "f64") -> str:
        return self.add(f"arith.{name} {', '.join(values)} : {_tile(kind)}")

    def bits(self, value: str) -> str:
        return self.add(f"arith.bitcast {value} : {_tile('f64')} to {_tile('i64')}")

    def float_of_bits(self, value: str) -> str:
        return self.add(f"arith.bitcast {value} : {_tile('i64')} to {_tile('f64')}")

    def constant(self, value: float | int, kind: str = "f64") -> str:
        name = self._name("k")
        text = str(value) if kind == "i64" else f"{value:.17e}" if math.isfinite(value) else _SPECIAL[str(value)]
        self.lines.append(f"    {name} = arith.constant dense<{text}> : {_tile(kind)}")
        return name

    def select(self, predicate: str, left: str, right: str, yes: str, no: str) -> str:
        """`yes` where a comparison holds, else `no`."""
        holds = self.add(f"arith.cmpf {predicate}, {left}, {right} : {_tile('f64')}")
        return self.add(f"arith.select {holds}, {yes}, {no} : {_tile('i1')}, {_tile('f64')}")

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """The sum of coefficients[i] x^i."""
        *rest, last = coefficients
        found = self.constant(last)
        for coefficient in reversed(rest):
            found = self.op("addf", self.op("mulf", found, x), self.constant(coefficient))
        return found

    def splat(self, scalar: str, element: str) -> str:
        return self.add(f"tensor.splat {scalar} : {_tile(element)}")


_SPECIAL = {"inf": "0x7FF0000000000000", "-inf": "0xFFF0000000000000", "nan": "0x7FF8000000000000"}


def _tile(element: str) -> str:
    return f"tensor<{_WIDTH}x{element}>"


def _exp(tile: _Tile, x: str) -> str:
    """e^x to 2^-32, of x from -707 to 709: what is beyond counts as these."""
    for predicate, most in (("olt", -707.0), ("ogt", 709.0)):
        limit = tile.constant(most)
        x = tile.select(predicate, x, limit, limit, x)
    # The sum has round(x / ln 2) in its lowest bits.
    magic = tile.constant(1.5 * 2.0**52)
    shifted = tile.op("addf", tile.op("mulf", x, tile.constant(1 / math.log(2))), magic)
    count = tile.op("subf", shifted, magic)
    rest = tile.op("subf", x, tile.op("mulf", count, tile.constant(math.log(2))))
    power = tile.polynomial(rest, [1 / math.factorial(i) for i in range(9)])
    exponent = tile.op("shli", tile.bits(shifted), tile.constant(52, "i64"), kind="i64")
    found = tile.float_of_bits(tile.op("addi", tile.bits(power), exponent, kind="i64"))
    return tile.select("uno", x, x, x, found)


def _atanh_terms(count: int) -> list[float]:
    """The coefficients of 2 atanh(s) / s by s^2: log((1 + s) / (1 - s)) / s."""
    return [2 / (2 * i + 1) for i in range(count)]


def _log(tile: _Tile, x: str) -> str:
    """log x of what was a float32, to 2^-32."""
    root = tile.constant(0x3FE6A09E667F3BCD, "i64")
    bits, by52 = tile.bits(x), tile.constant(52, "i64")
    exponent = tile.op("shrsi", tile.op("subi", bits, root, kind="i64"), by52, kind="i64")
    # From sqrt(1/2) to sqrt(2).
    part = tile.float_of_bits(tile.op("subi", bits, tile.op("shli", exponent, by52, kind="i64"), kind="i64"))
    one = tile.constant(1.0)
    s = tile.op("divf", tile.op("subf", part, one), tile.op("addf", part, one))
    near = tile.op("mulf", s, tile.polynomial(tile.op("mulf", s, s), _atanh_terms(6)))
    count = tile.add(f"arith.sitofp {exponent} : {_tile('i64')} to {_tile('f64')}")
    found = tile.op("addf", tile.op("mulf", count, tile.constant(math.log(2))), near)
    zero, most, none = (tile.constant(value) for value in (0.0, math.inf, math.nan))
    found = tile.select("oeq", x, zero, tile.constant(-math.inf), found)
    found = tile.select("oeq", x, most, most, found)
    return tile.select("uge", x, zero, tile.select("uno", x, x, x, found), none)


def _softplus(tile: _Tile, x: str) -> str:
    """max(x, 0) + log(1 + e^-|x|)."""
    zero, two = tile.constant(0.0), tile.constant(2.0)
    above = tile.select("ogt", x, zero, x, zero)
    below = tile.select("ogt", x, zero, zero, x)
    # -|x|, NaN of NaN.
    small = _exp(tile, tile.op("subf", below, above))
    s = tile.op("divf", small, tile.op("addf", small, two))
    return tile.op("addf", above, tile.op("mulf", s, tile.polynomial(tile.op("mulf", s, s), _atanh_terms(9))))


def _vector(tile: _Tile, name: str) -> str:
    """Channels of a parameter, zeros where it ends."""
    return tile.cast(tile.load(f"%{name}", "%c", 0, f"%{name}_end", "f32", "memref<?xf32, #vector>"), "f32", "f64")


def _value_of(tile: _Tile, kind: str, source: str, target: str) -> str:
    """What is stored of a row, in the target's type."""
    if kind == "softplus_to_log":
        rate, bias = _exp(tile, _vector(tile, "a_log")), _vector(tile, "dt_bias")
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
        return tile.cast(tile.op("mulf", x, factor, kind="f32"), "f32", target)
    x = tile.cast(x, "f32", "f64")
    if kind == "linear_to_log":
        found = _log(tile, x)
    elif kind == "softplus_to_log":
        found = tile.op("negf", tile.op("mulf", _softplus(tile, tile.op("addf", x, bias)), rate))
    else:
        found = tile.op("divf", factor, tile.op("addf", tile.constant(1.0), _exp(tile, tile.op("negf", x))))
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
