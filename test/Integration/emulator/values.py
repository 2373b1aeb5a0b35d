"""What instructions give in the engine, against numpy: values.py LIBRARY. Operands are words of all kinds."""

import sys

import numpy as np

from ptxemu import engine
from ptxemu.cta import Launch
from ptxemu.memory import GlobalMemory
from ptxemu.program import Program
from ptxemu.ptx import parse

F, S, U64, H = np.float32, np.int32, np.uint64, np.float16
THREADS, BASE = 128, 0x10000
HEADER = """
.visible .entry kernel(.param .u64 .ptr .global .align 1 kernel_param_0)
.maxntid 128
{
  .reg .pred %p<20>;
  .reg .b16 %rs<9>;
  .reg .b32 %r<100>;
  .reg .b64 %rd<20>;
  ld.param.b64 %rd1, [kernel_param_0];
  mov.u32 %r9, %tid.x;
  mul.wide.u32 %rd2, %r9, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r1, [%rd3];
  ld.global.b32 %r2, [%rd3+512];
  ld.global.b32 %r3, [%rd3+1024];
"""
SPECIAL = [0, 1, 2, 31, 32, 33, 63, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000]
SPECIAL += [0x00000001, 0x80000001, 0x477FF000, 0x33800000, 0x387FE000, 0x7BFF7C00, 0xFC000001, 0x3F803F80, 0x4F000000]


def f(x):
    return x.view(F)


def s(x):
    return x.view(S)


def words(x):
    return np.ascontiguousarray(x).view(np.uint32)


def halves(kind, x):
    """Both values of 16 bits of words, in f64: by word, low and high."""
    h = x.view(np.uint16).reshape(-1, 2)
    return (h.view(H) if kind == "f16" else f(h.astype(np.uint32) << 16)).astype(np.float64)


def narrow(kind, x):
    """Pairs of f64 as words of two values of 16 bits."""
    if kind == "f16":
        return words(x.astype(H)).reshape(-1)
    b = words(x.astype(F)).astype(np.uint64)
    rounded = np.where(np.isnan(x), 0x7FFF, (b + 0x7FFF + (b >> U64(16) & U64(1))) >> U64(16))
    return words(rounded.astype(np.uint16)).reshape(-1)


def pairs(kind, function):
    return lambda *v: narrow(kind, function(*(halves(kind, x) for x in v)))


