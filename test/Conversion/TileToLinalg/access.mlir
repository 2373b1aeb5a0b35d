// RUN: gdn-opt %s --convert-gdn-tile-to-linalg -split-input-file | FileCheck %s

// A program becomes a private function of its arrays and its work item, and rows at
// or beyond the end are never read: the first loop stops there, the second one
// writes zeros.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME: (%[[X:.*]]: memref<1x?x4x128xf32>, %{{.*}}: index, %[[H:.*]]: index, %{{.*}}: index, %[[B:.*]]: index, %[[BEGIN:.*]]: index, %[[END:.*]]: index) attributes {gdn_tile.program}
// CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK: %[[SOME:.*]] = arith.maxsi %[[LEFT]], %{{.*}}
// CHECK: %[[COUNT:.*]] = arith.minsi %[[SOME]], %{{.*}}
// CHECK: %[[VALID:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]]
// CHECK:   %[[T:.*]] = arith.addi %[[BEGIN]], %[[I]]
// CHECK:   %[[ROW:.*]] = vector.transfer_read %[[X]][%[[B]], %[[T]], %[[H]], %{{[^]]*}}], %{{[^ ]*}} {in_bounds = [true]} : {{.*}}, vector<128xf32>
// CHECK:   vector.transfer_write %[[ROW]], %{{.*}}[%[[I]], %{{.*}}]
// CHECK: scf.for %{{.*}} = %[[COUNT]] to %{{.*}} iter_args(%{{.*}} = %[[VALID]])
// CHECK-NOT: transfer_read
// CHECK:   vector.transfer_write %cst
// CHECK: return
gdn_tile.program @rows(%x : memref<1x?x4x128xf32>) outs(%y : memref<32x128xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %x[%batch, %begin, %h, %c0] axes [1, 3] until(%end, dim = 1)
      : memref<1x?x4x128xf32> -> tensor<32x128xf32>
  gdn_tile.store %tile, %y[%c0, %c0] axes [0, 1] : tensor<32x128xf32> -> memref<32x128xf32>
}

// -----

// A transposed tile is read row by row of memory, and turned afterwards.
// CHECK-LABEL: func.func private @turned
// CHECK: %[[ROWS:.*]] = scf.for {{.*}} -> (tensor<32x128xf32>)
// CHECK: %[[ALL:.*]] = scf.for {{.*}}%[[ROWS]]{{.*}} -> (tensor<32x128xf32>)
// CHECK: linalg.transpose ins(%[[ALL]] : tensor<32x128xf32>) outs(%{{.*}} : tensor<128x32xf32>) permutation = [1, 0]
// A transposed tile is turned back before it is stored.
// CHECK: linalg.transpose ins(%{{.*}} : tensor<128x32xf32>) outs(%{{.*}} : tensor<32x128xf32>)
// CHECK: scf.for
// CHECK:   vector.transfer_write %{{.*}} : vector<128xf32>, memref<1x?x4x128xf32>
gdn_tile.program @turned(%x : memref<1x?x4x128xf32>) outs(%y : memref<1x?x4x128xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %x[%batch, %begin, %h, %c0] axes [3, 1] until(%end, dim = 1)
      : memref<1x?x4x128xf32> -> tensor<128x32xf32>
  gdn_tile.store %tile, %y[%batch, %begin, %h, %c0] axes [3, 1] until(%end, dim = 1)
      : tensor<128x32xf32> -> memref<1x?x4x128xf32>
}

// -----

// What is not contiguous in memory goes element by element, and a store too
// stops at the end.
// CHECK-LABEL: func.func private @elements
// CHECK: %[[COUNT:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
// CHECK:   memref.load
// CHECK:   tensor.insert
// CHECK: scf.for %{{.*}} = %[[COUNT]] to
// CHECK:   tensor.insert %cst
// CHECK: %[[OTHER:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[OTHER]]
// CHECK:   tensor.extract
// CHECK:   memref.store
// CHECK-NOT: scf.for
gdn_tile.program @elements(%g : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %tile = gdn_tile.load %g[%batch, %begin, %h] axes [1] until(%end, dim = 1)
      : memref<1x?x4xf32> -> tensor<32xf32>
  gdn_tile.store %tile, %y[%batch, %begin, %h] axes [1] until(%end, dim = 1)
      : tensor<32xf32> -> memref<1x?x4xf32>
}

