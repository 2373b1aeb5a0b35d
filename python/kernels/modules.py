# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of kernels that the manifest asks for: layer functions, with what a build needs to know of them."""

from __future__ import annotations

import itertools
import json
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from layers import Choice, Function, layer_function, traits_of

Manifest = dict[str, Any]
Rows = list[dict[str, list[str]]]

#: What a module of forwards in chunks has one choice of.
_FORM = ("decay", "channels", "element", "gate", "beta", "norm")
#: What a gate decays if no name says it.
_UNNAMED = "Head"
#: Values that names of gradients leave out.
_USUAL = {"norm": "Plain", "gate": "Log F32", "beta": "Value F32"}
#: A CTA has all V tiles of a map, so it prepares each chunk once. B and the maps are made at the same time.
_FORWARD_OPTIONS = ["--schedule=cta_per_head", "--side-by-side"]


class Module(NamedTuple):
    """A module: its name, its text, options of gdn-compile, and its lines for C++; its kind, and the traits of modules of
    this kind, by which a sample is chosen."""

    name: str
    text: str
    options: list[str]
    lines: list[str]
    kind: str
    traits: Choice

    @property
    def is_cpu(self) -> bool:
        return self.kind.startswith("CPU")

    def has(self, row: dict[str, list[str]]) -> bool:
        """Whether it has a value of each trait of a row."""
        return all(self.traits.get(axis) in values for axis, values in row.items())


def _choices(rows: Iterable[dict[str, Any]], axes: Iterable[str]) -> Iterator[Choice]:
    """The choices of one value an axis."""
    for row in rows:
        for values in itertools.product(*(row[axis] for axis in axes)):
            yield dict(zip(axes, values))


def _is_in(choice: Choice, rows: Rows) -> bool:
    return any(all(choice[axis] in values for axis, values in row.items() if axis in choice) for row in rows)


def cpu_modules(manifest: Manifest) -> list[Module]:
    """The functions of work items: algorithms x elements x channels x levels, where a level may list what it serves, and
    gradients, whose arrays are copied to their one type."""
    cpu, results, modules = manifest["cpu"], manifest["hopper"]["results"], []
    plain = {**_USUAL, "state": "Both KV F32", "layout": "Item"}

    def add(words: list[str], kind: str, choice: Choice, function: Function, forms: dict[str, Choice]) -> None:
        name = "_".join(["gdn_cpu", *(word for word in words if word != _UNNAMED)]).lower()
        texts = [
            layer_function(manifest, f"{name}_{word}", function, {**plain, **choice, **form}) for word, form in forms.items()
        ]
        symbols = [f"_mlir_ciface_{name}_{word}" for word in forms]
        traits = [kind, *(choice[axis] for axis in ("decay", "element", "channels", "isa"))]
        lines = [*(f"GDN_KERNEL({symbol})" for symbol in symbols)]
        lines.append(f"GDN_KERNELS({', '.join([*traits, json.dumps(name), *symbols])})")
        modules.append(Module(name, "".join(texts), cpu["isas"][choice["isa"]]["options"], lines, f"CPU{kind}", choice))

    for choice in _choices([cpu], ("algorithms", "decays", "elements", "channels", "isas")):
        algorithm, decay, element, channels, isa = choice.values()
        level, traits = cpu["isas"][isa], {"decay": decay, "element": element, "channels": channels, "isa": isa}
        is_there = algorithm in level.get("algorithms", [algorithm]) and element in level.get("elements", [element])
        if is_there and element in cpu["decays"][decay]:
            function = Function(cpu["algorithms"][algorithm]["op"], cpu["arguments"], results, in_memory=True)
            add([*choice.values()], algorithm, traits, function, cpu["forwards"])
    gradients = cpu["backward"]
    inputs = [*cpu["arguments"], "d_out", "d_final_state"]
    function = Function(gradients["op"], inputs, manifest["hopper"]["gradients"], in_memory=True)
    for decay, channels, isa in itertools.product(gradients["decays"], cpu["channels"], gradients["isas"]):
        choice = {"decay": decay, "channels": channels, "isa": isa, "element": gradients["element"]}
        words = ["Backward", decay, channels, isa]
        add(words, "Backward", choice, function, gradients["gradients"])
    return modules


def _mlir(value: Any) -> str:
    """An attribute: of a text that begins with #, what it says."""
    if isinstance(value, dict):
        return f"{{{', '.join(key if entry is True else f'{key} = {_mlir(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_mlir, value))}]"
    return value if value.startswith("#") else json.dumps(value)


