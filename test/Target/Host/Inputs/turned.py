"""Moves the last dimension of float32 arrays [B, H, C, T] to the second place: turned.py IN.npy OUT.npy B H C T."""

import array
import sys

source, target, *sizes = sys.argv[1:]
batches, heads, channels, tokens = map(int, sizes)
with open(source, "rb") as file:
    data = file.read()
numbers = array.array("f", data[10 + int.from_bytes(data[8:10], "little") :])
turned = array.array("f")
for batch in range(batches):
    for token in range(tokens):
        first = batch * heads * channels * tokens + token
        turned.extend(numbers[first : first + heads * channels * tokens : tokens])
text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(batches, tokens, heads, channels)}, }}".ljust(117) + "\n"
with open(target, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    turned.tofile(file)
