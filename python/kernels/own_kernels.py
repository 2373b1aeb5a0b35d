# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of calls in segments that run what is before them themselves (docs/Python.md, Segments), for generate.py.

They are there for the forms that the manifest names. Calls of other forms have those of segment_kernels.py.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from kernel_traits import HERE, TRAIT_TABLES, Kernel, chosen_rows, fill, traits_of
from segment_kernels import ANY, CUTS, Form, forms_of, maps_kernel, named, segment_kernel, tokens_of

#: What differs of the cuts of packed sequences and of batch rows from those of segments that wait for all that is before
#: them: a sequence without tokens has a segment, too, which makes its final state (own_boundaries.mlir.in).
_CUTS = {
    "Packed": {
        "says": "Sequences are packed: with ceil(x / L) segments before token x, one at least, and one more for each "
        "sequence\n// but the first, no sequence needs to know how many the others have.",
        "places": """\
  %rows = arith.constant 0 : index
  %full_ahead = arith.ceildivui %begin, %length : index
  %ahead = arith.maxui %full_ahead, %c1 : index
  %full_through = arith.ceildivui %end, %length : index
  %through = arith.maxui %full_through, %c1 : index
  %is_first = arith.cmpi eq, %n, %c0 : index
  %later = arith.addi %ahead, %others : index
  %first_segment = arith.select %is_first, %c0, %later : index
  %next_segment = arith.addi %through, %n : index""",
    },
    "Fixed": {
        "places": """\
  %rows = arith.muli %batch, %end : index
  %full_rows = arith.ceildivui %end, %length : index
  %pieces = arith.maxui %full_rows, %c1 : index
  %first_segment = arith.muli %n, %pieces : index
  %next_segment = arith.addi %first_segment, %pieces : index""",
        "counts": """\
  %sequences = tensor.dim %sizes, %c0 : tensor<?x?x?x?xi32>
  %segments = arith.muli %sequences, %pieces : index""",
    },
}

#: A kernel that cuts into segments of one length.
_ONE_LENGTH = {
    "chooses": "", "arrays": "", "tensors": "", "inputs": "", "input_types": "",
    "cut": "  // Cuts lie at multiples of L in tokens of the sequence.\n  %cut = arith.addi %part, %c0 : index",
}  # fmt: skip
#: Log gates are sampled at so many tokens and heads of each sequence.
_SAMPLES = 8
_GATES = "memref<?x?x?xf32, strided<[?, ?, 1], offset: ?>>"


def _sampled_places(name: str, size: str) -> list[str]:
    """Indices %NAME0, %NAME1, ... that are spread evenly over a size."""
    lines = []
    for number in range(_SAMPLES):
        lines += [
            f"%{name}_odd{number} = arith.constant {2 * number + 1} : index",
            f"%{name}_of{number} = arith.muli {size}, %{name}_odd{number} : index",
            f"%{name}{number} = arith.divui %{name}_of{number}, %samples_twice : index",
        ]
    return lines


def _sampled_head(head: int) -> list[str]:
    """Adds 1 to the heads that keep a state over a segment of the first length, if the head does."""
    lines, total = [], "%no_gate"
    for token in range(_SAMPLES):
        name = f"%gate{head}_{token}"
        lines += [
            f"{name} = memref.load %gate[%batch, %at{token}, %head{head}] : {_GATES}",
            f"%sum{head}_{token} = arith.addf {total}, {name} : f32",
        ]
        total = f"%sum{head}_{token}"
    before = f"%live{head - 1}" if head else "%no_head"
    return [
        *lines,
        f"%decay{head} = arith.mulf {total}, %gates_of_sample : f32",
        f"%keeps{head} = arith.cmpf ogt, %decay{head}, %least : f32",
        f"%one{head} = arith.extui %keeps{head} : i1 to i32",
        f"%live{head} = arith.addi {before}, %one{head} : i32",
    ]