def _noted(variants: list[dict[str, Any]], facts: set[str]) -> str:
    """The attributes of a layer function with those of these variants that are for it."""
    chosen = [
        {key: value for key, value in row.items() if key != "for"} for row in variants if facts.issuperset(row.get("for", []))
    ]
    return f" attributes {{gdn.variants = {_mlir(chosen)}}}"


def _name(manifest: Manifest, stage: str, choice: Choice, axes: Iterable[str]) -> str:
    """The words of a choice's values, channels first; a value's key is its word if it has no other."""
    channels = manifest["hopper"]["channels"][choice["channels"]].get("word", choice["channels"])
    words = [stage, channels, *(choice[axis] for axis in axes if axis in choice)]
    return "_".join(word for word in words if word and word != _UNNAMED).replace(" ", "_").lower()


def _entries(name: str, layers: list[tuple[str, str]], options: list[str], kind: str, traits: Choice) -> Module:
    """A module of entries, which have a name and a text each."""
    lines = [f"GDN_ENTRY({entry})" for entry, _ in layers]
    return Module(name, "\n".join(text for _, text in layers), options, lines, kind, traits)


def forward_modules(manifest: Manifest, rows: Rows) -> list[Module]:
    """The modules of forwards: of each form of a call in chunks, whose states are a matter of run time but for whether
    they lie in a pool, and of each function token by token."""
    hopper, cuts, axes = manifest["hopper"], manifest["hopper"]["segments"], ("decay", "element", "layout", "state", *_FORM[3:])
    chunks: dict[tuple[str, ...], tuple[Choice, str, dict[tuple[str, str], None]]] = {}
    seen, split, modules = set(), set(), []

    def layer(choice: Choice, algorithm: dict[str, str], variants: list[dict[str, Any]], facts: set[str]) -> tuple[str, str]:
        at_run_time = algorithm["states"] == "run time"
        # Chunks of other tokens than is usual.
        tokens = next((row["tokens"] for row in hopper["chunks"] if _is_in(choice, [row])), None) if at_run_time else None
        attributes = (f"chunk_size = {tokens} : i64",) if tokens else ()
        function = Function(algorithm["op"], hopper["arguments"], hopper["results"], at_run_time, attributes=attributes)
        name = _name(manifest, "gdn_hopper", choice, axes)
        return name, layer_function(manifest, name, function, choice, _noted(variants, facts))

    for choice in _choices(rows, (*_FORM, "layout", "state", "algorithm")):
        if tuple(choice.values()) in seen:
            name = _name(manifest, "gdn_hopper", choice, axes)
            sys.exit(f"error: expected each form once in the manifest, got {choice['state']} of {name} twice")
        seen.add(tuple(choice.values()))
        algorithm = hopper["algorithms"][choice["algorithm"]]
        if algorithm["states"] == "compile time":
            name, text = layer(choice, algorithm, [{"schedule": algorithm["schedule"]}], set())
            options = [f"--schedule={algorithm['schedule']}"]
            modules.append(_entries(f"{name}_{algorithm['schedule']}", [(name, text)], options, choice["algorithm"], choice))
            continue
        form, traits = {axis: choice[axis] for axis in _FORM}, traits_of(choice)
        states = traits["ends"] if "pool" in hopper["ends"][traits["ends"]] else "Any"
        layers = chunks.setdefault((*form.values(), states), (form, states, {}))[2]
        layers[choice["layout"], f"{states} {traits['state_type']}"] = None
        # Maps are of packed sequences with states in float32.
        if (choice["layout"], choice["state"]) == ("Packed", "Both KV F32") and choice["channels"] in cuts["channels"]:
            split |= {tuple(form.values())} if not _is_in(form, cuts.get("without", [])) else set()
    for form, states, layers in chunks.values():
        facts = {"split"} if tuple(form.values()) in split else set()
        # A sample is of gates as they are, one a head.
        is_sampled = (form["decay"], form["gate"]) == ("Head", "Log F32")
        own = {"own", *(["sampled"] if is_sampled else [])} if _is_in(form, cuts.get("own", [])) else set()
        texts = [
            layer(
                {**form, "layout": layout, "state": state}, hopper["algorithms"]["Chunk"], hopper["variants"]["forward"],
                facts | own if state == "Any F32" else facts,
            )
            for layout, state in layers
        ]  # fmt: skip
        name = _name(manifest, "gdn_hopper", form, axes) + ("" if states == "Any" else f"_{states.lower()}")
        modules.append(_entries(name, texts, _FORWARD_OPTIONS, "Chunk", form))
    return modules


