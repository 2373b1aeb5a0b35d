# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manifest (kernels.json): which kernels are shipped, and what the library and the package share.

The build runs this file too (kernels/generate.py), outside of the package: it imports the standard library alone.
"""

from __future__ import annotations

import itertools
import json
import pathlib
from collections.abc import Iterator
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


class GateTypes(NamedTuple):
    """The types by which a GPU kernel is chosen for the gates of a call: domains by number, types by name."""

    gate_domain: int
    beta_domain: int
    q: str
    g: str
    beta: str


def gate_types(manifest: dict[str, Any]) -> frozenset[GateTypes]:
    """All that the GPU kernels take."""
    gates, betas = list(manifest["gate_domains"]), list(manifest["beta_domains"])
    names = {key: row["name"] for key, row in manifest["types"].items()}
    found = set()
    for row in gpu_rows(manifest):
        for element, gate, beta in itertools.product(row["element"], row["gate"], row["beta"]):
            (gate_domain, gate_type), (beta_domain, beta_type) = gate.split(), beta.split()
            domains = gates.index(gate_domain), betas.index(beta_domain)
            found.add(GateTypes(*domains, names[element], names[gate_type], names[beta_type]))
    return frozenset(found)


def gpu_scales(manifest: dict[str, Any]) -> dict[int, float]:
    """K^(-1/2), the one scale that a GPU kernel has, for all K that there are kernels for."""
    channels = manifest["hopper"]["channels"]
    used = {key for row in gpu_rows(manifest) for key in row["channels"]}
    return {channels[key]["k"]: float(channels[key]["k"] ** -0.5) for key in channels if key in used}


class Form(NamedTuple):
    """What a GPU kernel is chosen by where g and beta are float32: domains by number, types by name."""

    k: int
    v: int
    q: str
    packed: bool
    norm: bool
    ends: str
    v_first: bool
    state: str
    gate_domain: int
    beta_domain: int


#: What a form is made of, as the rows of the kernels name it.
_FORM_AXES = ("channels", "element", "layout", "norm", "state", "gate", "beta")


def _form_rows(manifest: dict[str, Any], op: str) -> Iterator[tuple[Form, dict[str, str]]]:
    """The forms of the GPU kernels of this op with g and beta in float32, with what names each of them."""
    hopper, types = manifest["hopper"], manifest["types"]
    gates, betas = list(manifest["gate_domains"]), list(manifest["beta_domains"])
    for row in gpu_rows(manifest):
        if not any(hopper["algorithms"][key]["op"] == op for key in row["algorithm"]):
            continue
        for values in itertools.product(*(row[key] for key in _FORM_AXES)):
            channels, element, layout, norm, state, gate, beta = values
            (gate_domain, gate_type), (beta_domain, beta_type) = gate.split(), beta.split()
            if (gate_type, beta_type) != ("F32", "F32"):
                continue
            # "None", "Final VK" or "Both VK F32".
            ends, state_layout, state_type = (*state.split(), *("KV", "F32")[state.count(" "):])
            form = Form(
                hopper["channels"][channels]["k"], hopper["channels"][channels]["v"], types[element]["name"],
                "takes" in hopper["layouts"][layout], "attributes" in hopper["norms"][norm], ends,
                state_layout == "VK", types[state_type]["name"], gates.index(gate_domain), betas.index(beta_domain),
            )
            yield form, dict(zip(_FORM_AXES, values))


def gpu_forms(manifest: dict[str, Any], op: str) -> frozenset[Form]:
    """All that the GPU kernels of this op take with g and beta in float32."""
    return frozenset(form for form, _ in _form_rows(manifest, op))


def segment_forms(manifest: dict[str, Any]) -> frozenset[Form]:
    """Those of the kernels of chunks whose sequences can be cut into segments."""
    table = manifest["hopper"].get("segments", {"channels": []})
    without = table.get("without", [])
    return frozenset(
        form
        for form, values in _form_rows(manifest, "gdn.chunk_gated_delta_rule")
        if values["channels"] in table["channels"]
        and not any(all(values[key] in row[key] for key in row) for row in without)
    )


def gradient_rows(manifest: dict[str, Any]) -> list[dict[str, list[str]]]:
    """The rows of the Hopper kernels of gradients, with the values of all axes; none where there is no table of them."""
    table = manifest["hopper"].get("backward", {"kernels": []})
    return [{**table["defaults"], **row} for row in table["kernels"]]


class GradientForm(NamedTuple):
    """What a GPU kernel of gradients is chosen by, but for states: domains by number, types by name."""

    channels: int
    q: str
    norm: bool
    gate_domain: int
    g: str
    beta_domain: int
    beta: str


def gradient_forms(manifest: dict[str, Any]) -> frozenset[GradientForm]:
    """All that the GPU kernels of gradients take. Each is there without states, and with both in either layout."""
    hopper, types = manifest["hopper"], manifest["types"]
    gates, betas = list(manifest["gate_domains"]), list(manifest["beta_domains"])
    found = set()
    for row in gradient_rows(manifest):
        for channels, element, norm, gate, beta in itertools.product(
            *(row[key] for key in ("channels", "element", "norm", "gate", "beta"))
        ):
            (gate_domain, gate_type), (beta_domain, beta_type) = gate.split(), beta.split()
            found.add(GradientForm(
                hopper["channels"][channels]["k"], types[element]["name"], "attributes" in hopper["norms"][norm],
                gates.index(gate_domain), types[gate_type]["name"], betas.index(beta_domain), types[beta_type]["name"],
            ))
    return frozenset(found)
