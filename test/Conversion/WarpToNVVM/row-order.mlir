// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --split-input-file | FileCheck %s

// Where no op tells rows apart, lanes hold rows 0, 2, 4, 6, 1, 3, 5, 7 of eight: accesses of f32 have no bank conflicts then.

// CHECK-LABEL: llvm.func @turned(
// CHECK-SAME: gdn_warp.turned_rows
// CHECK: %[[QUAD:.*]] = arith.divui %{{.*}}, %c4_i32
// CHECK: %[[UP:.*]] = arith.shli %[[QUAD]], %c1_i32
// CHECK: %[[DOWN:.*]] = arith.shrui %[[QUAD]], %c2_i32
// CHECK: %[[BITS:.*]] = arith.ori %[[UP]], %[[DOWN]]
// CHECK: arith.andi %[[BITS]], %c7_i32
gdn_warp.kernel @turned() threads(128) shared(65536) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 32768 : index
  %a = gdn_warp.view %c0 : <64x128xf32, swizzle = 128>
  %b = gdn_warp.view %c1 : <64x128xf32, swizzle = 128>
  %x = gdn_warp.fragment_load %a : <64x128xf32, swizzle = 128> -> tensor<64x128xf32, #gdn_warp.fragment>
  %y = arith.addf %x, %x : tensor<64x128xf32, #gdn_warp.fragment>
  gdn_warp.fragment_store %y, %b : tensor<64x128xf32, #gdn_warp.fragment> -> <64x128xf32, swizzle = 128>
}

// -----

// Matrix instructions move tiles of 16 bits in an order of their own.

// CHECK-LABEL: llvm.func @matrix(
// CHECK-NOT: turned_rows
// CHECK: nvvm.stmatrix
gdn_warp.kernel @matrix() threads(128) shared(65536) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 32768 : index
  %a = gdn_warp.view %c0 : <64x128xf32, swizzle = 128>
  %b = gdn_warp.view %c1 : <64x128xbf16, swizzle = 128>
  %x = gdn_warp.fragment_load %a : <64x128xf32, swizzle = 128> -> tensor<64x128xf32, #gdn_warp.fragment>
  %y = arith.truncf %x : tensor<64x128xf32, #gdn_warp.fragment> to tensor<64x128xbf16, #gdn_warp.fragment>
  gdn_warp.fragment_store %y, %b : tensor<64x128xbf16, #gdn_warp.fragment> -> <64x128xbf16, swizzle = 128>
}

// -----

// The rows of a product's left operand in shared memory are in their order.

// CHECK-LABEL: llvm.func @product(
// CHECK-NOT: turned_rows
// CHECK: nvvm.wgmma
gdn_warp.kernel @product() threads(128) shared(65536) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 16384 : index
  %c2 = arith.constant 32768 : index
  %a = gdn_warp.view %c0 : <64x64xbf16, swizzle = 128>
  %b = gdn_warp.view %c1 : <64x64xbf16, swizzle = 128>
  %c = gdn_warp.view %c2 : <64x64xf32, swizzle = 128>
  gdn_warp.wgmma_fence
  %x = gdn_warp.wgmma %a, %b : !gdn_warp.view<64x64xbf16, swizzle = 128>, <64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.wgmma_commit
  %y = gdn_warp.wgmma_wait 0 of %x : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.fragment_store %y, %c : tensor<64x64xf32, #gdn_warp.fragment> -> <64x64xf32, swizzle = 128>
}
