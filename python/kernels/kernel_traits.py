# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the generators of kernels share."""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent

#: The traits of a Hopper kernel that change its op, in the order of the op's attributes, and their values' tables.
TRAIT_TABLES = {
    "gate_domain": "gate_domains",
    "beta_domain": "beta_domains",
    "norm": "norms",
    "state_layout": "state_layouts",
    "ends": "ends",
    "layout": "layouts",
}


def fill(template: str, values: dict[str, str]) -> str:
    """The template with each @name@ replaced."""
    return re.sub("@([a-z_]+)@", lambda found: values[found[1]], template)


class Kernel(NamedTuple):
    """A kernel as the build needs it: its name, its MLIR text, options of gdn-compile, and its line for C++; its kind, and
    the traits of kernels of this kind, by which a sample is chosen (sample.py)."""

    name: str
    text: str
    options: list[str]
    line: str
    kind: str
    traits: dict[str, str]


class Traits(NamedTuple):
    """What a Hopper kernel is compiled for: keys of the manifest's tables."""

    channels: str
    element: str
    layout: str
    ends: str
    state_layout: str
    state: str
    gate_domain: str
    gate: str
    beta_domain: str
    beta: str
    norm: str


def traits_of(row: dict[str, str]) -> Traits:
    """The traits of one choice of a row's values. Where there is no state, its layout and type are the first. A function
    for states of any layout is one for [K, V], and one for any states is one for both."""
    ends, *rest = row["state"].split()
    if rest and rest[0] not in ("KV", "VK"):
        rest = ["KV", *rest]
    if ends == "Any":
        ends = "Both"
    state_layout, state = (*rest, *("KV", "F32")[len(rest) :])
    return Traits(
        row["channels"], row["element"], row["layout"], ends, state_layout, state,
        *row["gate"].split(), *row["beta"].split(), row["norm"],
    )  # fmt: skip


def has_run_time_states(schedule: dict[str, Any]) -> bool:
    """Whether kernels of a schedule find out what states a call has, and how they lie."""
    return {"run time": True, "compile time": False}[schedule["states"]]


def brought_by(rows: Iterable[dict[str, Any]]) -> set[str]:
    """The arguments that rows of the tables bring."""
    return {argument for row in rows for argument in (*row.get("takes", []), *row.get("gives", []))}


def chosen_rows(manifest: dict[str, Any], traits: Traits) -> list[dict[str, Any]]:
    """The rows of the tables that the kernel's traits choose."""
    hopper = manifest["hopper"]
    tables = {table: hopper[table] if table in hopper else manifest[table] for table in TRAIT_TABLES.values()}
    return [tables[table][getattr(traits, trait)] for trait, table in TRAIT_TABLES.items()]


class Form(NamedTuple):
    """What the maps of segments depend on: keys of the manifest's tables."""

    channels: str
    element: str
    gate: str
    beta: str
    norm: str


def forms_of(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Form]:
    """The forms of calls that can be split: those with kernels of chunks of packed sequences and states in float32, less
    those that the manifest leaves out."""
    without = manifest["hopper"]["segments"].get("without", [])
    found = {}
    for row in rows:
        if "CtaPerHead" not in row["schedule"] or "Packed" not in row["layout"] or "Both KV F32" not in row["state"]:
            continue
        channels = [key for key in row["channels"] if key in manifest["hopper"]["segments"]["channels"]]
        for form in itertools.product(channels, row["element"], row["gate"], row["beta"], row["norm"]):
            values = Form(*form)._asdict()
            if not any(all(values[key] in row[key] for key in row) for row in without):
                found[Form(*form)] = True
    return list(found)


def named(stage: str, channels: str, *words: str) -> str:
    """A kernel's name; that of 128 channels is not in it."""
    known = ["gdn_hopper", stage, *(["" if channels == "128" else channels]), *words]
    return "_".join(word.replace(" ", "_") for word in known if word).lower()
