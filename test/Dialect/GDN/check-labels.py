#!/usr/bin/env python3
"""Check that every numbered constraint has a sentence, a check and a test.

usage: check-labels.py SPEC.md CODE_DIR TEST_DIR

A label such as delta_rule_c3 stands in a table row of the specification, in a comment of the code,
and, perhaps with a suffix, as the name of a test function of an invalid*.mlir.
"""

import pathlib
import re
import sys

LABEL = r"([a-z_]+_c\d+)"


def labels(paths, pattern):
    """The labels that `pattern` finds in the files of `paths`."""
    return {label for path in paths for label in re.findall(pattern, path.read_text(), re.MULTILINE)}


def main():
    spec, code, tests = map(pathlib.Path, sys.argv[1:])
    found = {
        "sentence": labels([spec], rf"^\| {LABEL} \|"),
        "check": labels(code.rglob("*.cpp"), rf"// {LABEL}$"),
        "test": labels(tests.glob("invalid*.mlir"), rf"^func\.func @{LABEL}\w*\("),
    }
    wanted = set().union(*found.values())
    missing = [(label, kind) for label in sorted(wanted) for kind in found if label not in found[kind]]
    for label, kind in missing:
        print(f"error: expected a {kind} labelled {label}, got none")
    if not wanted:
        print("error: expected labelled constraints, got none")
    return 1 if missing or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
