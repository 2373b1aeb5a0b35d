# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of kernels that the manifest asks for: layer functions, with what a build needs to know of them."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from layers import Choice, Function, Manifest, _manifest, conversion_function, layer_function

Sample = dict[str, list[dict[str, list[str]]]]


class Module(NamedTuple):
    """A module: its name, its functions as text by name, options of gdn-compile, and its lines for C++; its kind, and the
    traits of modules of this kind, by which a sample is chosen."""

    name: str
    functions: dict[str, str]
    options: list[str]
    lines: list[str]
    kind: str
    traits: Choice

    @property
    def text(self) -> str:
        return "\n".join(self.functions.values())


def cpu_modules(manifest: Manifest) -> Iterator[Module]:
    """The functions of work items: those of each kind's rows, over all channels."""
    cpu, lists = manifest["cpu"], manifest["hopper"]
    for kind, table in cpu["kernels"].items():
        function = Function(table["op"], [*cpu["arrays"], *table.get("takes", [])], lists[table["results"]], in_memory=True)
        rows = ({"channels": cpu["channels"], **row} for row in table["rows"])
        axes = ("decay", "element", "channels", "isa")
        for values in (values for row in rows for values in itertools.product(*(row[axis] for axis in axes))):
            choice = dict(zip(axes, values))
            words = [kind, *(choice[axis] for axis in table["words"])]
            name = "_".join(["gdn_cpu", *(word for word in words if word != "Head")]).lower()
            functions = {
                word: layer_function(manifest, f"{name}_{word}", function, {**cpu["usual"], **choice, **form})
                for word, form in cpu[table["functions"]].items()
            }
            symbols = [f"_mlir_ciface_{name}_{word}" for word in functions]
            lines = [f"GDN_KERNEL({symbol})" for symbol in symbols]
            level, has_channel_gates = list(cpu["isas"]).index(choice["isa"]) + 1, int(choice["decay"] == "Channel")
            row = [
                json.dumps(name), json.dumps(table["op"]), f"GDN_DTYPE_{choice['element']}", choice["channels"],
                has_channel_gates, -level, json.dumps(cpu["isas"][choice["isa"]]["name"]), f"{{{', '.join(symbols)}}}",
            ]  # fmt: skip
            lines.append(f"GDN_ITEMS({', '.join(map(str, row))})")
            yield Module(name, functions, cpu["isas"][choice["isa"]]["options"], lines, f"CPU{kind}", choice)


def _mlir(value: Any) -> str:
    """An attribute: of a text that begins with #, what it says."""
    if isinstance(value, dict):
        return f"{{{', '.join(key if entry is True else f'{key} = {_mlir(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_mlir, value))}]"
    return value if str(value).startswith("#") else json.dumps(value)


def _looking(hopper: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """The variant that also looks at the gates, of one that says how."""
    changed = {**row, "but": [], **row["looking"]}
    return {**changed, "for": [*changed.get("for", []), "look"], **hopper["looking"]}


def _noted(hopper: dict[str, Any], variants: str, facts: set[str]) -> str:
    """The attributes of a layer function with those of these variants that are for it."""
    rows = hopper["variants"][variants]
    rows = [*rows, *(_looking(hopper, row) for row in rows if "looking" in row)]
    chosen = [
        {key: value for key, value in row.items() if key not in ("for", "but", "looking")}
        for row in rows
        if facts.issuperset(row.get("for", [])) and facts.isdisjoint(row.get("but", []))
    ]
    return f" attributes {{gdn.variants = {_mlir(chosen)}}}"


def _name(manifest: Manifest, table: dict[str, Any], choice: Choice, axes: list[str] | None = None) -> str:
    """The words of a choice's values, channels first; a value's key is its word if it has no other."""
    names = manifest["hopper"]["names"]["gradient" if "stage" in table else "forward"]
    channels = manifest["hopper"]["channels"][choice["channels"]].get("word", choice["channels"])
    values = {**choice, "states": choice["state"].split()[0]}
    words = [values[axis] for axis in axes or names["words"] if values[axis] != names["usual"].get(axis)]
    name = "_".join(word for word in ("gdn_hopper", table.get("stage"), channels, *words) if word)
    return name.replace(" ", "_").lower() + table.get("suffix", "")


def hopper_modules(manifest: Manifest) -> list[Module]:
    """The modules of a GPU's functions. A module has all functions of a form of chunks, whose states are a matter of run
    time but for whether they lie in a pool; others have one function. Ends the program if two are the same."""
    hopper = manifest["hopper"]
    known = [*_manifest.choices(hopper), *_manifest.choices(hopper.get("backward", {"kernels": []}))]
    modules: dict[str, Module] = {}
    for choice in known:
        table = hopper["functions"][choice["algorithm"]]
        name, module_name = (_name(manifest, table, choice, axes) for axes in (None, table.get("module")))
        new = Module(module_name, {}, table.get("options", []), [], choice["algorithm"], choice)
        module = modules.setdefault(module_name, new)
        if name in module.functions:
            sys.exit(f"error: expected each form once in the manifest, got {choice['state']} of {name} twice")
        attributes = [text.format(**manifest["decays"][choice["decay"]]) for text in table.get("attributes", [])]
        # Chunks of other tokens than is usual.
        tokens = [row["tokens"] for row in hopper["chunks"] if _manifest.is_in(choice, [row["of"]])]
        attributes += [f"chunk_size = {number} : i64" for number in tokens[:1]]
        facts = _manifest.facts_of(manifest, choice, known)
        takes = [name for name in hopper["arguments"] if name not in table.get("without", [])]
        function = Function(
            table["op"], [*takes, *table.get("takes", [])], hopper[table["results"]],
            run_time_states=table["states"] == "run time", attributes=tuple(attributes),
        )  # fmt: skip
        notes = _noted(hopper, table["variants"], facts)
        module.functions[name] = layer_function(manifest, name, function, choice, notes)
        module.lines.append(f"GDN_ENTRY({name})")
    return list(modules.values())


def conversion_modules(manifest: Manifest) -> Iterator[Module]:
    """The modules that bring arrays to what another kernel takes: kinds by the types of what is read and written."""
    for kind, row in manifest["hopper"]["conversions"].items():
        for source, target in ((source, target) for source, targets in row["types"].items() for target in targets):
            values = {"kind": kind, "source": source, "target": target, "bits": manifest["types"][target]["bits"]}
            name = f"gdn_hopper_{row.get('word', '{kind}_{source}_{target}').format(**values)}".lower()
            types = f"{f'GDN_DTYPE_{source}' if source else 0}, GDN_DTYPE_{target}"
            factors = row.get("factors", {kind: 1})
            lines = [f"GDN_CONVERSION({name}, {json.dumps(way)}, {types}, {factor})" for way, factor in factors.items()]
            text = conversion_function(manifest, name, kind, row["takes"], source, target)
            yield Module(name, {name: text}, [], lines, "Conversion", values)


def modules_of(manifest: Manifest, sample: Sample) -> list[Module]:
    """The modules, or of a kind in `sample` those with the traits of a row. Ends the program if two have one name."""
    found = [*cpu_modules(manifest), *hopper_modules(manifest), *conversion_modules(manifest)]
    names = [module.name for module in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        sys.exit(f"error: expected each kernel once in the manifest, got {', '.join(twice)} twice")
    return [module for module in found if _manifest.is_in(module.traits, sample.get(module.kind, [{}]))]
