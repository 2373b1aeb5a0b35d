# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest (kernels.json): which kernels are shipped, and what the library and the package share.

The build runs this file too (kernels/generate.py), outside of the package: it imports the standard library alone.
"""

from __future__ import annotations

import itertools
import json
import pathlib
from typing import Any, NamedTuple

PATH = pathlib.Path(__file__).with_name("kernels.json")


def read(path: pathlib.Path = PATH) -> dict[str, Any]:
    """The manifest's tables by name."""
    tables: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return tables


def sampled(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a shorter build: the rows of `sample` stand for those of the Hopper kernels of forwards. It does not
    say which kernels of other kinds are left out."""
    return {**manifest, "hopper": {**manifest["hopper"], "kernels": manifest["sample"]["kernels"]}}


class Field(NamedTuple):
    """A field of the integer that tells the library the options of a call."""

    shift: int
    bits: int

    @property
    def most(self) -> int:
        """The largest number that it holds."""
        return (1 << self.bits) - 1

    def of(self, options: int) -> int:
        """Its number in a call's options."""
        return options >> self.shift & ((1 << self.bits) - 1)

    def pack(self, number: int) -> int:
        """The options that have this number here, and 0 in all other fields."""
        return number << self.shift


def option_fields(manifest: dict[str, Any]) -> dict[str, Field]:
    """The fields of the options by name, from the lowest bit on."""
    fields, shift = {}, 0
    for row in manifest["options"]:
        fields[row["name"]] = Field(shift, row["bits"])
        shift += row["bits"]
    return fields


#: What kernels of a GPU differ by. A choice has a value of each.
_AXES = ("decay", "channels", "element", "gate", "beta", "norm", "layout", "state", "algorithm")
Choice = dict[str, str]


def choices(table: dict[str, Any]) -> list[Choice]:
    """The functions of a GPU that a table asks for, that of forwards or that of gradients: the values of each row are
    crossed."""
    return [
        dict(zip(_AXES, values))
        for row in table["kernels"]
        for values in itertools.product(*(row.get(axis) or table["defaults"][axis] for axis in _AXES))
    ]


def is_in(choice: Choice, rows: list[dict[str, list[str]]]) -> bool:
    """Whether a choice has a value of each axis of one of the rows."""
    return any(all(choice[axis] in values for axis, values in row.items()) for row in rows)


def facts_of(manifest: dict[str, Any], choice: Choice, others: list[Choice]) -> set[str]:
    """What is true of a choice beside others."""
    return {
        name
        for name, table in manifest["hopper"]["facts"].items()
        if is_in(choice, table["in"]) and not is_in(choice, table.get("not_in", []))
        and {**choice, **table.get("beside", {})} in others
    }  # fmt: skip


class GradientForm(NamedTuple):
    """What a GPU kernel of gradients is chosen by, but for states and the types of gates: domains by number, types by
    name."""

    channels: int
    q: str
    norm: bool
    gate_domain: int
    beta_domain: int
    #: What a gate decays, as the manifest says it.
    decay: str = "Head"


def gradient_forms(manifest: dict[str, Any], algorithm: str = "Backward", fact: str = "") -> frozenset[GradientForm]:
    """All that the GPU kernels of an algorithm take, with g and beta in float32 at the least; or those of which a fact is
    true. Each is there without states, and with both in either layout."""
    hopper, types = manifest["hopper"], manifest["types"]
    known = choices(hopper.get("backward", {"kernels": []}))
    gates, betas = list(manifest["gate_domains"]), list(manifest["beta_domains"])
    return frozenset(
        GradientForm(
            hopper["channels"][choice["channels"]]["k"], types[choice["element"]]["name"],
            "attributes" in hopper["norms"][choice["norm"]],
            gates.index(choice["gate"].split()[0]), betas.index(choice["beta"].split()[0]), choice["decay"],
        )
        for choice in known
        if choice["algorithm"] == algorithm and (not fact or fact in facts_of(manifest, choice, known))
    )  # fmt: skip
