// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// What is made anew asks for its thread where it stands, and no loop holds a predicate for it. All rows of a warp lie on
// one side of row 32, so a select of them has one condition.
// CHECK-LABEL: llvm.func @selected(
// CHECK: scf.for
// CHECK: llvm.inline_asm {{.*}}"mov.u32 $0, %tid.x;"
// CHECK: %[[WARP:.*]] = arith.{{.*}} : i32
// CHECK: %[[IS:.*]] = arith.cmpi sge, %{{.*}}, %c2_i32 : i32
// CHECK: arith.select %[[IS]], %{{.*}}, %{{.*}} : vector<4xf32>
gdn_warp.kernel @selected(%x : memref<64x8xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant dense<32> : tensor<64x8xi32, #gdn_warp.fragment>
  %one = arith.constant dense<1.0> : tensor<64x8xf32, #gdn_warp.fragment>
  %rows = gdn_warp.iota 0 : tensor<64x8xi32, #gdn_warp.fragment>
  %isBehind = arith.cmpi sge, %rows, %half : tensor<64x8xi32, #gdn_warp.fragment>
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %one) -> (tensor<64x8xf32, #gdn_warp.fragment>) {
    %more = arith.addf %sum, %one : tensor<64x8xf32, #gdn_warp.fragment>
    %next = arith.select %isBehind, %sum, %more {gdn_tile.reread = 0 : i64}
        : tensor<64x8xi1, #gdn_warp.fragment>, tensor<64x8xf32, #gdn_warp.fragment>
    scf.yield %next : tensor<64x8xf32, #gdn_warp.fragment>
  }
  gdn_warp.array_store %sum, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x8xf32>
}

// Masks of a triangle, too.
// CHECK-LABEL: llvm.func @triangle(
// CHECK: llvm.inline_asm {{.*}}"mov.u32 $0, %tid.x;"
gdn_warp.kernel @triangle() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %view = gdn_warp.view %c0 : !gdn_warp.view<64x32xbf16, swizzle = 128>
  %f = gdn_warp.fragment_load %view : !gdn_warp.view<64x32xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
  %c = gdn_warp.causal strict %f {gdn_tile.reread = 0 : i64} : tensor<64x32xbf16, #gdn_warp.fragment>
  gdn_warp.fragment_store %c, %view : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x32xbf16, swizzle = 128>
}

// Warps whose rows all have the factor 1 leave a product out: one condition, on which a warp votes.
// CHECK-LABEL: llvm.func @factor(
// CHECK: llvm.inline_asm {{.*}}"mov.u32 $0, %tid.x;"
// CHECK: %[[IS:.*]] = arith.cmpi slt, %{{.*}}, %c2_i32 : i32
// CHECK: %[[ALL:.*]] = nvvm.vote.sync any %{{.*}}, %[[IS]]
// CHECK: scf.if %[[ALL]] -> (vector<4xf32>) {
// CHECK-NEXT: scf.yield
// CHECK: } else {
// CHECK-COUNT-4: arith.mulf %{{.*}} : f32
// CHECK-NOT: arith.mulf
gdn_warp.kernel @factor(%x : memref<64x8xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %half = arith.constant dense<32> : tensor<64x8xi32, #gdn_warp.fragment>
  %one = arith.constant dense<1.0> : tensor<64x8xf32, #gdn_warp.fragment>
  %rows = gdn_warp.iota 0 : tensor<64x8xi32, #gdn_warp.fragment>
  %isBefore = arith.cmpi slt, %rows, %half : tensor<64x8xi32, #gdn_warp.fragment>
  %sum = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x8xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
  %factor = arith.select %isBefore, %one, %sum {gdn_tile.reread = 0 : i64}
      : tensor<64x8xi1, #gdn_warp.fragment>, tensor<64x8xf32, #gdn_warp.fragment>
  %carried = arith.mulf %sum, %factor : tensor<64x8xf32, #gdn_warp.fragment>
  gdn_warp.array_store %carried, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x8xf32>
}
