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


def option_fields(manifest: dict[str, Any]) -> dict[str, Field]:
    """The fields of the options by name, from the lowest bit on."""
    fields, shift = {}, 0
    for row in manifest["options"]:
        fields[row["name"]] = Field(shift, row["bits"])
        shift += row["bits"]
    return fields


def gpu_rows(manifest: dict[str, Any]) -> list[dict[str, list[str]]]:
    """The rows of the Hopper kernels, with the values of all axes."""
    hopper = manifest["hopper"]
    return [{**hopper["defaults"], **row} for row in hopper["kernels"]]


def gradient_rows(manifest: dict[str, Any]) -> list[dict[str, list[str]]]:
    """The rows of the Hopper kernels of gradients, with the values of all axes; none where there is no table of them."""
    table = manifest["hopper"].get("backward", {"kernels": []})
    return [{**table["defaults"], **row} for row in table["kernels"]]


class GradientForm(NamedTuple):
    """What a GPU kernel of gradients is chosen by, but for states and the types of gates: domains by number, types by
    name."""

    channels: int
    q: str
    norm: bool
    gate_domain: int
    beta_domain: int


def gradient_forms(manifest: dict[str, Any]) -> frozenset[GradientForm]:
    """All that the GPU kernels of gradients take, with g and beta in float32 at the least. Each is there without states,
    and with both in either layout."""
    hopper, types = manifest["hopper"], manifest["types"]
    gates, betas = list(manifest["gate_domains"]), list(manifest["beta_domains"])
    return frozenset(
        GradientForm(
            hopper["channels"][channels]["k"], types[element]["name"], "attributes" in hopper["norms"][norm],
            gates.index(gate.split()[0]), betas.index(beta.split()[0]),
        )
        for row in gradient_rows(manifest)
        for channels, element, norm, gate, beta in itertools.product(
            *(row[key] for key in ("channels", "element", "norm", "gate", "beta"))
        )
    )  # fmt: skip
