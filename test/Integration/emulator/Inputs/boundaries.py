"""Boundaries of segments: `boundaries.py FOLDER` writes what the kernels of the package take and give, `boundaries.py
FOLDER CASE...` compares with what they gave."""

import sys

import numpy

folder, *cases = sys.argv[1:]
for case in cases:
    for number, name in enumerate(("boundaries", "first", "numbers")):
        want, got = (numpy.load(f"{folder}/{path}.npy") for path in (f"{case}.{name}", f"{case}/{number}"))
        if not numpy.array_equal(want, got):
            sys.exit(f"{case}: expected {name} {want.tolist()}, got {got.tolist()}")
if cases:
    sys.exit()
CASES = {
    "even": ([0, 256], 64),
    "long": ([0, 300, 300, 333, 333, 400], 64),
    "one": ([0, 5], 32),
    "tail": ([0, 40, 90], 32),
}


def save(name, values):
    numpy.save(f"{folder}/{name}.npy", numpy.asarray(values, "int32"))


for name, (sequences, length) in CASES.items():
    tokens = 400 if name == "tail" else sequences[-1]
    slots = -(-tokens // length) + len(sequences) - 2
    boundaries, first, numbers = [], [0], []
    for n, (begin, end) in enumerate(zip(sequences, sequences[1:])):
        # ceil(x / L) segments before token x, and one more for each sequence but the first.
        behind = -(-end // length) + n
        cuts = [min(begin + i * length, end) for i in range(behind - len(boundaries))]
        boundaries += cuts
        numbers += [n] * len(cuts)
        first.append(behind)
    boundaries += [sequences[-1]] * (slots + 1 - len(boundaries))
    numbers += [len(sequences) - 2] * (slots - len(numbers))
    save(f"{name}.sizes", numpy.zeros((1, tokens, length)))
    save(f"{name}.cu", sequences)
    save(f"{name}.boundaries", boundaries)
    save(f"{name}.first", first)
    save(f"{name}.numbers", numbers)
save("rows.sizes", numpy.zeros((3, 100, 32)))
save("rows.boundaries", [n * 100 + i * 32 for n in range(3) for i in range(4)] + [300])
save("rows.first", [0, 4, 8, 12])
save("rows.numbers", [n for n in range(3) for _ in range(4)])
