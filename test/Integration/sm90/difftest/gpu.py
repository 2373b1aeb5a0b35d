"""Programs on a GPU: compiled functions of a shared library, called through libgdn-runtime by ctypes."""

import ctypes
import pathlib

import numpy as np

from .evaluate import Expected, make_inputs
from .numbers import BYTES, from_bits

DTYPES = {"bf16": 1, "f16": 2, "f32": 3, "i32": 4}
UNWRITTEN, GUARD = 0xFF, 0xA5  # Bytes of NaN in every type; bytes around arrays.
GUARD_BYTES = 65536


class Tensor(ctypes.Structure):
    """GdnTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


class Argument(ctypes.Structure):
    """GdnArg of a tensor."""
    _fields_ = [("kind", ctypes.c_int32), ("tensor", ctypes.POINTER(Tensor))]


class Runtime:
    """libgdn-runtime, and the libraries with the programs."""

    def __init__(self, folder):
        self.lib = ctypes.CDLL(str(pathlib.Path(folder) / "libgdn-runtime.so.0"), mode=ctypes.RTLD_GLOBAL)
        self.lib.gdnGetLastErrorMessage.restype = ctypes.c_char_p
        self.folder, self.libraries = pathlib.Path(folder), {}

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments):
            raise RuntimeError(f"{name}: {self.lib.gdnGetLastErrorMessage().decode()}")

    def description(self, library, name):
        """The address of a program's GdnFunctionDesc."""
        if library not in self.libraries:
            self.libraries[library] = ctypes.CDLL(str(self.folder / library))
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.libraries[library], f"{name}_function")))


class Memory:
    """An array on the device between two guards."""

    def __init__(self, runtime, shape, dtype, bits=None):
        self.runtime, self.shape, self.dtype = runtime, list(shape), dtype
        self.bytes = int(np.prod(shape)) * BYTES[dtype]
        around = UNWRITTEN if bits is not None else GUARD  # Who reads beyond an input reads NaN.
        self.image = np.full(self.bytes + 2 * GUARD_BYTES, around, np.uint8)
        self.image[GUARD_BYTES:GUARD_BYTES + self.bytes] = \
            UNWRITTEN if bits is None else np.frombuffer(np.ascontiguousarray(bits).tobytes(), np.uint8)
        self.base = ctypes.c_void_p()
        runtime.call("gdnMemoryAllocate", 0, ctypes.c_size_t(self.image.nbytes), ctypes.byref(self.base))
        self.fill()

    def fill(self):
        self.runtime.call("gdnMemoryCopyToDevice", 0, self.base, self.image.ctypes.data_as(ctypes.c_void_p),
                          ctypes.c_size_t(self.image.nbytes))

    def fetch(self):
        """Bytes of the array, and whether its guards are as they were."""
        image = np.empty_like(self.image)
        self.runtime.call("gdnMemoryCopyFromDevice", 0, image.ctypes.data_as(ctypes.c_void_p), self.base,
                          ctypes.c_size_t(image.nbytes))
        end = GUARD_BYTES + self.bytes
        whole = (image[:GUARD_BYTES] == self.image[:GUARD_BYTES]).all() and (image[end:] == self.image[end:]).all()
        return image[GUARD_BYTES:end], bool(whole)

    def argument(self):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        address = self.base.value + GUARD_BYTES
        tensor = Tensor(address, DTYPES[self.dtype], len(self.shape), shape, None)
        self.keep = (shape, tensor)
        return Argument(1, ctypes.pointer(tensor))

    def free(self):
        self.runtime.call("gdnMemoryFree", 0, self.base)


def launch(runtime, description, inputs, outputs):
    """Runs a program once on fresh outputs: their bytes, or an error in words."""
    for memory in outputs:
        memory.fill()
    arguments = [memory.argument() for memory in inputs + outputs]
    packed = (Argument * len(arguments))(*arguments)
    runtime.call("gdnFunctionLaunchOn", description, 0, packed, len(arguments), None, ctypes.c_size_t(0), None)
    runtime.call("gdnDeviceSynchronize", 0)
    results = [memory.fetch() for memory in outputs]
    return [image for image, _ in results], all(whole for _, whole in results)


def as_values(image, memory):
    """An output's bytes in float64, and where nothing was written."""
    kind = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32}[memory.dtype]
    bits = image.view(kind).reshape(memory.shape)
    raw = image.view(np.uint16 if BYTES[memory.dtype] == 2 else np.uint32).reshape(memory.shape)
    return from_bits(bits, memory.dtype), raw == (1 << 8 * BYTES[memory.dtype]) - 1


def run(runtime, program, library):
    """None if a program does on the GPU what float64 says, else what is wrong."""
    bits = make_inputs(program)
    description = runtime.description(library, program.name)
    runtime.call("gdnFunctionPrepare", description, 0)
    inputs = [Memory(runtime, program.shape(a), a.dtype, bits[a.name]) for a in program.inputs()]
    if program.packed:
        inputs.append(Memory(runtime, [len(program.lengths) + 1], "i32", bits["cu"]))
    outputs = [Memory(runtime, program.shape(a), a.dtype) for a in program.outputs()]
    first, whole = launch(runtime, description, inputs, outputs)
    second, whole_again = launch(runtime, description, inputs, outputs)
    wrong = compare(program, Expected(program, bits), outputs, first)
    if not whole or not whole_again:
        wrong.append("wrote outside an output")
    if any((a != b).any() for a, b in zip(first, second)):
        wrong.append("other bits at the second run")
    for memory in inputs + outputs:
        memory.free()
    return "; ".join(wrong) or None


def compare(program, expected, outputs, images):
    wrong = []
    for array, memory, image in zip(program.outputs(), outputs, images):
        values, untouched = as_values(image, memory)
        said = expected.check(array.name, values)
        absent = np.isnan(expected.values[array.name])
        if said:
            wrong.append(f"{array.name}: {said}")
        # A kernel writes zeros to tokens without a sequence.
        elif (absent & ~untouched & (values != 0)).any():
            wrong.append(f"{array.name}: wrote {(absent & ~untouched & (values != 0)).sum()} values that nobody stores")
    return wrong