def _equal_parts(chunk: int) -> list[str]:
    """%cut, of which a sequence has as many parts as of %longest tokens, in whole chunks: a call waits for its longest
    segment."""
    return [
        "// As many segments as so many tokens make, of equal lengths. In 32 bits, which a GPU divides.",
        "%one_piece = arith.constant 1 : i32",
        f"%chunk = arith.constant {chunk} : i32",
        "%tokens_number = arith.index_cast %tokens : index to i32",
        "%parts_number = arith.index_cast %parts : index to i32",
        "%longest_number = arith.index_cast %longest : index to i32",
        "%longest_tokens = arith.muli %longest_number, %parts_number : i32",
        "%pieces_of_longest = arith.ceildivui %tokens_number, %longest_tokens : i32",
        "%some_pieces = arith.maxui %pieces_of_longest, %one_piece : i32",
        "%all_parts = arith.muli %some_pieces, %parts_number : i32",
        "%chunks_of_all = arith.muli %all_parts, %chunk : i32",
        "%rounds = arith.ceildivui %tokens_number, %chunks_of_all : i32",
        "%some_rounds = arith.maxui %rounds, %one_piece : i32",
        "%equal = arith.muli %some_rounds, %chunk : i32",
        "%cut = arith.index_castui %equal : i32 to index",
    ]


def _two_lengths(tolerance: float, chunk: int) -> dict[str, str]:
    """A kernel that cuts a sequence by the second length unless some of its heads, but fewer than half, keep a state over
    a segment of the first: then shorter segments make the way of these heads short. Segments of a sequence are equally
    long, and of that length at most."""
    sampled = [line for head in range(_SAMPLES) for line in _sampled_head(head)]
    places = [
        *_sampled_places("head", "%heads"),
        *_sampled_places("within_at", "%tokens"),
        *(f"%at{number} = arith.addi %begin, %within_at{number} : index" for number in range(_SAMPLES)),
    ]
    lines = [
        "%longer = memref.dim %longer_sizes, %c0 : memref<?xi32, strided<[1], offset: ?>>",
        f"%heads = memref.dim %gate, %c2 : {_GATES}",
        f"%samples_twice = arith.constant {2 * _SAMPLES} : index",
        *places,
        f"%sample_share = arith.constant {1 / _SAMPLES} : f32",
        "%length_number = arith.index_cast %length : index to i32",
        "%length_gates = arith.sitofp %length_number : i32 to f32",
        "%gates_of_sample = arith.mulf %length_gates, %sample_share : f32",
        f"%least = arith.constant {math.log(tolerance)} : f32",
        "%no_gate = arith.constant 0.0 : f32",
        "%no_head = arith.constant 0 : i32",
        "// Once, unless there is no token: all loads are under way at a time.",
        "%once = arith.minui %tokens, %c1 : index",
        "%live = scf.for %sample = %c0 to %once step %c1 iter_args(%none = %no_head) -> (i32) {",
        *(f"  {line}" for line in sampled),
        f"  scf.yield %live{_SAMPLES - 1} : i32",
        "}",
        "%one_head = arith.constant 1 : i32",
        "%live_behind_one = arith.subi %live, %one_head : i32",
        f"%most = arith.constant {_SAMPLES // 2 - 1} : i32",
        "%some_live = arith.cmpi ult, %live_behind_one, %most : i32",
        "%longest = arith.select %some_live, %part, %longer : index",
        *_equal_parts(chunk),
    ]
    return {
        "chooses": " %longer_sizes is\n// read for the extent [M / P] alone: sequences are cut by M tokens instead, "
        "unless some heads, but fewer than half of\n// them, keep a state over L tokens. Segments of a sequence are\n// equally long.",
        "arrays": f",\n    %longer_sizes: memref<?xi32, strided<[1], offset: ?>>, %gate: {_GATES}",
        "tensors": ", %longer_sizes: tensor<?xi32>, %gate: tensor<?x?x?xf32>",
        "inputs": ", %longer_sizes, %gate",
        "input_types": ", tensor<?xi32>, tensor<?x?x?xf32>",
        "cut": "\n".join(f"  {line}" for line in lines),
    }


