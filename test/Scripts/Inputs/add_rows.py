"""Adds rows to a manifest: add_rows.py FROM TO, and TO.twice with one of them twice, TO.full with too many gates,
TO.besides with a sample of its own kernels, TO.few with a sample that lacks gradients, TO.none with a row of no kernel."""

import json
import pathlib
import sys

source, target = map(pathlib.Path, sys.argv[1:])
manifest = json.loads(source.read_text())
hopper = manifest["hopper"]
for table in (hopper, hopper["backward"], manifest["sample"]):
    for row in table["kernels"]:
        if "gate" in row:
            row["gate"] = [gate for gate in row["gate"] if not gate.startswith("Bounded")]
    table["kernels"] = [row for row in table["kernels"] if row.get("gate", True)]
# Gradients of gates a channel have that form alone.
kinds = manifest["sample"]["kinds"]
for kind in ("Backward", "BackwardSaved", "Saving"):
    kinds[kind] = [row for row in kinds[kind] if row.get("decay") != ["Channel"]]
algorithm = ["Chunk"]
hopper["channels"]["64"] = {"k": 64, "v": 64}
del manifest["gate_domains"]["Bounded"]
manifest["gate_domains"]["Mild"] = {"name": "mild", "fact": "bounded", "lower_bound": -1, "takes": ["A_log", "dt_bias"]}
row = {
    "channels": ["64"], "layout": ["Fixed"], "state": ["Any F32"], "gate": ["Log F32"], "beta": ["Value F32"],
    "norm": ["Plain"], "algorithm": algorithm,
}  # fmt: skip
hopper["kernels"] += [
    row,
    {
        "layout": ["Packed"], "state": ["Any F32"], "gate": ["Mild F32"], "beta": ["Logit F32"], "norm": ["Plain"],
        "algorithm": algorithm,
    },
]  # fmt: skip
target.write_text(json.dumps(manifest))
hopper["kernels"].append(row)
target.with_name(target.name + ".twice").write_text(json.dumps(manifest))
hopper["kernels"].pop()
manifest["gate_domains"]["Other"] = manifest["gate_domains"]["Mild"]
target.with_name(target.name + ".full").write_text(json.dumps(manifest))
del manifest["gate_domains"]["Other"]
manifest["sample"]["kernels"] = [{**row, "element": ["F32"]}]
target.with_name(target.name + ".besides").write_text(json.dumps(manifest))

for name, rows in (("few", [{"gate": ["Log F32"]}]), ("none", [{"gate": ["Log F32"], "element": ["I32"]}])):
    manifest = json.loads(source.read_text())
    manifest["sample"]["kinds"]["Backward"] = rows
    target.with_name(f"{target.name}.{name}").write_text(json.dumps(manifest))
