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

// A kernel that reports sets its entry to 0 before one that reads it can begin. Behind a warp's copies and stores its
// first lane stores how far it is.
// CHECK-LABEL: llvm.func @reports(
// CHECK: nvvm.griddepcontrol wait
// CHECK-NOT: nvvm.griddepcontrol launch_dependents
// CHECK: scf.if
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}} "st.relaxed.gpu.global.u32 [$0], $1;\0Afence.acq_rel.gpu;", "l,r,~{memory}" %[[ENTRY:.*]], %c0_i32
// CHECK: nvvm.barrier
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0{{$}}
// CHECK-NEXT: %[[DONE:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}} "fence.acq_rel.gpu;\0Ast.release.gpu.global.u32 [$0], $1;", "l,r,~{memory}" %[[ENTRY]], %[[DONE]]
gdn_warp.kernel @reports(%progress : memref<?x4x2xi32>, %n : i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %done = arith.index_cast %n : i32 to index
  gdn_warp.grid_dependency_wait launch_later
  gdn_warp.begin_reports %progress[%c0, %c1, %c1] : memref<?x4x2xi32>
  gdn_warp.launch_dependents
  gdn_warp.role "store" warps(0, 1) {
    gdn_warp.report %done, %progress[%c0, %c1, %c1] : memref<?x4x2xi32>
  }
}

// A thread polls each entry of three rows of two, whatever strides they have. Copies behind the barrier see what the others
// stored.
// CHECK-LABEL: llvm.func @follows(
// CHECK: %[[DONE:.*]] = arith.index_castui %{{.*}} : index to i32
// CHECK: %[[THREAD:.*]] = llvm.inline_asm has_side_effects {{.*}} "mov.u32 $0, %tid.x;"
// CHECK: %[[THREADS:.*]] = nvvm.read.ptx.sreg.ntid.x
// CHECK: scf.for %[[ENTRY:.*]] = %[[THREAD]] to %c6_i32 step %[[THREADS]]
// CHECK: arith.divui %[[ENTRY]], %c2_i32
// CHECK: arith.remui %[[ENTRY]], %c2_i32
// CHECK: %[[AT:.*]] = llvm.getelementptr {{.*}} -> !llvm.ptr<1>, i32
// CHECK: scf.while
// CHECK-NEXT: %[[SO_FAR:.*]] = llvm.inline_asm has_side_effects {{.*}} "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l,~{memory}" %[[AT]]
// CHECK-NEXT: %[[WAITS:.*]] = arith.cmpi slt, %[[SO_FAR]], %[[DONE]]
// CHECK-NEXT: scf.condition(%[[WAITS]])
// CHECK: nvvm.barrier
// CHECK: llvm.inline_asm has_side_effects {{.*}} "fence.proxy.async.global;", "~{memory}"
gdn_warp.kernel @follows(%progress : memref<?x4x2xi32, strided<[?, ?, ?]>>, %n : i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %done = arith.index_cast %n : i32 to index
  gdn_warp.await_report %progress[%c0, %c0] count %c3 done %done : memref<?x4x2xi32, strided<[?, ?, ?]>>
}
