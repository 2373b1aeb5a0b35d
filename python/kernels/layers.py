# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one layer op, as MLIR text, from rows of the manifest's tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

#: A value of each axis, as rows of kernels name it: "Log F32", "Both KV F32".
Choice = dict[str, str]


class Function(NamedTuple):
    """What functions of a kind have in common.

    Attributes:
        op: the op's name.
        arguments, results: the manifest's names of the arrays, in order. A function has those of them that a row of its
            choice brings, and those that no row of any choice brings.
        run_time_states: whether a function finds out at run time what states a call has, and how they lie.
        in_memory: whether arrays are memrefs, and results are arguments that are written.
        attributes: those of the op, beside the rows'.
    """

    op: str
    arguments: list[str]
    results: list[str]
    run_time_states: bool = False
    in_memory: bool = False
    attributes: tuple[str, ...] = ()


def traits_of(choice: Choice) -> Choice:
    """A choice with the words of its values apart. Without a state its layout and type are the first; a function for
    states of any layout is one for [K, V], and one for any states is one for both."""
    ends, *rest = choice["state"].split()
    if rest and rest[0] not in ("KV", "VK"):
        rest = ["KV", *rest]
    state_layout, state_type = (*rest, *("KV", "F32")[len(rest) :])
    traits = {"decay": "Head", **choice, "ends": "Both" if ends == "Any" else ends, "state_layout": state_layout, "state_type": state_type}
    for axis in ("gate", "beta"):
        traits[f"{axis}_domain"], traits[f"{axis}_type"] = choice[axis].split()
    return traits


def _tables(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables whose rows change an op, by trait, in the order of the op's attributes."""
    hopper = manifest["hopper"]
    layouts = {**hopper["layouts"], "Item": manifest["cpu"]["item"]}
    return {
        "decay": manifest["decays"], "gate_domain": manifest["gate_domains"], "beta_domain": manifest["beta_domains"], "norm": hopper["norms"],
        "state_layout": hopper["state_layouts"], "ends": hopper["ends"], "layout": layouts,
    }  # fmt: skip


def _brought_by(rows: Iterable[dict[str, Any]]) -> set[str]:
    return {argument for row in rows for argument in (*row.get("takes", []), *row.get("gives", []))}


def _shape_values(manifest: dict[str, Any], traits: Choice, layout: dict[str, Any]) -> dict[str, Any]:
    """What stands for the names in the shapes of arrays."""
    channels = manifest["hopper"]["channels"][traits["channels"]]
    states = {"KV": ("k", "v"), "VK": ("v", "k")}[traits["state_layout"]]
    types = {"element": "element", "state": "state_type", "gate": "gate_type", "beta": "beta_type"}
    return {
        **{name: manifest["types"][traits[axis]]["mlir"] for name, axis in types.items()},
        "k": channels["k"], "v": channels["v"], "rows": channels[states[0]], "columns": channels[states[1]],
        **{"sequences": "?", "heads": "?", **layout},
    }  # fmt: skip


def layer_function(
    manifest: dict[str, Any], name: str, function: Function, choice: Choice, notes: str = ""
) -> str:
    """The function of a choice; `notes` are attributes of the function."""
    traits, tables = traits_of(choice), _tables(manifest)
    chosen = {trait: rows[traits[trait]] for trait, rows in tables.items()}
    absent = _brought_by(row for rows in tables.values() for row in rows.values()) - _brought_by(chosen.values())
    values, arrays = _shape_values(manifest, traits, chosen["layout"]), {**manifest["arguments"], **manifest["operands"]}
    # A pool is updated in place.
    pool = chosen["ends"].get("pool")

    shapes = {name: shape for row in chosen.values() for name, shape in row.get("shapes", {}).items()}

    def type_of(array: str) -> str:
        shape = shapes.get(array, arrays[array]["shape"]).format(**values)
        if not function.in_memory:
            return f"tensor<{shape}>"
        return f"memref<{shape}{', strided<[?, ?, ?, 1], offset: ?>' if shape.count('x') == 4 else ''}>"

    def noted(array: str) -> str:
        words = ["bufferization.writable = true"] if array == pool else []
        if function.run_time_states and arrays[array].get("is_state") and pool in (None, array):
            words += [*(["gdn.optional"] if pool is None else []), "gdn.strided"]
        return type_of(array) + (f" {{{', '.join(words)}}}" if words else "")

    inputs = [(arrays[array]["operand"], array) for array in function.arguments if array not in absent]
    results = [array for array in function.results if array not in absent]
    numbers = [(word, kind) for row in chosen.values() for word, kind in row.get("scalars", {}).items()]
    arguments = [f"%{operand}: {noted(array)}" for operand, array in inputs] + [f"%{word}: {kind}" for word, kind in numbers]
    operands = [f"{operand}(%{operand} : {type_of(array)})" for operand, array in inputs]
    operands += [f"{word}(%{word} : {kind})" for word, kind in numbers]
    # A row that gives an array says so to an op that has it.
    rows = [row for row in chosen.values() if set(row.get("gives", [])) <= set(function.results)]
    attributes = [text for row in rows for text in row.get("attributes", [])]
    types, body = ", ".join(map(type_of, results)), "\n      ".join([function.op, *operands])
    facts = f"{{{', '.join((*attributes, *function.attributes))}}}"
    if function.in_memory:
        outs = [f"%out{number}" for number in range(len(results))]
        arguments += [f"{out}: {type_of(array)}" for out, array in zip(outs, results)]
        body += f"\n      outs({', '.join(outs)} : {types}) {facts}\n  return"
        return f"func.func @{name}({', '.join(arguments)}){notes} {{\n  {body}\n}}\n"
    outs = [f"%results#{number}" for number in range(len(results))]
    body = f"%results:{len(outs)} = {body}\n      {facts} -> {types}\n  return {', '.join(outs)} : {types}"
    return f"func.func @{name}({', '.join(arguments)}) -> ({', '.join(map(noted, results))}){notes} {{\n  {body}\n}}\n"
