# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one layer op, as MLIR text, for the generators of Hopper kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernel_traits import HERE, TRAIT_TABLES, Traits, brought_by, chosen_rows, fill, has_run_time_states


def _shape_values(manifest: dict[str, Any], traits: Traits) -> dict[str, Any]:
    """What stands for the names in the shapes of `arguments`."""
    channels = manifest["hopper"]["channels"][traits.channels]
    states = {"KV": ("k", "v"), "VK": ("v", "k")}[traits.state_layout]
    types = {axis: manifest["types"][getattr(traits, axis)]["mlir"] for axis in ("element", "state", "gate", "beta")}
    return {
        **types,
        "batch": manifest["hopper"]["layouts"][traits.layout]["batch"],
        "k": channels["k"],
        "v": channels["v"],
        "rows": channels[states[0]],
        "columns": channels[states[1]],
    }


def _absent_arguments(manifest: dict[str, Any], chosen: list[dict[str, Any]]) -> set[str]:
    """The arguments that rows of the tables bring, but none of the chosen ones."""
    tables = (manifest["hopper"].get(table) or manifest[table] for table in TRAIT_TABLES.values())
    return brought_by(row for table in tables for row in table.values()) - brought_by(chosen)


#: What a function says of a state that a call has or not, in either layout.
RUN_TIME_STATE = ("gdn.optional", "gdn.strided")


def _state_notes(manifest: dict[str, Any], traits: Traits, at_run_time: bool) -> dict[str, tuple[str, ...]]:
    """What a function says of its states. A pool is updated in place."""
    ends = manifest["hopper"]["ends"]
    pool = ends[traits.ends].get("pool")
    if pool:
        return {pool: ("bufferization.writable = true", *(["gdn.strided"] if at_run_time else []))}
    return {state: RUN_TIME_STATE for state in brought_by(ends.values())} if at_run_time else {}


def layer_function(
    manifest: dict[str, Any], name: str, traits: Traits, schedule: dict[str, Any], *, scalars: dict[str, str] | None = None,
    attributes: Iterable[str] = (), results: dict[str, str] | None = None, notes: str = "",
) -> str:  # fmt: skip
    """A function with one op of these traits. `scalars` are more arguments by name, behind the others; `attributes` and
    `results` are more of the op; `notes` are attributes of the function."""
    chosen, values = chosen_rows(manifest, traits), _shape_values(manifest, traits)
    absent = _absent_arguments(manifest, chosen)
    notes_of = _state_notes(manifest, traits, has_run_time_states(schedule))
    numbers = {operand: kind for row in chosen for operand, kind in row.get("scalars", {}).items()}

    def typed(names: list[str]) -> list[tuple[str, str, str]]:
        rows = [
            (manifest["arguments"][argument], f" {{{', '.join(notes_of[argument])}}}" if argument in notes_of else "")
            for argument in names
            if argument not in absent
        ]
        return [(row["operand"], f"tensor<{row['shape'].format(**values)}>", note) for row, note in rows]

    inputs, outputs = typed(manifest["hopper"]["arguments"]), typed(manifest["hopper"]["results"])
    outputs += [(operand, kind, "") for operand, kind in (results or {}).items()]
    arguments = [f"%{operand}: {kind}{note}" for operand, kind, note in inputs]
    inputs += [(operand, kind, "") for operand, kind in numbers.items()]
    arguments += [f"%{operand}: {kind}" for operand, kind in {**numbers, **(scalars or {})}.items()]
    return fill(
        (HERE / "hopper.mlir.in").read_text(),
        {
            "name": name,
            "op": schedule["op"],
            "arguments": ", ".join(arguments),
            "operands": "".join(f"\n      {operand}(%{operand} : {kind})" for operand, kind, _ in inputs),
            "attributes": ", ".join([text for row in chosen for text in row.get("attributes", [])] + list(attributes)),
            "values": ", ".join(f"%{operand}" for operand, _, _ in outputs),
            "noted_results": ", ".join(f"{kind}{note}" for _, kind, note in outputs),
            "results": ", ".join(kind for _, kind, _ in outputs),
            "notes": notes,
        },
    )
