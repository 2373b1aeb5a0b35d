# Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of libraries that are neither torch nor NumPy: a made-up one, and JAX where it is installed."""

import ctypes

import numpy as np
import pytest
from reference import make_inputs

import gdn

ml_dtypes = pytest.importorskip("ml_dtypes")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FUNCTIONS = [gdn.chunk_gated_delta_rule, gdn.fused_recurrent_gated_delta_rule]


def type_code(capsule):
    """The code of the type of a DLPack capsule, to read and to write."""
    name = b"dltensor_versioned" if "dltensor_versioned" in repr(capsule) else b"dltensor"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_uint8.from_address(pointer(capsule, name) + (52 if b"versioned" in name else 20))


class Library:
    """A library of arrays that has bfloat16 beside NumPy's types, and both kinds of capsules or the older one alone."""

    def __init__(self, versioned):
        self.versioned = versioned

    def array(self, values):
        return Array(self, values)

    def from_dlpack(self, other):
        capsule = other.__dlpack__()
        code = type_code(capsule)
        assert code.value in (2, 4)
        is_bfloat16, code.value = code.value == 4, 1 if code.value == 4 else 2
        view = type("View", (), {"__dlpack__": lambda _, **__: capsule, "__dlpack_device__": lambda _: (1, 0)})()
        values = np.from_dlpack(view)
        return Array(self, values.view(BFLOAT16) if is_bfloat16 else values)


class Array:
    def __init__(self, library, values):
        self.library, self.values, self.shape, self.dtype = library, values, values.shape, values.dtype

    def __array_namespace__(self):
        return self.library

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **words):
        if not self.library.versioned and "max_version" in words:
            raise TypeError("max_version")
        if self.dtype != BFLOAT16:
            return self.values.__dlpack__(**words)
        capsule = self.values.view(np.uint16).__dlpack__(**words)
        type_code(capsule).value = 4
        return capsule


def inputs(dtype, **sizes):
    x = make_inputs(**sizes)
    return [*(a.astype(dtype) for a in (x.q, x.k, x.v)), x.g, x.beta]


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16], ids=["f32", "f16", "bf16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_types(function, dtype, versioned):
    """Are taken as NumPy's are, and results are arrays of the caller's library."""
    library = Library(versioned)
    q, k, v, g, beta = inputs(dtype)
    expected = function(q, k, v, g, beta=beta, output_final_state=True)
    q, k, v, g, beta = map(library.array, (q, k, v, g, beta))
    found = function(q, k, v, g, beta=beta, output_final_state=True)
    for got, wanted in zip(found, expected):
        assert isinstance(got, Array) and got.dtype == wanted.dtype
        np.testing.assert_array_equal(got.values, wanted)
    assert found[0].dtype == dtype


def test_gates_and_states_of_bfloat16():
    library = Library(True)
    *qkv, g, beta = inputs(np.float32)
    state = np.ones((1, 4, 64, 64), BFLOAT16)
    given = g.astype(BFLOAT16), beta.astype(BFLOAT16)
    expected = gdn.chunk_gated_delta_rule(*qkv, *given, initial_state=state)[0]
    *arrays, state = map(library.array, (*qkv, *given, state))
    np.testing.assert_array_equal(gdn.chunk_gated_delta_rule(*arrays, initial_state=state)[0].values, expected)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy's views of others are read-only")
def test_outputs_are_written_in_place():
    library = Library(True)
    arrays = inputs(BFLOAT16)
    expected = gdn.chunk_gated_delta_rule(*arrays)[0]
    out = library.array(np.zeros_like(expected))
    assert gdn.chunk_gated_delta_rule(*map(library.array, arrays), out=out)[0] is out
    np.testing.assert_array_equal(out.values, expected)


def test_an_array_on_another_device():
    """Is refused by name, in bfloat16 too."""
    arrays = list(map(Library(True).array, inputs(BFLOAT16)))

    class Elsewhere(Array):
        def __dlpack__(self, **_):
            raise BufferError("it is not on the CPU")

    arrays[1] = Elsewhere(arrays[1].library, arrays[1].values)
    with pytest.raises(ValueError, match="^k: expected an array on the CPU that NumPy can view, got: it is not on"):
        gdn.chunk_gated_delta_rule(*arrays)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_jax(dtype):
    jnp = pytest.importorskip("jax.numpy")
    q, k, v, g, beta = inputs(BFLOAT16 if dtype == "bfloat16" else dtype)
    expected = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
    found = gdn.chunk_gated_delta_rule(*map(jnp.asarray, (q, k, v, g, beta)), output_final_state=True)
    for got, wanted in zip(found, expected):
        assert isinstance(got, jnp.ndarray) and got.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got), wanted)
