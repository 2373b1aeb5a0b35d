# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of forwards on a Hopper GPU, for generate.py: layers that gdn-plan-calls makes entries with variants of.

A module has the layers of one form of a call. The functions share kernels, and so do modules.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Any

from kernel_traits import Form, Kernel, forms_of, has_run_time_states, traits_of
from layer_functions import layer_function

#: A CTA has all V tiles of a map, so it prepares each chunk once. B and the maps are made at the same time.
OPTIONS = ["--schedule=cta_per_head", "--side-by-side"]
#: The words of gdn.cut by which a call chooses how sequences are cut, from one on.
_CUTS = ("segment_length", "segment_parts", "longer_segment_length")
_SCHEDULES = ("CtaPerHead", "CtaPerVTile")
#: Segments that run what is before them themselves, whose states are [V, K]: the words of their cut. Their forward is
#: launched beside the maps, or when these are done; they are of one length, or of two that a sample of the gates chooses
#: from.
_OWN_CUTS = {"own": 2, "own_late": 2, "own_sampled": 3, "own_sampled_late": 3}


def variant(option: str, name: str = "", words: int = 0, *others: str, stage: str = "", template: str = "") -> str:
    """A dictionary of gdn.variants: a schedule, so many words of a cut, and the schedule of a stage."""
    cut = ", ".join(f'"{word}"' for word in _CUTS[:words])
    fields = [
        f'schedule = "{option}"', f'name = "{name}"' if name else "", f"cut = [{cut}]" if words else "",
        f'gdn_warp.schedules = {{{stage} = "{template or option}"}}' if stage else "", *others,
    ]  # fmt: skip
    return f"{{{', '.join(filter(None, fields))}}}"


def noted(variants: list[str]) -> str:
    """The attributes of a layer function with these variants."""
    return f" attributes {{gdn.variants = [{', '.join(variants)}]}}"


def chunk_variants(
    manifest: dict[str, Any], form: Form, state: str, is_split: bool, schedules: Iterable[str] = _SCHEDULES
) -> list[str]:
    """The variants of a form: of whole sequences by these schedules, and of segments if there are any. Those with their own starts serve one
    type of states, and no forward that saves."""
    hopper = manifest["hopper"]
    options = [hopper["schedules"][key]["option"] for key in _SCHEDULES]
    variants = [variant(hopper["schedules"][key]["option"], stage="fused") for key in schedules]
    if not is_split:
        return variants
    variants += [variant(option, f"waiting_{option}", 1, stage="fused") for option in options]
    values = form._asdict()
    own = any(all(values[key] in row[key] for key in row) for row in hopper["segments"].get("own", []))
    for name, words in _OWN_CUTS.items() if own and state == "Any F32" else ():
        # A sample is of gates as they are.
        if words < len(_CUTS) or form.gate == "Log F32":
            late = ["gdn.late_forward"] if name.endswith("late") else []
            others = ["state_layout = #gdn.state_layout<vk>", *late]
            variants.append(variant(options[0], name, words, *others, stage="fused"))
    return variants


def _layer(manifest: dict[str, Any], choice: dict[str, str], schedule: str, variants: list[str]) -> tuple[str, str]:
    """The name of an entry, and its layer function."""
    name, table = _name_of(manifest, choice), manifest["hopper"]["schedules"][schedule]
    return name, layer_function(manifest, name, traits_of(choice), table, notes=noted(variants))


def _name_of(manifest: dict[str, Any], row: dict[str, str]) -> str:
    """The words of a choice's values; a value's key is its word if it has no other."""
    channels = manifest["hopper"]["channels"][row["channels"]]
    words = [channels.get("word", row["channels"])]
    words += [row[axis].replace(" ", "_") for axis in ("element", "layout", "state", "gate", "beta", "norm") if axis in row]
    return "_".join(["gdn_hopper", *filter(None, words)]).lower()


def entry_module(
    name: str, layers: list[tuple[str, str]], options: list[str], kind: str, traits: dict[str, str]
) -> Kernel:
    """A module of entries, which have a name and a text each."""
    lines = "\n".join(f"GDN_ENTRY({entry})" for entry, _ in layers)
    return Kernel(name, "\n".join(text for _, text in layers), options, lines, kind, traits)


def forward_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The modules of forwards: of each form of a call in chunks, whose states are a matter of run time, but for whether
    they lie in a pool, and of each function token by token."""
    axes = ("element", "layout", "state", "gate", "beta", "norm", "channels", "schedule")
    chunks: dict[tuple[Form, str], dict[tuple[str, str], list[str]]] = {}
    tokens: dict[str, Kernel] = {}
    seen = set()
    for row in rows:
        for values in itertools.product(*(row[axis] for axis in axes)):
            choice = dict(zip(axes, values))
            schedule = choice.pop("schedule")
            if values in seen:
                name = _name_of(manifest, choice)
                sys.exit(f"error: expected each form once in the manifest, got {choice['state']} of {name} twice")
            seen.add(values)
            table = manifest["hopper"]["schedules"][schedule]
            if has_run_time_states(table):
                form = Form(*(choice[axis] for axis in Form._fields))
                traits = traits_of(choice)
                states = traits.ends if "pool" in manifest["hopper"]["ends"][traits.ends] else "Any"
                place = choice["layout"], f"{states} {traits.state}"
                found = chunks.setdefault((form, states), {}).setdefault(place, [])
                found += [schedule] if schedule not in found else []
                continue
            layer = _layer(manifest, choice, schedule, [variant(table["option"])])
            values = {**choice, "schedule": schedule}
            tokens[layer[0]] = entry_module(f"{layer[0]}_{table['option']}", [layer], [f"--schedule={table['option']}"], schedule, values)
    split = set(forms_of(manifest, rows))
    modules = []
    for (form, states), places in chunks.items():
        values = form._asdict()
        layers = [
            _layer(
                manifest, {**values, "layout": layout, "state": state}, _SCHEDULES[0],
                chunk_variants(manifest, form, state, form in split, schedules),
            )
            for (layout, state), schedules in places.items()
        ]  # fmt: skip
        name = _name_of(manifest, values) + ("" if states == "Any" else f"_{states.lower()}")
        modules.append(entry_module(name, layers, OPTIONS, "Chunk", values))
    return [*modules, *tokens.values()]
