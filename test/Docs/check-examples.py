#!/usr/bin/env python3
"""Check that the examples in the pages of the levels are what the tools print.

usage: check-examples.py SOURCE_DIR TOOLS_DIR PAGE...

A block of mlir whose first line is `// gdn-... arguments` shows lines of that command's output, in
order; `...` stands for anything that was cut. So does a block of text whose first line is `$ gdn-...
arguments`, where a backslash at the end continues the command; its lines may be of the diagnostics.
"""

import pathlib
import re
import shlex
import subprocess
import sys


def shows(example, line):
    """Whether `line` is `example` with its cuts filled in."""
    pieces = [re.escape(piece) for piece in example.strip().split("...")]
    return re.search(".*".join(pieces), line)


def check(page, command, examples, root, tools):
    """Returns how many lines of the block the output does not have."""
    tool, *arguments = shlex.split(command.replace("\\\n", " "))
    run = subprocess.run([f"{tools}/{tool}", *arguments], cwd=root, capture_output=True, text=True)
    if run.returncode:
        print(f"{page}: error: expected '{command}' to succeed, got {run.stderr.splitlines()[0]}")
        return 1
    output = iter((run.stdout + run.stderr).splitlines())
    for example in examples:
        if not any(shows(example, line) for line in output):
            print(f"{page}: error: expected a line of '{command}', got '{example.strip()}'")
            return 1
    return 0


def main():
    root, tools, *pages = sys.argv[1:]
    blocks = failures = 0
    for page in pages:
        text = pathlib.Path(page).read_text()
        blocks_of_page = re.findall(r"```mlir\n// (gdn-[^\n]*)\n(.*?)```", text, re.DOTALL)
        blocks_of_page += re.findall(
            r"```text\n\$ (gdn-(?:\\\n|[^\n])*)\n(.*?)```", text, re.DOTALL)
        for command, lines in blocks_of_page:
            blocks += 1
            failures += check(page, command, lines.splitlines(), root, tools)
    print(f"{blocks} examples, {failures} not current")
    return 1 if failures or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
