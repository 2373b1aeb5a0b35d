// A call chooses how many parts of a sequence take its chunks in turn, by the work items that a device computes at a time. The
// program has the number as a scalar, and the part as a coordinate. If the device is not known, there are 16 parts.
// RUN: gdn-opt %s --convert-gdn-to-tile=work-items=132 | FileCheck %s
// RUN: gdn-opt %s --convert-gdn-to-tile | FileCheck %s --check-prefix=FIXED
// RUN: not gdn-opt %s --convert-gdn-to-tile=work-items=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: expected work-items of at least 0, got -1

// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK-SAME: %part_count: index
// CHECK-SAME: work_item(%n, %h, %vt, %[[PART:[a-z0-9]+]])
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c64
// CHECK: arith.addi %begin, %[[FIRST]]
// CHECK: %[[STEP:.*]] = arith.muli %part_count, %c64
// In 32 bits: a division of 64 would be a function.
// CHECK: %[[SHORT:.*]] = arith.index_castui %[[STEP]] : index to i32
// CHECK: arith.ceildivui %{{.*}}, %[[SHORT]]

// As many parts as fill the device once, twice, three and four times, at least two of several sequences and at most one a chunk,
// of which the one is taken whose work items take the fewest half chunks, three of each besides its own.
// CHECK-LABEL: func.func @layer(
// CHECK: %[[MEAN:.*]] = arith.ceildivui %[[TOKENS:.*]], %[[SEQUENCES:.*]] : index
// CHECK: %[[SOME:.*]] = arith.ceildivui %[[MEAN]], %c64
// CHECK: %[[CHUNKS:.*]] = arith.maxui %[[SOME]], %c1
// CHECK: %[[EACH:.*]] = arith.maxui
// CHECK: %[[LEAST:.*]] = arith.addi
// CHECK: %[[ONCE:.*]] = arith.divui %c132{{.*}}, %[[EACH]]
// CHECK: %[[AT_LEAST:.*]] = arith.maxui %[[ONCE]], %[[LEAST]]
// CHECK: %[[AT_MOST:.*]] = arith.minui %[[AT_LEAST]], %[[CHUNKS]]
// CHECK: %[[PARTS:.*]] = arith.minui %[[AT_MOST]], %c65535
// CHECK: %[[ITEMS:.*]] = arith.muli %[[EACH]], %[[PARTS]]
// CHECK: %[[ROUNDS:.*]] = arith.ceildivui %[[ITEMS]], %c132
// CHECK: %[[OWN:.*]] = arith.ceildivui %[[CHUNKS]], %[[PARTS]]
// CHECK: %[[HALVES:.*]] = arith.muli %[[OWN]], %c2
// CHECK: %[[ALL:.*]] = arith.addi %[[HALVES]], %c3
// CHECK: %[[TIME:.*]] = arith.muli %[[ROUNDS]], %[[ALL]]
// CHECK: arith.divui %c264
// CHECK: arith.divui %c396
// CHECK: arith.divui %c528
// CHECK: %[[BEST:.*]] = arith.remui %{{.*}}, %c65536
// CHECK: gdn_tile.launch @layer_gradients grid(%{{.*}}, %{{.*}}, %c1{{.*}}, %[[BEST]]){{.*}} ins({{.*}}, %[[BEST]] :

// FIXED-LABEL: gdn_tile.program @layer_gradients(
// FIXED-SAME: work_item(%n, %h, %vt)
// FIXED: arith.muli %vt, %c64
// FIXED: gdn_tile.launch @layer_gradients grid(%{{.*}}, %{{.*}}, %c16
func.func @layer(%q: tensor<1x?x2x128xbf16>, %k: tensor<1x?x2x128xbf16>, %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>,
    %gate: tensor<1x?x4xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x4x128xbf16>, %writes: tensor<1x?x4x128xbf16>,
    %dv: tensor<1x?x4x128xbf16>, %s: tensor<?x4x128x128xbf16>, %ds: tensor<?x4x128x128xbf16>)
    -> (tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>) {
  %r:4 = gdn.stage.gradients q(%q : tensor<1x?x2x128xbf16>) k(%k : tensor<1x?x2x128xbf16>) v(%v : tensor<1x?x4x128xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%do : tensor<1x?x4x128xbf16>) writes(%writes : tensor<1x?x4x128xbf16>) dv(%dv : tensor<1x?x4x128xbf16>)
      states(%s : tensor<?x4x128x128xbf16>) d_states(%ds : tensor<?x4x128x128xbf16>) {chunk_size = 64, segment_length = 64}
      -> tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>
}
