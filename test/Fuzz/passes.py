#!/usr/bin/env python3
"""Runs each pass of gdn-opt alone over the files of all tests, which it may refuse but never crash on.

A pass stands in a pipeline behind others that make what it expects. Alone, it meets whatever its verifier
accepts. A case is one pass over a dozen files in one process; where that process fails, each file of the dozen
is run by itself. The same seed has the same cases in the same order.

    test/Fuzz/passes.py                          # all of it: about an hour on two cores
    test/Fuzz/passes.py --seconds 60 --seed 3
    test/Fuzz/passes.py --pass gdn-cp-split      # one pass over all files
"""

import random
import re
import subprocess
import sys

import fuzz

# Files of one process.
BATCH = 12


def list_passes(arguments):
    """The passes and pipelines of the project that gdn-opt knows."""
    text = subprocess.run([arguments.bin / "gdn-opt", "--help"], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^ +--((?:gdn|convert-gdn)-[a-z0-9-]+)", text, re.MULTILINE)))


def run_case(number, case, corpus, arguments):
    """Problems of one pass with some files."""
    name, first = case
    files = corpus[first:first + BATCH]
    command = [str(arguments.bin / "gdn-opt"), f"--{name}"]
    together = "\n// -----\n".join(files)
    if not fuzz.judge(command + ["--split-input-file"], together, arguments):
        return []
    problems = []
    for place, text in enumerate(files):
        problem = fuzz.judge(command, text, arguments)
        if problem:
            problems.append(fuzz.report(text, f"pass-{name}-{first + place}", command, problem, arguments))
    return problems


def main():
    parser = fuzz.make_parser(__doc__, count=None)
    parser.add_argument("--pass", dest="name", help="this pass alone")
    arguments = parser.parse_args()
    corpus = fuzz.read_corpus()
    names = [arguments.name] if arguments.name else list_passes(arguments)
    cases = [(name, first) for name in names for first in range(0, len(corpus), BATCH)]
    random.Random(arguments.seed).shuffle(cases)
    if arguments.count is not None:
        cases = cases[:arguments.count]
        arguments.count = len(cases)
    run = lambda number: run_case(number, cases[number], corpus, arguments)
    return fuzz.run_all(f"runs of {len(names)} passes over {BATCH} of {len(corpus)} files", len(cases), run,
                        arguments)


if __name__ == "__main__":
    sys.exit(main())
