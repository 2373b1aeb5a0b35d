#!/usr/bin/env python3
"""Exchanges element types in the tests of tile programs and kernels and runs what the tests run.

A case is one part of a test, one element type in it that becomes another one wherever it stands, and a command
of the test's RUN lines, or a pipeline down. What no target can carry is to be refused.

    test/Fuzz/element_types.py                           # all of it: about half an hour on two cores
    test/Fuzz/element_types.py --seconds 60 --seed 3
"""

import random
import re
import shlex
import sys

import fuzz

FOLDERS = ["test/Conversion", "test/Dialect/Tile", "test/Dialect/Warp"]
TYPES = ["f16", "bf16", "f32", "f64", "i1", "i4", "i8", "i32", "i64", "index", "tf32", "f8E4M3FN", "f80", "f128",
         "si32", "i128", "complex<f32>", "vector<2xf32>", "!llvm.ptr", "none"]
ELEMENT = re.compile(r"(?<=[x<])(?:bf16|f16|f32|f64|i1|i8|i32|i64)(?=[,>])")
# What needs files or is judged by diagnostics.
DROPPED = re.compile(r"^-?-(?:verify-diagnostics|split-input-file|o$|remark|mlir-disable-threading)")
PIPELINES = [["--gdn-tile-to-warp"], ["--gdn-tile-to-llvm"], ["--pass-pipeline=builtin.module(gdn-tile-to-warp,"
                                                              "gdn-warp-to-llvm)"], ["--gdn-warp-to-llvm"]]


def find_commands(text):
    """The options of gdn-opt in a file's RUN lines."""
    lines = re.findall(r"RUN:(.*)", text)
    joined = "\n".join(lines).replace("\\\n", " ")
    commands = []
    for options in re.findall(r"gdn-opt ([^|\n]*)", joined):
        options = options.split("2>&1")[0]
        if "%t" in options or "%S" in options or "%{" in options:
            continue
        words = [word for word in shlex.split(options) if word != "%s" and not DROPPED.match(word)]
        if words and all(word.startswith("-") for word in words):
            commands.append(words)
    return commands


def list_cases():
    """(part, old type, new type, command): all there are."""
    cases = []
    for folder in FOLDERS:
        for path in sorted((fuzz.ROOT / folder).glob("**/*.mlir")):
            commands = find_commands(path.read_text()) + PIPELINES
            for part in fuzz.split_file(path):
                for old in sorted(set(ELEMENT.findall(part))):
                    cases += [(part, old, new, command) for new in TYPES if new != old for command in commands]
    return cases


def run_case(number, case, arguments):
    """Problems of one exchange."""
    part, old, new, options = case
    text = ELEMENT.sub(lambda match: new if match.group() == old else match.group(), part)
    command = [str(arguments.bin / "gdn-opt"), *options]
    problem = fuzz.judge(command, text, arguments)
    return [fuzz.report(text, f"types-{arguments.seed}-{number}", command, problem, arguments)] if problem else []


def main():
    arguments = fuzz.make_parser(__doc__, count=None).parse_args()
    cases = list_cases()
    random.Random(arguments.seed).shuffle(cases)
    if arguments.count is not None:
        arguments.count = min(arguments.count, len(cases))
    return fuzz.run_all("exchanges of a type", len(cases), lambda number: run_case(number, cases[number], arguments),
                        arguments)


if __name__ == "__main__":
    sys.exit(main())