def _forward(manifest: dict[str, Any], form: Form, template: str) -> Kernel:
    """The forward of segments, from their states [V, K] in float32."""
    row = {**form._asdict(), "state": "None", "layout": "Packed"}
    chosen = dict(zip(TRAIT_TABLES, chosen_rows(manifest, traits_of(row))))
    channels, types = manifest["hopper"]["channels"][form.channels], tokens_of(manifest, form)
    state = f"tensor<?x?x{channels['v']}x{channels['k']}xf32>"
    inputs = {}
    for operand, kind in types.items():
        if operand == "cu_seqlens":
            inputs["initial_state"] = state
        inputs[operand] = kind
    name = named("own_forward", *form)
    traits = ("gate_domain", "beta_domain", "norm")
    values = {
        "name": name,
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in inputs.items()),
        "tokens": "".join(f"\n      {operand}(%{operand} : {kind})" for operand, kind in inputs.items()),
        "attributes": "".join(f"{text}, " for trait in traits for text in chosen[trait].get("attributes", [])),
        "states": state,
        "values": types["v"],
        "chunk": str(manifest["hopper"]["chunk_tokens"]),
    }
    return segment_kernel(manifest, name, "OwnForward", row, fill(template, values))


def _scan(manifest: dict[str, Any], channels: str, is_late: bool, template: str) -> Kernel:
    """The kernel that goes over the segments of a sequence, from what the first of them makes of the caller's state. The
    forward is launched when it has begun, or, if `is_late`, when the maps are done."""
    row = {**ANY, "channels": channels}
    types = manifest["hopper"]["channels"][channels]
    states = f"tensor<?x?x{types['v']}x{types['k']}xf32>"
    inputs = {
        "map": f"tensor<?x?x{types['k']}x{types['k']}xf16>", "decay": "tensor<?x?xf32>", "states": states,
        "first_segments": "tensor<?xi32>", "before": "tensor<?xi32>", "starts": "tensor<?x?xi32>",
        "boundaries": "tensor<?xi32>", "last_segments": "tensor<?xi32>",
    }  # fmt: skip
    name = named("own_scan", channels, "late" if is_late else "")
    values = {
        "name": name,
        "op": "gdn.stage.segment_scan",
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in inputs.items()),
        "operands": "".join(f"\n      {operand}(%{operand} : {kind})" for operand, kind in inputs.items()),
        "attributes": ("beside, " if is_late else "") + "state_layout = #gdn.state_layout<vk>",
        "values": "%r0",
        "noted_results": states,
        "results": states,
    }
    return segment_kernel(manifest, name, "OwnLateScan" if is_late else "OwnScan", row, fill(template, values))


def own_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The kernels of calls of the manifest's forms; none where no call can be split."""

    def is_named(form: Form) -> bool:
        values = form._asdict()
        named_rows = manifest["hopper"]["segments"].get("own", [])
        return any(all(values[key] in row[key] for key in row) for row in named_rows)

    forms = [form for form in forms_of(manifest, rows) if is_named(form)]
    if not forms:
        return []
    templates = {name: (HERE / f"{name}.mlir.in").read_text() for name in ("own_boundaries", "own_maps", "own_forward", "hopper")}
    kernels = []
    cuts = {
        "OwnCut": ("own_boundaries", _ONE_LENGTH),
        "OwnSampledCut": (
            "own_sampled_boundaries",
            _two_lengths(manifest["hopper"]["segments"]["tolerance"], manifest["hopper"]["chunk_tokens"]),
        ),
    }
    for (layout, values), (stage, (word, cut)) in itertools.product(_CUTS.items(), cuts.items()):
        name = named(word, "128", layout)
        text = fill(templates["own_boundaries"], {**CUTS[layout], **values, **cut, "name": name})
        kernels.append(segment_kernel(manifest, name, stage, {**ANY, "layout": layout}, text))
    kernels += [maps_kernel(manifest, form, templates["own_maps"], "own_maps", "OwnMaps") for form in forms]
    kernels += [_forward(manifest, form, templates["own_forward"]) for form in forms]
    for channels, is_late in itertools.product(sorted({form.channels for form in forms}), (False, True)):
        kernels.append(_scan(manifest, channels, is_late, templates["hopper"]))
    return kernels
