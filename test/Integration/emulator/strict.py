"""Small kernels that do what PTX does not define: each must end with its error."""

import re
import sys

import numpy as np

from ptxemu import engine
from ptxemu.cta import Launch
from ptxemu.memory import GlobalMemory
from ptxemu.program import Program
from ptxemu.ptx import EmulationError, parse

HEADER = """
.extern .shared .align 1024 .b8 __gdn_shared[];
.visible .entry kernel(.param .u64 .ptr .global .align 1 kernel_param_0)
.maxntid 128
.minnctapersm 1
{
  .reg .pred %p<20>;
  .reg .b32 %r<100>;
  .reg .b64 %rd<20>;
  ld.param.b64 %rd1, [kernel_param_0];
  mov.u32 %r1, %tid.x;
  mov.b64 %rd2, __gdn_shared;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  setp.eq.b32 %p1, %r1, 0;
  not.pred %p2, %p1;
  setp.lt.u32 %p3, %r1, 32;
  mov.b32 %r2, 7;
"""
#: One thread makes an mbarrier of two arrivals at byte 1024.
BARRIER = """
  @%p2 bra $MADE;
  mov.b32 %r3, 2;
  mbarrier.init.shared.b64 [__gdn_shared+1024], %r3;
$MADE:
  bar.sync 0;
"""
#: A product of zeros in shared memory, which every warp waits for.
ZEROS = """
  mov.b32 %r4, 0;
  st.shared.v4.b32 [%rd9], {%r4, %r4, %r4, %r4};
  st.shared.v4.b32 [%rd9+2048], {%r4, %r4, %r4, %r4};
"""
PRODUCT = f"""
  shl.b64 %rd8, %rd3, 2;
  add.s64 %rd9, %rd2, %rd8;
  {ZEROS}
  fence.proxy.async.shared::cta;
  bar.sync 0;
  wgmma.fence.sync.aligned;
  cvt.u32.u64 %r5, %rd2;
  bfe.u32 %r6, %r5, 4, 14;
  mov.b64 %rd10, {{%r6, 1073741888}};
  mov.b32 %r7, 0;
  mov.pred %p4, 0;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
    {{%r10, %r11, %r12, %r13}}, {{%r7, %r7, %r7, %r7}}, %rd10, %p4, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
"""
WAIT = "wgmma.wait_group.sync.aligned 0;"

