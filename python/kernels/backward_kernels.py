# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of gradients on a Hopper GPU (docs/Training.md), for generate.py.

They take packed sequences, and the forms of gates, beta and norms that the manifest's rows name. The package brings
other forms of a call to one of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from forward_kernels import OPTIONS, chunk_variants, entry_module, noted, variant
from kernel_traits import HERE, Form, Kernel, fill, traits_of
from layer_functions import RUN_TIME_STATE, layer_function

#: Tokens of a chunk of the gradients: states are kept between these (docs/Dialects/Stages.md).
GRADIENT_TOKENS = 64

_AXES = ("channels", "element", "norm", "gate", "beta")
#: Values that names of kernels leave out.
_UNNAMED = {"norm": "Plain", "gate": "Log F32", "beta": "Value F32"}
#: The operands that have gradients, in the order of the op's results.
_DIFFERENTIABLE = ("q", "k", "v", "beta", "gate", "initial_state", "a_log", "dt_bias")
#: The states of a call, and what a function says of each: a call has it or not, in either layout.
_STATES = ("initial_state", "d_final_state")


def _operands(manifest: dict[str, Any], row: dict[str, str]) -> dict[str, str]:
    """The types of the op's operands by name, in their order."""
    hopper, types = manifest["hopper"], manifest["types"]
    element = types[row["element"]]["mlir"]
    k, v = (hopper["channels"][row["channels"]][name] for name in ("k", "v"))
    gate_domain, gate, beta = row["gate"].split()[0], *(types[row[name].split()[1]]["mlir"] for name in ("gate", "beta"))
    keys, values = (f"tensor<1x?x?x{size}x{element}>" for size in (k, v))
    state = f"tensor<?x?x{k}x{v}xf32>"
    takes = manifest["gate_domains"][gate_domain].get("takes", [])
    return {
        "q": keys, "k": keys, "v": values, "beta": f"tensor<1x?x?x{beta}>", "gate": f"tensor<1x?x?x{gate}>",
        "initial_state": state,
        "cu_seqlens": "tensor<?xi32>",
        **{manifest["arguments"][name]["operand"]: "tensor<?xf32>" for name in takes},
        "d_o": values,
        "d_final_state": state,
    }  # fmt: skip


def _attributes(manifest: dict[str, Any], row: dict[str, str]) -> list[str]:
    hopper = manifest["hopper"]
    chosen = [
        manifest["gate_domains"][row["gate"].split()[0]],
        manifest["beta_domains"][row["beta"].split()[0]],
        hopper["norms"][row["norm"]],
    ]
    return [text for values in chosen for text in values.get("attributes", [])]


def _noted(operand: str, kind: str) -> str:
    """The type of an argument, or of the gradient of one, with what the function says of it."""
    return f"{kind} {{{', '.join(RUN_TIME_STATE)}}}" if operand in _STATES else kind


def _saved_types(manifest: dict[str, Any], row: dict[str, str]) -> dict[str, str]:
    """The types of what a forward saves."""
    channels, element = manifest["hopper"]["channels"][row["channels"]], manifest["types"][row["element"]]["mlir"]
    k, v = channels["k"], channels["v"]
    return {"writes": f"tensor<1x?x?x{v}x{element}>", "states": f"tensor<?x?x{v}x{k}x{element}>"}


def _text(manifest: dict[str, Any], name: str, row: dict[str, str], reads_saved: bool, notes: str) -> str:
    """The layer function of a row, from the call's inputs or from what its forward saved."""
    operands, attributes = _operands(manifest, row), _attributes(manifest, row)
    results = {operand: operands[operand] for operand in _DIFFERENTIABLE if operand in operands}
    if reads_saved:
        operands |= _saved_types(manifest, row)
        attributes.append(f"state_interval = {saved_tokens(manifest)} : i64")
    values = {
        "name": name,
        "arguments": ", ".join(f"%{operand}: {_noted(operand, kind)}" for operand, kind in operands.items()),
        "operands": " ".join(f"{operand}(%{operand} : {kind})" for operand, kind in operands.items()),
        "attributes": ", ".join(attributes),
        "count": str(len(results)),
        "values": ", ".join(f"%gradients#{number}" for number in range(len(results))),
        "noted_results": ", ".join(_noted(operand, kind) for operand, kind in results.items()),
        "results": ", ".join(results.values()),
        "notes": notes,
    }
    return fill((HERE / "backward_hopper.mlir.in").read_text(), values)


