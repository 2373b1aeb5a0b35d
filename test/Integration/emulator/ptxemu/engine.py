"""The engine (Engine/Engine.h): a library that runs warps, and what it shares with Python."""

import ctypes

import numpy as np

#: What gdnEmulatorRun returns.
EFFECT, ENDED, PREEMPTED, FAILED = range(1, 5)
#: 32 lanes of 32 bits, in which the registers of a warp lie.
SLOT_WORDS = 32

INSTRUCTION = np.dtype([(name, np.int32) for name in ("operation", "line", "d", "a", "b", "c", "i", "j")])
BLOCK = np.dtype(
    [(name, np.int32) for name in ("begin", "end", "line", "target", "guard", "negated", "meet", "whole")]
)
ENDS_LANES, NO_BRANCH = -1, -2


def _pointers(*names):
    return [(name, ctypes.c_void_p) for name in names]


class GlobalStruct(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("allocated", ctypes.c_void_p),
    ]


class SharedStruct(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        *_pointers("state", "writer", "written", "written_line", "read", "read_line"),
        *_pointers("reading", "unfenced", "loaded", "dirty"),
        ("threads", ctypes.c_int32),
        ("warps", ctypes.c_int32),
    ]


_pointer, _int, _size = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t
_FUNCTIONS = {
    "Operation": (_int, [ctypes.c_char_p]),
    "Program": (_pointer, [_pointer, _size, _pointer, _size, _pointer, _size]),
    "FreeProgram": (None, [_pointer]),
    "Log": (_pointer, []),
    "FreeLog": (None, [_pointer]),
    "Warp": (_pointer, [_pointer] * 7 + [_int] * 3 + [ctypes.c_uint64, _size, _pointer, _size]),
    "FreeWarp": (None, [_pointer]),
    "Run": (_int, [_pointer, _pointer]),
    "Failure": (ctypes.c_char_p, [_pointer]),
    "HasProducts": (ctypes.c_bool, [_pointer]),
    "BeginAsyncRead": (ctypes.c_bool, [_pointer, _pointer, _size, _int, ctypes.c_bool]),
    "EndAsyncRead": (None, [_pointer, _pointer, _size]),
    "BeginCopy": (ctypes.c_bool, [_pointer, _pointer, _pointer, _size, _int, _pointer, _int, ctypes.c_bool]),
}
#: The library's functions by name, without their prefix.
functions = {}
_operations = {}


def load(path):
    """Opens the engine that the build made (libgdn-emulated-warps.so)."""
    library = ctypes.CDLL(path)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"gdnEmulator{name}")
        function.restype, function.argtypes = result, arguments
        functions[name] = function


def operation(name):
    """The number of an operation; -1 where there is none."""
    if name not in _operations:
        _operations[name] = functions["Operation"](name.encode())
    return _operations[name]
