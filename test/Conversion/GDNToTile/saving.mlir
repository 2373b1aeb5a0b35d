// RUN: gdn-opt %s --convert-gdn-to-tile --gdn-tile-verify-form | FileCheck %s

// A forward that saves: states true, before every second chunk of 32 tokens, and what tokens write. It has the decay inside
// of its tiles, for gates of any strength, and beta behind the solve.
// CHECK-LABEL: gdn_tile.program @f_fused(
// CHECK-SAME: outs(%[[O:[^:]*]]: {{.*}}, %[[R:[^:]*]]: {{.*}}, %[[S:[^:]*]]: memref<5x2x64x32xbf16
// CHECK: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK: gdn_tile.store {{.*}} %[[S]]
// CHECK: } {gdn_tile.every = 2 : i64
// The choice between the two forms of a gate is not there.
// CHECK-NOT: scf.if
// CHECK: gdn_tile.tri_inverse
// CHECK: gdn_tile.store {{.*}} %[[R]]
// CHECK: gdn_tile.store {{.*}} %[[O]]
func.func @f(%q: tensor<2x100x2x32xbf16>, %v: tensor<2x100x2x64xbf16>, %beta: tensor<2x100x2xf32>)
    -> (tensor<2x100x2x64xbf16>, tensor<2x100x2x64xbf16>, tensor<5x2x64x32xbf16>) {
  %r:3 = gdn.stage.fused q(%q : tensor<2x100x2x32xbf16>) k(%q : tensor<2x100x2x32xbf16>) v(%v : tensor<2x100x2x64xbf16>)
      beta(%beta : tensor<2x100x2xf32>) gate(%beta : tensor<2x100x2xf32>) {chunk_size = 32, state_interval = 64}
      -> tensor<2x100x2x64xbf16>, tensor<2x100x2x64xbf16>, tensor<5x2x64x32xbf16>
  return %r#0, %r#1, %r#2 : tensor<2x100x2x64xbf16>, tensor<2x100x2x64xbf16>, tensor<5x2x64x32xbf16>
}

// Of segments, states have the numbers of the sequences that were cut: floor(t / 64) and the sequence's own.
// CHECK-LABEL: gdn_tile.program @segments_fused(
// CHECK-SAME: %[[NUMBERS:[^:]*]]: memref<?xi32, {{[^)]*}})
// CHECK-SAME: %[[STATES:[^:]*]]: memref<?x2x64x32xbf16
// CHECK-SAME: work_item(%[[N:[^,]*]],
// CHECK: %[[NUMBER:.*]] = memref.load %[[NUMBERS]][%[[N]]]
// CHECK: %[[SEQUENCE:.*]] = arith.index_cast %[[NUMBER]] : i32 to index
// CHECK: %[[BEFORE:.*]] = arith.divui %{{.*}}, %c64
// CHECK: %[[STATE:.*]] = arith.addi %[[BEFORE]], %[[SEQUENCE]] : index
// CHECK: gdn_tile.store %{{.*}}, %[[STATES]][%[[STATE]],
func.func @segments(%q: tensor<1x?x2x32xbf16>, %v: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x2xf32>, %cu: tensor<?xi32>,
    %numbers: tensor<?xi32>) -> tensor<?x2x64x32xbf16> {
  %r:3 = gdn.stage.fused q(%q : tensor<1x?x2x32xbf16>) k(%q : tensor<1x?x2x32xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%beta : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      sequence_numbers(%numbers : tensor<?xi32>) {chunk_size = 32, state_interval = 64}
      -> tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>, tensor<?x2x64x32xbf16>
  return %r#2 : tensor<?x2x64x32xbf16>
}
