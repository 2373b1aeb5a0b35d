"""Inputs of the kernels that convert arrays, and what they should make of them.

  conversions.py write DIRECTORY     arrays [B, T, H, C] and the extents of the results
  conversions.py compare DIRECTORY   the results of each kernel, DIRECTORY/KIND/0.npy, with float64: within 1 ulp
"""

import array
import itertools
import math
import pathlib
import random
import struct
import sys

ROWS, WIDE = (2, 37, 2, 140), (2, 41, 2, 150)
INFINITY, NAN = float("inf"), float("nan")


def single(x):
    """As float32."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(INFINITY, x)


def write_array(path, shape, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    path.write_bytes(head + array.array("f", map(single, values)).tobytes())


def read_array(path):
    data = path.read_bytes()
    return array.array("f", data[10 + int.from_bytes(data[8:10], "little") :])


def write(folder):
    draw, count = random.Random(0), math.prod(ROWS)
    gates = [0, 1, 1 - 2**-24, 1e-40, INFINITY, -1, NAN]
    gates += [1 - 10 ** -draw.uniform(0, 7) for _ in range(count // 2)]
    gates += [10 ** -draw.uniform(0, 45) for _ in range(count - len(gates))]
    raw = [0, INFINITY, -INFINITY, NAN, -90, 45, 1e-30, -1, 800, -800]
    raw += [draw.gauss(0, 20) for _ in range(count - len(raw))]
    write_array(folder / "gates.npy", ROWS, gates)
    write_array(folder / "raw.npy", ROWS, raw)
    write_array(folder / "a_log.npy", ROWS[3:], [draw.gauss(0, 3) for _ in range(ROWS[3])])
    write_array(folder / "dt_bias.npy", ROWS[3:], [draw.gauss(0, 1) for _ in range(ROWS[3])])
    write_array(folder / "like.npy", ROWS, [0] * count)
    write_array(folder / "wide.npy", WIDE, [0] * math.prod(WIDE))


def log(x):
    return math.log(x) if x > 0 and x != INFINITY else -INFINITY if x == 0 else x if x > 0 else NAN


def log1p(x):
    return math.log1p(x) if -1 < x < INFINITY else log(1 + x)


def exp(x):
    return INFINITY if x > 709 else math.exp(x)


def softplus(x):
    return x if math.isnan(x) else max(x, 0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if not x < -700 else 0.0


def wanted(folder):
    """What each kernel makes of element i."""
    gates, raw, a_log, dt_bias = (read_array(folder / f"{name}.npy") for name in ("gates", "raw", "a_log", "dt_bias"))
    channels = ROWS[3]
    return {
        "linear_to_log": lambda i: log(gates[i]),
        "log1p": lambda i: log1p(raw[i]),
        "exp": lambda i: exp(raw[i]),
        "softplus_to_log": lambda i: -math.exp(a_log[i % channels]) * softplus(raw[i] + dt_bias[i % channels]),
        "logit_to_value": lambda i: 2 * sigmoid(raw[i]),
        "cast": lambda i: 0.5 * raw[i],
        "fill": lambda i: 1.0,
    }


def is_near(got, want):
    if math.isnan(want) or math.isinf(want):
        return got == want or (math.isnan(got) and math.isnan(want))
    ulp = 2.0 ** max(math.frexp(want)[1] - 24, -149)
    return abs(got - want) <= ulp


def compare(folder):
    for kind, value in wanted(folder).items():
        got = read_array(folder / kind / "0.npy")
        shape = WIDE if kind == "cast" else ROWS
        for place, at in enumerate(itertools.product(*map(range, shape))):
            is_inside = all(x < size for x, size in zip(at, ROWS))
            i = ((at[0] * ROWS[1] + at[1]) * ROWS[2] + at[2]) * ROWS[3] + at[3]
            want = single(value(i)) if is_inside else 0.0
            if not is_near(got[place], want):
                sys.exit(f"{kind}: expected {want} at {at}, got {got[place]}")


{"write": write, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
