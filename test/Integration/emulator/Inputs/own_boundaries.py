"""Boundaries of segments that start on their own: `own_boundaries.py FOLDER` writes what the kernels of the package take
and give, `own_boundaries.py FOLDER CASE...` compares with what they gave."""

import sys

import numpy

folder, *cases = sys.argv[1:]
for case in cases:
    for number, name in enumerate(("boundaries", "first", "before", "closes")):
        want, got = (numpy.load(f"{folder}/{path}.npy") for path in (f"{case}.{name}", f"{case}/{number}"))
        if not numpy.array_equal(want, got):
            sys.exit(f"{case}: expected {name} {want.tolist()}, got {got.tolist()}")
if cases:
    sys.exit()
COUNTED = 2**31 - 1
#: Sequences, the tokens of a segment, and its parts.
CASES = {
    "even": ([0, 256], 64, 1),
    "long": ([0, 300, 300, 333, 333, 400], 64, 1),
    "one": ([0, 5], 32, 1),
    "tail": ([0, 40, 90], 32, 1),
    "empty": ([0, 0, 0, 70], 64, 1),
    "parts": ([0, 300, 300, 333, 420], 64, 2),
}


def save(name, values):
    numpy.save(f"{folder}/{name}.npy", numpy.asarray(values, "int32"))


for name, (sequences, length, parts) in CASES.items():
    tokens, part = 400 if name == "tail" else sequences[-1], length // parts
    slots = (-(-tokens // length) + len(sequences) - 2) * parts
    boundaries, first, before, closes = [], [0], [], []
    for n, (begin, end) in enumerate(zip(sequences, sequences[1:])):
        # ceil(x / L) segments before token x, one at least, and one more for each sequence but the first.
        behind = (max(-(-end // length), 1) + n) * parts
        cuts = [min(begin + i * part, end) for i in range(behind - len(boundaries))]
        closing = max(-(-(end - begin) // length), 1) - 1
        closes += [n if i // parts == closing else -1 for i in range(len(cuts))]
        boundaries += cuts
        before += [-1 - n, *cuts][: len(cuts)]
        first.append(behind)
    # Parts of the last sequence that nobody needs; the last entry counts.
    rest = slots + 1 - len(boundaries)
    begin = sequences[-2]
    before += [min(begin + (len(cuts) - 1 + i) * part, sequences[-1]) for i in range(rest - 1)] + [COUNTED]
    closes += [-1] * rest
    boundaries += [sequences[-1]] * rest
    save(f"{name}.sizes", numpy.zeros((1, tokens, part, parts)))
    save(f"{name}.cu", sequences)
    save(f"{name}.boundaries", boundaries)
    save(f"{name}.first", first)
    save(f"{name}.before", before)
    save(f"{name}.closes", closes)
save("rows.sizes", numpy.zeros((3, 100, 32, 1)))
save("rows.boundaries", [n * 100 + i * 32 for n in range(3) for i in range(4)] + [300])
save("rows.first", [0, 4, 8, 12])
save("rows.before", [entry for n in range(3) for entry in [-1 - n, *(n * 100 + i * 32 for i in range(3))]] + [COUNTED])
save("rows.closes", [entry for n in range(3) for entry in [-1, -1, -1, n]] + [-1])
