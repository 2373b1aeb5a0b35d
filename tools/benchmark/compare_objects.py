#!/usr/bin/env python3
# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times builds of one compiled layer in turn, in one process and on the same memory.

Usage: compare_objects.py FIRST.so SECOND.so ... [--function layer] [--lengths 8192x4] [--size T=32768] [--rounds 5]

Each library is an object of gdn-compile, linked with the runtime, and has the header of that object beside it:

  gdn-compile layer.mlir --target=sm_90a --emit=obj -o before.o      # and before.h
  clang -shared before.o -o before.so -L LIB -lgdn-runtime

Prints for each library, in ms: "rest", the median over the rounds of the mean of 30 launches that follow 0.2 s without
work, and "hot", the same of 200 launches after 600; then the ratio to the first library. Standard library only.
"""

import argparse
import array
import ctypes
import math
import pathlib
import random
import re
import statistics
import sys
import time

TYPES = {"bf16": (1, 2), "f16": (2, 2), "f32": (3, 4), "i32": (4, 4), "i64": (5, 8)}  # GDN_DTYPE_*, bytes
BLOCK = 1 << 16  # Elements that are drawn; an array repeats them.


class Tensor(ctypes.Structure):
    """GdnTensor of gdn-c/Runtime.h."""

    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p)]


def read_arguments(header, sizes):
    """Name, type and extents of each argument, of the table in the header's comment."""
    rows = re.findall(r"^/// +(\w+) +(?:in|out|inout) +(\w+) \[([^]]*)\]", header.read_text(), re.M)
    if not rows:
        sys.exit(f"error: expected a table of arguments in {header}, got none")
    arguments = []
    for name, kind, extents in rows:
        shape = []
        for extent in filter(None, extents.split(", ")):
            symbol, _, more = extent.partition("+")
            if not symbol.isdigit() and symbol not in sizes:
                sys.exit(f"error: expected --size {symbol}=... or --lengths for {name} of {header}, got none")
            shape.append(int(symbol if symbol.isdigit() else sizes[symbol]) + int(more or 0))
        arguments.append((name, kind, shape))
    return arguments


