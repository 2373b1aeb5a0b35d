# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that say they lie on a GPU, for the fake driver of test/Unit/Runtime, which computes nothing."""

import ctypes
import math
import pathlib

#: The driver of the C++ tests, built by scripts/test.sh.
DRIVER = pathlib.Path(__file__).parents[2] / "build" / "lib" / "libgdn-fake-cuda.so"
#: What makes a process use it. It does not know the parameters of real kernels.
ENVIRONMENT = {"GDN_CUDA_DRIVER": str(DRIVER), "FAKE_CUDA_MISSING": "cuKernelGetParamInfo"}

#: DLPack's code and bits.
_TYPES = {"bfloat16": (4, 16), "float16": (2, 16), "float32": (2, 32), "int32": (0, 32), "int64": (0, 64), "bool": (6, 8)}
_CUDA = 2


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_make_capsule = ctypes.pythonapi.PyCapsule_New
_make_capsule.restype = ctypes.py_object
_make_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """A tensor of a type, a shape and strides on a device; its address is never read."""

    _next = 1 << 20

    def __init__(self, dtype, *shape, strides=None, device=0, offset=0):
        dense = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        self.dtype, self.shape, self.strides, self.device = dtype, shape, list(strides or dense), device
        self.address = Tensor._next + offset
        # Memory of its own, at a multiple of 256.
        reach = 1 + sum(max(n - 1, 0) * s for n, s in zip(shape, self.strides))
        Tensor._next += (8 * reach + offset + 511) // 256 * 256

    def __dlpack_device__(self):
        return _CUDA, self.device

    def __dlpack__(self, **_):
        numbers = ctypes.c_int64 * len(self.shape)
        # Alive for as long as the tensor: the capsule owns nothing.
        self.numbers = numbers(*self.shape), numbers(*self.strides)
        code, bits = _TYPES[self.dtype]
        self.managed = _DLManagedTensor(
            DLTensor(self.address, _CUDA, self.device, len(self.shape), code, bits, 1, *self.numbers, 0), None, None
        )
        return _make_capsule(ctypes.addressof(self.managed), b"dltensor", None)


class Driver:
    """What the fake driver has been asked."""

    class Config(ctypes.Structure):
        """LaunchConfig (lib/Runtime/Driver.h)."""

        _fields_ = [
            ("grid", ctypes.c_uint32 * 3),
            ("block", ctypes.c_uint32 * 3),
            ("shared_bytes", ctypes.c_uint32),
            ("stream", ctypes.c_void_p),
            ("attributes", ctypes.c_void_p),
            ("num_attributes", ctypes.c_uint32),
        ]

    class Launch(ctypes.Structure):
        """The beginning of FakeLaunch (test/Unit/Runtime/FakeDriver.h)."""

    Launch._fields_ = [
        ("config", Config),
        ("cluster", ctypes.c_uint32 * 3),
        ("function", ctypes.c_void_p),
        ("device", ctypes.c_int),
    ]

    class Map(ctypes.Structure):
        """The beginning of FakeMap."""

        _fields_ = [
            ("type", ctypes.c_int),
            ("rank", ctypes.c_uint32),
            ("address", ctypes.c_void_p),
            ("extents", ctypes.c_uint64 * 5),
            ("strides", ctypes.c_uint64 * 4),
        ]

    def __init__(self):
        self.library = ctypes.CDLL(str(DRIVER))
        self.library.fakeLastLaunch.restype = ctypes.POINTER(self.Launch)
        self.library.fakeLastMap.restype = ctypes.POINTER(self.Map)
        self.library.fakeLaunchedKernel.restype = ctypes.c_char_p
        self.library.fakeStream.restype = ctypes.c_void_p
        #: The kernels of conversions, as far as they were seen.
        self.conversions = {}

    def count(self, function):
        return self.library.fakeCount(function.encode())

    def kernels_of(self, function):
        """The names of the kernels that a function launches, at most 64, in order."""
        before = self.count("cuLaunchKernelEx")
        function()
        count = self.count("cuLaunchKernelEx") - before
        return [self.library.fakeLaunchedKernel(back).decode() for back in reversed(range(count))]

    def are_conversions(self, kernels, names):
        """Whether kernels are those of these conversions, one each. A kernel is called after its contents: a conversion has
        one kernel in all calls, which no other conversion has."""
        for kernel, name in zip(kernels, names):
            if not kernel.startswith("gdn_convert_") or self.conversions.setdefault(name, kernel) != kernel:
                return False
        return len(kernels) == len(names) and len(set(self.conversions.values())) == len(self.conversions)

    def fail(self, function, result):
        self.library.fakeFail(function.encode(), result)

    @property
    def current_device(self):
        return self.library.fakeCurrentDevice()

    @property
    def last_launch(self):
        return self.library.fakeLastLaunch().contents

    @property
    def last_map(self):
        return self.library.fakeLastMap().contents