// -----

// Tiles do not fill the array's columns, nor its rows for sure: both end with the array. All elements are zero first.
// CHECK-LABEL: func.func private @cut
// CHECK-SAME: (%[[X:.*]]: memref<?x100xf32>, %[[Y:.*]]: memref<?x64xf32>, %[[I:[^:]*]]: index
// CHECK: %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK: arith.subi %[[ROWS]], %[[I]]
// CHECK: %[[HEIGHT:.*]] = arith.minsi
// CHECK: %[[WIDTH:.*]] = arith.minsi
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: %[[X]]
// CHECK: tensor.insert %cst
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[HEIGHT]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WIDTH]]
// CHECK: memref.load %[[X]]
// Tiles fill the rows of the other array. It may end above the tile's last row.
// CHECK: %[[LAST:.*]] = memref.dim %[[Y]]
// CHECK: arith.subi %[[LAST]]
// CHECK: %[[COUNT:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
// CHECK: vector.transfer_write %{{.*}}, %[[Y]]
gdn_tile.program @cut(%x : memref<?x100xf32>) outs(%y : memref<?x64xf32>)
    work_item(%i, %j, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %x[%i, %j] axes [0, 1] : memref<?x100xf32> -> tensor<16x64xf32>
  gdn_tile.store %tile, %y[%i, %c0] axes [0, 1] : tensor<16x64xf32> -> memref<?x64xf32>
}

// -----

// Tiles of this size fill the dimension, but this one begins in its middle: it is cut.
// CHECK-LABEL: func.func private @from_the_middle
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 32 : index
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[FIRST]]
// CHECK: %[[SOME:.*]] = arith.maxsi %[[LEFT]]
// CHECK: %[[COUNT:.*]] = arith.minsi %[[SOME]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]]
gdn_tile.program @from_the_middle(%x: memref<1x64x4x64xf32>) outs(%y: memref<1x64x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %0 = gdn_tile.load %x[%batch, %c0, %h, %c32] axes [1, 3] {gdn_tile.step = "load"} : memref<1x64x4x64xf32> -> tensor<64x64xf32>
  gdn_tile.store %0, %y[%batch, %c0, %h, %c32] axes [1, 3] {gdn_tile.step = "store"} : tensor<64x64xf32> -> memref<1x64x4x64xf32>
}

// -----

// Programs run one after the other: no one waits for a report, and it is a store.
// CHECK-LABEL: func.func private @reports
// CHECK-SAME: (%[[PROGRESS:.*]]: memref<?x4x2xi32>, %[[N:.*]]: index, %[[H:.*]]: index, %[[VT:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[END:.*]]: index)
// CHECK-NEXT: %[[DONE:.*]] = arith.index_cast %[[END]] : index to i32
// CHECK-NEXT: memref.store %[[DONE]], %[[PROGRESS]][%[[N]], %[[H]], %[[VT]]]
// CHECK-NEXT: return
gdn_tile.program @reports(%progress : memref<?x4x2xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  gdn_tile.await_report %progress[%n, %h] count %h done %end : memref<?x4x2xi32>
  gdn_tile.report %end, %progress[%n, %h, %vt] : memref<?x4x2xi32>
}

// -----

// Rows of zeros, where there are any.
// CHECK-LABEL: func.func private @cleared
// CHECK-SAME: (%[[X:.*]]: memref<1x?x4x64xbf16>, %{{.*}}: index, %[[H:.*]]: index, %{{.*}}: index, %[[B:.*]]: index, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK: %[[EMPTY:.*]] = arith.cmpi
// CHECK: scf.if %[[EMPTY]]
// CHECK:   %[[LAST:.*]] = arith.addi %[[FIRST:.*]], %{{.*}} : index
// CHECK:   scf.for %[[T:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:     scf.for %[[C:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK:       memref.store %{{.*}}, %[[X]][%[[B]], %[[T]], %[[H]], %[[C]]]
gdn_tile.program @cleared(%x: memref<1x?x4x64xbf16>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c32 = arith.constant 32 : index
  %empty = arith.cmpi eq, %n, %h : index
  gdn_tile.clear %x[%batch, %begin, %h, %c32] until(%end, dim = 1) columns 32 if %empty : memref<1x?x4x64xbf16>
}
