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
_CUTS = {
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
_ANY = {
    "channels": "128", "element": "BF16", "gate": "Log F32", "beta": "Value F32", "norm": "Plain", "state": "None",
    "layout": "Packed",
}  # fmt: skip


class Form(NamedTuple):
    """What the maps and the sums of segments depend on: keys of the manifest's tables."""

    channels: str
    element: str
    gate: str
    beta: str
    norm: str


class Stage(NamedTuple):
    """A kernel of a stage op: its name, what it is compiled for, its op, the tables' rows, and typed arguments."""

    name: str
    stage: str
    row: dict[str, str]
    op: str
    inputs: list[tuple[str, str]]
    outputs: list[str]


def _forms(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Form]:
    """The forms of calls that can be split: those with kernels of chunks of packed sequences and states in float32."""
    found = {}
    for row in rows:
        if "CtaPerHead" not in row["schedule"] or "Packed" not in row["layout"] or "Both KV F32" not in row["state"]:
            continue
        channels = [key for key in row["channels"] if key in manifest["hopper"]["segments"]["channels"]]
        for form in itertools.product(channels, row["element"], row["gate"], row["beta"], row["norm"]):
            found[Form(*form)] = True
    return list(found)


def _named(stage: str, *words: str) -> str:
    return "_".join(["gdn_hopper", stage, *(word.replace(" ", "_") for word in words if word)]).lower()


def _shapes(manifest: dict[str, Any], channels: str, v_first: bool) -> dict[str, str]:
    """The types of the arrays between the kernels."""
    row = manifest["hopper"]["channels"][channels]
    k, v = row["k"], row["v"]
    first, second = (v, k) if v_first else (k, v)
    return {
        "map": f"tensor<?x?x{k}x{k}xf16>",
        "decay": "tensor<?x?xf32>",
        "states": f"tensor<?x?x{first}x{second}xf32>",
        "boundaries": "tensor<?xi32>",
    }


def _tokens(manifest: dict[str, Any], form: Form, names: list[str]) -> list[tuple[str, str]]:
    """Arguments of a call, typed for packed sequences; `cu_seqlens` are the segments' boundaries."""
    hopper, types = manifest["hopper"], manifest["types"]
    channels = hopper["channels"][form.channels]
    values = {
        "batch": "1", "k": channels["k"], "v": channels["v"], "element": types[form.element]["mlir"],
        "gate": types[form.gate.split()[1]]["mlir"], "beta": types[form.beta.split()[1]]["mlir"],
    }  # fmt: skip
    takes = manifest["gate_domains"][form.gate.split()[0]].get("takes", [])
    rows = [(name, manifest["arguments"][name]) for name in hopper["arguments"] if name in (*names, *takes)]
    return [(row["operand"], f"tensor<{row['shape'].format(**values)}>") for _, row in rows]


def _stages(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Stage]:
    """All kernels of stage ops."""
    found = []
    for form in _forms(manifest, rows):
        words = ("" if form.channels == "128" else form.channels, form.element, form.gate, form.beta, form.norm)
        row = {**form._asdict(), "state": "None", "layout": "Packed"}
        shapes = _shapes(manifest, form.channels, v_first=False)
        inputs = _tokens(manifest, form, ["k", "beta", "g", "cu_seqlens"])
        outputs = [shapes["map"], shapes["decay"]]
        found.append(Stage(_named("segment_map", *words), "Map", row, "gdn.stage.segment_map", inputs, outputs))
        for layout in manifest["hopper"]["state_layouts"]:
            shapes = _shapes(manifest, form.channels, layout == "VK")
            inputs = _tokens(manifest, form, ["q", "k", "v", "beta", "g", "cu_seqlens"])
            found.append(Stage(
                _named("segment_sum", layout, *words), "Sum", {**row, "state": f"Final {layout}"},
                "gdn.stage.state_pass", inputs, [shapes["states"]],
            ))  # fmt: skip
    return found + _scans(manifest, rows)


def _scans(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Stage]:
    """The kernels that go over the segments of a sequence: they depend on the caller's states alone."""
    names = {row.channels for row in _forms(manifest, rows)}
    states = dict.fromkeys(state for row in rows if "CtaPerHead" in row["schedule"] for state in row["state"])
    found = []
    for channels, state in itertools.product(sorted(names), states):
        ends, layout, kind = (*state.split(), "KV", "F32")[:3] if state == "None" else (*state.split(), "F32")[:3]
        shapes = _shapes(manifest, channels, layout == "VK")
        inputs = [(name, shapes[name]) for name in ("map", "decay", "states")]
        outside = shapes["states"].replace("xf32", f"x{manifest['types'][kind]['mlir']}")
        if ends == "Both":
            inputs.append(("initial_state", outside))
        inputs.append(("first_segments", shapes["boundaries"]))
        outputs = [shapes["states"]] if ends == "None" else [shapes["states"], outside]
        row = {**_ANY, "channels": channels, "state": state}
        word = "" if channels == "128" else channels
        found.append(Stage(_named("segment_scan", word, state), "Scan", row, "gdn.stage.segment_scan", inputs, outputs))
    return found


def _cuts() -> dict[str, tuple[str, dict[str, str]]]:
    """The kernels that cut sequences, by layout: the name, and what boundaries.mlir.in is filled with."""
    return {
        layout: (_named("segment_boundaries", layout), {**values, "name": _named("segment_boundaries", layout)})
        for layout, values in _CUTS.items()
    }


#: The traits that give the op of a stage attributes.
_STAGE_TRAITS = {
    "Map": ("gate_domain", "beta_domain", "norm"),
    "Sum": ("gate_domain", "beta_domain", "norm", "state_layout"),
    "Scan": ("state_layout",),
}


#: A CTA has all V tiles of a map, so it prepares each chunk once.
_SEGMENT_SCHEDULE = "--schedule=cta_per_head"


def _segment_kernel(manifest: dict[str, Any], name: str, stage: str, row: dict[str, str], text: str) -> Kernel:
    channels = manifest["hopper"]["channels"][row["channels"]]
    words = [name, stage, str(channels["k"]), str(channels["v"]), *traits_of(row)[1:]]
    return Kernel(name, text, [_SEGMENT_SCHEDULE], f"GDN_HOPPER_SEGMENTS({', '.join(words)})")


def _stage_kernel(manifest: dict[str, Any], stage: Stage, template: str) -> Kernel:
    chosen = dict(zip(TRAIT_TABLES, chosen_rows(manifest, traits_of(stage.row))))
    attributes = [text for trait in _STAGE_TRAITS[stage.stage] for text in chosen[trait].get("attributes", [])]
    if stage.stage != "Scan":
        attributes.append(f"chunk_size = {manifest['hopper']['chunk_tokens']}")
    values = {
        "name": stage.name,
        "op": stage.op,
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in stage.inputs),
        "operands": "".join(f"\n      {operand}(%{operand} : {kind})" for operand, kind in stage.inputs),
        "attributes": ", ".join(attributes),
        "values": ", ".join(f"%r{number}" for number in range(len(stage.outputs))),
        "results": ", ".join(stage.outputs),
    }
    return _segment_kernel(manifest, stage.name, stage.stage, stage.row, fill(template, values))


def segment_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The kernels that a call in segments runs besides one of chunks; none where no call can be split."""
    template = (HERE / "hopper.mlir.in").read_text()
    kernels = [_stage_kernel(manifest, stage, template) for stage in _stages(manifest, rows)]
    if not kernels:
        return []
    template = (HERE / "boundaries.mlir.in").read_text()
    for layout, (name, values) in _cuts().items():
        row = {**_ANY, "layout": layout}
        kernels.append(_segment_kernel(manifest, name, "Cut", row, fill(template, values)))
    return kernels
