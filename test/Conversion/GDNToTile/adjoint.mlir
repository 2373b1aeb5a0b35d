// RUN: gdn-opt %s --gdn-plan-stages=backward=three --convert-gdn-to-tile="v-tiles=2" --canonicalize --cse --gdn-tile-verify-form | FileCheck %s

// The three programs of a backward of two value heads a query/key head. The forward once more stores the state before every segment of 64 tokens, two chunks,
// and what each token adds to it. Beta is raised, so that dbeta of a beta of zero can be had from that.
// CHECK-LABEL: gdn_tile.program @layer_replay(
// CHECK-SAME: outs(%writes: memref<1x?x4x128xbf16, {{.*}} %states: memref<?x4x128x128xbf16,
// CHECK-SAME: gdn_tile.stage = "replay"
// CHECK: scf.for %[[T:.*]] = %begin to %end step %c32 iter_args(%[[S:.*]] = %{{.*}})
// CHECK: arith.maximumf %{{.*}}, %{{.*}} {gdn_tile.step = "gates"} : tensor<32xf32>
// CHECK: %[[REST:.*]] = arith.remui %{{.*}}, %c2
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: %[[KEPT:.*]] = arith.truncf %[[S]] {gdn_tile.step = "keep"}
// CHECK: arith.divui %{{.*}}, %c64
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: gdn_tile.store %[[KEPT]], %states[%{{.*}}, %h,
// CHECK: } {gdn_tile.every = 2 : i64}
// The product of the state takes the state rounded in the same way.
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: linalg.contract {{.*}} {gdn_tile.step = "state"} ins(%[[ROUNDED]],
// What tokens write is added to the state in two parts, and stored in one.
// CHECK: %[[ADDED:.*]] = linalg.contract {{.*}} ins(%[[MOST:[0-9]+]], %{{.*}} : tensor<64x32xbf16>, tensor<32x128xbf16>)
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[MOST]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.subf %{{.*}}, %[[WIDE]]
// CHECK-NEXT: %[[LESS:.*]] = arith.truncf %[[LEFT]]
// CHECK-NEXT: %[[NEXT:.*]] = linalg.contract {{.*}} ins(%[[LESS]], %{{.*}} outs(%[[ADDED]]
// CHECK: gdn_tile.store %{{.*}}, %writes[
// CHECK: scf.yield %[[NEXT]]

// The gradient of the state runs backwards. It is stored behind the last chunk of a segment, or of the sequence. It is carried over
// sqrt(2), what the scale 128^(-1/2) is times a power of two, which dO is multiplied by.
// CHECK-LABEL: gdn_tile.program @layer_adjoint(
// CHECK-SAME: outs(%dv: memref<1x?x4x128xbf16, {{.*}} %d_states: memref<?x4x128x128xbf16, {{.*}} %d_initial_state: memref<?x4x128x128xf32
// CHECK-DAG: %[[UNIT:.*]] = arith.constant dense<1.41421354> : tensor<32xf32>
// CHECK-DAG: %[[OVER:.*]] = arith.constant dense<-0.707106769> : tensor<32xf32>
// CHECK-DAG: %[[POWER:.*]] = arith.constant dense<6.250000e-02> : tensor<32xf32>
// CHECK-DAG: %[[STATE_UNIT:.*]] = arith.constant dense<1.41421354> : tensor<64x128xf32>
// CHECK: %[[LAST:.*]] = scf.for %[[BACK:.*]] = %c0 to %{{.*}} step %c32 iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[DO:.*]] = gdn_tile.load %d_o{{.*}} axes [3, 1]
// CHECK: arith.mulf %[[GAM:.*]], %[[POWER]]
// CHECK: arith.mulf %[[GAM]], %[[OVER]]
// CHECK: arith.mulf %{{.*}}, %[[UNIT]]
// CHECK: %[[ENDS:.*]] = arith.ori
// CHECK: %[[KEPT:.*]] = arith.truncf %[[S]] {gdn_tile.step = "keep"}
// CHECK: scf.if %[[ENDS]] {
// CHECK-NEXT: gdn_tile.store %[[KEPT]], %d_states[
// CHECK: } {gdn_tile.every = 2 : i64}
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: %[[READ:.*]] = linalg.contract {{.*}} {gdn_tile.step = "state"} ins(%[[ROUNDED]],
// CHECK: linalg.contract {{.*}} {gdn_tile.step = "state"} ins(%[[DO]],
// CHECK: gdn_tile.store %{{.*}}, %dv[
// CHECK: %[[FIRST:.*]] = arith.mulf %[[LAST]], %[[STATE_UNIT]]
// CHECK: gdn_tile.store %[[FIRST]], %d_initial_state[

// Gradients of 16 parts of a sequence side by side, each with every 16th chunk of 64 tokens, and the value heads of a
// group one after the other.
// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK-SAME: work_item(%n, %h, %[[PART:.*]]) tokens(
// CHECK: %[[UNIT:.*]] = arith.constant dense<1.41421354> : tensor<64xf32>
// CHECK: %[[OFFSET:.*]] = arith.muli %[[PART]], %c64
// CHECK: %[[LOWER:.*]] = arith.addi %begin, %[[OFFSET]]
// CHECK: arith.subi %end, %[[LOWER]]
// CHECK: %[[SHORT:.*]] = arith.ceildivui %{{.*}}, %c1024_i32
// CHECK: %[[CHUNKS:.*]] = arith.index_castui %[[SHORT]] : i32 to index
// CHECK: %[[COUNT:.*]] = arith.muli %[[CHUNKS]], %c2
// CHECK: scf.for %[[N:.*]] = %c0 to %[[COUNT]] step %c1 iter_args({{.*}}) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
// CHECK: gdn_tile.load %states[%{{.*}}, %[[HEAD:.*]], %c0, %c0] {{.*}}gdn_tile.step = "load_state"{{.*}} -> tensor<64x64xbf16>
// CHECK: gdn_tile.load %states[%{{.*}}, %[[HEAD]], %c64, %c0]
// CHECK: gdn_tile.load %states[%{{.*}}, %[[HEAD]], %c0, %c64]
// CHECK: gdn_tile.load %d_states[
// CHECK: gdn_tile.load %q[%batch, %{{.*}}, %h, %c0]
// dbeta is the diagonal over beta squared.
// CHECK: %[[DIAGONAL:.*]] = gdn_tile.diagonal
// CHECK: %[[DBETA:.*]] = arith.divf %[[DIAGONAL]],
// Each half of K has warps of its own. The last value head of a group stores the sums over it.
// CHECK: scf.if %[[LAST:.*]] {
// CHECK: gdn_tile.store %{{.*}}, %dq[%batch, %{{.*}}, %h, %c0]{{.*}}gdn_tile.step = "low_keys"
// What writes read of the gradient of the state has its unit.
// CHECK: arith.mulf %{{.*}}, %[[UNIT]] {{.*}}gdn_tile.step = "low_keys"
// CHECK: scf.if %[[LAST]] {
// CHECK: gdn_tile.store %{{.*}}, %dk[%batch, %{{.*}}, %h, %c0]{{.*}}gdn_tile.step = "low_keys"
// CHECK: scf.if %[[LAST]] {
// CHECK: gdn_tile.store %{{.*}}, %dq[%batch, %{{.*}}, %h, %c64]{{.*}}gdn_tile.step = "high_keys"
// CHECK: scf.if %[[LAST]] {
// CHECK: gdn_tile.store %{{.*}}, %dk[%batch, %{{.*}}, %h, %c64]{{.*}}gdn_tile.step = "high_keys"
// CHECK: gdn_tile.store %[[DBETA]], %dbeta[
// Every term of the gate's gradient is a sum that does not cancel.
// CHECK: gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "finish"} : tensor<64xf32>
// CHECK: gdn_tile.scan %{{.*}} axis 0 reverse {gdn_tile.step = "finish"} : tensor<64xf32>
// CHECK: gdn_tile.store %{{.*}}, %dgate[
// CHECK-LABEL: func.func @layer
// CHECK: gdn_tile.launch @layer_replay grid(%{{.*}}, %c4, %c2)
// CHECK: gdn_tile.launch @layer_adjoint grid(%{{.*}}, %c4, %c2)
// CHECK: gdn_tile.launch @layer_gradients grid(%{{.*}}, %c2, %c16)
func.func @layer(%q: tensor<1x?x2x128xbf16>, %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>, %h0: tensor<?x4x128x128xf32>,
    %cu: tensor<?xi32>) -> (tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>,
        tensor<1x?x4xf32>, tensor<?x4x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>)
      v(%v : tensor<1x?x4x128xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%beta : tensor<1x?x4xf32>)
      initial_state(%h0 : tensor<?x4x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x4x128xbf16>)
      -> tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>,
         tensor<?x4x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x2x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x4x128xbf16>,
      tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x128x128xf32>
}
