#!/usr/bin/env python3
"""Stands for ptxas: the machine code is an ELF header with the PTX text behind it.

ptxas.py -v -arch=sm_90a kernels.ptx -o kernels.cubin
"""

import struct
import sys

EM_CUDA, HEADER_BYTES = 190, 64


def main():
    arguments = sys.argv[1:]
    output = arguments[arguments.index("-o") + 1]
    (source,) = [a for a in arguments if not a.startswith("-") and a != output]
    header = bytearray(HEADER_BYTES)
    header[:7] = b"\x7fELF\x02\x01\x01"
    struct.pack_into("<HH", header, 16, 2, EM_CUDA)
    with open(source, "rb") as text, open(output, "wb") as image:
        image.write(bytes(header) + text.read() + b"\0")


if __name__ == "__main__":
    main()
