"""Writes 0, factor, 2 factor, ... as float32: numbers.py FILE.npy FACTOR SIZE..."""

import array
import math
import sys

path, factor, *sizes = sys.argv[1:]
shape = tuple(map(int, sizes))
text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    array.array("f", (float(factor) * i for i in range(math.prod(shape)))).tofile(file)
