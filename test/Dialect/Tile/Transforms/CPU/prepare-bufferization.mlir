// RUN: gdn-opt %s --gdn-tile-prepare-bufferization | FileCheck %s

// The caller's arrays are only read.
// CHECK-LABEL: func.func @interface
// CHECK-SAME: tensor<8xf32> {bufferization.writable = false}
// CHECK-SAME: attributes {llvm.emit_c_interface}
func.func @interface(%x : tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// Unless the function says that it may write them.
// CHECK-LABEL: func.func @writable
// CHECK-SAME: tensor<8xf32> {bufferization.writable = true})
func.func @writable(%x : tensor<8xf32> {bufferization.writable = true}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// A tile that is scaled every iteration is scaled in the buffer that carries it, and
// whoever needs the old one comes before.
// CHECK-LABEL: func.func private @carried
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<8xf32>)
// CHECK:   vector.transfer_read %[[S]]
// CHECK:   %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<8xf32>) outs(%[[S]] : tensor<8xf32>)
// CHECK:   %[[KEPT:.*]] = bufferization.materialize_in_destination %[[NEXT]] in %[[S]]
// CHECK:   scf.yield %[[KEPT]]
func.func private @carried(%init : tensor<8xf32>, %n : index, %y : memref<8xf32>)
    -> tensor<8xf32> attributes {gdn_tile.program} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %init) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %next = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]} ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%in : f32, %out : f32):
      %double = arith.addf %in, %in : f32
      linalg.yield %double : f32
    } -> tensor<8xf32>
    %row = vector.transfer_read %s[%c0], %zero {in_bounds = [true]} : tensor<8xf32>, vector<8xf32>
    vector.transfer_write %row, %y[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
