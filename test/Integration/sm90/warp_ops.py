#!/usr/bin/env python3
"""Runs the kernels of test/Target/PTX on an H100 or H200 and compares them with numpy in float64.

Usage: warp_ops.py DIRECTORY, where DIRECTORY holds NAME.cubin and NAME.json of each kernel
(gdn-translate --gdn-to-cubin and --gdn-to-launch-json). Needs the CUDA driver and numpy alone.
"""

import ctypes
import json
import pathlib
import sys

import numpy as np

MAP_BYTES = 128
SCALARS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}
MAP_TYPES = {"bf16": 9, "f16": 6, "f32": 7}  # CUtensorMapDataType
ITEM_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "i32": 4}
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
SWIZZLES = {0: 0, 128: 3}  # CUtensorMapSwizzle


def to_bf16(values):
    """Rounds to the nearest bf16, ties to even; the bits as uint16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    """The float64 values of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Driver:
    """The few calls of the CUDA driver that the tests make."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")


class Array:
    """An array on the device: a strided view, from element `offset`, of a host array's copy."""

    def __init__(self, driver, host, kind, shape=None, strides=None, offset=0):
        self.driver, self.host, self.kind = driver, np.ascontiguousarray(host), kind
        self.shape = list(shape or host.shape)
        dense = [int(np.prod(self.shape[i + 1:])) for i in range(len(self.shape))]
        self.strides = list(strides or dense)
        self.base = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.base), ctypes.c_size_t(self.host.nbytes))
        driver.call("cuMemcpyHtoD_v2", self.base, self.host.ctypes.data_as(ctypes.c_void_p),
                    ctypes.c_size_t(self.host.nbytes))
        self.pointer = self.base.value + offset * ITEM_BYTES[kind]

    def fetch(self):
        """The whole allocation, in float64."""
        self.driver.call("cuMemcpyDtoH_v2", self.host.ctypes.data_as(ctypes.c_void_p), self.base,
                         ctypes.c_size_t(self.host.nbytes))
        return from_bf16(self.host) if self.kind == "bf16" else self.host.astype(np.float64)


