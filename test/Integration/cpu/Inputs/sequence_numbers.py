"""`sequence_numbers.py FOLDER` writes the arguments of a step of training in packed sequences that are cut into three
segments each. `sequence_numbers.py FOLDER FILE` prints the stages in FILE with an array in place of the attribute
`sequence_segments`."""

import pathlib
import re
import sys

import numpy

LENGTHS, SEGMENTS, HEADS, D = (300, 0, 70), 3, 2, 128


def write(folder):
    rng, tokens = numpy.random.default_rng(0), sum(LENGTHS)

    def rows(heads):
        return rng.standard_normal((1, tokens, heads, D))

    def states():
        return 0.1 * rng.standard_normal((len(LENGTHS), HEADS, D, D))

    q, k = (x / numpy.linalg.norm(x, axis=-1, keepdims=True) for x in (rows(1), rows(1)))
    beta, gate = rng.random((1, tokens, HEADS)), -0.1 * rng.random((1, tokens, HEADS))
    boundaries = numpy.cumsum([0, *LENGTHS]).astype("i4")
    numbers = numpy.repeat(numpy.arange(len(LENGTHS)), SEGMENTS).astype("i4")
    given = (q, k, rows(HEADS), beta, gate, states(), boundaries, rows(HEADS), states(), numbers)
    for number, array in enumerate(given):
        numpy.save(folder / f"{number}.npy", array if array.dtype == "i4" else array.astype("f4"))


def number(text):
    """The stages with one argument more."""
    attribute = f"sequence_segments = {SEGMENTS} : i64"
    operand = " sequence_numbers(%numbers : tensor<?xi32>) {"
    lines = []
    for line in text.splitlines():
        if "func.func @" in line:
            line = line.replace(") -> (", ", %numbers: tensor<?xi32>) -> (", 1)
        if attribute in line:
            line = re.sub(f", {attribute}|{attribute}, ", "", line).replace(" {", operand, 1)
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        print(number(pathlib.Path(sys.argv[2]).read_text()))
    else:
        write(path)
