# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of gradients on a Hopper GPU (docs/Training.md), for generate.py.

They take packed sequences, and the forms of gates, beta and norms that the manifest's rows name. The package brings
other forms of a call to one of these.
"""

from __future__ import annotations

import itertools
from typing import Any

from kernel_traits import HERE, Kernel, fill, traits_of
from layer_functions import RUN_TIME_STATE, layer_function
from forward_kernels import LENGTH, OPTIONS, function_notes

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


def _noted(operand: str, kind: str, name: str = "") -> str:
    """The type of an argument, or of the gradient of one, with what the function says of it."""
    if operand not in _STATES:
        return kind
    return f"{kind} {{{', '.join([*RUN_TIME_STATE, *([f'gdn.name = {chr(34)}{name}{chr(34)}'] if name else [])])}}}"


def _saved_types(manifest: dict[str, Any], row: dict[str, str]) -> dict[str, str]:
    """The types of what a forward saves."""
    channels, element = manifest["hopper"]["channels"][row["channels"]], manifest["types"][row["element"]]["mlir"]
    k, v = channels["k"], channels["v"]
    return {"writes": f"tensor<1x?x?x{v}x{element}>", "states": f"tensor<?x?x{v}x{k}x{element}>"}


def _text(manifest: dict[str, Any], name: str, row: dict[str, str], template: str, reads_saved: bool) -> str:
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
    }
    return fill(template, values)


def _joined(operands: dict[str, str], *names: str) -> str:
    """Operands of a stage, those of these names."""
    return " ".join(f"{name}({operands[name]})" for name in names)


#: What the lines of a template begin with that make what a forward may save.
_INPUTS = "inputs:"


def _segments_text(manifest: dict[str, Any], name: str, row: dict[str, str], template: str, reads_saved: bool) -> str:
    """The same in segments: all stages, of a length that the call brings."""
    lines = template.splitlines(keepends=True)
    template = "".join(line.removeprefix(_INPUTS) for line in lines if not (reads_saved and line.startswith(_INPUTS)))
    types, hopper = _operands(manifest, row), manifest["hopper"]
    k, v = (hopper["channels"][row["channels"]][size] for size in ("k", "v"))
    between, saved = f"tensor<?x?x{v}x{k}xf32>", _saved_types(manifest, row)
    given = {operand: f"%{operand} : {kind}" for operand, kind in types.items()}
    given |= {"initial_state": f"%entry : {between}", "cu_seqlens": "%made#0 : tensor<?xi32>"}
    tokens = ("q", "k", "v", "beta", "gate")
    results = {operand: types[operand] for operand in _DIFFERENTIABLE if operand in types}
    values = {
        "name": name,
        "length": 'index {gdn.name = "segment_length"}',
        "k": types["k"],
        "arguments": ", ".join(f"%{operand}: {_noted(operand, kind, operand)}" for operand, kind in types.items()),
        "gates": _joined(given, "k", "gate", "cu_seqlens"),
        "keys": _joined(given, "k", "beta", "cu_seqlens"),
        "tokens": _joined(given, *tokens, "cu_seqlens"),
        "before": _joined(given, *tokens, "initial_state", "cu_seqlens"),
        "between": "state_layout = #gdn.state_layout<vk>, ",
        "between_type": between,
        "map": f"tensor<?x?x{k}x{k}xf16>",
        "kept": saved["states"],
        "saved": "".join(f", %{operand}: {kind}" for operand, kind in saved.items()) if reads_saved else "",
        # Without these lines each of these stages is taken by the next one.
        "beside": "" if reads_saved else "beside, ",
        "numbers": "\n      sequence_numbers(%made#2 : tensor<?xi32>)" if reads_saved else "",
        "interval": f", state_interval = {saved_tokens(manifest)}" if reads_saved else "",
        "values": types["v"],
        "state": types["initial_state"],
        "gradients": ", ".join([types["q"], types["k"], types["beta"], types["gate"]]),
        "noted_results": ", ".join(_noted(operand, kind, f"d{operand}") for operand, kind in results.items()),
        "results": ", ".join(results.values()),
        "tolerance": str(hopper["segments"]["tolerance"]),
        "chunk": str(hopper["chunk_tokens"]),
        "segment": str(GRADIENT_TOKENS),
    }
    # The stages give dv before dbeta and dgate, as the op does.
    return fill(template, values)


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


def hopper_backward_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """A function for each choice of values of a row, that in segments where it has one, and those of both that read what
    a forward saved."""
    templates = {name: (HERE / f"backward_{name}.mlir.in").read_text() for name in ("hopper", "segments")}
    kernels = []
    for values in rows:
        for choice in itertools.product(*(values[axis] for axis in _AXES)):
            row = dict(zip(_AXES, choice))
            kernels += _backward_kernels(manifest, row, False, templates)
            if _saves(manifest, row):
                kernels += _backward_kernels(manifest, row, True, templates)
    return kernels


def _backward_kernels(
    manifest: dict[str, Any], row: dict[str, str], reads_saved: bool, templates: dict[str, str]
) -> list[Kernel]:
    """The functions of a row, from the call's inputs or from what its forward saved."""
    name, channels = _name(manifest, row), manifest["hopper"]["channels"][row["channels"]]
    if reads_saved:
        name = f"{name}_saved"
    forms = [*row["gate"].split(), *row["beta"].split(), row["norm"]]
    fields = [channels["k"], channels["v"], row["element"], *forms]
    kernels = []

    def add(own: str, text: str, schedule: str, options: list[str], in_segments: bool) -> None:
        flags = [str(flag).lower() for flag in (in_segments, reads_saved)]
        line = f"GDN_HOPPER_BACKWARD({', '.join(map(str, [own, *fields, schedule, *flags]))})"
        kind = f"Backward{'Segments' * in_segments}{'Saved' * reads_saved}"
        kernels.append(Kernel(own, text, options, line, kind, {**row, "schedule": schedule}))

    for schedule, options in _adjoints(manifest, row, reads_saved).items():
        own = f"{name}_{manifest['hopper']['schedules'][schedule]['option']}" if reads_saved else name
        add(own, _text(manifest, own, row, templates["hopper"], reads_saved), schedule, options, in_segments=False)
    if _has_segments(manifest, row):
        cut = name.replace("backward", "backward_segments")
        text = _segments_text(manifest, cut, row, templates["segments"], reads_saved)
        add(cut, text, "CtaPerVTile", [], in_segments=True)
    return kernels


