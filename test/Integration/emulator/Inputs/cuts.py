"""Cuts random sequences by a program and by hand: cuts.py FOLDER COUNT COMMAND..., of so many calls of each kind; COMMAND is
gdn-run and its options."""

import random
import subprocess
import sys

import numpy

folder, count, *command = sys.argv[1:]
random.seed(7)
CHUNK, COUNTED, HEADS = 32, 2**31 - 1, 8
NAMES = ("boundaries", "first_segments", "sequence_numbers")
NAMES_OF_PARTS = ("boundaries", "first_segments", "before", "closes", "last_segments")
NAMES_OF_CHANNELS = (*NAMES_OF_PARTS, "whole_begins", "whole_heads")


def run(entry, numbers, k, scalars, arrays):
    """The lists that the program makes; arrays and scalars are arguments behind k, in this order."""
    options = [f"--entry={entry}", "--arg-shape", "0=" + "x".join(map(str, k)), f"--out-dir={folder}"]
    for place, array in enumerate(arrays, start=1):
        numpy.save(f"{folder}/argument{place}.npy", array)
        options += ["--arg", f"{place}={folder}/argument{place}.npy"]
    for place, scalar in enumerate(scalars, start=1 + len(arrays)):
        options += ["--scalar", f"{place}={scalar}"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return [numpy.load(f"{folder}/{number}.npy").astype(int).tolist() for number in range(numbers)]


def divide(x, y):
    """Rounded up, and 1 at least."""
    return max(-(-x // y), 1)


def cut(cu, tokens, is_packed, length, parts, choose):
    """The lists by hand; `choose` gives the tokens of a part of a sequence."""
    boundaries, first, before, closes, last, numbers = [], [], [], [], [], []
    ahead = 0
    for n, (begin, end) in enumerate(zip(cu, cu[1:])):
        pieces = divide(end, length * parts) + n - ahead if is_packed else divide(tokens, length * parts)
        first.append(ahead * parts)
        ahead += pieces
        last_one = n + 2 == len(cu)
        room = divide(tokens, length * parts) + n if is_packed and last_one else ahead
        size = choose(n, end - begin)
        closing = first[-1] + (divide(end - begin, size * parts) - 1) * parts
        last.append(closing)
        for s in range(first[-1], room * parts):
            i = s - first[-1]
            boundaries.append(min(begin + i * size, end))
            before.append(min(begin + (i - 1) * size, end) if i else -1 - n)
            closes.append(n if closing <= s < closing + parts else -1)
            numbers.append(n)
    first.append(ahead * parts)
    return {
        "boundaries": [*boundaries, cu[-1]], "first_segments": first, "sequence_numbers": numbers,
        "before": [*before, COUNTED], "closes": closes, "last_segments": last,
    }  # fmt: skip


def check(is_packed, kind):
    length, parts = CHUNK * random.randint(1, 6), random.randint(1, 3) if kind else 1
    if is_packed:
        lengths = [random.choice([0, 1, 31, 32, 33, 64, random.randint(0, 500)]) for _ in range(random.randint(1, 7))]
        cu = [0, *(sum(lengths[: n + 1]) for n in range(len(lengths)))]
        # Tokens that no sequence has.
        tokens, batch = cu[-1] + random.choice([0, 0, 1, 100]), 1
    else:
        batch, tokens = random.randint(1, 4), random.choice([0, 1, 32, 33, random.randint(0, 500)])
        cu = [n * tokens for n in range(batch + 1)]
    entry = f"{kind}_{'packed' if is_packed else 'rows'}" if kind else "packed" if is_packed else "rows"
    arrays, scalars = [], [length, *([parts] if kind else [])]

    def choose(n, tokens):
        return length

    if kind in ("lengths", "channels"):
        # Also a shorter one, and one that 32 bits do not hold.
        longer = random.choice([length + CHUNK * random.randint(0, 8), CHUNK, CHUNK << 40])
        scalars.append(longer)
    if kind == "channels":
        arrays.append(numpy.zeros((batch, tokens, HEADS, 16), "float32"))
    if kind == "lengths":
        live = [random.randint(0, HEADS) for _ in cu[1:]]
        gates = numpy.full((batch * tokens, HEADS), -5.0, "float32")
        for count, begin, end in zip(live, cu, cu[1:]):
            gates[begin:end, random.sample(range(HEADS), count)] = 0.0
        arrays.append(gates.reshape(batch, tokens, HEADS))

        def choose(n, tokens):
            longest = length if tokens and live[n] in range(1, HEADS // 2) else max(length, longer)
            return divide(tokens, divide(tokens, longest * parts) * parts * CHUNK) * CHUNK

    if is_packed:
        arrays.append(numpy.asarray(cu, "int32"))
    names = NAMES_OF_CHANNELS if kind == "channels" else NAMES_OF_PARTS if kind else NAMES
    got = run(entry, len(names), (batch, tokens, 1, 16), scalars, arrays)
    wanted = cut(cu, tokens, is_packed, length, parts, choose)
    if kind == "channels":
        # Sequences may be whole where the longer length has room for all tokens.
        begins = [cu[n] if n >= 0 else -1 for n in wanted["closes"]]
        may_be_whole = longer * parts >= tokens
        wanted |= {"whole_begins": begins if may_be_whole else [0] * len(begins), "whole_heads": [0] * HEADS}
    for name, have in zip(names, got):
        if have != wanted[name]:
            sys.exit(f"{entry}, {cu}, {tokens} tokens, {scalars}: expected {name} {wanted[name]}, got {have}")


for kind in ("", "parts", "lengths", "channels"):
    for _ in range(int(count)):
        check(True, kind)
        check(False, kind)
