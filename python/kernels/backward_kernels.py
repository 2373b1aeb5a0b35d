# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of gradients on a Hopper GPU (docs/Training.md), for generate.py.

They take packed sequences, log gates and values of beta, in float32. The package brings other forms of a call to this
one.
"""

from __future__ import annotations

import itertools
from typing import Any

from kernel_traits import HERE, Kernel, fill

_AXES = ("channels", "element", "state")


def _types(manifest: dict[str, Any], row: dict[str, str]) -> dict[str, str]:
    """The types of all arrays by name; of a call without states there are none."""
    hopper, element = manifest["hopper"], manifest["types"][row["element"]]["mlir"]
    k, v = (hopper["channels"][row["channels"]][name] for name in ("k", "v"))
    rows, columns = (v, k) if "VK" in row["state"] else (k, v)
    types = {
        "keys": f"tensor<1x?x?x{k}x{element}>",
        "values": f"tensor<1x?x?x{v}x{element}>",
        "vector": f"tensor<1x?x?xf32>",
        "kept": f"tensor<?x?x{v}x{k}x{element}>",
    }
    return types if row["state"] == "None" else {**types, "state": f"tensor<?x?x{rows}x{columns}xf32>"}


def _operands(types: dict[str, str]) -> dict[str, str]:
    """The types of the forward's operands by name, in their order."""
    vector = types["vector"]
    operands = {"q": types["keys"], "k": types["keys"], "v": types["values"], "beta": vector, "gate": vector}
    if "state" in types:
        operands["initial_state"] = types["state"]
    return {**operands, "cu_seqlens": "tensor<?xi32>"}


def _text(manifest: dict[str, Any], name: str, row: dict[str, str], template: str) -> str:
    types = _types(manifest, row)
    operands, state, vector = _operands(types), types.get("state"), types["vector"]
    inputs = {**operands, "d_o": types["values"], **({"d_final_state": state} if state else {})}
    # dq, dk, dbeta and dgate; dv and the gradient of the initial state are those of the stage before.
    gradients = [types["keys"], types["keys"], vector, vector]
    results = [*gradients[:2], types["values"], *gradients[2:], *([state] if state else [])]
    is_v_first = "VK" in row["state"]
    layout = manifest["hopper"]["state_layouts"]["VK" if is_v_first else "KV"]
    values = {
        **types,
        "name": name,
        "arguments": ", ".join(f"%{operand}: {kind}" for operand, kind in inputs.items()),
        "operands": " ".join(f"{operand}(%{operand} : {kind})" for operand, kind in operands.items()),
        "attributes": "".join(f"{text}, " for text in layout.get("attributes", [])),
        "chunk": str(manifest["hopper"]["chunk_tokens"]),
        "segment": str(manifest["hopper"]["backward"]["segment_tokens"]),
        "from": ", %d_initial_state" if state else "",
        "to": f" d_final_state(%d_final_state : {state})" if state else "",
        "state_type": f", {state}" if state else "",
        "gradients": ", ".join(gradients),
        "results": ", ".join(results),
    }
    return fill(template, values)


def hopper_backward_kernels(manifest: dict[str, Any]) -> list[Kernel]:
    """A function for each choice of values; none where the manifest has no table of them."""
    table = manifest["hopper"].get("backward")
    if table is None:
        return []
    template = (HERE / "backward_hopper.mlir.in").read_text()
    kernels = []
    for choice in itertools.product(*(table[axis] for axis in _AXES)):
        row = dict(zip(_AXES, choice))
        channels = manifest["hopper"]["channels"][row["channels"]]
        words = [channels.get("word", row["channels"]), row["element"], row["state"].replace(" ", "_")]
        name = "_".join(["gdn_hopper_backward", *filter(None, words)]).lower()
        ends, *rest = row["state"].split()
        fields = [name, channels["k"], channels["v"], row["element"], ends, *(rest or ["KV"])[:1]]
        line = f"GDN_HOPPER_BACKWARD({', '.join(map(str, fields))})"
        kernels.append(Kernel(name, _text(manifest, name, row, template), [], line))
    return kernels
