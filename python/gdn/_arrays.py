# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front end for NumPy arrays and everything else that speaks DLPack."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import types
from typing import Any

import numpy

from . import _library
from ._arguments import OUTPUTS, TENSORS, Call, output_shapes, typed_as_output


def num_threads() -> int:
    """Threads for a call: GDN_NUM_THREADS, or the cores that the process may use."""
    wanted = os.environ.get("GDN_NUM_THREADS")
    if wanted is None:
        return len(os.sched_getaffinity(0))
    # Python refuses to read an integer of thousands of digits.
    if not re.fullmatch("0*[1-9][0-9]{0,8}", wanted):
        raise ValueError(f"GDN_NUM_THREADS: expected an integer of 1 to 999999999, got {wanted!r}")
    return int(wanted)


def is_bf16(array: numpy.ndarray[Any, Any]) -> bool:
    """Whether an array is of ml_dtypes' bfloat16, which NumPy knows as an opaque type."""
    return str(array.dtype) == "bfloat16"


# bfloat16 of other libraries. NumPy's own DLPack functions know no such type, but 16-bit integers. So a view of bfloat16
# passes as one of these on its way: the type is changed in the description that the producer made for this one view (a
# DLPack capsule), never in the producer's array.

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


def _view(capsule: Any, device: tuple[int, int]) -> Any:
    """What gives a capsule that is there already."""
    return types.SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: device)


def _type_of(capsule: Any) -> _Type | None:
    """The type that a capsule's array has, to read and to write; None of another kind of capsule."""
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes, is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    for name, place in _TYPE_AT.items():
        if is_valid(capsule, name):
            return _Type.from_address(pointer(capsule, name) + place)
    return None


def _capsule_of(array: Any) -> Any:
    """An array's capsule, of the newer kind if there is one: the older one does not say whether it can be written."""
    if _TAKES_VERSIONS:
        # Libraries that do not know the keyword have no such capsule.
        with contextlib.suppress(TypeError):
            return array.__dlpack__(max_version=(1, 0))
    return array.__dlpack__()


def _read_bfloat16(array: Any) -> numpy.ndarray[Any, Any]:
    """A view of another library's array of bfloat16.

    Raises:
        ImportError: ml_dtypes is not installed, which has the type for NumPy.
        BufferError, RuntimeError, TypeError, ValueError: NumPy cannot view the array.
    """
    import ml_dtypes

    capsule = _capsule_of(array)
    dtype = _type_of(capsule)
    if dtype is None or (dtype.code, dtype.bits, dtype.lanes) != (_BFLOAT, 16, 1):
        raise TypeError("a description of another type than bfloat16")
    dtype.code = _UNSIGNED
    bits: numpy.ndarray[Any, Any] = numpy.from_dlpack(_view(capsule, array.__dlpack_device__()))
    return bits.view(ml_dtypes.bfloat16)


def _export_bfloat16(array: numpy.ndarray[Any, Any]) -> Any:
    """An array of ml_dtypes' bfloat16 as `from_dlpack` of other libraries takes it."""
    bits = array.view(numpy.uint16)
    capsule = bits.__dlpack__()
    dtype = _type_of(capsule)
    assert dtype is not None
    dtype.code = _BFLOAT
    return _view(capsule, bits.__dlpack_device__())


def _from_dlpack(name: str, value: Any) -> numpy.ndarray[Any, Any]:
    """A view of an array of another library."""
    # What NumPy raises for a type that it does not know, and producers for what they cannot export.
    refusals = (BufferError, RuntimeError, TypeError, ValueError)
    try:
        if "bfloat16" in str(getattr(value, "dtype", "")):
            return _read_bfloat16(value)
        return numpy.from_dlpack(value)
    except ImportError as error:
        raise TypeError(f"{name}: expected the package ml_dtypes beside arrays of bfloat16, got: {error}") from error
    except refusals as error:
        raise ValueError(f"{name}: expected an array on the CPU that NumPy can view, got: {error}") from error


