"""Compares two arrays of float32: compare.py A.npy B.npy LARGEST_DIFFERENCE, relative to the largest element of A."""

import array
import sys

numbers = []
for path in sys.argv[1:3]:
    with open(path, "rb") as file:
        data = file.read()
    # A header of 10 bytes, whose last two are the length of the text behind it.
    numbers.append(array.array("f", data[10 + int.from_bytes(data[8:10], "little") :]))
a, b = numbers
largest = max(map(abs, a))
difference = max(abs(x - y) for x, y in zip(a, b))
if len(a) != len(b) or not largest or not difference <= float(sys.argv[3]) * largest:
    sys.exit(f"expected a difference of at most {sys.argv[3]} times {largest}, got {difference}")
