# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a library that has DLPack's exchange functions, as torch 2.10 has (as hopper_checks.py)."""

import ctypes

import pytest
from fake_cuda import DLTensor
from hopper_checks import ARGUMENTS, SCALE, device, driver, tensors  # noqa: F401

from gdn import _library

POINTER, FUNCTION = ctypes.c_void_p, ctypes.CFUNCTYPE


class _Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", POINTER), ("deleter", FUNCTION(None, POINTER)),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI of the fake tensors, whose memory is at an address that nobody reads."""

    _allocator = FUNCTION(ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.POINTER(_Managed)), POINTER, POINTER)
    _reader = FUNCTION(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
    _stream = FUNCTION(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(POINTER))
    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("previous", POINTER), ("allocate", _allocator), ("take", POINTER),
        ("give", POINTER), ("read", _reader), ("stream", _stream),
    ]  # fmt: skip

    def __init__(self, stream, fails=False):
        super().__init__((ctypes.c_uint32 * 2)(1, 3), None)
        self.allocated, self.released, self.managed = [], [], _Managed()
        self.managed.deleter = FUNCTION(None, POINTER)(self.released.append)
        self.managed.tensor.data = 1 << 44

        def allocate(prototype, out, *_):
            self.allocated.append(prototype.contents.shape[0])
            out[0] = ctypes.pointer(self.managed)
            return -1 if fails else 0

        def read(tensor, out):
            tensor.__dlpack__()
            out[0] = tensor.managed.tensor
            return 0

        def current(kind, number, out):
            out[0] = stream
            return 0

        self.allocate, self.read, self.stream = self._allocator(allocate), self._reader(read), self._stream(current)

    def run(self, arguments):
        values = tuple(arguments.get(name) for name in ARGUMENTS)
        _library.load().forward_objects(ctypes.addressof(self), id(values), SCALE, 0, 1, 0)


def test_stream_and_memory():
    """A call is launched on their current stream, and its workspace is of their allocator until the call returns."""
    stream = driver.library.fakeStream(0)
    exchange = Exchange(stream)
    assert _library.load().reads_objects(ctypes.addressof(exchange))
    exchange.run(tensors(T=256))
    assert not exchange.allocated and driver.last_launch.config.stream == stream
    own = driver.count("cuMemAlloc")
    exchange.run(tensors(T=65536, HV=4))
    assert len(exchange.allocated) == len(exchange.released) == 1 and exchange.allocated[0] > 0
    assert exchange.released == [ctypes.addressof(exchange.managed)]
    assert driver.count("cuMemAlloc") == own


def test_no_memory():
    launches = driver.count("cuLaunchKernelEx")
    with pytest.raises(MemoryError, match="bytes of workspace on cuda:0 by the allocator of the tensors, got none"):
        Exchange(None, fails=True).run(tensors(T=65536, HV=4))
    assert driver.count("cuLaunchKernelEx") == launches


def test_other_versions():
    exchange = Exchange(None)
    exchange.version[0] = 2
    assert not _library.load().reads_objects(ctypes.addressof(exchange))
