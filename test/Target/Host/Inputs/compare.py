"""Compares arrays of float32: compare.py A.npy B.npy LARGEST_DIFFERENCE, relative to the largest element of A. A and B may
be folders, of which the arrays of A are compared with those of the same names in B."""

import array
import pathlib
import sys


def read(path):
    data = path.read_bytes()
    # A header of 10 bytes, whose last two are the length of the text behind it.
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little") :])


def compare(first, second, limit):
    a, b = read(first), read(second)
    largest = max(map(abs, a))
    difference = max(abs(x - y) for x, y in zip(a, b))
    if len(a) != len(b) or not largest or not difference <= limit * largest:
        sys.exit(f"{first}: expected a difference of at most {limit} times {largest}, got {difference}")


first, second = map(pathlib.Path, sys.argv[1:3])
names = sorted(path.name for path in first.glob("*.npy")) if first.is_dir() else [""]
if not names:
    sys.exit(f"{first}: expected arrays, got none")
for name in names:
    compare(first / name, second / name, float(sys.argv[3]))
