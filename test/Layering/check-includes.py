#!/usr/bin/env python3
"""Checks that a folder includes only what stands before it in the flow (docs/Architecture.md)."""

import pathlib
import re
import sys

# Folder below include/gdn or lib, and include/gdn-c under its own name: the folders of ours that it
# may include besides itself. The longest prefix of a file's path decides.
MAY_INCLUDE = {
    "GateForms": [],
    "Dialect/NamedArguments": [],
    "Dialect/ElementTypes": [],
    "Dialect/InsertionPoint": [],
    "Dialect/KnownAttributes": [],
    "Dialect/GDN/IR": ["Dialect/ElementTypes.h", "Dialect/KnownAttributes", "GateForms"],
    "Dialect/Tile/IR": ["Dialect/ElementTypes.h", "Dialect/KnownAttributes", "Dialect/NamedArguments.h"],
    "Dialect/Warp/IR": ["Dialect/ElementTypes.h", "Dialect/KnownAttributes", "Dialect/NamedArguments.h"],
    # Arch.h is plain numbers.
    "CostModel": ["Dialect/Warp/IR/Arch.h"],
    "Dialect/GDN/Transforms": ["Dialect/GDN/IR"],
    "Dialect/Tile/Transforms": ["Dialect/GDN/IR", "Dialect/Tile/IR"],
    "Dialect/Tile/Transforms/CPU": ["Dialect/Tile/IR"],
    "Dialect/Tile/Transforms/GPU": ["Dialect/InsertionPoint.h", "Dialect/Tile/IR"],
    "Dialect/Warp/Transforms": ["Dialect/Warp/IR"],
    "Conversion": ["Dialect", "CostModel"],
    "Pipelines": ["Dialect", "Conversion"],
    "Target": [],
    "Target/PTX": ["Dialect/GDN/IR", "Dialect/Warp/IR"],
    "Target/Host": ["Dialect/GDN/IR", "Dialect/Tile/IR", "Dialect/Warp/IR", "Dialect/ElementTypes.h", "Target/CPU.h",
                    "gdn-c/Calls.h", "gdn-c/Runtime.h"],
    "Reference": ["GateForms"],
    "Runtime": ["gdn-c/Runtime.h"],
    "Calls": ["CostModel", "GateForms", "gdn-c/Calls.h", "gdn-c/Runtime.h"],
    "gdn-c": [],
    "InitAll": ["Dialect", "Conversion", "Pipelines", "Target", "Version.h"],
    "CAPI": ["gdn-c", "Pipelines", "Target", "InitAll.h", "Version.h"],
    "Tools": ["Dialect/GDN", "Dialect/ElementTypes.h", "Pipelines", "Target", "CostModel", "Reference", "InitAll.h", "Version.h",
              "Conversion/ScheduleTemplates.h", "gdn-c/Runtime.h"],
    # The library of the Python package.
    "native": ["gdn-c/Calls.h", "gdn-c/Runtime.h"],
    # The precompiled headers and the one-file headers of InitAll.
    "Precompiled": [],
    "PrecompiledDialects": ["Dialect/GDN/IR", "Dialect/Tile/IR", "Dialect/Warp/IR"],
    "Version": [],
}
# Folders that are plain C++: no MLIR and no LLVM.
NO_LLVM = ["Calls", "CostModel", "Reference", "Runtime", "gdn-c", "native"]

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def folder_of(path):
    """The entry of MAY_INCLUDE that such a path belongs to, or None."""
    matches = [folder for folder in MAY_INCLUDE if path.startswith(folder)]
    return max(matches, key=len, default=None)


def check_include(path, included):
    """What is wrong with an include of the file at `path`, or None."""
    folder = folder_of(path)
    if folder is None:
        return "expected a folder that check-includes.py knows"
    if folder in NO_LLVM and included.startswith(("mlir/", "llvm/")):
        return "expected plain C++"
    if included.startswith("../") or "/../" in included:
        return "expected an include below include/ or of the same folder"
    if not included.startswith(("gdn/", "gdn-c/")):
        return None
    allowed = [folder] + MAY_INCLUDE[folder]
    if included.removeprefix("gdn/").startswith(tuple(allowed)):
        return None
    return f"expected an include of {', '.join(allowed)}"


def main():
    root = pathlib.Path(sys.argv[1])
    problems, files = [], 0
    folders = [(root / "include/gdn", "*"), (root / "lib", "*"), (root / "include", "gdn-c/**/*"),
               (root / "python", "native/*")]
    for base, pattern in folders:
        for file in sorted(base.rglob(pattern)):
            if file.suffix not in (".h", ".cpp", ".td"):
                continue
            files += 1
            path = file.relative_to(base).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line) or re.match(r'^include "([^"]+)"', line)
                problem = match and check_include(path, match.group(1))
                if problem:
                    name = file.relative_to(root).as_posix()
                    problems.append(f'{name}:{number}: error: {problem}, got "{match.group(1)}"')
    if not files:
        problems.append("error: expected files to check, got none")
    print("\n".join(problems) or f"{files} files include only what stands before them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
