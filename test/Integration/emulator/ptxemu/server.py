"""Serves the launches of a process that runs over the emulated driver (Driver.cpp)."""

import mmap
import os
import socket
import struct
import subprocess
import sys
import time

import numpy as np

from . import engine
from .cta import Launch
from .memory import GlobalMemory
from .program import Program
from .ptx import EmulationError, parse

ARENA, ALLOCATE, FREE, IMAGE, LAUNCH = range(1, 6)


class Server:
    def __init__(self, connection, arena, options):
        self.connection, self.file, self.options = connection, arena, options
        self.memory, self.sizes, self.programs = None, {}, {}
        self.launches, self.failed, self.seconds = 0, False, 0.0

    def arena(self, payload):
        base, size = struct.unpack("<2Q", payload)
        os.ftruncate(self.file, size)
        self.memory = GlobalMemory(base, np.frombuffer(mmap.mmap(self.file, size), np.uint8))

    def allocate(self, payload):
        start, size = struct.unpack("<2Q", payload)
        self.sizes[start] = size
        self.memory.allocated[start : start + size] = 1
        # What nobody has written is not a number, so that reading it shows.
        self.memory.bytes[start : start + size] = 0xFF

    def free(self, payload):
        (start,) = struct.unpack("<Q", payload)
        self.memory.allocated[start : start + self.sizes.pop(start, 0)] = 0

    def image(self, payload):
        lines = []
        for name, kernel in parse(payload.decode()).items():
            self.programs[name] = kernel
            lines.append(" ".join([name, str(len(kernel.params)), *(f"{p.offset} {p.size}" for p in kernel.params)]))
        return "\n".join(lines).encode()

    def launch(self, payload):
        *sizes, length = struct.unpack_from("<11Q", payload)
        name = payload[88 : 88 + length].decode()
        if not isinstance(self.programs[name], Program):
            self.programs[name] = Program(self.programs[name])
        launch = Launch(
            self.programs[name],
            self.memory,
            tuple(sizes[0:3]),
            tuple(sizes[3:6]),
            tuple(sizes[6:9]),
            sizes[9],
            payload[88 + length :],
        )
        start = time.time()
        mode = self.options.mode if self.options.mode != "all" else ("random", "lazy", "eager")[self.launches % 3]
        launch.run(mode, f"{self.options.seed}/{self.launches}")
        self.launches += 1
        self.seconds += time.time() - start
        if self.options.verbose:
            print(
                f"emulated {name}: grid {sizes[0:3]}, cluster {sizes[6]}, {mode}, {time.time() - start:.1f} s",
                file=sys.stderr,
            )

    def answer(self, kind, payload):
        handlers = {ARENA: self.arena, ALLOCATE: self.allocate, FREE: self.free, IMAGE: self.image, LAUNCH: self.launch}
        try:
            return 0, handlers[kind](payload) or b""
        except EmulationError as error:
            self.failed = True
            print(f"emulator: {error}", file=sys.stderr, flush=True)
            return 1, b""

    def receive(self, count):
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            if not more:
                return None
            data += more
        return data

    def serve(self):
        while header := self.receive(16):
            kind, size = struct.unpack("<2Q", header)
            status, reply = self.answer(kind, self.receive(size) if size else b"")
            self.connection.sendall(struct.pack("<2Q", status, len(reply)) + reply)


def serve(command, options):
    """Runs a command whose CUDA driver is the emulator; its exit code, or 1 where a kernel failed."""
    engine.load(options.engine)
    here, there = socket.socketpair()
    arena = os.memfd_create("arena")
    os.ftruncate(arena, 1 << 30)
    environment = dict(
        os.environ, GDN_CUDA_DRIVER=options.driver, GDN_EMULATOR=f"{there.fileno()},{arena}", GDN_PTXAS=options.ptxas
    )
    process = subprocess.Popen(command, pass_fds=(there.fileno(), arena), env=environment)
    there.close()
    server = Server(here, arena, options)
    try:
        server.serve()
    finally:
        here.close()
        code = process.wait()
    if not server.launches and not server.failed:
        print("emulator: expected a launch, got none", file=sys.stderr)
        return 1
    if options.verbose:
        print(f"{server.launches} launches emulated in {server.seconds:.1f} s", file=sys.stderr)
    return code or int(server.failed)