def to_bytes(values, kind):
    """Floats as bf16 (cut off), f16 or f32."""
    raw = array.array("f", values).tobytes()
    if kind == "f32":
        return raw
    if kind == "f16":
        import struct
        return struct.pack(f"{len(values)}e", *values)
    cut = bytearray(len(raw) // 2)
    cut[0::2], cut[1::2] = raw[2::4], raw[3::4]
    return bytes(cut)


def draw(name, kind, count, width, generator):
    """Inputs of a layer: unit rows of q and k, log gates of mean -0.05, beta in (0, 1), everything else normal."""
    normal = [generator.gauss(0, 1) for _ in range(min(count, BLOCK))]
    if name in ("q", "k"):
        normal = [x / math.sqrt(width) for x in normal]
    elif name == "gate":
        normal = [-math.log1p(math.exp(-x)) / 16 for x in normal]
    elif name == "beta":
        normal = [1 / (1 + math.exp(-x)) for x in normal]
    data = to_bytes(normal, kind)
    return (data * -(-count // len(normal)))[:count * TYPES[kind][1]]


class Device:
    """The runtime's calls on device 0; a failed one ends the process with its message."""

    def __init__(self, runtime):
        self.runtime = runtime
        runtime.gdnGetLastErrorMessage.restype = ctypes.c_char_p

    def call(self, function, *arguments):
        if function(*arguments):
            sys.exit(f"error: {self.runtime.gdnGetLastErrorMessage().decode()}")

    def allocate(self, size):
        memory = ctypes.c_void_p()
        self.call(self.runtime.gdnMemoryAllocate, 0, ctypes.c_uint64(max(size, 1)), ctypes.byref(memory))
        return memory

    def upload(self, data):
        memory = self.allocate(len(data))
        self.call(self.runtime.gdnMemoryCopyToDevice, 0, memory, data, ctypes.c_uint64(len(data)))
        return memory

    def seconds(self, run, count):
        """Mean seconds of `count` calls, between two events."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self.call(self.runtime.gdnEventCreate, 0, ctypes.byref(event))
        self.call(self.runtime.gdnEventRecord, 0, events[0], None)
        for _ in range(count):
            run()
        self.call(self.runtime.gdnEventRecord, 0, events[1], None)
        self.call(self.runtime.gdnDeviceSynchronize, 0)
        passed = ctypes.c_double()
        self.call(self.runtime.gdnEventGetSeconds, 0, events[0], events[1], ctypes.byref(passed))
        for event in events:
            self.call(self.runtime.gdnEventDestroy, 0, event)
        return passed.value / count


def make_arrays(device, arguments, lengths):
    """One set of arrays for all libraries."""
    generator, tensors = random.Random(1), []
    for name, kind, shape in arguments:
        if name == "cu_seqlens":
            starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
            data = array.array("i" if kind == "i32" else "q", starts).tobytes()
        else:
            data = draw(name, kind, math.prod(shape), shape[-1], generator)
        extents = (ctypes.c_int64 * len(shape))(*shape)
        tensors.append(Tensor(device.upload(data), TYPES[kind][0], len(shape), extents, None))
    return tensors


def make_run(device, library, name, tensors):
    """A call without arguments that launches the library's function."""
    pointers = [ctypes.byref(tensor) for tensor in tensors]
    device.call(getattr(library, f"{name}_prepare"), 0)
    size = ctypes.c_uint64()
    device.call(getattr(library, f"{name}_workspace_bytes"), *pointers, ctypes.byref(size))
    workspace, function = device.allocate(size.value), getattr(library, name)
    return lambda: device.call(function, *pointers, workspace, size, None)


def time_rounds(device, runs, rounds, pause, before, count):
    """Median milliseconds of each of `runs`, in turn."""
    times = [[] for _ in runs]
    for _ in range(rounds):
        for run, mine in zip(runs, times):
            time.sleep(pause)
            if before:
                device.seconds(run, before)
            mine.append(device.seconds(run, count) * 1e3)
    return [statistics.median(mine) for mine in times]


def read_lengths(text):
    lengths = []
    for part in filter(None, text.split("+")):
        length, _, count = part.partition("x")
        lengths += [int(length)] * int(count or 1)
    return lengths


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="+", type=pathlib.Path)
    parser.add_argument("--function", default="layer", help="name of the compiled function")
    parser.add_argument("--lengths", default="", help="packed sequences: 8192x4 or 28672+4096")
    parser.add_argument("--size", action="append", default=[], help="a dynamic size: T=32768")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-hot", action="store_true")
    options = parser.parse_args()
    lengths = read_lengths(options.lengths)
    sizes = {"T": sum(lengths), "N": len(lengths)} if lengths else {}
    sizes.update(size.split("=") for size in options.size)

    arguments = [read_arguments(path.with_suffix(".h"), sizes) for path in options.libraries]
    if any(other != arguments[0] for other in arguments):
        sys.exit("error: expected libraries with the same arguments, got different ones")
    loaded = [ctypes.CDLL(str(path.resolve())) for path in options.libraries]
    device = Device(loaded[0])
    device.call(loaded[0].gdnDeviceMakeCurrent, 0)
    tensors = make_arrays(device, arguments[0], lengths)
    runs = [make_run(device, library, options.function, tensors) for library in loaded]
    for run in runs:
        device.seconds(run, 3)
    rested = time_rounds(device, runs, options.rounds, 0.2, 0, 30)
    hot = [float("nan")] * len(runs) if options.no_hot else time_rounds(device, runs, options.rounds, 0, 600, 200)
    print("library                         rest ms  ratio     hot ms  ratio")
    for path, rest, warm in zip(options.libraries, rested, hot):
        first = [rested[0] or 1, hot[0] or 1]
        print(f"{path.name:30} {rest:8.4f}  {rest / first[0]:5.3f}   {warm:8.4f}  {warm / first[1]:5.3f}")


if __name__ == "__main__":
    main()
