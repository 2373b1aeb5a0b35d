#!/usr/bin/env python3
"""Holds the sizes of docs/Contributing.md: files of code, and lines of pages.

Usage: check-sizes.py SOURCE_DIR. No C++, TableGen or Python file has more than 400 lines. No line of a page has more
than 120 columns, but for what cannot be broken: rows of tables, code, a single word, and the generated pages.
"""

import pathlib
import sys

MOST_LINES, MOST_COLUMNS = 400, 120
CODE = {".cpp", ".h", ".c", ".td", ".py"}
FOLDERS = ["cmake", "docs", "include", "lib", "python", "scripts", "test", "tools"]
GENERATED = ["docs/Dialects/generated/", "docs/Passes.md"]


def check_code(path, name):
    count = len(path.read_text().splitlines())
    if count > MOST_LINES:
        yield f"{name}: error: expected at most {MOST_LINES} lines, got {count}"


def check_page(path, name):
    is_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_table = line.startswith(("|", "<"))
        if len(line) > MOST_COLUMNS and not is_code and not is_table and " " in line.strip():
            yield f"{name}:{number}: error: expected at most {MOST_COLUMNS} columns, got {len(line)}"


def main():
    root = pathlib.Path(sys.argv[1])
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.is_file()]
    paths += sorted(root.glob("*.md"))
    problems, checked = [], 0
    for path in paths:
        name = path.relative_to(root).as_posix()
        if path.suffix in CODE:
            problems += check_code(path, name)
        elif path.suffix == ".md" and not name.startswith(tuple(GENERATED)):
            problems += check_page(path, name)
        else:
            continue
        checked += 1
    if not checked:
        problems.append("error: expected files to check, got none")
    print("\n".join(problems) or f"{checked} files within their sizes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
