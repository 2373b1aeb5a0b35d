"""Tensor cores: wgmma with its descriptors, mma.sync, ldmatrix and stmatrix."""

import re
from functools import lru_cache

import numpy as np

from .arith import F16, F32, I64, IN_FLIGHT, U16, U32
from .copies import swizzle
from .ptx import EmulationError

#: By the swizzle field of a descriptor: bytes of a row of the pattern, and the mask of address bits.
LAYOUTS = {1: (128, 7), 2: (64, 3), 3: (32, 1)}


def decode(bits):
    return {
        "start": (bits & 0x3FFF) << 4,
        "leading": (bits >> 16 & 0x3FFF) << 4,
        "stride": (bits >> 32 & 0x3FFF) << 4,
        "base": bits >> 49 & 7,
        "swizzle": bits >> 62,
    }


@lru_cache(4096)
def operand_places(start, leading, stride, mode, rows, first, count, transposed):
    """Bytes of `count` rows (of M or N) from `first` on, by k, of a descriptor that begins at `start`."""
    row, k = np.arange(first, first + count, dtype=I64)[:, None], np.arange(16, dtype=I64)[None]
    if mode == 0:
        if transposed:
            raise EmulationError("no emulation of an operand along M or N without a swizzle")
        return start + (row // 8) * stride + (k // 8) * leading + (row % 8) * 16 + (k % 8) * 2
    pitch, mask = LAYOUTS[mode]
    if transposed:
        block = pitch // 2
        at = start + (row // block) * leading + (k // 8) * stride + (k % 8) * pitch + (row % block) * 2
    else:
        at = start + (row // 8) * stride + (row % 8) * pitch + k * 2
    return swizzle(at, mask)


@lru_cache(4096)
def operand_words(*key):
    return np.unique(operand_places(*key) >> 2)


def check_descriptor(d, bits, rows, transposed, line):
    def fail(rule):
        raise EmulationError(f"line {line}: expected a descriptor with {rule}, got {bits:#018x}: {d}")

    if bits & (1 << 14 | 1 << 15 | 1 << 30 | 1 << 31 | 0x7 << 46 | 0x3FF << 52):
        fail("zeros in its reserved bits")
    if d["swizzle"] == 0:
        return
    pitch, mask = LAYOUTS[d["swizzle"]]
    if (d["start"] >> 7 & mask) != d["base"]:
        fail(f"a start where the swizzle's pattern of {8 * pitch} bytes begins, or the base offset")
    if not transposed and d["start"] % pitch + 32 > pitch:
        fail(f"16 values of k within a row of {pitch} bytes")
    blocks = 8 if not transposed else pitch // 2
    if not transposed and rows > 8 and d["stride"] % (8 * pitch):
        fail(f"a stride in multiples of {8 * pitch} bytes")
    if transposed and d["stride"] % (8 * pitch):
        fail(f"a stride in multiples of {8 * pitch} bytes")
    if transposed and rows > blocks and d["leading"] % (8 * pitch):
        fail(f"a leading offset in multiples of {8 * pitch} bytes")
    if transposed and d["start"] % pitch + 2 * min(rows, blocks) > pitch:
        fail(f"{min(rows, blocks)} values within a row of {pitch} bytes")


def to_float(halves, kind):
    """16-bit values as f32."""
    if kind == "f16":
        return np.ascontiguousarray(halves).view(F16).astype(F32)
    return (halves.astype(U32) << U32(16)).view(F32)


def accumulator_matrix(registers):
    """The registers of a warp's 16 x N accumulator as a matrix."""
    a = np.stack(registers)
    n = len(a) // 4
    return a.reshape(n, 2, 2, 8, 4).transpose(1, 3, 0, 4, 2).reshape(16, 8 * n).view(F32)


def accumulator_registers(matrix):
    n = matrix.shape[1] // 8
    a = matrix.reshape(2, 8, n, 4, 2).transpose(2, 0, 4, 1, 3)
    return list(np.ascontiguousarray(a).reshape(4 * n, 32))


def a_matrix(words, kind):
    """Four registers of A as 16 x 16."""
    halves = np.stack(words).view(U16).reshape(2, 2, 8, 4, 2)  # k half, row half, row, column pair, of the pair
    return to_float(halves.transpose(1, 2, 0, 3, 4).reshape(16, 16), kind)


class Product:
    """A wgmma of one warp: 16 of the 64 rows."""

    __slots__ = (
        "key",
        "a",
        "a_words",
        "b_places",
        "kind",
        "negate",
        "scale",
        "line",
        "registers",
        "reads",
        "a_registers",
    )


class TensorCoreOps:
    """A warp's instructions on matrices."""

    def collective(self, line):
        """All warps of a warpgroup execute the same instructions of this kind in the same order."""
        log, position = self.warpgroup_log, self.log_position
        if position < len(log):
            if log[position] != line:
                raise EmulationError(
                    f"line {line}: warp {self.index} executes this where another warp of its warpgroup "
                    f"executes line {log[position]}"
                )
        else:
            log.append(line)
        self.log_position += 1

    def wgmma_fence(self, line):
        self.collective(line)
        self.fenced = True

    def _descriptor(self, bits, rows, first, count, transposed, line):
        values = np.unique(bits)
        if len(values) != 1:
            raise EmulationError(f"line {line}: expected the same descriptor in all lanes, got {len(values)}")
        d = decode(int(values[0]))
        check_descriptor(d, int(values[0]), rows, transposed, line)
        base, size = self.shared.base, len(self.shared.bytes)
        key = (d["start"], d["leading"], d["stride"], d["swizzle"], rows, first, count, bool(transposed))
        at = operand_places(*key)
        if at.min() < base or at.max() + 2 > base + size:
            raise EmulationError(
                f"line {line}: an operand at byte {d['start'] - base} leaves shared memory of {size} bytes: {d}"
            )
        words = operand_words(*key) - base // 4
        self.shared.begin_async_read(self, words, line)
        return (at - base) // 2, words

    def wgmma(self, shape, result, left, right, registers, a, a_registers, b, scale, flags, line):
        self.collective(line)
        match = re.fullmatch(r"m64n(\d+)k16", shape)
        if not match or result != "f32" or left != right or left not in ("bf16", "f16"):
            raise EmulationError(f"line {line}: no emulation of wgmma {shape} {result} {left} {right}")
        if not self.fenced:
            raise EmulationError(f"line {line}: expected wgmma.fence in front of the first wgmma")
        n = int(match[1])
        if len(registers) != n // 2:
            raise EmulationError(f"line {line}: expected {n // 2} accumulators, got {len(registers)}")
        product = Product()
        product.line, product.key, product.kind, product.registers = line, registers, left, registers
        scale_a, scale_b, *transposed = flags
        if a_registers is None:
            transpose_a, transpose_b = transposed
        else:
            transpose_a, (transpose_b,) = 0, transposed
        product.negate = scale_a * scale_b < 0
        product.reads = []
        product.a_registers = a_registers
        if a_registers is None:
            product.a, words = self._descriptor(a, 64, 16 * (self.index % 4), 16, transpose_a, line)
            product.reads.append(words)
            product.a_words = None
        else:
            product.a, product.a_words = None, a
        product.b_places, words = self._descriptor(b, n, 0, n, transpose_b, line)
        product.reads.append(words)
        if not (scale.all() or not scale.any()):
            raise EmulationError(f"line {line}: expected the same scale-d in all lanes")
        product.scale = bool(scale[0])
        R = self.R
        chained = registers in self.accumulating
        if not chained:
            if any(R[r] is IN_FLIGHT for r in registers):
                raise EmulationError(f"line {line}: some accumulators belong to another wgmma in flight")
            if product.scale:
                if any(R[r] is None for r in registers):
                    raise EmulationError(
                        f"line {line}: expected accumulators with values, got registers that were never written"
                    )
                self.accumulating[registers] = [accumulator_matrix([R[r] for r in registers]), 0]
            else:
                self.accumulating[registers] = [None, 0]
            for r in registers:
                R[r] = IN_FLIGHT
        self.accumulating[registers][1] += 1
        self.products_open.append(product)
        if self.cta.scheduler.eager_product():
            self._run_products()

    def _run_products(self):
        """Computes all products that have not been: they run in order."""
        for group in [*self.product_groups, self.products_open]:
            for p in group:
                if p.b_places is not None:
                    self._run_product(p)

    def _run_product(self, p):
        halves = self.shared.views[2]
        b = to_float(halves[p.b_places], p.kind)
        a = a_matrix(p.a_words, p.kind) if p.a_words is not None else to_float(halves[p.a], p.kind)
        x = a @ b.T
        entry = self.accumulating[p.key]
        entry[0] = (-x if p.negate else x) if not p.scale else entry[0] - x if p.negate else entry[0] + x
        p.b_places = None

    def wgmma_commit(self, line):
        self.collective(line)
        self.product_groups.append(self.products_open)
        self.products_open = []

    def wgmma_wait(self, count, line):
        self.collective(line)
        R = self.R
        while len(self.product_groups) > count:
            group = self.product_groups.pop(0)
            if any(p.a_registers is not None for p in group):
                self.shared.products_took(self)
            for p in group:
                if p.b_places is not None:
                    self._run_product(p)
                for words in p.reads:
                    self.shared.end_async_read(self, words)
                if (
                    p.a_registers is not None
                    and any(R[r] is not w for r, w in zip(p.a_registers, p.a_words))
                    and self.strict_a(p)
                ):
                    raise EmulationError(
                        f"line {line}: a register of A of the wgmma of line {p.line} was written before this wait"
                    )
                entry = self.accumulating[p.key]
                entry[1] -= 1
                if entry[1] == 0:
                    for r in p.registers:
                        if R[r] is not IN_FLIGHT:
                            raise EmulationError(
                                f"line {line}: accumulator {self.cta.launch.program.names[r]} of the wgmma of line "
                                f"{p.line} was written before this wait"
                            )
                    for r, value in zip(p.registers, accumulator_registers(entry[0])):
                        R[r] = value
                    del self.accumulating[p.key]

    def strict_a(self, product):
        """Whether a register of A holds other words now; views of the same array do not count."""
        return any(
            R is IN_FLIGHT or R is None or not np.array_equal(R.view(U32), w)
            for R, w in ((self.R[r], w) for r, w in zip(product.a_registers, product.a_words))
        )

    def mma(self, op, a, b, c, line):
        match = re.fullmatch(r"mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.f32\.(bf16|f16|tf32)\.\2\.f32", op)
        if not match or (match[2] == "tf32") != (
            len(a) * 4 == int(match[1]) * 2 and len(b) * 4 == int(match[1]) and match[2] == "tf32"
        ):
            raise EmulationError(f"line {line}: no emulation of {op}")
        k, kind = int(match[1]), match[2]
        if kind == "tf32":
            A = np.stack(a).view(F32).reshape(k // 4, 2, 8, 4).transpose(1, 2, 0, 3).reshape(16, k)
            B = np.stack(b).view(F32).reshape(k // 4, 8, 4).transpose(1, 0, 2).reshape(8, k)
        else:
            A = to_float(
                np.stack(a).view(U16).reshape(k // 8, 2, 8, 4, 2).transpose(1, 2, 0, 3, 4).reshape(16, k), kind
            )
            B = to_float(np.stack(b).view(U16).reshape(k // 8, 8, 4, 2).transpose(1, 0, 2, 3).reshape(8, k), kind)
        return accumulator_registers(accumulator_matrix(list(c)) + A @ B.T)

    def movmatrix(self, a):
        halves = a.view(U16).reshape(8, 8)
        return np.ascontiguousarray(halves.T).reshape(-1).view(U32)

    def _matrix_rows(self, count, address, offset, line):
        """Where the rows of matrices begin: lane 8 i + r says for row r of matrix i."""
        at = address.astype(I64)[: 8 * count] + offset - self.shared.base
        if (at % 16).any():
            raise EmulationError(f"line {line}: expected rows at multiples of 16 bytes, got {int(at[at % 16 != 0][0])}")
        if at.min() < 0 or at.max() + 16 > len(self.shared.bytes):
            raise EmulationError(
                f"line {line}: rows of a matrix leave shared memory of {len(self.shared.bytes)} "
                f"bytes: byte {int(at.max())}"
            )
        return at

    def ldmatrix(self, count, address, offset, transposed, line):
        at = self._matrix_rows(count, address, offset, line)
        self.shared.check_read(self, at, 16, line)
        rows = self.shared.views[2][(at // 2)[:, None] + np.arange(8)].reshape(count, 8, 8)
        if transposed:
            rows = rows.transpose(0, 2, 1)
        return list(np.ascontiguousarray(rows).reshape(count, 64).view(U32))

    def stmatrix(self, words, address, offset, transposed, line):
        count = len(words)
        at = self._matrix_rows(count, address, offset, line)
        self.shared.check_write(self, at, 16, line)
        rows = np.stack(words).view(U16).reshape(count, 8, 8)
        if transposed:
            rows = rows.transpose(0, 2, 1)
        self.shared.views[2][(at // 2)[:, None] + np.arange(8)] = rows.reshape(8 * count, 8)
