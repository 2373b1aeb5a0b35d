#!/usr/bin/env python3
"""Random tile programs on the CPU way and on the GPU way of the same text, against float64.

  differential.py generate --seed 1 --only 7                      the text of a program
  differential.py check --seed 1 --count 40 --bin build/bin       compile both ways, run on this CPU, compare
  differential.py pack --seed 1 --count 1000 --bin build/bin --out pack    what a GPU machine needs
  differential.py run pack/differential --log differential.json            there: all of them, in one command
  differential.py reduce --seed 1 --only 7 --bin build/bin        the smallest program that fails alike
  differential.py pack --seed 1 --only 7 --variants 300 --bin build/bin    one that is wrong there: smaller ones
  differential.py pack --log differential.json --variants 300 --bin build/bin    and smaller ones of the smallest

Program I of seed S is always the same; docs/Testing.md says more.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import pathlib
import re
import sys

from difftest import batch
from difftest.compile import Tools
from difftest.generate import generate
from difftest.program import from_json
from difftest.reduce import reduce, variants
from difftest.text import text


def numbers(arguments):
    return [arguments.only] if arguments.only is not None else range(arguments.first, arguments.first + arguments.count)


def show(arguments):
    for index in numbers(arguments):
        program = generate(arguments.seed, index)
        print(program.to_json() if arguments.json else text(program))
    return 0


def check_one(arguments, tools, program):
    """What became of a program on both ways."""
    program = generate(arguments.seed, program) if isinstance(program, int) else program
    gpu = None if arguments.cpu_only else tools.compile_gpu(program)
    cpu = None if arguments.gpu_only else tools.run_cpu(program)
    tools.clean(program)
    return {"name": program.name, "gpu": gpu and vars(gpu), "cpu": cpu and vars(cpu)}


def report(rows, arguments):
    """Prints failures and sums; the number of failures."""
    failed, refusals, counts = 0, collections.Counter(), collections.Counter()
    for row in rows:
        for way in ("gpu", "cpu"):
            outcome = row.get(way)
            if not outcome:
                continue
            counts[way, outcome["state"]] += 1
            if outcome["state"] == "failed":
                failed += 1
                print(f"FAIL {row['name']} {way}: {outcome['text']}")
            elif outcome["state"] == "refused":
                refusals[re.sub("[0-9]+", "#", outcome["text"])[:160]] += 1
    if arguments.refusals:
        for message, count in refusals.most_common():
            print(f"{count:5} {message}")
    if arguments.log and not arguments.variants:
        pathlib.Path(arguments.log).write_text(json.dumps(rows, indent=1))
    sums = ", ".join(f"{count} {state} ({way})" for (way, state), count in sorted(counts.items()))
    print(f"{len(rows)} programs of seed {arguments.seed}: {sums}; {failed} failures")
    return failed


def in_parallel(arguments, task, programs):
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        return list(pool.map(task, programs))


class Check:
    """check_one of a command line; it travels to other processes."""

    def __init__(self, arguments, tools):
        self.arguments, self.tools = arguments, tools

    def __call__(self, program):
        return check_one(self.arguments, self.tools, program)


def check(arguments):
    rows = in_parallel(arguments, Check(arguments, Tools(arguments.bin, arguments.work)), numbers(arguments))
    return 1 if report(rows, arguments) or not rows else 0


def pack(arguments):
    """Compiles for a GPU; what compiles is packed."""
    arguments.cpu_only, arguments.gpu_only = False, True
    tools = Tools(arguments.bin, arguments.work)
    programs = in_parallel(arguments, functools.partial(generate, arguments.seed), numbers(arguments))
    if arguments.variants:
        if arguments.log:
            programs = [from_json(json.loads(pathlib.Path(arguments.log).read_text())["smallest"])]
        programs = variants(programs[0], arguments.variants)
    rows = in_parallel(arguments, Check(arguments, tools), programs)
    failed = report(rows, arguments)
    names = {row["name"] for row in rows if row["gpu"]["state"] == "compiled"}
    programs = [program for program in programs if program.name in names]
    runtime = pathlib.Path(arguments.bin).parent / "lib" / "libgdn-runtime.so.0"
    path = batch.pack(programs, tools, runtime, arguments.out)
    print(f"{path}: {len(programs)} programs, {path.stat().st_size / 2 ** 20:.1f} MiB")
    return 1 if failed else 0


def reduce_one(arguments):
    program = reduce(generate(arguments.seed, arguments.only), Tools(arguments.bin, arguments.work), print)
    if not program:
        return 1
    print(text(program))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["generate", "check", "pack", "run", "reduce", "work"])
    parser.add_argument("folder", nargs="?", help="what pack made, unpacked (run)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first program (0)")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", type=int, help="this program alone")
    parser.add_argument("--json", action="store_true", help="generate: the data, not the text")
    parser.add_argument("--bin", default="build/bin", help="where gdn-compile and gdn-run are")
    parser.add_argument("--work", default="differential-work", help="folder for programs and what they become")
    parser.add_argument("--variants", type=int, default=0, help="pack: this many programs that are smaller than --only")
    parser.add_argument("--out", default="pack", help="pack: folder of the archive")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", help="a JSON file with what became of each program")
    parser.add_argument("--gpu-only", action="store_true", help="check: only compile for a GPU")
    parser.add_argument("--cpu-only", action="store_true", help="check: only run on this CPU")
    parser.add_argument("--refusals", action="store_true", help="print what was refused, by message")
    parser.add_argument("--names", help="run: these programs alone, with commas between")
    parser.add_argument("--children", type=int, default=6, help="run: processes that share the GPU (6)")
    arguments = parser.parse_args()
    names = arguments.names.split(",") if arguments.names else None
    if arguments.command == "run":
        return batch.run(arguments.folder, names, arguments.children, arguments.log)
    if arguments.command == "work":
        return batch.work(arguments.folder, names)
    return {"generate": show, "check": check, "pack": pack, "reduce": reduce_one}[arguments.command](arguments)


if __name__ == "__main__":
    sys.exit(main())