def _adjoints(manifest: dict[str, Any], row: dict[str, str], reads_saved: bool) -> dict[str, list[str]]:
    """The schedules of the adjoint of whole sequences, with options of gdn-compile. What reads saved states begins while it
    runs. A CTA for a head is faster where many sequences fill the GPU."""
    if not reads_saved:
        return {"CtaPerVTile": []}
    options = {"CtaPerVTile": ["--follow-adjoint"]}
    if row["element"] in manifest["hopper"]["saving"].get("per_head_backward", []):
        options["CtaPerHead"] = ["--schedule=adjoint.cta_per_head", "--follow-adjoint"]
    return options


def saving_kernels(manifest: dict[str, Any], rows: list[dict[str, list[str]]]) -> list[Kernel]:
    """The forwards that save for backwards of these rows, of whole sequences and of segments: a module for each form."""
    kernels, hopper = [], manifest["hopper"]
    attributes = [f"state_interval = {saved_tokens(manifest)} : i64"]
    for values in rows:
        for choice in itertools.product(*(values[axis] for axis in _AXES)):
            row = dict(zip(_AXES, choice))
            if not _saves(manifest, row):
                continue
            module = _name(manifest, row).replace("backward", "saving")
            forms = [*row["gate"].split(), *row["beta"].split(), row["norm"]]
            cuts = ("Whole", "Segments") if _has_segments(manifest, row) else ("Whole",)
            texts, lines = [], []
            for cut, schedule in itertools.product(cuts, ("CtaPerHead", "CtaPerVTile")):
                option, in_segments = hopper["schedules"][schedule]["option"], cut == "Segments"
                name = "_".join([module, *(["segments"] if in_segments else []), option])
                texts.append(
                    layer_function(
                        manifest, name, traits_of({**row, "layout": "Packed", "state": "Any F32"}), hopper["schedules"][schedule],
                        scalars=LENGTH if in_segments else None, attributes=attributes,
                        results=_saved_types(manifest, row), notes=function_notes(manifest, schedule),
                    )
                )  # fmt: skip
                fields = [name, hopper["channels"][row["channels"]]["k"], row["element"], str(in_segments).lower()]
                lines.append(f"GDN_HOPPER_SAVING({', '.join(map(str, [*fields, *forms, schedule]))})")
            kernels.append(Kernel(module, "\n".join(texts), OPTIONS, "\n".join(lines), "Saving", row))
    return kernels
