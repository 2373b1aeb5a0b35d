#!/usr/bin/env python3
"""Feeds mutated files to gdn-opt and gdn-compile, which may refuse them but never crash or hang.

Every file of the corpus is mutated textually (tokens swapped, dropped, doubled or exchanged; numbers and
types changed; lines moved between files; cut short) and given to both tools with a pass pipeline or a level
of its own. A signal, an exit code other than 0 or 1, a fatal error's message or more than the allowed
processor time is a failure. The same seed gives the same files and commands.

    test/Fuzz/fuzz.py --count 2000               # all of it: about ten minutes on two cores
    test/Fuzz/fuzz.py --seed 1 --only 17         # one file again

passes.py and element_types.py beside it use the same judge.
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"\s+|//[^\n]*|[%@#!^]?[A-Za-z_][\w.$]*|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|->|\"[^\"\n]*\"|.",
                   re.DOTALL)
NUMBERS = ["0", "1", "-1", "2", "3", "17", "31", "33", "64", "127", "256", "257", "65536", "2147483648",
           "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e400", "-5.0", "?"]
TYPES = ["f16", "bf16", "f32", "f64", "i1", "i8", "i32", "i64", "index", "none", "tf32", "f8E4M3FN"]
# LLVM 22.1: the parser of these ops crashes on a malformed list of dimensions, before any code of ours runs.
UPSTREAM = re.compile(r"mlir::linalg::(?:Transpose|Broadcast|Reduce)Op::parse\(")
SHAPED = ["tensor", "memref", "vector", "complex", "tuple"]

# What gdn-opt is asked to do; gdn-compile goes through the levels.
PIPELINES = [
    [],
    ["--canonicalize", "--cse"],
    ["--verify-roundtrip"],
    ["--gdn-to-stages"],
    ["--gdn-to-stages=plan=separate chunk-size=16"],
    ["--gdn-to-tile"],
    ["--gdn-to-tile=plan=separate operand-type=f32 v-tiles=2"],
    ["--gdn-to-tile=two-product-chain operand-type=bf16"],
    ["--gdn-to-llvm"],
    ["--gdn-to-llvm=plan=separate chunk-size=64"],
    ["--gdn-tile-to-llvm"],
    ["--gdn-verify-stages-form"],
    ["--one-shot-bufferize=bufferize-function-boundaries"],
]
LEVELS = [
    ["--emit=stages"],
    ["--emit=stages", "--plan=separate", "--chunk-size=64"],
    ["--emit=tile"],
    ["--emit=tile", "--plan=separate", "--operand-type=f32"],
    ["--emit=llvm"],
    ["--emit=llvm", "--plan=separate", "--chunk-size=16", "--v-tiles=2"],
    ["--target=sm_90a", "--emit=warp"],
    ["--target=sm_90a", "--emit=ptx"],
    ["--target=sm_90a", "--emit=obj"],
]
# Printed by a tool that dies in an orderly way, with exit code 1.
FATAL = re.compile(r"LLVM ERROR|PLEASE submit a bug report|Assertion .* failed|Sanitizer:|runtime error:")


def split_file(path):
    """The parts of a file, which are modules of their own."""
    parts = re.split(r"^// -----$", path.read_text(), flags=re.MULTILINE)
    return [part for part in parts if part.strip()]


def read_corpus():
    """The text of all examples and tests."""
    paths = sorted(ROOT.glob("docs/examples/*.mlir")) + sorted(ROOT.glob("test/**/*.mlir"))
    return [part for path in paths for part in split_file(path)]


def change_token(rng, tokens, index, vocabulary):
    """Another token of the same kind, or any."""
    token = tokens[index]
    if re.fullmatch(r"-?\d[\d.eE+-]*", token):
        return rng.choice(NUMBERS)
    if token in TYPES:
        return rng.choice(TYPES)
    if token in SHAPED:
        return rng.choice(SHAPED)
    kind = token[0] if token[0] in "%@#!^" else None
    alike = [other for other in vocabulary if (other[0] if other[0] in "%@#!^" else None) == kind]
    return rng.choice(alike or vocabulary)


def mutate_tokens(rng, text, vocabulary):
    tokens = TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return text
    for _ in range(rng.choice([1, 1, 2, 4])):
        i, j = rng.choice(places), rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif kind == 1:
            tokens[i] = ""
        elif kind == 2:
            tokens[i] += " " + tokens[i]
        elif tokens[i]:
            tokens[i] = change_token(rng, tokens, i, vocabulary)
    return "".join(tokens)


def mutate_shapes(rng, text):
    """Sizes and element types inside tensor<...>, which tokens see as one word."""
    shapes = list(re.finditer(r"(?<=<)[\dx?]+x(?=[a-z])|(?<=x)(?:bf16|f16|f32|i32|i64)(?=[,>])", text))
    if not shapes:
        return text
    for match in rng.sample(shapes, min(len(shapes), rng.choice([1, 1, 2, 5]))):
        old = match.group()
        if old.endswith("x"):
            sizes = old[:-1].split("x")
            sizes[rng.randrange(len(sizes))] = rng.choice(NUMBERS[:14] + ["?", "128"])
            if rng.random() < 0.2:
                sizes.append("4")
            new = "x".join(sizes) + "x"
        else:
            new = rng.choice(TYPES)
        # All occurrences, so that types go on fitting and the file gets past the parser.
        text = text.replace(old, new) if rng.random() < 0.6 else text[:match.start()] + new + text[match.end():]
        if len(text) > 1 << 20:
            break
    return text


def mutate_lines(rng, text, other):
    lines, others = text.splitlines(), other.splitlines()
    kind = rng.randrange(4)
    i = rng.randrange(len(lines)) if lines else 0
    if kind == 0 and lines:
        del lines[i]
    elif kind == 1 and lines:
        lines.insert(rng.randrange(len(lines)), lines[i])
    elif kind == 2 and others:
        lines.insert(i, rng.choice(others))
    elif lines:
        lines[i] = lines[i][:rng.randrange(len(lines[i]) + 1)]
    return "\n".join(lines)


def make_file(seed, number, corpus, vocabulary):
    """The mutated file of this number and the commands for it."""
    rng = random.Random(f"{seed}:{number}")
    text = rng.choice(corpus)
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.randrange(10)
        if kind < 4:
            text = mutate_tokens(rng, text, vocabulary)
        elif kind < 7:
            text = mutate_shapes(rng, text)
        elif kind < 9:
            text = mutate_lines(rng, text, rng.choice(corpus))
        else:
            text = text[:rng.randrange(len(text) + 1)]
    return text, rng.choice(PIPELINES), rng.choice(LEVELS)


def judge(command, text, arguments):
    """What is wrong with a command's end, or None."""

    def limit():
        # Processor time and not the clock: a busy machine is no hang.
        resource.setrlimit(resource.RLIMIT_CPU, (arguments.cpu_seconds, arguments.cpu_seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.NamedTemporaryFile("w", suffix=".mlir", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            done = subprocess.run(command + [file.name], capture_output=True, preexec_fn=limit,
                                  timeout=60 * arguments.cpu_seconds, check=False)
        except subprocess.TimeoutExpired:
            return "expected an end, got none"
    errors = done.stderr.decode(errors="replace")
    if done.returncode < 0 and UPSTREAM.search(errors):
        return None
    if done.returncode < 0:
        return f"expected exit code 0 or 1, got signal {-done.returncode}\n{errors[-2000:]}"
    if done.returncode > 1:
        return f"expected exit code 0 or 1, got {done.returncode}\n{errors[-2000:]}"
    if FATAL.search(errors):
        return f"expected no fatal error, got\n{errors[-2000:]}"
    if done.returncode == 1 and "error" not in errors:
        return "expected a message with exit code 1, got none"
    return None


def report(text, name, command, problem, arguments):
    """Keeps a file that fails and says what fails with it."""
    arguments.keep.mkdir(parents=True, exist_ok=True)
    path = arguments.keep / f"{name}.mlir"
    path.write_text(text, encoding="utf-8")
    return f"{' '.join(command)} {path}\n  {problem}"


def run_file(number, corpus, vocabulary, arguments):
    """Problems of one file, as text."""
    text, pipeline, level = make_file(arguments.seed, number, corpus, vocabulary)
    problems = []
    for tool, options in (("gdn-opt", pipeline), ("gdn-compile", level)):
        command = [str(arguments.bin / tool), *options]
        if tool == "gdn-compile":
            command += ["-o", "/dev/null"]
        problem = judge(command, text, arguments)
        if problem:
            problems.append(report(text, f"fuzz-{arguments.seed}-{number}", command, problem, arguments))
    return problems


def run_all(what, total, run, arguments):
    """Runs cases 0 to `total` of this seed, or as many as --count and --seconds say, and returns the exit code."""
    if arguments.only is not None:
        numbers = [arguments.only]
    else:
        numbers = range(total if arguments.count is None else arguments.count)
    begin = time.monotonic()
    is_late = lambda: arguments.seconds is not None and time.monotonic() - begin > arguments.seconds
    todo = iter(numbers)
    failures = done = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        while not (done and is_late()):
            # A few at a time, so that what does not begin in time is left out.
            jobs = [pool.submit(run, number) for number in itertools.islice(todo, 4 * arguments.jobs)]
            if not jobs:
                break
            for job in jobs:
                for problem in job.result():
                    failures += 1
                    print(f"FAIL {problem}", flush=True)
            done += len(jobs)
            if done % 200 < len(jobs):
                print(f"{done} of {len(numbers)} {what}, {failures} failures", file=sys.stderr, flush=True)
    print(f"{done} {what}, {failures} failures")
    return 1 if failures or not done else 0


def make_parser(description, count):
    """The options that all fuzzers have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="folder of the tools")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=count, help="cases to run")
    parser.add_argument("--seconds", type=float, help="begin no further case after so many")
    parser.add_argument("--only", type=int, help="run the case of this number alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cpu-seconds", type=int, default=30, help="processor time a command may take")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("fuzz-failures"),
                        help="folder for the files that fail")
    return parser


def main():
    arguments = make_parser(__doc__, count=100).parse_args()
    corpus = read_corpus()
    vocabulary = sorted({token for text in corpus for token in TOKEN.findall(text)
                         if not token.isspace() and not token.startswith("//")})
    run = lambda number: run_file(number, corpus, vocabulary, arguments)
    return run_all(f"files of a corpus of {len(corpus)}", arguments.count, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