class Kernel:
    """A kernel and what its description says about its arguments."""

    def __init__(self, driver, directory, name):
        self.driver = driver
        description = json.loads((directory / f"{name}.json").read_text())
        self.facts = description["kernels"][0]
        image = (directory / f"{name}.cubin").read_bytes()
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), image)
        driver.call("cuModuleGetFunction", ctypes.byref(self.function), module,
                    self.facts["name"].encode())
        driver.call("cuFuncSetAttribute", self.function, MAX_DYNAMIC_SHARED,
                    self.facts["shared_bytes"])

    def encode(self, fact, array):
        """The tensor map that `fact` describes, of `array`."""
        rank = len(fact["dims"])
        sizes, strides = [], []
        for dim, step, extent in zip(fact["dims"], fact["steps"], fact["extents"]):
            sizes.append(extent or -(-array.shape[dim] // step))
            # A step of -1 is 2^34 elements less a row; 2^30 such steps are 2^30 rows back.
            elements = array.strides[dim] * step + (2**34 if step == -1 else 0)
            strides.append(elements * ITEM_BYTES[fact["type"]])
        storage = ctypes.create_string_buffer(MAP_BYTES + 64)
        address = (ctypes.addressof(storage) + 63) & ~63
        self.driver.call(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(address), MAP_TYPES[fact["type"]], rank,
            ctypes.c_void_p(array.pointer), (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * (rank - 1))(*strides[1:]), (ctypes.c_uint32 * rank)(*fact["box"]),
            (ctypes.c_uint32 * rank)(*([1] * rank)), 0, SWIZZLES[fact["swizzle"]], 2, 0)
        return storage, address

    def prepare(self, grid, *arguments):
        """A function that launches the kernel on `grid` CTAs."""
        values, maps = [], []
        for fact, argument in zip(self.facts["arguments"], arguments):
            if fact["kind"] == "scalar":
                values.append(SCALARS[fact["type"]](argument))
                continue
            values.append(ctypes.c_uint64(argument.pointer))
            for given, actual in ((fact["sizes"], argument.shape), (fact["strides"], argument.strides)):
                values += [ctypes.c_int64(a) for g, a in zip(given, actual) if g is None]
        for fact in self.facts["tensor_maps"]:
            maps.append(self.encode(fact, arguments[fact["argument"]]))
        places = [ctypes.addressof(value) for value in values] + [address for _, address in maps]
        parameters = (ctypes.c_void_p * len(places))(*places)

        def run():
            self.driver.call("cuLaunchKernel", self.function, grid, 1, 1, self.facts["threads"], 1, 1,
                             self.facts["shared_bytes"], None, parameters, None)

        # What the parameters point to lives as long as the function.
        run.keep = (values, maps, arguments)
        return run

    def launch(self, grid, *arguments):
        """Runs the kernel on `grid` CTAs and waits."""
        self.prepare(grid, *arguments)()
        self.driver.call("cuCtxSynchronize")


def relative(got, expected):
    """Root mean square of the error over that of the expectation; NaN and inf count as infinite."""
    error = np.sqrt(np.mean((got - expected) ** 2)) / np.sqrt(np.mean(expected ** 2))
    return float(error) if np.isfinite(error) else float("inf")


def nans(*shape):
    return np.full(shape, np.nan, np.float32)


def run_shared_product(driver, directory, random):
    """C = A B^T; the last rows of A and of B lie outside and count as zero."""
    rows, columns = 168, 40
    a, b = (to_bf16(random.standard_normal((n, 128))) for n in (rows, columns))
    c = Array(driver, nans(192, 64), "f32")
    Kernel(driver, directory, "shared_product").launch(
        3, Array(driver, a, "bf16"), Array(driver, b, "bf16"), c)
    expected = np.zeros((192, 64))
    expected[:rows, :columns] = from_bf16(a) @ from_bf16(b).T
    return {"c": (relative(c.fetch(), expected), 1e-6)}


def run_linear_attention(driver, directory, random):
    """O = Q S of the chunks before, S += K^T V; q, k, v are parts of one projection."""
    chunks, chunk, heads, width = 7, 32, 2, 128
    tokens = chunks * chunk
    fused = to_bf16(random.standard_normal((tokens, 3, heads, width)) / 4)
    parts = [Array(driver, fused, "bf16", (tokens, heads, width), (3 * heads * width, width, 1),
                   i * heads * width) for i in range(3)]
    o = Array(driver, to_bf16(nans(tokens, heads, width)), "bf16")
    s = Array(driver, nans(heads, width, width), "f32")
    Kernel(driver, directory, "linear_attention").launch(heads, *parts, o, s, chunks)
    q, k, v = (from_bf16(fused)[:, i] for i in range(3))
    state = np.zeros((heads, width, width))  # [head, V, K]
    expected = np.zeros((tokens, heads, width))
    for t in range(0, tokens, chunk):
        at = slice(t, t + chunk)
        rounded = from_bf16(to_bf16(state))
        expected[at] = np.einsum("thk,hvk->thv", q[at], rounded)
        state += np.einsum("thv,thk->hvk", v[at], k[at])
    return {"o": (relative(o.fetch(), expected), 3e-3), "s": (relative(s.fetch(), state), 1e-6)}


def run_elementwise(driver, directory, random):
    """Transposes, broadcasts, masks, functions and ragged ends."""
    rows, cut_columns, pitch, scale = 50, 37, 48, 0.75
    x = to_bf16(random.standard_normal((rows, 64)))
    r = random.uniform(1.5, 4, 64).astype(np.float32)
    c = random.uniform(0.25, 2, 64).astype(np.float32)
    y, sums = Array(driver, nans(64, 64), "f32"), Array(driver, nans(2, 64), "f32")
    part = Array(driver, to_bf16(nans(32, 64)), "bf16")
    cut = Array(driver, nans(64, pitch), "f32", (64, cut_columns), (pitch, 1))
    Kernel(driver, directory, "elementwise").launch(
        1, Array(driver, x, "bf16"), Array(driver, r, "f32"), Array(driver, c, "f32"), y, part, cut,
        sums, rows, scale)
    full = np.zeros((64, 64))
    full[:rows] = from_bf16(x)
    r, c = r.astype(np.float64), c.astype(np.float64)
    expected = np.tril(scale * np.exp(full.T * c + r[:, None]))
    got = cut.fetch()
    untouched = 0.0 if np.isnan(got[:, cut_columns:]).all() else float("inf")
    vectors = np.stack([np.log1p(np.log(r)), 1 / np.sqrt(c)])
    return {"y": (relative(y.fetch(), expected), 1e-6),
            "part": (relative(part.fetch(), expected[32:]), 3e-3),
            "cut": (relative(got[:, :cut_columns], expected[:, :cut_columns]), 1e-6),
            "beyond the cut": (untouched, 0.0),
            "vectors": (relative(sums.fetch(), vectors), 1e-6)}


def run_lanes(driver, directory, random):
    """Sums over lanes both ways, of a ragged array; a vector that repeats in a fragment."""
    rows, pick = 75, 70
    g = random.standard_normal((96, 3)).astype(np.float32) / 8
    up, down = Array(driver, nans(96, 3), "f32"), Array(driver, nans(96), "f32")
    small, outer = Array(driver, nans(16), "f32"), Array(driver, nans(64, 64), "f32")
    Kernel(driver, directory, "lanes").launch(
        1, Array(driver, g, "f32"), up, down, small, outer, rows, pick)
    wide = g.astype(np.float64)
    column = np.where(np.arange(96) < rows, wide[:, 1], 0)
    backward = np.cumsum(column[::-1])[::-1]
    sixteen = np.cumsum(wide[:16, 0]) + np.arange(16)
    got = up.fetch()
    untouched = np.isnan(got[rows:]).all() and np.isnan(got[:, [0, 2]]).all()
    return {"up": (relative(got[:rows, 1], np.cumsum(column)[:rows]), 1e-6),
            "beyond the end": (0.0 if untouched else float("inf"), 0.0),
            "down": (relative(down.fetch(), backward * 2 ** backward[pick]), 1e-6),
            "small": (relative(small.fetch(), sixteen), 1e-6),
            "outer": (relative(outer.fetch(), np.tile(np.outer(sixteen, sixteen), (4, 4))), 1e-6)}


def run_solve(driver, directory, random):
    """(I + M)^-1 - I of 16, 32 and 64 rows, of keys that are alike."""
    results, matrices, outputs = {}, [], []
    for size in (16, 32, 64):
        keys = random.standard_normal((size, 128)) + random.standard_normal(128)
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        m = np.tril(keys @ keys.T, -1) * random.uniform(0, 1, size)
        matrices.append(m.astype(np.float16).astype(np.float32))
        outputs.append(Array(driver, nans(size, size), "f32"))
    Kernel(driver, directory, "solve").launch(
        1, *(Array(driver, m, "f32") for m in matrices), *outputs)
    for m, x in zip(matrices, outputs):
        unit = np.eye(len(m))
        expected = np.linalg.inv(unit + m.astype(np.float64)) - unit
        results[str(len(m))] = (relative(x.fetch(), expected), 3e-3)
    return results


def run_ragged(driver, directory, random):
    """Sequences behind each other: nothing of the next one is read, and none of it written."""
    lengths, heads, width, most = [5, 32, 33, 1, 70, 0, 64, 127], 2, 128, 4
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tokens = int(ends[-1]) + 40
    x = to_bf16(random.standard_normal((1, tokens, heads, width)))
    y = Array(driver, to_bf16(nans(1, tokens, heads, width)), "bf16")
    tiles = Array(driver, to_bf16(nans(len(lengths) * heads * most, 32, width)), "bf16")
    Kernel(driver, directory, "ragged").launch(
        len(lengths) * heads, Array(driver, x, "bf16"), y, tiles, Array(driver, ends, "i32"))
    expected = np.full((len(lengths) * heads, most * 32, width), np.nan)
    for i, (begin, length) in enumerate(zip(ends, lengths)):
        for h in range(heads):
            item = expected[i * heads + h]
            item[:-(-length // 32) * 32] = 0
            item[:length] = from_bf16(x)[0, begin:begin + length, h]
    copied = np.full((1, tokens, heads, width), np.nan)
    copied[:, :ends[-1]] = from_bf16(x)[:, :ends[-1]]
    same = lambda got, want: 0.0 if np.array_equal(got, want, equal_nan=True) else float("inf")
    return {"tiles": (same(tiles.fetch(), expected.reshape(-1, 32, width)), 0.0),
            "copy": (same(y.fetch(), copied), 0.0)}


def gated_delta_rule(q, k, v, g, beta, scale):
    """The recurrence, token by token: S = exp(g) S, S += beta (v - S k) k^T, o = scale S q."""
    batch, tokens, heads, width = v.shape
    state = np.zeros((batch, heads, width, width))
    o = np.zeros(v.shape)
    q, k = (np.repeat(x, heads // x.shape[2], axis=2) for x in (q, k))
    for t in range(tokens):
        state *= np.exp(g[:, t])[:, :, None, None]
        e = beta[:, t, :, None] * (v[:, t] - np.einsum("bhvk,bhk->bhv", state, k[:, t]))
        state += np.einsum("bhv,bhk->bhvk", e, k[:, t])
        o[:, t] = scale * np.einsum("bhvk,bhk->bhv", state, q[:, t])
    return o, state


def run_forward(driver, directory, random):
    """The forward of Gated DeltaNet: items in turn, grouped heads, ragged ends, strong gates."""
    batch, tokens, heads_q, heads, width = 2, 333, 2, 4, 128
    scale = width ** -0.5
    q, k = (random.standard_normal((batch, tokens, heads_q, width)) for _ in range(2))
    q, k = (to_bf16(x / np.linalg.norm(x, axis=-1, keepdims=True)) for x in (q, k))
    v = to_bf16(random.standard_normal((batch, tokens, heads, width)))
    g = -random.exponential(0.3, (batch, tokens, heads)).astype(np.float32)
    g[:, :, 0] = 0
    beta = random.uniform(0, 1, g.shape).astype(np.float32)
    o = Array(driver, to_bf16(nans(*v.shape)), "bf16")
    state = Array(driver, nans(batch, heads, width, width), "f32")
    inputs = [Array(driver, x, "bf16") for x in (q, k, v)] + [Array(driver, x, "f32") for x in (g, beta)]
    Kernel(driver, directory, "forward").launch(3, *inputs, o, state, scale)
    expected_o, expected_state = gated_delta_rule(
        *(from_bf16(x) for x in (q, k, v)), g.astype(np.float64), beta.astype(np.float64), scale)
    return {"o": (relative(o.fetch(), expected_o), 3.5e-3),
            "state": (relative(state.fetch(), expected_state), 3.5e-3)}


def main():
    directory = pathlib.Path(sys.argv[1])
    driver, failed = Driver(), 0
    for run in (run_shared_product, run_linear_attention, run_elementwise, run_lanes, run_solve,
                run_ragged, run_forward):
        name = run.__name__[len("run_"):]
        results = run(driver, directory, np.random.default_rng(7))
        good = all(error <= tolerance for error, tolerance in results.values())
        failed += not good
        errors = ", ".join(f"{key} {error:.2e} (<= {tolerance:g})"
                           for key, (error, tolerance) in results.items())
        print(f"{name}: {'pass' if good else 'FAIL'}: {errors}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
