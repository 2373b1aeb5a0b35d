"""Writes .npy files with the standard library alone: npy.py FILE TYPE SHAPE VALUE...

TYPE is a struct letter (f, d, e, i, q), SHAPE is 2x3, missing values are 0.
"""
import struct
import sys

path, kind, shape, values = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
sizes = [int(size) for size in shape.split("x")]
count = 1
for size in sizes:
    count *= size
number = int if kind in "iq" else float
numbers = [number(value) for value in values] + [number(0)] * (count - len(values))
descr = {"f": "<f4", "d": "<f8", "e": "<f2", "i": "<i4", "q": "<i8"}[kind]
text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(sizes)}, }}"
text += " " * (-(len(text) + 11) % 64) + "\n"
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
    file.write(struct.pack(f"<{count}{kind}", *numbers))
