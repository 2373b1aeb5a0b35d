"""Roundings to the types of the tile level, and arrays as the bits that a device holds."""

import numpy as np

BYTES = {"f32": 4, "bf16": 2, "f16": 2, "i32": 4}
# Bits of the significand behind the leading one, and the largest number.
MANTISSA = {"f32": 23, "bf16": 7, "f16": 10}
LARGEST = {"f32": 3.0e38, "bf16": 3.0e38, "f16": 65504.0}


def to_bits(values, dtype):
    """Bits of `values`, rounded to nearest even; NaN stays NaN."""
    if dtype == "f32":
        return np.asarray(values, np.float32)
    if dtype == "f16":
        return np.asarray(values).astype(np.float16)
    if dtype == "i32":
        return np.asarray(values, np.int32)
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return np.where(nan, 0x7FC0, rounded).astype(np.uint16)


def from_bits(bits, dtype):
    """The inverse of to_bits, in float64."""
    if dtype == "bf16":
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float64)


def round_to(values, dtype):
    """`values` in float64, rounded to `dtype`."""
    with np.errstate(over="ignore", invalid="ignore"):
        return from_bits(to_bits(values, dtype), dtype)


def ulp(values, dtype):
    """The distance of neighbours in `dtype` around each value."""
    smallest = {"f32": 1e-30, "bf16": 1e-30, "f16": 2.0 ** -14}[dtype]
    exponent = np.floor(np.log2(np.maximum(np.abs(values), smallest)))
    return 2.0 ** (exponent - MANTISSA[dtype])


class Exact:
    """Sums and functions without an error of their own: roundings of the program alone."""

    def done(self, values):
        return values

    def product(self, left, right):
        return left @ right

    function = done


class Noisy:
    """The same, with errors of the size that f32 arithmetic makes, of a seed."""

    # A tensor core truncates what it adds, and exp2 is the chip's approximation.
    SUM, PRODUCT, FUNCTION = 2.0 ** -23, 2.0 ** -20, 2.0 ** -21

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def _noise(self, size, shape):
        return size * self.random.standard_normal(shape)

    def done(self, values):
        return values * (1 + self._noise(self.SUM, values.shape))

    def function(self, values):
        return values * (1 + self._noise(self.FUNCTION, values.shape))

    def product(self, left, right):
        size = np.sqrt((left * left) @ (right * right))
        return left @ right + self._noise(self.PRODUCT, size.shape) * size
