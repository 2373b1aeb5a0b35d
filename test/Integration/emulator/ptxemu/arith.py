"""The arithmetic that generated code calls, on arrays of the 32 lanes of a warp."""

import numpy as np

LANES = 32
U16, U32, U64, I32, I64, F16, F32, F64 = (
    np.uint16,
    np.uint32,
    np.uint64,
    np.int32,
    np.int64,
    np.float16,
    np.float32,
    np.float64,
)
LANE = np.arange(LANES)
ALL = np.ones(LANES, bool)
_SIXTEEN = np.full(LANES, 16, U32)


class InFlight:
    """What a register holds while a wgmma may still write it. numpy refuses to compute with it."""

    __slots__ = ()
    __array_ufunc__ = None
    dtype = None

    def __repr__(self):
        return "a register of a wgmma in flight"


IN_FLIGHT = InFlight()


def merge(mask, new, old):
    """A register that the lanes of `mask` write. What the others never wrote has any value."""
    if old is None or old is IN_FLIGHT:
        return new
    return np.where(mask, new, old)


def read(value):
    """A register that may belong to a wgmma in flight."""
    if value is IN_FLIGHT:
        raise TypeError("register of a wgmma in flight")
    return value


def fma(a, b, c):
    """One rounding, but for that of the exact sum to f64."""
    x = np.multiply(a, b, dtype=F64)
    x += c
    return x.astype(F32)


def bf16_bits(x):
    """f32 as bf16 in the low half of words, to nearest even."""
    bits = x.view(U32)
    rounded = (bits + (U32(0x7FFF) + ((bits >> _SIXTEEN[:1]) & U32(1)))) >> _SIXTEEN[:1]
    nan = x != x
    return np.where(nan, U32(0x7FFF), rounded) if nan.any() else rounded


def f16_bits(x):
    return x.astype(F16).view(U16).astype(U32)


def pack(high, low):
    return high << _SIXTEEN[:1] | low


def wide_bf16(x):
    """Both halves of words of bf16 as f32."""
    return (x << _SIXTEEN[:1]).view(F32), (x & U32(0xFFFF0000)).view(F32)


def pairs(kind, function, *operands):
    """An operation on packed pairs: in f32 and rounded, or of f16."""
    if kind == "f16x2":
        wide = [np.ascontiguousarray(x).view(F16).astype(F64) for x in operands]
        return function(*wide).astype(F16).view(U32)
    low, high = zip(*(wide_bf16(np.ascontiguousarray(x)) for x in operands))
    low, high = (function(*(x.astype(F64) for x in half)).astype(F32) for half in (low, high))
    return pack(bf16_bits(high), bf16_bits(low))


def shift_left(x, n, bits):
    """PTX clamps shifts at the width."""
    n = n.astype(x.dtype)
    return np.where(n < bits, x << np.minimum(n, x.dtype.type(bits - 1)), x.dtype.type(0))


def shift_right(x, n, bits):
    n = np.minimum(n, U32(bits - 1)) if x.dtype.kind == "i" else n
    n = n.astype(x.dtype)
    if x.dtype.kind == "i":
        return x >> n
    return np.where(n < bits, x >> np.minimum(n, x.dtype.type(bits - 1)), x.dtype.type(0))


def bit_field(x, start, length, signed):
    value = x.astype(U64) >> np.minimum(start & U32(255), U32(63)).astype(U64)
    length = np.minimum(length & U32(255), U32(32)).astype(U64)
    value &= (U64(1) << length) - U64(1)
    if signed:
        top = length - U64(1)
        value = np.where((value >> top) & U64(1), value | ~((U64(1) << length) - U64(1)), value)
    return value.astype(U32)


def divide(x, y):
    if (y == 0).any():
        raise TypeError("division by zero")
    if x.dtype.kind == "u":
        return x // y
    return (np.sign(x) * np.sign(y) * (np.abs(x.astype(I64)) // np.abs(y.astype(I64)))).astype(x.dtype)


def remainder(x, y):
    return x - divide(x, y) * y


def mul_hi(x, y):
    return ((x.astype(U64) * y.astype(U64)) >> U64(32)).astype(U32)


def mul_hi64(x, y):
    return np.array([(int(a) * int(b)) >> 64 for a, b in zip(x, y)], U64)


def popcount(x):
    return np.array([int(a).bit_count() for a in x], U32)


def leading_zeros(x):
    return np.array([32 - int(a).bit_length() for a in x], U32)


def reverse_bits(x):
    return np.array([int(f"{int(a):032b}"[::-1], 2) for a in x], U32)


def permute_bytes(a, b, selector):
    words = (b.astype(U64) << U64(32)) | a.astype(U64)
    out = np.zeros(LANES, U32)
    for i in range(4):
        select = (selector >> U32(4 * i)) & U32(15)
        if (select & U32(8)).any():
            raise TypeError("prmt that replicates signs")
        byte = (words >> (select.astype(U64) * U64(8))) & U64(255)
        out |= byte.astype(U32) << U32(8 * i)
    return out


def minimum(x, y):
    """Of a NaN and a number, the number."""
    return np.fmin(x, y)


def to_integer(x, dtype, rounding):
    x = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding](x.astype(F64))
    info = np.iinfo(dtype)
    return np.nan_to_num(np.clip(x, info.min, info.max), nan=0.0).astype(dtype)
