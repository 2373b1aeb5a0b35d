// Kernels that wait for each other while they run: the array's last entry is 0 when one is done.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func @late(
// CHECK: llvm.inline_asm has_side_effects {{.*}} "exit;", "~{memory}"
// CHECK: scf.if
// CHECK: scf.while
// CHECK: %[[LEFT:.*]] = llvm.inline_asm has_side_effects {{.*}} "ld.acquire.gpu.global.u32 $0, [$1];"
// CHECK: %[[OPEN:.*]] = arith.cmpi ne, %[[LEFT]], %c0_i32
// CHECK: scf.condition(%[[OPEN]])
// CHECK: "nanosleep.u32 200;"
// CHECK: nvvm.barrier
gdn_warp.kernel @late(%count : memref<?xi32>, %empty : i1) threads(128) shared(0) {
  scf.if %empty {
    gdn_warp.exit
  }
  gdn_warp.await %count : memref<?xi32>
}

// Copies from shared memory and stores of all threads are done first.
// CHECK-LABEL: llvm.func @early(
// CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}
// CHECK: nvvm.barrier
// CHECK: %[[CTAS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[MOST:.*]] = arith.subi %[[CTAS]]
// CHECK: llvm.inline_asm has_side_effects {{.*}} "fence.acq_rel.gpu;\0Ared.release.gpu.global.dec.u32 [$0], $1;", "l,r,~{memory}" %{{.*}}, %[[MOST]]
gdn_warp.kernel @early(%count : memref<?xi32>) threads(128) shared(0) {
  gdn_warp.count_down %count : memref<?xi32>
}
