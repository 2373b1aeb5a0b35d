"""Checks a manifest of kernels: check_manifest.py KERNELS MANIFEST, where KERNELS is the folder of generate.py.

Ends with an error if a table has more rows than its bits of a call's options can tell apart, if a gate has other parameters
than the compiler's table of forms says (GateForms.inc), or unless the sample's kernels are kernels of the manifest, some for
each of its rows, with each value of each trait of each kind.
"""

import pathlib
import re
import sys

sys.path.insert(0, sys.argv[1])
from layers import _manifest  # noqa: E402
from modules import modules_of  # noqa: E402

manifest = _manifest.read(pathlib.Path(sys.argv[2]))
for option, field in _manifest.option_fields(manifest).items():
    rows = len(manifest.get(f"{option}s", ()))
    if rows > 1 << field.bits:
        text = f"{1 << field.bits} {option}s, for option {option} has {field.bits} bits"
        sys.exit(f"error: expected at most {text}, got {rows}")
forms = (pathlib.Path(__file__).parents[3] / "include/gdn/GateForms.inc").read_text()
parameters = dict(re.findall(r'^GDN_GATE_FORM\(\w+, "(\w+)", [^,]+, (\w+),', forms, re.MULTILINE))
for key, row in manifest["gate_domains"].items():
    if ("takes" in row) != (parameters[row["fact"]] != "None"):
        sys.exit(f"error: expected parameters of gates as GateForms.inc has them, got {row.get('takes')} of {key}")
whole, sampled, kinds = modules_of(manifest, {}), _manifest.sampled(manifest), manifest["sample"]["kinds"]
every = modules_of(sampled, {})
for kind, row in ((kind, row) for kind, rows in kinds.items() for row in rows):
    if not any(module.kind == kind and _manifest.is_in(module.traits, [row]) for module in every):
        sys.exit(f"error: expected kernels for each row of the sample, got none of kind {kind} with {row}")
sample = modules_of(sampled, kinds)
if more := {module.name for module in sample} - {module.name for module in whole}:
    sys.exit(f"error: expected a sample of the manifest's kernels, got {', '.join(sorted(more))} besides")
values = ({(module.kind, *trait) for module in each for trait in module.traits.items()} for each in (whole, sample))
if missing := set.difference(*values):
    texts = sorted(f"{axis} {value} ({kind})" for kind, axis, value in missing)
    sys.exit(f"error: expected each value of a trait in the sample, got none with {', '.join(texts)}")