#: The body of a kernel, and what the emulator says; None where nothing is wrong.
CASES = {
    "nothing": ("st.global.b32 [%rd1], %r2;", None),
    "misaligned": ("add.s64 %rd5, %rd1, 2; st.global.b32 [%rd5], %r2;", "multiples of 4 bytes"),
    "outside": ("st.global.b32 [%rd1+512], %r2;", "expected an address in an array.*behind the end of array 0"),
    "outside-shared": ("st.shared.b32 [%rd4+8192], %r2;", "in shared memory of 4096 bytes"),
    "unwritten": ("ld.shared.b32 %r3, [%rd4]; st.global.b32 [%rd1], %r3;", "shared memory that nothing has written"),
    "register": ("add.s32 %r3, %r2, %r9;", "%r9 is not written on every way"),
    "register-moved": ("mov.b32 %r3, %r9;", None),
    "register-of-lanes": ("@%p2 bra $L; mov.b32 %r9, 1; $L: add.s32 %r3, %r2, %r9;", "%r9 is not written on every way"),
    "race": (
        "st.shared.b32 [%rd4], %r2; xor.b32 %r3, %r1, 64; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd2, %rd5;"
        "@%p3 bra $L; ld.shared.b32 %r4, [%rd6]; $L: ret;",
        "race: read of byte|shared memory that nothing",
    ),
    "race-ordered": (
        "st.shared.b32 [%rd4], %r2; xor.b32 %r3, %r1, 64; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd2, %rd5;"
        "bar.sync 0; ld.shared.b32 %r4, [%rd6];",
        None,
    ),
    "race-write": (
        "st.shared.b32 [%rd4], %r2; bar.sync 0; xor.b32 %r3, %r1, 64; mul.wide.u32 %rd5, %r3, 4; "
        "add.s64 %rd6, %rd2, %rd5; ld.shared.b32 %r4, [%rd6]; st.shared.b32 [%rd4], %r2;",
        "race: (write to|read of) byte",
    ),
    "count": ("bar.sync 1, 96;", "arrives|no warp can go on"),
    "count-differs": (
        "@%p3 bra $L; bar.sync 1, 128; $L: bar.sync 1, 64;",
        "expected the .* threads of the other warps|twice",
    ),
    "arrivals": (
        BARRIER + "mov.b64 %rd5, 0; @%p2 bra $L; mov.b32 %r4, 3;"
        "mbarrier.arrive.shared.b64 %rd6, [%rd2+1024], %r4; $L: ret;",
        "expected at most 2 arrivals",
    ),
    "deadlock": (
        BARRIER + "mov.b32 %r4, 0; add.s64 %rd5, %rd2, 1024; $L: mbarrier.try_wait.parity.shared.b64 %p5, [%rd5], %r4;"
        "not.pred %p6, %p5; @%p6 bra $L;",
        "no warp can go on.*0 of 2 arrivals",
    ),
    "no-barrier": ("mbarrier.arrive.shared.b64 %rd6, [%rd2+1024];", "expected an mbarrier that mbarrier.init made"),
    "divergence": ("@%p2 bra $L; bar.warp.sync -1; $L: ret;", "expected all lanes of the warp, got 1"),
    "product": (PRODUCT + WAIT + "st.global.b32 [%rd1], %r10;", None),
    "in-flight": (PRODUCT + "mov.b32 %r20, %r10;" + WAIT, "%r10 belongs to a wgmma in flight"),
    "written-in-flight": (PRODUCT + "mov.b32 %r10, 0;" + WAIT, "accumulator %r10 .* was written before this wait"),
    "no-wait": (PRODUCT, "ends with a wgmma in flight"),
    "overwritten": (
        PRODUCT + "st.shared.b32 [%rd9], %r4;" + WAIT,
        "which a product or copy in flight reads|race: write",
    ),
    "no-fence": (PRODUCT.replace("fence.proxy.async.shared::cta;", ""), "without a fence.proxy.async"),
    "no-wgmma-fence": (PRODUCT.replace("wgmma.fence.sync.aligned;", ""), "expected wgmma.fence"),
    "descriptor": (
        PRODUCT.replace("bfe.u32 %r6, %r5, 4, 14;", "bfe.u32 %r6, %r5, 4, 14; add.s32 %r6, %r6, 8;"),
        "expected a descriptor with a start where the swizzle's pattern",
    ),
    "registers": ("setmaxnreg.inc.sync.aligned.u32 104;", "setmaxnreg.inc from"),
    "unknown": ("sin.approx.f32 %r3, %r2;", "no emulation of sin.approx.f32"),
}


def run(body, mode):
    data = np.zeros(1 << 16, np.uint8)
    memory = GlobalMemory(0x10000, data)
    memory.allocated[4096 : 4096 + 512] = 1
    kernel = parse(HEADER + body.replace(";", ";\n") + "\n  ret;\n}\n")["kernel"]
    params = (0x10000 + 4096).to_bytes(8, "little")
    Launch(Program(kernel), memory, (1, 1, 1), (128, 1, 1), (1, 1, 1), 4096, params).run(mode)


def main():
    engine.load(sys.argv[1])
    wrong = 0
    for name, (body, expected) in CASES.items():
        for mode in ("eager", "lazy", "random"):
            said = None
            try:
                run(body, mode)
            except EmulationError as error:
                said = str(error)
            if not (re.search(expected, said or "", re.S) if expected else said is None):
                print(f"{name} ({mode}): expected {expected}, got {said}")
                wrong += 1
    print(f"{len(CASES)} kernels, {wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
