# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that compute the segments of sequences side by side (docs/Python.md, Segments), for generate.py.

A call in segments runs these and a kernel of chunks. They depend on little of a call, so few of them serve all forms.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from kernel_traits import HERE, TRAIT_TABLES, Kernel, chosen_rows, fill, traits_of

#: How the cuts of packed sequences and of batch rows are written (boundaries.mlir.in).
CUTS = {
    "Packed": {
        "says": "Sequences are packed: with ceil(x / L) segments before token x, and one more for each sequence but "
        "the first,\n// no sequence needs to know how many the others have.",
        "places": """\
  %rows = arith.constant 0 : index
  %before = arith.ceildivui %begin, %length : index
  %through = arith.ceildivui %end, %length : index
  %is_first = arith.cmpi eq, %n, %c0 : index
  %later = arith.addi %before, %others : index
  %first = arith.select %is_first, %c0, %later : index
  %next = arith.addi %through, %n : index""",
        "argument": ", %cu_seqlens: tensor<?xi32>",
        "counts": """\
  %bounds = tensor.dim %cu_seqlens, %c0 : tensor<?xi32>
  %sequences = arith.subi %bounds, %c1 : index
  %more = arith.addi %pieces, %sequences : index
  %segments = arith.subi %more, %c1 : index""",
        "operand": " cu_seqlens(%cu_seqlens : tensor<?xi32>)",
    },
    "Fixed": {
        "says": "Sequences are batch rows, whose\n// tokens are counted through.",
        "places": """\
  %rows = arith.muli %batch, %end : index
  %pieces = arith.ceildivui %end, %length : index
  %first = arith.muli %n, %pieces : index
  %next = arith.addi %first, %pieces : index""",
        "argument": "",
        "counts": """\
  %sequences = tensor.dim %sizes, %c0 : tensor<?x?x?xi32>
  %segments = arith.muli %sequences, %pieces : index""",
        "operand": "",
    },
}


#: What a kernel has that does not depend on any of these.
ANY = {
    "channels": "128", "element": "BF16", "gate": "Log F32", "beta": "Value F32", "norm": "Plain", "state": "None",
    "layout": "Packed",
}  # fmt: skip


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


def segment_kernel(manifest: dict[str, Any], name: str, stage: str, row: dict[str, str], text: str) -> Kernel:
    """A kernel of a stage that has the traits of a row."""
    channels = manifest["hopper"]["channels"][row["channels"]]
    words = [name, stage, str(channels["k"]), str(channels["v"]), *traits_of(row)[1:]]
    return Kernel(name, text, [_SCHEDULE], f"GDN_HOPPER_SEGMENTS({', '.join(words)})", stage, row)


#: A CTA has all V tiles of a map, so it prepares each chunk once.
_SCHEDULE = "--schedule=cta_per_head"


def tokens_of(manifest: dict[str, Any], form: Form) -> dict[str, str]:
    """The types of a call's arguments for packed sequences by operand, in order; `cu_seqlens` are the segments'
    boundaries."""
    hopper, types = manifest["hopper"], manifest["types"]
    channels = hopper["channels"][form.channels]
    values = {
        "batch": "1", "k": channels["k"], "v": channels["v"], "element": types[form.element]["mlir"],
        "gate": types[form.gate.split()[1]]["mlir"], "beta": types[form.beta.split()[1]]["mlir"],
    }  # fmt: skip
    takes = ("q", "k", "v", "beta", "g", "cu_seqlens", *manifest["gate_domains"][form.gate.split()[0]].get("takes", []))
    rows = [manifest["arguments"][name] for name in hopper["arguments"] if name in takes]
    return {row["operand"]: f"tensor<{row['shape'].format(**values)}>" for row in rows}


