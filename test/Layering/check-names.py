#!/usr/bin/env python3
"""Checks that Python files use no undefined name: most of ours run on a GPU machine alone, where nobody would see it.

Usage: check-names.py SOURCE_DIR. A name is defined if its function, an enclosing one, the file or Python defines it.
Attributes, and names in files with `import *`, are not checked.
"""

import ast
import builtins
import pathlib
import symtable
import sys

FOLDERS = ["cmake", "docs", "python", "scripts", "test", "tools"]
BUILTIN = {*dir(builtins), "__file__"}
# lit runs its configuration with names of its own.
EXTRA = {"lit.cfg.py": {"config", "lit_config"}}


def scopes(table):
    yield table
    for child in table.get_children():
        yield from scopes(child)


def check(path, name):
    text = path.read_text()
    try:
        tree, top = ast.parse(text), symtable.symtable(text, str(path), "exec")
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: error: expected Python, got {error.msg}"]
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return []
    defined = BUILTIN | EXTRA.get(path.name, set())
    # A function may define a name of the file: `global`.
    defined |= {symbol.get_name() for table in scopes(top) for symbol in table.get_symbols()
                if (table is top or symbol.is_declared_global()) and (symbol.is_assigned() or symbol.is_imported())}
    problems = []
    for table in scopes(top):
        unknown = {symbol.get_name() for symbol in table.get_symbols()
                   if symbol.is_referenced() and (symbol.is_global() or table is top)} - defined
        for unknown_name in sorted(unknown):
            line = min((node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name)
                        and node.id == unknown_name and node.lineno >= table.get_lineno()), default=table.get_lineno())
            problems.append((line, unknown_name))
    return [f"{name}:{line}: error: expected a defined name, got {unknown}" for line, unknown in sorted(problems)]


def main():
    root = pathlib.Path(sys.argv[1])
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    problems = [problem for path in paths for problem in check(path, path.relative_to(root).as_posix())]
    if not paths:
        problems.append("error: expected files to check, got none")
    print("\n".join(problems) or f"{len(paths)} files without undefined names")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
