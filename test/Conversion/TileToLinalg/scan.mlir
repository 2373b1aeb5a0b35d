// RUN: gdn-opt %s --convert-gdn-tile-to-linalg | FileCheck %s

// Along the last axis the sum is one number.
// CHECK-LABEL: func.func @scan_vector
// CHECK-SAME: (%[[G:.*]]: tensor<32xf32>)
// CHECK: scf.for %[[I:[^ ]*]] = {{.*}} iter_args(%[[TILE:.*]] = %{{.*}}, %[[SUM:.*]] = %cst) -> (tensor<32xf32>, f32)
// CHECK:   %[[TERM:.*]] = tensor.extract %[[G]][%[[I]]]
// CHECK:   %[[NEXT:.*]] = arith.addf %[[SUM]], %[[TERM]]
// CHECK:   %[[NEW:.*]] = tensor.insert %[[NEXT]] into %[[TILE]][%[[I]]]
// CHECK:   scf.yield %[[NEW]], %[[NEXT]]
func.func @scan_vector(%g : tensor<32xf32>) -> tensor<32xf32> {
  %r = gdn_tile.scan %g axis 0 : tensor<32xf32>
  return %r : tensor<32xf32>
}

// Along another axis whole rows are added up; in reverse from the last one on.
// CHECK-LABEL: func.func @scan_rows_reverse
// CHECK: scf.for %[[I:[^ ]*]] = {{.*}} -> (tensor<32x128xf32>, vector<128xf32>)
// CHECK:   %[[LAST:.*]] = arith.subi %c32, %c1{{.*}} :
// CHECK:   %[[AT:.*]] = arith.subi %[[LAST]], %[[I]]
// CHECK:   vector.transfer_read %{{.*}}[%[[AT]], %c0{{.*}}]
// CHECK:   arith.addf %{{.*}} : vector<128xf32>
// CHECK:   vector.transfer_write
func.func @scan_rows_reverse(%g : tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = gdn_tile.scan %g axis 0 reverse : tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}

// The base of each block is spread over it.
// CHECK-LABEL: func.func @rebase
// CHECK-SAME: (%[[G:.*]]: tensor<32x128xf32>)
// CHECK: %[[BLOCKS:.*]] = tensor.expand_shape %[[G]] {{\[\[}}0, 1], [2]] {{.*}} into tensor<4x8x128xf32>
// CHECK: %[[BASE:.*]] = tensor.extract_slice %[[BLOCKS]][0, 3, 0] [4, 1, 128] [1, 1, 1] : tensor<4x8x128xf32> to tensor<4x128xf32>
// CHECK: %[[SPREAD:.*]] = linalg.broadcast ins(%[[BASE]] : {{.*}} dimensions = [1]
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[SPREAD]] {{\[\[}}0, 1], [2]]
// CHECK: arith.subf %[[G]], %[[ROWS]]
func.func @rebase(%g : tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = gdn_tile.rebase %g axis 0 block 8 at 3 : tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}

// CHECK-LABEL: func.func @rebase_vector
// CHECK: tensor.expand_shape {{.*}} into tensor<4x2xf32>
func.func @rebase_vector(%g : tensor<8xf32>) -> tensor<8xf32> {
  %r = gdn_tile.rebase %g axis 0 block 2 at 0 : tensor<8xf32>
  return %r : tensor<8xf32>
}

// The row of each block is known when the program runs.
// CHECK-LABEL: func.func @repeat
// CHECK-SAME: (%[[K:.*]]: tensor<32x64xbf16>, %[[N:.*]]: index)
// CHECK: %[[BLOCKS:.*]] = tensor.expand_shape %[[K]] {{\[\[}}0, 1], [2]] {{.*}} into tensor<2x16x64xbf16>
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[BLOCKS]][0, %[[N]], 0] [2, 1, 64] [1, 1, 1] : tensor<2x16x64xbf16> to tensor<2x64xbf16>
// CHECK: %[[SPREAD:.*]] = linalg.broadcast ins(%[[ROWS]] : {{.*}} dimensions = [1]
// CHECK: %[[ALL:.*]] = tensor.collapse_shape %[[SPREAD]] {{\[\[}}0, 1], [2]]
// CHECK: return %[[ALL]]
func.func @repeat(%k : tensor<32x64xbf16>, %n : index) -> tensor<32x64xbf16> {
  %r = gdn_tile.repeat %k axis 0 block 16 at %n : tensor<32x64xbf16>
  return %r : tensor<32x64xbf16>
}

// The upper triangle is selected away, not multiplied: NaN must not stay.
// CHECK-LABEL: func.func @causal
// CHECK: linalg.generic
// CHECK:   %[[ROW:.*]] = linalg.index 0
// CHECK:   %[[COLUMN:.*]] = linalg.index 1
// CHECK:   %[[KEEP:.*]] = arith.cmpi sgt, %[[ROW]], %[[COLUMN]]
// CHECK:   arith.select %[[KEEP]], %{{.*}}, %cst
func.func @causal(%x : tensor<32x32xf32>) -> tensor<32x32xf32> {
  %r = gdn_tile.causal strict %x : tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}

// CHECK-LABEL: func.func @diagonal
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel"]}
func.func @diagonal(%x : tensor<32x32xf32>) -> tensor<32xf32> {
  %r = gdn_tile.diagonal %x : tensor<32x32xf32> -> tensor<32xf32>
  return %r : tensor<32xf32>
}
