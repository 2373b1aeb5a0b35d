"""Looks at random gates by a program and by hand: gate_bound.py FOLDER COUNT COMMAND..., so many calls of each
case; COMMAND is gdn-run and its options."""

import subprocess
import sys

import numpy

folder, count, *command = sys.argv[1:]
random = numpy.random.default_rng(3)
BLOCK, MOST, HEADS, CHANNELS = 8, 40.0, 2, 128
#: What is put into one channel of a block, and whether the block breaks the bound: logarithms, and what raw gates become.
LOGS = {
    "nothing": ([], False), "just kept": ([-39.9], False), "two kept": ([-20.0, -19.9], False), "broken": ([-40.1], True),
    "strong": ([-1000.0], True), "by two": ([-35.0, -5.1], True), "hidden": ([-45.0, 30.0], True), "above": ([41.0], True),
    "NaN": ([numpy.nan], True), "-inf": ([-numpy.inf], True), "inf": ([numpy.inf], True), "all": ([-5.0] * 8, False),
    "all broken": ([-5.01] * 8, True),
}  # fmt: skip
#: None is above 0, and bf16 has few digits.
RAW = {
    "nothing": ([], False), "just kept": ([-38.0], False), "broken": ([-42.0], True), "strong": ([-1000.0], True),
    "by two": ([-35.0, -7.0], True), "NaN": ([numpy.nan], True), "all": ([-4.8] * 8, False), "all broken": ([-5.2] * 8, True),
}  # fmt: skip
CASES = {"log": LOGS, "raw": RAW}


def run(entry, is_packed, arrays):
    options = [f"--entry={entry}_{'packed' if is_packed else 'rows'}", f"--out-dir={folder}"]
    batch, tokens = arrays[0].shape[:2]
    options += ["--arg-shape", f"0={batch}x{tokens}x1x{CHANNELS}"]
    for place, array in enumerate(arrays, start=1):
        numpy.save(f"{folder}/argument{place}.npy", array)
        options += ["--arg", f"{place}={folder}/argument{place}.npy"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return bool(numpy.load(f"{folder}/0.npy").item())


def check(entry, is_packed, case):
    """Puts a case into a block of one sequence, and for packed ones what breaks the bound behind the last sequence."""
    values, is_broken = CASES[entry][case]
    lengths = random.integers(0, 70, 3 if is_packed else 1)
    lengths[-1] += BLOCK
    batch, behind = (1, 3) if is_packed else (2, 0)
    cu = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int32")
    gates = numpy.zeros((batch, cu[-1] + behind, HEADS, CHANNELS))
    n = random.choice(numpy.flatnonzero(lengths >= BLOCK))
    first = cu[n] + BLOCK * random.integers(lengths[n] // BLOCK)
    places = first + numpy.sort(random.permutation(BLOCK)[: len(values)])
    gates[random.integers(batch), places, random.integers(HEADS), random.integers(CHANNELS)] = values
    gates[:, cu[-1] :] = -1000
    arrays = [gates.astype("float32")]
    if entry == "raw":
        # softplus(x) = -g / exp(A_log); x is -g / exp(A_log) where that is large.
        rates, bias = numpy.asarray([0.5, -1.0]), random.normal(size=(HEADS, CHANNELS))
        size = -gates / numpy.exp(rates)[:, None]
        with numpy.errstate(all="ignore"):
            raw = numpy.where(size == 0, -30.0, numpy.where(size > 30, size, numpy.log(numpy.expm1(size)))) - bias
        arrays = [raw.astype("float32"), *([cu] if is_packed else []), rates.astype("float32"), bias.astype("float32")]
    elif is_packed:
        arrays.append(cu)
    found = run(entry, is_packed, arrays)
    if found != is_broken:
        sys.exit(f"{entry}, {'packed' if is_packed else 'rows'}, {case} at {places} of {cu}: expected {is_broken}, got {found}")


for number in range(int(count)):
    for entry, cases in CASES.items():
        for case in cases:
            check(entry, bool(random.integers(2)), case)