def lanes(function):
    """An instruction of the whole warp: the lane that each lane reads, of those that exist."""

    def apply(a, b, c):
        lane = np.arange(THREADS)
        source = function(lane % 32)
        return a[lane // 32 * 32 + np.where((source >= 0) & (source < 32), source, lane % 32)]

    return apply


def compares(text, function, kind=f):
    """setp, and 1 or 0 of it."""
    statements = f"setp.{text} %p1, %r1, %r2; selp.b32 %r4, 1, 0, %p1"
    return statements, lambda a, b, c: function(kind(a), kind(b)).astype("u4")


def rounds(text, function):
    def apply(a, b, c):
        kind = np.iinfo("i4" if "s32" in text else "u4")
        return np.nan_to_num(function(f(a).astype("f8")).clip(kind.min, kind.max), nan=0).astype("i8").astype("u4")

    return f"cvt.{text}.f32 %r4, %r1", apply


def shift(x, by, function, clamped):
    return np.where(by < 32, function(x, np.minimum(by, 31).astype(x.dtype)), clamped(x))


def pick(a, b, c):
    """prmt: byte c of b and a."""
    both = np.concatenate([a.view("u1").reshape(-1, 4), b.view("u1").reshape(-1, 4)], 1)
    which = (c[:, None] >> np.array([0, 4, 8, 12], "u4")) & 7
    return words(np.take_along_axis(both, which.astype("i8"), 1)).reshape(-1)


#: The statements that write %r4 of %r1, %r2 and %r3, and the same in numpy.
CASES = [
    ("add.rn.f32 %r4, %r1, %r2", lambda a, b, c: f(a) + f(b)),
    ("sub.f32 %r4, %r1, %r2", lambda a, b, c: f(a) - f(b)),
    ("mul.f32 %r4, %r1, %r2", lambda a, b, c: f(a) * f(b)),
    ("div.full.f32 %r4, %r1, %r2", lambda a, b, c: f(a) / f(b)),
    ("fma.rn.f32 %r4, %r1, %r2, %r3", lambda a, b, c: (f(a).astype("f8") * f(b) + f(c)).astype(F)),
    ("max.f32 %r4, %r1, %r2", lambda a, b, c: np.fmax(f(a), f(b))),
    ("min.f32 %r4, %r1, %r2", lambda a, b, c: np.fmin(f(a), f(b))),
    ("max.NaN.f32 %r4, %r1, %r2", lambda a, b, c: np.maximum(f(a), f(b))),
    ("neg.f32 %r4, %r1", lambda a, b, c: a ^ np.uint32(1 << 31)),
    ("abs.f32 %r4, %r1", lambda a, b, c: a & np.uint32(0x7FFFFFFF)),
    ("rcp.approx.f32 %r4, %r1", lambda a, b, c: F(1) / f(a)),
    ("rsqrt.approx.f32 %r4, %r1", lambda a, b, c: F(1) / np.sqrt(f(a))),
    ("sub.s32 %r4, %r1, %r2", lambda a, b, c: a - b),
    ("mad.lo.s32 %r4, %r1, %r2, %r3", lambda a, b, c: a * b + c),
    ("mul.hi.u32 %r4, %r1, %r2", lambda a, b, c: (a.astype(U64) * b >> U64(32)).astype("u4")),
    ("mul.hi.s32 %r4, %r1, %r2", lambda a, b, c: (s(a).astype("i8") * s(b) >> 32).astype("i4")),
    ("mul.wide.s32 %rd4, %r1, %r2; shr.u64 %rd5, %rd4, 20; cvt.u32.u64 %r4, %rd5",
     lambda a, b, c: (s(a).astype("i8") * s(b) >> 20).astype("u4")),
    ("cvt.u16.u32 %rs1, %r1; cvt.u16.u32 %rs2, %r2; mul.wide.u16 %r4, %rs1, %rs2",
     lambda a, b, c: (a & np.uint32(0xFFFF)) * (b & np.uint32(0xFFFF))),
    ("mov.b64 %rd4, {%r1, %r2}; shr.s64 %rd5, %rd4, 40; mov.b64 {%r4, %r5}, %rd5", lambda a, b, c: s(b) >> 8),
    ("shl.b32 %r4, %r1, %r2", lambda a, b, c: shift(a, b, np.left_shift, np.zeros_like)),
    ("shr.u32 %r4, %r1, %r2", lambda a, b, c: shift(a, b, np.right_shift, np.zeros_like)),
    ("shr.s32 %r4, %r1, %r2", lambda a, b, c: shift(s(a), b, np.right_shift, lambda x: x >> 31)),
    ("min.s32 %r4, %r1, %r2", lambda a, b, c: np.minimum(s(a), s(b))),
    ("max.u32 %r4, %r1, %r2", lambda a, b, c: np.maximum(a, b)),
    ("or.b32 %r5, %r2, 1; div.u32 %r4, %r1, %r5", lambda a, b, c: a // (b | 1)),
    ("or.b32 %r5, %r2, 1; rem.s32 %r4, %r1, %r5", lambda a, b, c: np.fmod(s(a).astype("i8"), s(b | 1)).astype("i4")),
    ("bfe.u32 %r4, %r1, 5, 9", lambda a, b, c: a >> 5 & 511),
    ("bfe.s32 %r4, %r1, 5, 9", lambda a, b, c: s(a << 18) >> 23),
    ("popc.b32 %r4, %r1", lambda a, b, c: np.unpackbits(a.view("u1")).reshape(-1, 32).sum(1).astype("u4")),
    ("brev.b32 %r5, %r1; brev.b32 %r6, %r5; clz.b32 %r4, %r6",
     lambda a, b, c: np.array([32 - int(x).bit_length() for x in a], "u4")),
    ("and.b32 %r5, %r3, 30583; prmt.b32 %r4, %r1, %r2, %r5", lambda a, b, c: pick(a, b, c)),
    ("mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r4, {%rs2, %rs1}", lambda a, b, c: a >> 16 | a << 16),
    ("cvt.u16.u32 %rs1, %r1; cvt.s32.s16 %r4, %rs1", lambda a, b, c: s(a << 16) >> 16),
    ("cvt.rn.f32.s32 %r4, %r1", lambda a, b, c: s(a).astype(F)),
    ("cvt.rn.f32.u32 %r4, %r1", lambda a, b, c: a.astype(F)),
    rounds("rzi.s32", np.trunc), rounds("rni.s32", np.rint), rounds("rmi.s32", np.floor), rounds("rpi.u32", np.ceil),
    compares("eq.f32", np.equal), compares("lt.f32", np.less), compares("geu.f32", lambda a, b: ~(a < b)),
    compares("neu.f32", np.not_equal), compares("ne.f32", lambda a, b: (a < b) | (a > b)),
    compares("num.f32", lambda a, b: ~(np.isnan(a) | np.isnan(b))),
    compares("lt.s32", np.less, s), compares("hi.u32", np.greater, np.asarray), compares("ne.b32", np.not_equal, s),
    ("setp.lt.s32 %p2, %r3, 0; setp.ge.and.s32 %p1, %r1, %r2, !%p2; xor.pred %p3, %p1, %p2; "
     "selp.b32 %r4, %r1, %r2, %p3",
     lambda a, b, c: np.where((s(a) >= s(b)) & (s(c) >= 0) ^ (s(c) < 0), a, b)),
    ("shfl.sync.bfly.b32 %r4, %r1, 5, 31, -1", lanes(lambda lane: lane ^ 5)),
    ("shfl.sync.up.b32 %r4, %r1, 3, 0, -1", lanes(lambda lane: lane - 3)),
    ("shfl.sync.down.b32 %r4, %r1, 3, 31, -1", lanes(lambda lane: lane + 3)),
    ("shfl.sync.idx.b32 %r4, %r1, 7, 31, -1", lanes(lambda lane: lane * 0 + 7)),
    ("setp.lt.s32 %p1, %r1, 0; vote.sync.ballot.b32 %r4, %p1, -1",
     lambda a, b, c: np.repeat(np.packbits(s(a).reshape(4, 32) < 0, 1, "little").view("u4").reshape(-1), 32)),
    ("redux.sync.max.s32 %r4, %r1, -1", lambda a, b, c: np.repeat(s(a).reshape(4, 32).max(1), 32)),
    ("setp.lt.s32 %p1, %r1, 0; mov.b32 %r4, %r2; @%p1 mov.b32 %r4, %r3", lambda a, b, c: np.where(s(a) < 0, c, b)),
]  # fmt: skip
for _kind in ("f16", "bf16"):
    _x2 = f"{_kind}x2"
    CASES += [
        (f"add.{_x2} %r4, %r1, %r2", lambda a, b, c, k=_kind: pairs(k, np.add)(a, b)),
        (f"mul.{_x2} %r4, %r1, %r2", lambda a, b, c, k=_kind: pairs(k, np.multiply)(a, b)),
        (f"max.{_x2} %r4, %r1, %r2", lambda a, b, c, k=_kind: pairs(k, np.fmax)(a, b)),
        (f"fma.rn.{_x2} %r4, %r1, %r2, %r3", lambda *v, k=_kind: pairs(k, lambda a, b, c: a * b + c)(*v)),
        (f"cvt.rn.{_x2}.f32 %r4, %r1, %r2",
         lambda a, b, c, k=_kind: narrow(k, np.stack([f(b), f(a)], 1).astype("f8"))),
        (f"mov.b32 {{%rs1, %rs2}}, %r1; cvt.f32.{_kind} %r4, %rs2",
         lambda a, b, c, k=_kind: halves(k, a)[:, 1].astype(F)),
    ]  # fmt: skip


def run(text, values):
    data = np.zeros(1 << 16, np.uint8)
    memory = GlobalMemory(BASE, data)
    memory.allocated[:2048] = 1
    data[:1536].view("u4")[:] = np.concatenate(values)
    body = HEADER + text.replace("; ", ";\n") + ";\nst.global.b32 [%rd3+1536], %r4;\nret;\n}\n"
    launch = Launch(
        Program(parse(body)["kernel"]), memory, (1, 1, 1), (THREADS, 1, 1), (1, 1, 1), 0, BASE.to_bytes(8, "little")
    )
    launch.run("eager")
    return data[1536:2048].view("u4").copy()


def is_number(text, x):
    """By value whether it is a number; two that are not are the same."""
    if "16x2 %r4" in text or "16x2.f32" in text:
        return ~np.isnan(halves("bf16" if "bf16" in text else "f16", x)).reshape(-1)
    return ~np.isnan(f(x)) if ".f32 %r4" in text or "cvt.f32" in text else np.ones(len(x), bool)


def main():
    engine.load(sys.argv[1])
    rng, wrong = np.random.default_rng(0), 0
    np.seterr(all="ignore")
    for text, function in CASES:
        values = [rng.integers(0, 1 << 32, THREADS, np.uint32) for _ in range(3)]
        # Half of the values are small, or special.
        for v in values:
            v[32:64] = rng.standard_normal(32).astype(F).view("u4")
            v[64 : 64 + len(SPECIAL)] = rng.permutation(np.array(SPECIAL, "u4"))
            v[96:] %= 40
        got, want = run(text, values), words(np.asarray(function(*values))).astype("u4")
        numbers = is_number(text, want)
        unit = "u2" if len(numbers) == 2 * THREADS else "u4"
        bad = (numbers != is_number(text, got)) | (numbers & (got.view(unit) != want.view(unit)))
        if bad.any():
            i = int(np.flatnonzero(bad)[0]) * THREADS // len(bad)
            wrong += 1
            print(f"{text}: expected {want[i]:#x}, got {got[i]:#x} of {', '.join(f'{v[i]:#x}' for v in values)}")
    print(f"{len(CASES)} instructions, {wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
