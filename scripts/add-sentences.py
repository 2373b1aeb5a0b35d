#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds the sentences of operands, attributes and results to a dialect's page, which mlir-tblgen leaves out.

Usage: llvm-tblgen --dump-json ... OPS.td | scripts/add-sentences.py PAGE.md. A sentence is the text of an
Arg<...> or Res<...> in the .td file. Fails where an operand, attribute or result has none. For scripts/docs.sh.
"""

import json
import pathlib
import re
import sys


def read_sentences(records):
    """The sentence of each named value, by the op's full name."""
    sentences = {}
    for name in records["!instanceof"]["Op"]:
        op = records[name]
        if not op.get("opName"):
            continue
        full = f"{records[op['opDialect']['def']]['name']}.{op['opName']}"
        values = {}
        for value, key in [*op["arguments"]["args"], *op["results"]["args"]]:
            record = records[value["def"]]
            values[key] = record.get("summary", "") if "OpVariable" in record["!superclasses"] else ""
        sentences[full] = values
    return sentences


def add(page, sentences):
    """The page with a sentence in front of what each value is."""
    lines, values = [], {}
    for line in page.splitlines():
        title = re.match(r"### `([\w.]+)` ", line)
        if title:
            values = sentences.get(title.group(1), {})
        row = re.match(r"\| `(\w+)` \| (.*)$", line)
        cell = re.match(r"(<tr><td><code>(\w+)</code></td><td>[^<]*</td><td>)(.*)$", line)
        if row and values.get(row.group(1)):
            line = f"| `{row.group(1)}` | {values[row.group(1)]} Type: {row.group(2)}"
        elif cell and values.get(cell.group(2)):
            line = f"{cell.group(1)}{values[cell.group(2)]} Type: {cell.group(3)}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def main():
    path = pathlib.Path(sys.argv[1])
    sentences = read_sentences(json.load(sys.stdin))
    path.write_text(add(path.read_text(), sentences))
    missing = [f"{op} {name}" for op, values in sentences.items() for name, text in values.items() if not text]
    if missing:
        sys.exit(f"error: expected a sentence (Arg or Res) for {', '.join(missing)}, got none")


if __name__ == "__main__":
    main()