def gradient_modules(manifest: Manifest, rows: Rows) -> list[Module]:
    """For each form of gradients, on packed sequences: those from the call's inputs; and where a forward saves for them,
    that forward, and those from what it saved."""
    hopper, modules = manifest["hopper"], []
    variants, saving, segments = hopper["variants"], hopper.get("saving", {}), hopper.get("segments", {})
    interval = (f"state_interval = {saving.get('state_tokens')} : i64",)
    inputs = [*(array for array in hopper["arguments"] if array != "state_indices"), "d_out", "d_final_state"]
    gradients = Function(hopper["backward"]["op"], inputs, hopper["gradients"], run_time_states=True)
    from_saved = gradients._replace(arguments=[*inputs, *hopper["saved"]], attributes=interval)
    op, results = hopper["algorithms"]["Chunk"]["op"], [*hopper["results"], *hopper["saved"]]
    forward = Function(op, hopper["arguments"], results, run_time_states=True, attributes=interval)
    for choice in _choices(rows, ("channels", "element", *_USUAL)):
        unusual = [axis for axis in _USUAL if choice[axis] != _USUAL[axis]]
        # Stages of segments take gates and keys as they are.
        facts = {"split"} if not unusual and choice["channels"] in segments.get("channels", []) else set()
        facts |= {"per_head"} if choice["element"] in saving.get("per_head_backward", []) else set()
        kinds = [("backward", "Backward", gradients, [], "gradients")]
        if choice["channels"] in saving.get("channels", []):
            kinds.append(("backward", "BackwardSaved", from_saved, ["--follow-adjoint"], "gradients_of_saved"))
            kinds.append(("saving", "Saving", forward, _FORWARD_OPTIONS, "forward"))
        for stage, kind, function, options, table in kinds:
            name = _name(manifest, f"gdn_hopper_{stage}", choice, ["element", *unusual]) + "_saved" * (function is from_saved)
            whole = {**choice, "layout": "Packed", "state": "Any F32"}
            text = layer_function(manifest, name, function, whole, _noted(variants[table], facts))
            modules.append(_entries(name, [(name, text)], options, kind, choice))
    return modules


def copy_modules(manifest: Manifest) -> list[Module]:
    """The modules that copy an input whose strides the others do not take: elements of so many bits, whatever they are."""
    template, copies = pathlib.Path(__file__).with_name("relayout.mlir.in").read_text(), manifest["hopper"]["copies"]
    modules = []
    for source, bits in itertools.product(copies["sources"], copies["elements"]):
        name = f"gdn_hopper_relayout_{source}_{bits}"
        values = {**copies["sources"][source], **copies["elements"][bits], "name": name, "bits": bits}
        text = re.sub("@([a-z_]+)@", lambda found: values[found[1]], template)
        dtype = f"GDN_DTYPE_{values['element']}".upper()
        line = f"GDN_CONVERSION({name}, {json.dumps(values['kind'])}, {dtype}, {dtype}, 1)"
        modules.append(Module(name, text, [], [line], "Relayout", {"source": source, "bits": bits}))
    return modules


def choose_sample(manifest: Manifest, modules: list[Module]) -> list[Module]:
    """The modules of a shorter build: those of a kind that the sample names which have all traits of a row there, and all
    of other kinds. Ends the program if a row has no module."""
    kinds: dict[str, Rows] = manifest["sample"]["kinds"]
    for kind, row in ((kind, row) for kind, rows in kinds.items() for row in rows):
        if not any(module.has(row) for module in modules if module.kind == kind):
            sys.exit(f"error: expected kernels for each row of the sample, got none of kind {kind} with {row}")
    return [module for module in modules if any(map(module.has, kinds.get(module.kind, [{}])))]


def check_sample(modules: list[Module], sample: list[Module]) -> None:
    """Ends the program unless the sample's modules are of the manifest, with each value of each trait of each kind."""
    if more := {module.name for module in sample} - {module.name for module in modules}:
        sys.exit(f"error: expected a sample of the manifest's kernels, got {', '.join(sorted(more))} besides")
    values = ({(module.kind, *trait) for module in each for trait in module.traits.items()} for each in (modules, sample))
    if missing := set.difference(*values):
        texts = sorted(f"{axis} {value} ({kind})" for kind, axis, value in missing)
        sys.exit(f"error: expected each value of a trait in the sample, got none with {', '.join(texts)}")