def to_numpy(name: str, value: Any) -> numpy.ndarray[Any, Any] | None:
    """A view of an array of any library on the CPU."""
    if value is None or isinstance(value, numpy.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        array = _from_dlpack(name, value)
    else:
        raise TypeError(
            f"{name}: expected a tensor (torch, NumPy, or with __dlpack__) or None, got {type(value).__name__}"
        )
    # NumPy's export forgets the mask. Looked up only where the type is not the usual one: it is imported then.
    if type(array) not in (numpy.ndarray, type(None)) and isinstance(array, numpy.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask, got a masked one; .filled(value) has none")
    if array is not None and not (array.dtype.kind in "fiucb" or is_bf16(array)):
        raise TypeError(f"{name}: expected an array of numbers, got {array.dtype}")
    return array


def _to_library(name: str, array: numpy.ndarray[Any, Any] | None, written: bool) -> Any:
    """The array as the library takes it: native byte order, whole strides, bf16 as its bits."""
    if array is None:
        return None
    if array.dtype == numpy.uint16:
        raise TypeError(f"{name}: expected float32, float16 or bfloat16 (ml_dtypes), got uint16")
    if is_bf16(array):
        array = array.view(numpy.uint16)
    if written and not array.flags.writeable:
        raise ValueError(f"{name}: expected an array that can be written, got a read-only one")
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    if not array.dtype.isnative or not whole or not array.flags.aligned:
        raise ValueError(
            f"{name}: expected native byte order and elements at multiples of their size, got {array.dtype} "
            f"with strides {array.strides}; numpy.ascontiguousarray and astype make such a copy"
        )
    # Read-only arrays cannot be exported; a view of the same memory can.
    if not array.flags.writeable:
        array = _writeable_view(array)
    return array


def _writeable_view(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The same memory without NumPy's note that it is read-only. It is only read."""
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)

    class View:
        __array_interface__ = interface
        owner = array

    return numpy.asarray(View())


def describe(name: str, value: Any) -> tuple[str, tuple[int, ...], list[int], str, int]:
    """Type, extents, strides, device and address of an array that the library takes."""
    array = to_numpy(name, value)
    assert array is not None
    _to_library(name, array, name in OUTPUTS)
    strides = [stride // array.itemsize for stride in array.strides]
    return array.dtype.name, array.shape, strides, "cpu", array.__array_interface__["data"][0]


def _like_caller(q: Any, result: numpy.ndarray[Any, Any]) -> Any:
    """The result in the caller's own library."""
    if isinstance(q, numpy.ndarray) or not hasattr(q, "__array_namespace__"):
        return result
    return q.__array_namespace__().from_dlpack(_export_bfloat16(result) if is_bf16(result) else result)


def forward(*arguments: Any) -> tuple[Any, Any]:
    """Runs the call of these arguments (`Call.of`) on arrays and returns (o, final state or None)."""
    call = Call.of(*arguments)
    arrays: dict[str, Any] = {name: to_numpy(name, value) for name, value in zip(TENSORS, call)}
    allocate = all(arrays[name] is not None and arrays[name].ndim == 4 for name in ("q", "v"))
    cu = arrays["cu_seqlens"]
    if allocate and (cu is None or cu.ndim == 1):
        shape, state_shape = output_shapes(
            call.options, arrays["q"].shape, arrays["v"].shape, None if cu is None else cu.shape
        )
        if arrays["out"] is None:
            arrays["out"] = numpy.empty(shape, typed_as_output(arrays["q"], arrays["v"], call.options).dtype)
        if arrays["final_state"] is None and call.output_final_state:
            arrays["final_state"] = numpy.empty(state_shape, numpy.float32)
    elif arrays["out"] is None:
        # The library refuses the shapes; it wants an output all the same.
        arrays["out"] = numpy.empty(0, numpy.float32)
    tensors = [_to_library(name, array, name in OUTPUTS) for name, array in arrays.items()]
    options = call.options | _library.BF16_AS_BITS
    _library.load().forward(*tensors, call.scale, options, num_threads(), call.max_seqlen)
    o = call.out if call.out is not None else _like_caller(call.q, arrays["out"])
    if not call.output_final_state:
        return o, None
    state = call.final_state
    return o, state if state is not None else _like_caller(call.q, arrays["final_state"])
