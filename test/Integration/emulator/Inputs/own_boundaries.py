"""Boundaries of segments that start on their own: `own_boundaries.py FOLDER` writes what the kernels of the package
take and give, `own_boundaries.py FOLDER CASE...` compares with what they gave."""

import sys

import numpy

folder, *cases = sys.argv[1:]
for case in cases:
    for number, name in enumerate(("boundaries", "first", "before", "closes", "last")):
        want, got = (numpy.load(f"{folder}/{path}.npy") for path in (f"{case}.{name}", f"{case}/{number}"))
        if not numpy.array_equal(want, got):
            sys.exit(f"{case}: expected {name} {want.tolist()}, got {got.tolist()}")
if cases:
    sys.exit()
COUNTED, CHUNK = 2**31 - 1, 32
#: Sequences, the tokens of a segment, its parts, and of those with a second length this and how many of 8 heads keep a
#: state in each sequence.
CASES = {
    "even": ([0, 256], 64, 1),
    "long": ([0, 300, 300, 333, 333, 400], 64, 1),
    "one": ([0, 5], 32, 1),
    "tail": ([0, 40, 90], 32, 1),
    "empty": ([0, 0, 0, 70], 64, 1),
    "parts": ([0, 300, 300, 333, 420], 64, 2),
    "equal": ([0, 520, 1000], 256, 1, 512, [1, 8]),
    "live": ([0, 300, 300, 600, 900, 1200], 64, 1, 128, [0, 0, 1, 3, 4]),
    "live_parts": ([0, 300, 600], 64, 2, 128, [2, 8]),
}


def save(name, values, kind="int32"):
    numpy.save(f"{folder}/{name}.npy", numpy.asarray(values, kind))


def save_gates(name, sequences, live):
    """Gates that nothing of a state is left of behind a token, but in the first heads of each sequence."""
    gates = numpy.full((1, sequences[-1], 8), -20.0)
    for begin, end, heads in zip(sequences, sequences[1:], live):
        gates[:, begin:end, :heads] = 0
    save(f"{name}.gate", gates, "float32")


def equal_part(tokens, longest, parts):
    """Tokens of a part where as many segments as parts of `longest` tokens make have equal lengths, in whole chunks."""
    segments = max(-(-tokens // (longest * parts)), 1)
    return max(-(-tokens // (segments * parts * CHUNK)), 1) * CHUNK


for name, (sequences, length, parts, *second) in CASES.items():
    tokens, part = 400 if name == "tail" else sequences[-1], length // parts
    slots = (-(-tokens // length) + len(sequences) - 2) * parts
    boundaries, first, before, closes, last = [], [0], [], [], []
    for n, (begin, end) in enumerate(zip(sequences, sequences[1:])):
        # ceil(x / L) segments before token x, one at least, and one more for each sequence but the first.
        behind = (max(-(-end // length), 1) + n) * parts
        longest = second[0] // parts if second and not 0 < second[1][n] < 4 else part
        cut = equal_part(end - begin, longest, parts) if second else part
        cuts = [min(begin + i * cut, end) for i in range(behind - len(boundaries))]
        closing = max(-(-(end - begin) // (cut * parts)), 1) - 1
        closes += [n if i // parts == closing else -1 for i in range(len(cuts))]
        last.append(first[-1] + closing * parts)
        boundaries += cuts
        before += [-1 - n, *cuts][: len(cuts)]
        first.append(behind)
    # Parts of the last sequence that nobody needs; the last entry counts.
    rest = slots + 1 - len(boundaries)
    begin = sequences[-2]
    before += [min(begin + (len(cuts) - 1 + i) * cut, sequences[-1]) for i in range(rest - 1)] + [COUNTED]
    closes += [-1] * rest
    boundaries += [sequences[-1]] * rest
    save(f"{name}.sizes", numpy.zeros((1, tokens, part, parts)))
    if second:
        save(f"{name}.longer", numpy.zeros(second[0] // parts))
        save_gates(name, sequences, second[1])
    save(f"{name}.cu", sequences)
    save(f"{name}.boundaries", boundaries)
    save(f"{name}.first", first)
    save(f"{name}.before", before)
    save(f"{name}.closes", closes)
    save(f"{name}.last", last)
save("rows.sizes", numpy.zeros((3, 100, 32, 1)))
save("rows.boundaries", [n * 100 + i * 32 for n in range(3) for i in range(4)] + [300])
save("rows.first", [0, 4, 8, 12])
save("rows.before", [entry for n in range(3) for entry in [-1 - n, *(n * 100 + i * 32 for i in range(3))]] + [COUNTED])
save("rows.closes", [entry for n in range(3) for entry in [-1, -1, -1, n]] + [-1])
save("rows.last", [3, 7, 11])
# The same of which the second row has long segments, and two live heads in the others.
gates = numpy.full((3, 100, 8), -20.0)
gates[0::2, :, :2] = 0
save("live_rows.sizes", numpy.zeros((3, 100, 32, 1)))
save("live_rows.longer", numpy.zeros(64))
save("live_rows.gate", gates, "float32")
cuts = [[0, 32, 64, 96], [100, 164, 200, 200], [200, 232, 264, 296]]
save("live_rows.boundaries", [cut for row in cuts for cut in row] + [300])
save("live_rows.first", [0, 4, 8, 12])
save("live_rows.before", [entry for n, row in enumerate(cuts) for entry in [-1 - n, *row[:3]]] + [COUNTED])
save("live_rows.closes", [-1, -1, -1, 0, -1, 1, -1, -1, -1, -1, -1, 2, -1])
save("live_rows.last", [3, 5, 11])
