#!/usr/bin/env python3
"""A sequence alone and behind another one: inputs of a packed forward, and whether its results are the same bits.

neighbours.py write DIRECTORY: both.<n>.npy and alone.<n>.npy, the arguments of kda-packed.mlir.
neighbours.py compare BOTH ALONE: directories of results.
"""

import pathlib
import random
import struct
import sys

FIRST, SECOND, HEADS, K, V = 75, 300, 2, 64, 32


def write(path, kind, shape, data):
    """An .npy file of little-endian numbers."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)


def read(path):
    """The numbers of an .npy file, as bytes."""
    data = path.read_bytes()
    return data[10 + int.from_bytes(data[8:10], "little"):]


def floats(count, low, high):
    return [random.uniform(low, high) for _ in range(count)]


def write_inputs(directory):
    random.seed(0)
    # q, k, v, beta, gate: numbers of a token and the range they are from.
    arrays = [((HEADS, K), -0.2, 0.2), ((HEADS, K), -0.2, 0.2), ((HEADS, V), -1, 1), ((HEADS,), 0, 1), ((HEADS, K), -0.1, 0)]
    for number, (shape, low, high) in enumerate(arrays):
        size = HEADS * (shape[1] if shape[1:] else 1)
        tokens = struct.pack(f"<{(FIRST + SECOND) * size}f", *floats((FIRST + SECOND) * size, low, high))
        write(directory / f"both.{number}.npy", "<f4", (1, FIRST + SECOND, *shape), tokens)
        write(directory / f"alone.{number}.npy", "<f4", (1, SECOND, *shape), tokens[FIRST * size * 4:])
    size = HEADS * V * K
    states = struct.pack(f"<{2 * size}f", *floats(2 * size, -1, 1))
    write(directory / "both.5.npy", "<f4", (2, HEADS, V, K), states)
    write(directory / "alone.5.npy", "<f4", (1, HEADS, V, K), states[size * 4:])
    write(directory / "both.6.npy", "<i4", (3,), struct.pack("<3i", 0, FIRST, FIRST + SECOND))
    write(directory / "alone.6.npy", "<i4", (2,), struct.pack("<2i", 0, SECOND))


def main():
    if sys.argv[1] == "write":
        return write_inputs(pathlib.Path(sys.argv[2]))
    both, alone = map(pathlib.Path, sys.argv[2:])
    for name in ("0.npy", "1.npy"):
        of_both, of_alone = read(both / name), read(alone / name)
        if not of_alone or of_both[-len(of_alone):] != of_alone:
            sys.exit(f"expected the same bits in {name} with and without a neighbour, got others")


if __name__ == "__main__":
    main()