def maps_kernel(
    manifest: dict[str, Any], form: Form, template: str, name: str = "segment_maps", stage: str = "Maps"
) -> Kernel:
    """What each segment makes of a state: three kernels, whose states lie as [V, K]."""
    row = {**form._asdict(), "state": "None", "layout": "Packed"}
    chosen = dict(zip(TRAIT_TABLES, chosen_rows(manifest, traits_of(row))))
    channels, types = manifest["hopper"]["channels"][form.channels], tokens_of(manifest, form)

    def operands(*left_out: str) -> str:
        return "".join(f"\n      {name}(%{name} : {kind})" for name, kind in types.items() if name not in left_out)

    def attributes(*traits: str) -> str:
        return "".join(f"{text}, " for trait in traits for text in chosen[trait].get("attributes", []))

    name = named(name, *form)
    values = {
        "name": name,
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in types.items()),
        "gates": operands("q", "v", "beta"),
        "tokens": operands(),
        "keys": operands("q", "v", "gate", "a_log", "dt_bias"),
        "gate_attributes": attributes("gate_domain"),
        "token_attributes": attributes("beta_domain", "norm"),
        "states": f"tensor<?x?x{channels['v']}x{channels['k']}xf32>",
        "map": f"tensor<?x?x{channels['k']}x{channels['k']}xf16>",
        "tolerance": str(manifest["hopper"]["segments"]["tolerance"]),
        "chunk": str(manifest["hopper"]["chunk_tokens"]),
    }
    return segment_kernel(manifest, name, stage, row, fill(template, values))


def _scan(manifest: dict[str, Any], channels: str, state: str, template: str) -> Kernel:
    """The kernel that goes over the segments of a sequence: it depends on the caller's states alone."""
    row = {**ANY, "channels": channels, "state": state}
    traits, types = traits_of(row), manifest["hopper"]["channels"][channels]
    k, v = types["k"], types["v"]
    rows, columns = (v, k) if traits.state_layout == "VK" else (k, v)
    between = f"tensor<?x?x{v}x{k}xf32>"
    outside = f"tensor<?x?x{rows}x{columns}x{manifest['types'][traits.state]['mlir']}>"
    inputs = {"map": f"tensor<?x?x{k}x{k}xf16>", "decay": "tensor<?x?xf32>", "states": between}
    if traits.ends == "Both":
        inputs["initial_state"] = outside
    inputs["first_segments"] = "tensor<?xi32>"
    outputs = [between] if traits.ends == "None" else [between, outside]
    layout = manifest["hopper"]["state_layouts"][traits.state_layout]
    name = named("segment_scan", channels, state)
    values = {
        "name": name,
        "op": "gdn.stage.segment_scan",
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in inputs.items()),
        "operands": "".join(f"\n      {operand}(%{operand} : {kind})" for operand, kind in inputs.items()),
        "attributes": ", ".join([*layout.get("attributes", []), "segment_layout = #gdn.state_layout<vk>"]),
        "values": ", ".join(f"%r{number}" for number in range(len(outputs))),
        "noted_results": ", ".join(outputs),
        "results": ", ".join(outputs),
    }
    return segment_kernel(manifest, name, "Scan", row, fill(template, values))


def segment_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The kernels that a call in segments runs besides one of chunks; none where no call can be split."""
    forms = forms_of(manifest, rows)
    if not forms:
        return []
    templates = {name: (HERE / f"{name}.mlir.in").read_text() for name in ("boundaries", "maps", "hopper")}
    kernels = []
    for layout, values in CUTS.items():
        name = named("segment_boundaries", "128", layout)
        text = fill(templates["boundaries"], {**values, "name": name})
        kernels.append(segment_kernel(manifest, name, "Cut", {**ANY, "layout": layout}, text))
    kernels += [maps_kernel(manifest, form, templates["maps"]) for form in forms]
    states = dict.fromkeys(state for row in rows if "CtaPerHead" in row["schedule"] for state in row["state"])
    for channels, state in itertools.product(sorted({form.channels for form in forms}), states):
        kernels.append(_scan(manifest, channels, state, templates["hopper"]))
    return kernels
