// Kernels that differ in their names alone become one, which all their launches name; others stay.
// RUN: gdn-opt %s --gdn-warp-merge-kernels | FileCheck %s

// CHECK: gdn_warp.kernel @first_cut
gdn_warp.kernel @first_cut(%a: memref<8xf32>, %t: i64) threads(128) shared(0) {
  gdn_warp.role "all" warps(0, 4) registers(64) {
    %c = arith.constant 1.0 : f32
  }
}
// CHECK-NOT: second_cut
gdn_warp.kernel @second_cut(%a: memref<8xf32>, %t: i64) threads(128) shared(0) {
  gdn_warp.role "all" warps(0, 4) registers(64) {
    %one = arith.constant 1.0 : f32
  }
}
// CHECK: gdn_warp.kernel @other_number
gdn_warp.kernel @other_number(%a: memref<8xf32>, %t: i64) threads(128) shared(0) {
  gdn_warp.role "all" warps(0, 4) registers(64) {
    %c = arith.constant 2.0 : f32
  }
}
// CHECK: gdn_warp.kernel @other_array
gdn_warp.kernel @other_array(%a: memref<16xf32>, %t: i64) threads(128) shared(0) {
  gdn_warp.role "all" warps(0, 4) registers(64) {
    %c = arith.constant 1.0 : f32
  }
}

// CHECK-LABEL: func.func @calls
func.func @calls(%n: index, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  // CHECK: gdn_tile.launch @first_cut
  %y = gdn_tile.launch @first_cut grid(%n, %c1, %c1) tokens(%n) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  // CHECK: gdn_tile.launch @first_cut
  %z = gdn_tile.launch @second_cut grid(%n, %c1, %c1) tokens(%n) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
