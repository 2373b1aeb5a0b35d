# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one layer op, as MLIR text, from rows of the manifest's tables."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

# The file alone, without the package around it.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "gdn"))
import _manifest  # noqa: E402

Choice, Manifest = _manifest.Choice, dict[str, Any]


class Argument(NamedTuple):
    """An argument or a result of a function, and of its op: its name, its type, and what the function says of it."""

    name: str
    type: str
    notes: list[str] = []


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


def _domains(manifest: Manifest, kind: str) -> dict[str, dict[str, Any]]:
    """The forms of gates or of beta, with the attributes that say so; the first one is an op's default."""

    def attributes(number: int, row: dict[str, Any]) -> list[str]:
        bound = [f"lower_bound = {float(row['lower_bound'])} : f64"] if "lower_bound" in row else []
        return [f"{kind} = #gdn.{kind}<{row['fact']}>", *bound] if number else []

    rows = enumerate(manifest[f"{kind}s"].items())
    return {key: {**row, "attributes": attributes(number, row)} for number, (key, row) in rows}


def _tables(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """The tables whose rows change an op, by trait, in the order of the op's attributes."""
    hopper = manifest["hopper"]
    layouts = {**hopper["layouts"], "Item": manifest["cpu"]["item"]}
    return {
        "decay": manifest["decays"], "gate_domain": _domains(manifest, "gate_domain"),
        "beta_domain": _domains(manifest, "beta_domain"), "norm": hopper["norms"],
        "state_layout": hopper["state_layouts"], "ends": hopper["ends"], "layout": layouts,
    }  # fmt: skip


def _brought_by(rows: Iterable[dict[str, Any]]) -> set[str]:
    return {argument for row in rows for argument in (*row.get("takes", []), *row.get("gives", []))}


def _shape_values(manifest: Manifest, traits: Choice, layout: dict[str, Any]) -> dict[str, Any]:
    """What stands for the names in the shapes of arrays."""
    channels = manifest["hopper"]["channels"][traits["channels"]]
    states = {"KV": ("k", "v"), "VK": ("v", "k")}[traits["state_layout"]]
    types = {"element": "element", "state": "state_type", "gate": "gate_type", "beta": "beta_type"}
    return {
        **{name: manifest["types"][traits[axis]]["mlir"] for name, axis in types.items()},
        "k": channels["k"], "v": channels["v"], "rows": channels[states[0]], "columns": channels[states[1]],
        **{"sequences": "?", "heads": "?", **layout},
    }  # fmt: skip


def _function(
    name: str, op: str, inputs: list[Argument], results: list[Argument], facts: Iterable[str] = (), notes: str = "",
    in_memory: bool = False,
) -> str:  # fmt: skip
    """A function of one op."""

    def noted(argument: Argument) -> str:
        return argument.type + (f" {{{', '.join(argument.notes)}}}" if argument.notes else "")

    arguments = [f"%{argument.name}: {noted(argument)}" for argument in inputs]
    operands = [f"{argument.name}(%{argument.name} : {argument.type})" for argument in inputs]
    types, attributes = ", ".join(result.type for result in results), ", ".join(facts)
    body = "\n      ".join([op, *operands])
    if in_memory:
        outs = [f"%out{number}" for number in range(len(results))]
        arguments += [f"{out}: {result.type}" for out, result in zip(outs, results)]
        body += f"\n      outs({', '.join(outs)} : {types}) {{{attributes}}}\n  return"
        return f"func.func @{name}({', '.join(arguments)}){notes} {{\n  {body}\n}}\n"
    outs = [f"%results#{number}" for number in range(len(results))]
    body = f"%results:{len(outs)} = {body}\n      {{{attributes}}} -> {types}\n  return {', '.join(outs)} : {types}"
    return f"func.func @{name}({', '.join(arguments)}) -> ({', '.join(map(noted, results))}){notes} {{\n  {body}\n}}\n"


def layer_function(manifest: Manifest, name: str, function: Function, choice: Choice, notes: str = "") -> str:
    """The function of a choice; `notes` are attributes of the function."""
    traits, tables = traits_of(choice), _tables(manifest)
    chosen = {trait: rows[traits[trait]] for trait, rows in tables.items()}
    absent = _brought_by(row for rows in tables.values() for row in rows.values()) - _brought_by(chosen.values())
    values, arrays = _shape_values(manifest, traits, chosen["layout"]), {**manifest["arguments"], **manifest["operands"]}
    shapes = {name: shape for row in chosen.values() for name, shape in row.get("shapes", {}).items()}
    written = chosen["ends"].get("written", [])  # These are updated in place.

    def argument_of(array: str) -> Argument:
        shape = shapes.get(array, arrays[array]["shape"]).format(**values)
        words = [*arrays[array].get("notes", []), *(["bufferization.writable = true"] if array in written else [])]
        words += ["gdn.optional"] if array in chosen["ends"].get("optional", []) else []
        if function.run_time_states and arrays[array].get("is_state") and (array in written or "initial_state" not in written):
            words += [*([] if array in written else ["gdn.optional"]), "gdn.strided"]
        layout = ", strided<[?, ?, ?, 1], offset: ?>" if shape.count("x") == 4 else ""
        kind = f"memref<{shape}{layout}>" if function.in_memory else f"tensor<{shape}>"
        return Argument(arrays[array]["operand"], kind, words)

    # A scalar stands behind an array.
    scalars = {place: [Argument(*scalar)] for row in chosen.values() for place, scalar in row.get("scalars", {}).items()}
    there = [array for array in function.arguments if array not in absent]
    inputs = [argument for array in there for argument in (argument_of(array), *scalars.get(array, []))]
    results = [argument_of(array) for array in function.results if array not in absent]
    # A row that gives an array says so to an op that has it.
    rows = [row for row in chosen.values() if set(row.get("gives", [])) <= set(function.results)]
    facts = [*(text for row in rows for text in row.get("attributes", [])), *function.attributes]
    return _function(name, function.op, inputs, results, facts, notes, function.in_memory)


def conversion_function(manifest: Manifest, name: str, kind: str, takes: list[str], source: str, target: str) -> str:
    """The function that converts an array [B, T, H, C] of one type to one of another; without a source it is empty."""
    given = {"input": source, "like": target}
    arrays = {word: f"tensor<?x?x?x?x{manifest['types'][key]['mlir']}>" for word, key in given.items() if key}
    types = {"factor": "f32", "a_log": "tensor<?xf32>", "dt_bias": "tensor<?xf32>", **arrays}
    # What a copy makes has its channels side by side.
    strided = ["gdn.strided"] if "like" in takes else []
    inputs = [Argument(w, types[w], [f'gdn.name = "{w}"', *(strided if w != "factor" else [])]) for w in takes]
    return _function(name, f"gdn.convert {kind}", inputs, [Argument("result", types["like"], strided)])
