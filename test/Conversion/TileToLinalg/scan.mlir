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
