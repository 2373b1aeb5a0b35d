// Launch facts, arguments and roles.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// Dynamic shared memory is one symbol, aligned for swizzled tiles.
// CHECK: llvm.mlir.global external @__gdn_shared() {addr_space = 3 : i32, alignment = 1024 : i64}

// An array is a pointer, then what is dynamic of its sizes and strides; a scalar stays.
// CHECK-LABEL: llvm.func @arguments(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1>, %{{.*}}: i64, %[[STRIDE:.*]]: i64, %[[F:.*]]: f32)
// CHECK-SAME: follows = false, arguments = [memref<?x4xf32, strided<[?, 1]>>, f32]
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 128>, nvvm.minctasm = 2 : i32
gdn_warp.kernel @arguments(%x : memref<?x4xf32, strided<[?, 1]>>, %f : f32)
    threads(128) shared(0) min_ctas(2) cluster(2) {
  %c3 = arith.constant 3 : index
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[STRIDE]] : i64 to index
  // CHECK: %[[ROW:.*]] = arith.muli %[[WIDE]], %{{.*}} : index
  // CHECK: %[[AT:.*]] = arith.addi %[[ROW]], %{{.*}} : index
  // CHECK: %[[OFFSET:.*]] = arith.index_cast %[[AT]] : index to i64
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[X]][%[[OFFSET]]]
  // CHECK: llvm.store %[[F]], %[[PLACE]] : f32, !llvm.ptr<1>
  memref.store %f, %x[%c3, %c3] : memref<?x4xf32, strided<[?, 1]>>
}

// Roles that share a warpgroup have one setmaxnreg in front of the branch between them; others are
// branches on the warpgroup, each in the else of the one before.
// CHECK-LABEL: llvm.func @roles()
gdn_warp.kernel @roles() threads(384) shared(0) {
  // CHECK: %[[WARP32:.*]] = nvvm.shfl.sync idx
  // CHECK: %[[WARP:.*]] = arith.index_castui %[[WARP32]]
  // CHECK: %[[GROUP:.*]] = arith.divui %[[WARP]]
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[GROUP]]
  // CHECK: scf.if %[[FIRST]] {
  // CHECK-NEXT: nvvm.setmaxregister decrease 40
  // CHECK: arith.cmpi ult, %[[WARP]]
  // CHECK: nvvm.bar.warp.sync
  // CHECK: } else {
  // CHECK: nvvm.memory.barrier
  gdn_warp.role "a" warps(0, 3) registers(40) {
    gdn_warp.sync warp
  }
  gdn_warp.role "b" warps(3, 1) registers(40) {
    nvvm.memory.barrier <cta>
  }
  // CHECK: arith.subi %[[GROUP]]
  // CHECK: nvvm.setmaxregister increase 232
  // CHECK: nvvm.cluster.arrive
  gdn_warp.role "c" warps(4, 8) registers(232) {
    gdn_warp.sync cluster
  }
}

// A kernel that follows lets the next one begin and waits for the one before it; the host is told.
// CHECK-LABEL: llvm.func @follower(
// CHECK-SAME: follows = true
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
// CHECK: llvm.store
gdn_warp.kernel @follower(%x : memref<2xf32>, %f : f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  gdn_warp.grid_dependency_wait
  memref.store %f, %x[%c0] : memref<2xf32>
}

// Two kernels side by side: the first one lets the second begin when it need not wait itself, and the last CTA of the
// second one waits at its end.
// CHECK-LABEL: llvm.func @first_of_two(
// CHECK-SAME: follows = true
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.store
gdn_warp.kernel @first_of_two(%x : memref<2xf32>, %f : f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  gdn_warp.grid_dependency_wait then_launch
  memref.store %f, %x[%c0] : memref<2xf32>
}

// CHECK-LABEL: llvm.func @beside(
// CHECK-SAME: follows = true
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.store
// CHECK: %[[COUNT:.*]] = llvm.inline_asm has_side_effects {{.*}} "mov.u32 $0, %nctaid.x;"
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]]
// CHECK: %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[CTA]], %[[LAST]]
// CHECK: scf.if %[[IS]] {
// CHECK-NEXT: nvvm.griddepcontrol wait
gdn_warp.kernel @beside(%x : memref<2xf32>, %f : f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  gdn_warp.launch_dependents
  memref.store %f, %x[%c0] : memref<2xf32>
  gdn_warp.grid_dependency_wait last_cta
}
