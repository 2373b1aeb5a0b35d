# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bfloat16 of other libraries as NumPy arrays, and back: NumPy's own DLPack functions know no such type.

They do know 16-bit integers. So a view of bfloat16 passes as one of these on its way: the type is changed in the
description that the producer made for this one view (a DLPack capsule), never in the producer's array.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy

#: Codes of types in DLPack.
_UNSIGNED, _BFLOAT = 1, 4
#: Kinds of capsules by name, with the place of the array's type in what they hold: behind the address, the device and
#: the number of dimensions. In the newer kind the version, two addresses and flags are in front.
_TYPE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}
#: Whether NumPy takes the newer kind.
_TAKES_VERSIONS = tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1)


class _Type(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _View:
    """What gives a capsule that is there already."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _type_of(capsule: Any) -> _Type | None:
    """The type that a capsule's array has, to read and to write; None of another kind of capsule."""
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes, is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    for name, place in _TYPE_AT.items():
        if is_valid(capsule, name):
            return _Type.from_address(pointer(capsule, name) + place)
    return None


def _export(array: Any) -> Any:
    """An array's capsule, of the newer kind if there is one: the older one does not say whether it can be written."""
    if _TAKES_VERSIONS:
        # Libraries that do not know the keyword have no such capsule.
        with contextlib.suppress(TypeError):
            return array.__dlpack__(max_version=(1, 0))
    return array.__dlpack__()


def read_bfloat16(array: Any) -> numpy.ndarray[Any, Any]:
    """A view of another library's array of bfloat16.

    Raises:
        ImportError: ml_dtypes is not installed, which has the type for NumPy.
        BufferError, RuntimeError, TypeError, ValueError: NumPy cannot view the array.
    """
    import ml_dtypes

    capsule = _export(array)
    dtype = _type_of(capsule)
    if dtype is None or (dtype.code, dtype.bits, dtype.lanes) != (_BFLOAT, 16, 1):
        raise TypeError("a description of another type than bfloat16")
    dtype.code = _UNSIGNED
    bits: numpy.ndarray[Any, Any] = numpy.from_dlpack(_View(capsule, array.__dlpack_device__()))
    return bits.view(ml_dtypes.bfloat16)


def export_bfloat16(array: numpy.ndarray[Any, Any]) -> Any:
    """An array of ml_dtypes' bfloat16 as `from_dlpack` of other libraries takes it."""
    bits = array.view(numpy.uint16)
    capsule = bits.__dlpack__()
    dtype = _type_of(capsule)
    assert dtype is not None
    dtype.code = _BFLOAT
    return _View(capsule, bits.__dlpack_device__())