def saved_tokens(manifest: dict[str, Any]) -> int:
    """Tokens between the states that a forward saves."""
    return manifest["hopper"].get("saving", {}).get("state_tokens", GRADIENT_TOKENS)


def _saves(manifest: dict[str, Any], row: dict[str, str]) -> bool:
    """Whether there is a forward that saves for the backward of a row."""
    return row["channels"] in manifest["hopper"].get("saving", {}).get("channels", [])


def _has_segments(manifest: dict[str, Any], row: dict[str, str]) -> bool:
    """Whether sequences of such a call are cut: stages of segments take gates and keys as they are."""
    is_plain = all(row[axis] == value for axis, value in _UNNAMED.items())
    return is_plain and row["channels"] in manifest["hopper"].get("segments", {}).get("channels", [])


def _name(manifest: dict[str, Any], row: dict[str, str]) -> str:
    """Says what is not usual, with the channels first."""
    channels = manifest["hopper"]["channels"][row["channels"]].get("word", row["channels"])
    forms = [row[axis] for axis in ("norm", "gate", "beta") if row[axis] != _UNNAMED[axis]]
    words = ["gdn_hopper_backward", channels, row["element"], *forms]
    return "_".join(filter(None, words)).replace(" ", "_").lower()


def _choices(rows: list[dict[str, list[str]]]) -> Iterator[dict[str, str]]:
    for values in rows:
        for choice in itertools.product(*(values[axis] for axis in _AXES)):
            yield dict(zip(_AXES, choice))


def hopper_backward_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """A module for each choice of values of a row, and one that reads what a forward saved."""
    modules = []
    for row in _choices(rows):
        modules.append(_backward_module(manifest, row, reads_saved=False))
        if _saves(manifest, row):
            modules.append(_backward_module(manifest, row, reads_saved=True))
    return modules


def _backward_module(manifest: dict[str, Any], row: dict[str, str], reads_saved: bool) -> Kernel:
    """The functions of a row, of whole sequences and of segments. Gradients that read saved states begin while the adjoint
    runs, which has a CTA a head where many sequences fill the GPU."""
    name = f"{_name(manifest, row)}{'_saved' if reads_saved else ''}"
    variants = [variant("cta_per_v_tile")]
    if reads_saved and row["element"] in manifest["hopper"]["saving"].get("per_head_backward", []):
        variants.append(variant("cta_per_head", stage="adjoint", template="adjoint.cta_per_head"))
    options = ["--follow-adjoint"] if reads_saved else []
    if _has_segments(manifest, row):
        variants.append(variant("cta_per_v_tile", "segments", 1))
    text = _text(manifest, name, row, reads_saved, noted(variants))
    return entry_module(name, [(name, text)], options, f"Backward{'Saved' * reads_saved}", row)


def saving_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The forwards that save for backwards of these rows, of whole sequences and of segments: a module for each form."""
    modules, table = [], manifest["hopper"]["schedules"]["CtaPerHead"]
    attributes = [f"state_interval = {saved_tokens(manifest)} : i64"]
    for row in _choices(rows):
        if not _saves(manifest, row):
            continue
        name = _name(manifest, row).replace("backward", "saving")
        form = Form(*(row[axis] for axis in Form._fields))
        variants = chunk_variants(manifest, form, "saved", _has_segments(manifest, row))
        text = layer_function(
            manifest, name, traits_of({**row, "layout": "Packed", "state": "Any F32"}), table,
            attributes=attributes, results=_saved_types(manifest, row), notes=noted(variants),
        )  # fmt: skip
        modules.append(entry_module(name, [(name, text)], OPTIONS, "Saving", row))
    return modules
