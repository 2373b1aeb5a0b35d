#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the kernels of a wheel's build with those of the last full test: kernel-hashes.py FOLDER [--write].

FOLDER is where the build has its kernels: NAME.mlir, NAME.hash (gdn-compile --fingerprint) and kernels.cmake.
python/kernels/hashes.txt has a line for each kernel of the wheel, and the versions of LLVM and ptxas that made it: hashes of
its code and, for a GPU, of what LLVM makes that from. A build without code (--no-code) is compared by the latter. Kernels
whose code FOLDER lacks, or has with fewer functions, as a sample may, are compiled here by --compiler, a few that the hash
of the tree draws: so a tree has one answer.
With --write the kernels of FOLDER, which must be all of the wheel's, become the lines of the file (scripts/test-full.sh).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "python" / "kernels" / "hashes.txt"
TITLE = "# The kernels of the wheel and the hashes of their code, as of the last full test. scripts/test-full.sh writes this file."
#: What a build without code has as the hash of it.
NONE = "-"


def output_of(*command: str | os.PathLike[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def versions(compiler: pathlib.Path, ptxas: pathlib.Path) -> list[str]:
    """What made a kernel beside gdn, a line each."""
    llvm = re.search(r"LLVM (\S+)", output_of(compiler, "--version"))
    cuda = re.search(r"V([\d.]+)", output_of(ptxas, "--version"))
    return [f"# LLVM {llvm[1] if llvm else '?'}", f"# ptxas {cuda[1] if cuda else '?'}"]


def read(folder: pathlib.Path) -> dict[str, str]:
    """The hashes of a build's kernels by name: that of the code, and that of what LLVM makes it from if there is one."""
    return {path.stem: path.with_suffix(".hash").read_text().strip() for path in sorted(folder.glob("*.mlir"))}


def read_texts(folder: pathlib.Path) -> dict[str, str]:
    """What each kernel is compiled from, by name."""
    return {path.stem: path.read_text() for path in folder.glob("*.mlir")}


def read_options(folder: pathlib.Path) -> dict[str, list[str]]:
    """What each kernel is compiled with."""
    text = (folder / "kernels.cmake").read_text()
    return {found[1]: found[2].split() for found in re.finditer(r"set\(gdn_options_of_(\S+) ?(.*)\)", text)}


def are_equal(built: str, known: str) -> bool:
    """Whether a kernel that was built is the known one: by its code or, without it, by what LLVM makes that from."""
    if built.startswith(NONE):
        return built.split()[1:] == known.split()[1:]
    return built.split()[:1] == known.split()[:1]


def compile_one(command: list[str | os.PathLike[str]], environment: dict[str, str], file: pathlib.Path) -> str:
    """The hash of one kernel that is compiled now, as the build of a wheel's sample does."""
    paths = [f"{file}.mlir", f"--fingerprint={file}.hash", "-o", f"{file}.o"]
    subprocess.run([*command, *paths], check=True, env={**os.environ, **environment})
    return pathlib.Path(f"{file}.hash").read_text().strip()


def compile_drawn(
    compiler: pathlib.Path, environment: dict[str, str], folder: pathlib.Path, names: list[str], count: int
) -> dict[str, str]:
    """The hashes of `count` kernels of `folder` that the hash of the tree draws from `names`."""
    command = [compiler, "--emit=obj", "--verify-each=false"]
    tree = output_of("git", "-C", ROOT, "rev-parse", "HEAD^{tree}").strip()
    drawn, options = random.Random(tree).sample(names, min(count, len(names))), read_options(folder)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = pool.map(lambda name: compile_one([*command, *options[name]], environment, folder / name), drawn)
        return dict(zip(drawn, hashes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing with it")
    parser.add_argument("--others", type=int, default=24, metavar="COUNT", help="kernels to compile besides (24)")
    parser.add_argument("--compiler", type=pathlib.Path, default=ROOT / "build" / "bin" / "gdn-compile")
    parser.add_argument(
        "--ptxas", type=pathlib.Path, default=ROOT / ".venv-ptxas" / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"
    )
    arguments = parser.parse_args()
    made_by, built = versions(arguments.compiler, arguments.ptxas), read(arguments.folder)
    if not built:
        sys.exit(f"error: expected kernels in {arguments.folder}, got none")
    if arguments.write:
        if without := sorted(name for name, code in built.items() if code.startswith(NONE)):
            sys.exit(f"error: expected kernels with code, got {', '.join(without)} without")
        lines = [TITLE, *made_by, *(f"{name} {code}" for name, code in built.items())]
        FILE.write_text("\n".join(lines) + "\n")
        print(f"{len(built)} hashes written")
        return 0
    lines = FILE.read_text().splitlines()
    expected = dict(line.split(maxsplit=1) for line in lines if not line.startswith("#"))
    with tempfile.TemporaryDirectory() as temporary:
        folder, texts = pathlib.Path(temporary), read_texts(arguments.folder)
        subprocess.run([sys.executable, ROOT / "python" / "kernels" / "generate.py", folder], check=True)
        whole = read_texts(folder)
        if unlike := sorted(set(expected) ^ set(whole)):
            sys.exit(f"error: expected {FILE.name} to list the wheel's kernels, got {', '.join(unlike)} in one of the two "
                     "alone: run scripts/test-full.sh")  # fmt: skip
        built = {name: code for name, code in built.items() if texts[name] == whole.get(name)}
        left = sorted(name for name in whole if built.get(name, NONE).startswith(NONE))
        # Many have kernels that the build assembled.
        environment = {"GDN_PTXAS": str(arguments.ptxas), "GDN_PTXAS_CACHE": str(arguments.folder.resolve() / "assembled")}
        others = compile_drawn(arguments.compiler, environment, folder, left, arguments.others)
    compared = [*built.items(), *others.items()]
    wrong = [name for name, code in compared if not are_equal(code, expected.get(name, ""))]
    for name in wrong[:10]:
        print(f"{name}: expected the hash {expected.get(name, 'of a kernel that is not in the file')}", file=sys.stderr)
    if wrong:
        changed = [f"{old[2:]} is now {new[2:]}" for old, new in zip(lines[1:], made_by) if old != new]
        cause = f" ({', '.join(changed)})" if changed else ""
        print(f"error: expected the kernels of the last full test, got {len(wrong)} with other code{cause}: "
              "run scripts/test-full.sh, which tests them all and writes their hashes", file=sys.stderr)  # fmt: skip
        return 1
    print(f"{len(built)} kernels, and {len(others)} others, are those of the last full test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
