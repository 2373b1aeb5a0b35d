#!/usr/bin/env python3
"""Print the mlir examples of .td files as functions, one an example.

usage: extract-examples.py FILE.td...

The arguments of a function are the values that its example uses with a type and does not define.
"""

import pathlib
import re
import sys


def main():
    count = 0
    for path in sys.argv[1:]:
        for example in re.findall(r"Example:\n\n\s*```mlir\n(.*?)```", pathlib.Path(path).read_text(), re.DOTALL):
            defined = set(re.findall(r"%\w+", "".join(re.findall(r"^(.*?) = \w+\.", example, re.MULTILINE))))
            used = dict(re.findall(r"(%\w+) : (\w+(?:<[^<>]*>)?)", example))
            arguments = ", ".join(f"{name}: {type}" for name, type in used.items() if name not in defined)
            print(f"func.func @example{count}({arguments}) {{\n{example}  return\n}}")
            count += 1


if __name__ == "__main__":
    main()
