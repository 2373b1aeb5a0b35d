# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the runtime says of the GPUs of this machine."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from . import _library


class Device(NamedTuple):
    """A GPU as the driver describes it."""

    ordinal: int
    name: str
    compute_capability: int
    multiprocessors: int


class _DeviceInfo(ctypes.Structure):
    """GdnDeviceInfo of gdn-c/Runtime.h."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("compute_capability", ctypes.c_int32),
        ("multiprocessors", ctypes.c_int32),
        ("shared_bytes", ctypes.c_int32),
        ("l2_bytes", ctypes.c_int32),
        ("name", ctypes.c_char * 64),
    ]


def _runtime() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_library.path()))
    library.gdnGetLastErrorMessage.restype = ctypes.c_char_p
    return library


def devices() -> tuple[list[Device], str]:
    """The GPUs, and why there are none if there are none."""
    library = _runtime()
    count = ctypes.c_int32()
    if library.gdnDeviceGetCount(ctypes.byref(count)) != 0:
        return [], library.gdnGetLastErrorMessage().decode()
    found = []
    for index in range(count.value):
        info = _DeviceInfo(struct_size=ctypes.sizeof(_DeviceInfo))
        if library.gdnDeviceGetInfo(index, ctypes.byref(info)) == 0:
            found.append(Device(index, info.name.decode(), info.compute_capability, info.multiprocessors))
    return found, "" if found else "the driver lists no device"
