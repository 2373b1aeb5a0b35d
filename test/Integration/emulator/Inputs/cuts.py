"""Cuts random sequences by a program and by hand: cuts.py FOLDER PACKED ROWS COMMAND..., of so many packed calls and calls of
batch rows; COMMAND is gdn-run and its options."""

import random
import subprocess
import sys

import numpy

folder, packed, rows, *command = sys.argv[1:]
random.seed(7)


def run(entry, k, scalar, more):
    """The three lists that the program makes."""
    shape = "x".join(map(str, k))
    options = [f"--entry={entry}", "--arg-shape", f"0={shape}", "--scalar", scalar, *more, f"--out-dir={folder}"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return [numpy.load(f"{folder}/{number}.npy").astype(int).tolist() for number in range(3)]


def compare(got, boundaries, first, numbers, what):
    for name, have, want in zip(("boundaries", "first_segments", "sequence_numbers"), got, (boundaries, first, numbers)):
        if have != want:
            sys.exit(f"{what}: expected {name} {want}, got {have}")


for _ in range(int(packed)):
    length = 32 * random.randint(1, 6)
    lengths = [random.choice([0, 1, 31, 32, 33, 64, random.randint(0, 500)]) for _ in range(random.randint(1, 7))]
    cu = [0, *(sum(lengths[: n + 1]) for n in range(len(lengths)))]
    # Tokens that no sequence has.
    tokens = cu[-1] + random.choice([0, 0, 1, 100])
    pieces = [max(-(-x // length), 1) for x in cu]
    boundaries, first, numbers = [], [], []
    for n, (begin, end) in enumerate(zip(cu, cu[1:])):
        first.append(pieces[n] + n - 1 if n else 0)
        count = pieces[n + 1] + n - first[-1]
        boundaries += [min(begin + i * length, end) for i in range(count)]
        numbers += [n] * count
    first.append(len(boundaries))
    room = max(-(-tokens // length), 1) + len(lengths) - 1
    boundaries += [cu[-1]] * (room + 1 - len(boundaries))
    numbers += [len(lengths) - 1] * (room - len(numbers))
    numpy.save(f"{folder}/cu.npy", numpy.asarray(cu, "int32"))
    got = run("packed", (1, tokens, 1, 16), f"2={length}", ["--arg", f"1={folder}/cu.npy"])
    compare(got, boundaries, first, numbers, f"{cu}, {tokens} tokens, length {length}")
for _ in range(int(rows)):
    length, batch, tokens = 32 * random.randint(1, 6), random.randint(1, 4), random.choice([0, 1, 32, 33, random.randint(0, 500)])
    pieces = max(-(-tokens // length), 1)
    boundaries = [n * tokens + min(i * length, tokens) for n in range(batch) for i in range(pieces)] + [batch * tokens]
    got = run("rows", (batch, tokens, 1, 16), f"1={length}", [])
    first, numbers = [n * pieces for n in range(batch + 1)], [n for n in range(batch) for _ in range(pieces)]
    compare(got, boundaries, first, numbers, f"{batch} rows of {tokens} tokens, length {length}")
