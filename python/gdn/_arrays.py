# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front end for NumPy arrays and everything else that speaks DLPack."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy

from . import _library
from ._dlpack import export_bfloat16, read_bfloat16
from ._arguments import TENSORS, Call, check_output, has_mixed_types, output_shapes, typed_as_output


#: The arrays that a call writes.
_WRITTEN = ("out", "final_state")


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


def _from_dlpack(name: str, value: Any) -> numpy.ndarray[Any, Any]:
    """A view of an array of another library."""
    # What NumPy raises for a type that it does not know, and producers for what they cannot export.
    refusals = (BufferError, RuntimeError, TypeError, ValueError)
    try:
        if "bfloat16" in str(getattr(value, "dtype", "")):
            return read_bfloat16(value)
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
    _to_library(name, array, name in _WRITTEN)
    strides = [stride // array.itemsize for stride in array.strides]
    return array.dtype.name, array.shape, strides, "cpu", array.__array_interface__["data"][0]


def _like_caller(q: Any, result: numpy.ndarray[Any, Any]) -> Any:
    """The result in the caller's own library."""
    if isinstance(q, numpy.ndarray):
        return result
    if not hasattr(q, "__array_namespace__"):
        return result
    return q.__array_namespace__().from_dlpack(export_bfloat16(result) if is_bf16(result) else result)


def without_mixed_types(call: Call) -> Call:
    """The call that is run for this one: in float32 if q, k and v have different types."""
    arrays = [to_numpy(name, value) for name, value in zip(TENSORS, call[:3])]
    present = [array for array in arrays if array is not None]
    if len(present) < 3 or not has_mixed_types(*(array.dtype.name for array in present)):
        return call
    q, k, v = (array.astype(numpy.float32) for array in present)
    return call._replace(q=q, k=k, v=v, out=None)


def _forward_mixed(call: Call, wide: Call) -> tuple[Any, Any]:
    """Runs the call `wide` for one whose q, k and v have different types."""
    typed: Any = to_numpy("q", typed_as_output(call))
    o, state = forward(*wide)
    o = o.astype(typed.dtype)
    if call.out is not None:
        out: Any = to_numpy("out", call.out)
        check_output(out, o)
        out[...] = o
        return call.out, state
    if call.final_state is None and state is not None:
        state = _like_caller(call.q, state)
    return _like_caller(call.q, o), state


def forward(*values: Any) -> tuple[Any, Any]:
    """Runs the call of these fields on arrays and returns (o, final state or None)."""
    call = Call.of(*values)
    wide = without_mixed_types(call)
    if wide is not call:
        return _forward_mixed(call, wide)
    arrays: dict[str, Any] = {name: to_numpy(name, value) for name, value in zip(TENSORS, call)}
    for name in ("q", "k", "v"):
        if arrays[name] is None:
            raise TypeError(f"{name}: expected a tensor, got None")
    allocate = all(arrays[name].ndim == 4 for name in ("q", "v"))
    cu = arrays["cu_seqlens"]
    if allocate and (cu is None or cu.ndim == 1):
        shape, state_shape = output_shapes(
            call, arrays["q"].shape, arrays["v"].shape, None if cu is None else cu.shape
        )
        if arrays["out"] is None:
            arrays["out"] = numpy.empty(shape, arrays["v"].dtype)
        if arrays["final_state"] is None and call.output_final_state:
            arrays["final_state"] = numpy.empty(state_shape, numpy.float32)
    elif arrays["out"] is None:
        # The library refuses the shapes; it wants an output all the same.
        arrays["out"] = numpy.empty(0, numpy.float32)
    tensors = [_to_library(name, array, name in _WRITTEN) for name, array in arrays.items()]
    options = call.options | _library.BF16_AS_BITS
    _library.load().forward(*tensors, call.scale, options, num_threads(), call.max_seqlen)
    o = call.out if call.out is not None else _like_caller(call.q, arrays["out"])
    if not call.output_final_state:
        return o, None
    state = call.final_state
    return o, state if state is not None else _like_caller(call.q, arrays["final_state"])
