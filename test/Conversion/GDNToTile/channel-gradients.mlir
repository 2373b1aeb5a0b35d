// RUN: gdn-opt %s --gdn-plan-stages=backward=three --convert-gdn-to-tile="v-tiles=2" --canonicalize --cse --gdn-tile-verify-form | FileCheck %s
// RUN: gdn-opt %s --gdn-plan-stages="backward=three state-interval=256" --convert-gdn-to-tile="v-tiles=2 cluster-heads" --canonicalize --cse --gdn-tile-verify-form | FileCheck %s --check-prefix=CARRY

// A backward in three kernels with a gate a channel, of two value heads a query/key head. Bounded gates are in range of a reference for 32
// tokens in the recurrences, and of one for 16 in the gradients.

// The forward once more: the state is kept before it is decayed to the reference, and beta is behind the solve.
// CHECK-LABEL: gdn_tile.program @layer_replay(
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: arith.truncf %[[S]] {gdn_tile.step = "keep"}
// CHECK: gdn_tile.store {{.*}}, %states[
// CHECK: %[[COLUMNS:.*]] = linalg.broadcast ins(%[[BETA:.*]] : tensor<32xf32>) {{.*}} dimensions = [0]
// CHECK: %[[M:.*]] = arith.mulf %{{.*}}, %[[COLUMNS]]
// CHECK: gdn_tile.tri_inverse
// CHECK: %[[READ:.*]] = arith.mulf %[[S]], %[[DECAY:[0-9a-z_]*]]
// CHECK: arith.truncf %[[READ]]
// CHECK: %[[BEHIND:.*]] = linalg.broadcast ins(%[[BETA]] : tensor<32xf32>) outs(%{{.*}} : tensor<64x32xf32>) dimensions = [0]
// CHECK: %[[WRITE:.*]] = arith.mulf %{{.*}}, %[[BEHIND]]
// CHECK: gdn_tile.store {{.*}}, %writes[

// Its twin in reverse. The gradient behind the chunk is read by keys that are decayed to its end, and so stored as it is; it goes to the
// reference, where rows of queries and keys are added, and from there to the chunk's start.
// CHECK-LABEL: gdn_tile.program @layer_adjoint(
// CHECK-DAG: %[[POWER:.*]] = arith.constant dense<6.250000e-02> : tensor<64x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[DO:.*]] = gdn_tile.load %d_o{{.*}} axes [3, 1]
// CHECK: arith.truncf %[[S]] {gdn_tile.step = "keep"}
// CHECK: gdn_tile.rebase {{.*}} axis 0 block 32 at 15
// CHECK: %[[KEYS:.*]] = arith.truncf {{.*}}gdn_tile.step = "decay"
// CHECK: %[[QUERIES:.*]] = arith.truncf {{.*}}gdn_tile.step = "decay"
// CHECK: %[[WRITERS:.*]] = arith.truncf {{.*}}gdn_tile.step = "decay"
// CHECK: %[[COLUMNS:.*]] = arith.truncf {{.*}}gdn_tile.step = "decay"
// CHECK: linalg.contract {{.*}} ins(%[[KEYS]], %[[COLUMNS]] :
// CHECK: linalg.contract {{.*}} ins(%[[QUERIES]], %[[COLUMNS]] :
// CHECK: gdn_tile.causal %{{.*}} : tensor<32x32xbf16>
// CHECK: gdn_tile.tri_inverse
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: linalg.contract {{.*}} ins(%[[ROUNDED]], %[[WRITERS]] :
// CHECK: gdn_tile.store {{.*}}, %dv[
// CHECK: %[[TO_REFERENCE:.*]] = arith.mulf %[[S]], %
// CHECK: %[[WIDE:.*]] = arith.extf %[[DO]]
// CHECK: %[[EXACT:.*]] = arith.mulf %[[WIDE]], %[[POWER]]
// CHECK: %[[READ:.*]] = arith.truncf %[[EXACT]]
// CHECK: %[[SUM:.*]] = linalg.contract {{.*}} ins(%[[READ]], %[[QUERIES]] : {{.*}} outs(%[[TO_REFERENCE]] :
// CHECK: %[[BOTH:.*]] = linalg.contract {{.*}}, %[[KEYS]] : {{.*}} outs(%[[SUM]] :
// CHECK: %[[NEXT:.*]] = arith.mulf %[[BOTH]], %
// CHECK: scf.yield %[[NEXT]]

// Gates are summed up by halves of K. Factors of channels go from one block's reference to the next.
// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK-SAME: %dgate: memref<1x?x2x128xf32
// CHECK: gdn_tile.load %d_states
// CHECK: gdn_tile.load %d_o
// CHECK: gdn_tile.load %gate{{.*}}gdn_tile.step = "decay"{{.*}} -> tensor<64x64xbf16>
// CHECK: gdn_tile.load %gate{{.*}}gdn_tile.step = "decay"{{.*}} -> tensor<64x64xbf16>
// CHECK: %[[G:.*]] = gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "decay"} : tensor<64x64xf32>
// CHECK: gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "decay"} : tensor<64x64xf32>
// CHECK: %[[SEVENTH:.*]] = tensor.extract_slice %[[G]][7, 0] [1, 64] [1, 1] {gdn_tile.step = "factors"}
// CHECK: %[[TO_FIRST:.*]] = math.exp2 %[[SEVENTH]]
// CHECK: %[[NEXT:.*]] = tensor.extract_slice %[[G]][23, 0]
// CHECK: %[[BETWEEN:.*]] = arith.subf %[[NEXT]], %[[SEVENTH]]
// CHECK: %[[STEP:.*]] = math.exp2 %[[BETWEEN]]
// CHECK: %[[OWN:.*]] = gdn_tile.diagonal %{{.*}} {gdn_tile.step = "scores"} : tensor<64x64xf32>
// Rows are decayed once, and all that takes them reads them.
// CHECK: %[[E:.*]] = arith.subf %[[G]], %{{.*}} {gdn_tile.reread
// CHECK: %[[MINUS:.*]] = arith.negf %[[E]]
// CHECK: math.exp2 %[[MINUS]]
// CHECK: %[[WRITTEN:.*]] = arith.truncf %{{.*}} {gdn_tile.shared
// CHECK: %[[Q:.*]] = arith.truncf %{{.*}} {gdn_tile.shared
// CHECK: %[[K:.*]] = arith.truncf %{{.*}} {gdn_tile.shared
// What keys write goes from the end of the chunk to the last reference, and into one sum with what later tokens read.
// CHECK: linalg.reduce
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[Q]][48, 0] [16, 64] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[LAST]] : tensor<16x64xbf16>, tensor<16x64xbf16>)
// CHECK: %[[CARRIED:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} {gdn_tile.reread
// CHECK: arith.mulf %{{.*}}, %[[CARRIED]]
// What rows read of the state goes to the first reference, and into the same sum.
// CHECK: %[[START:.*]] = arith.mulf %[[TO_FIRST]], %
// CHECK: %[[BY_START:.*]] = linalg.broadcast ins(%[[START]]
// CHECK: %[[STATE:.*]] = arith.mulf %{{.*}}, %[[BY_START]]
// CHECK: %[[BLOCK:.*]] = tensor.extract_slice %[[WRITTEN]][0, 0] [16, 64] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[BLOCK]] : tensor<64x16xbf16>, tensor<16x64xbf16>) outs(%[[STATE]] :
// CHECK: linalg.broadcast ins(%[[STEP]]
// The value heads of a group are added up in an array, of which the first one reads nothing. The last one rounds.
// CHECK: %[[ADDED:.*]] = scf.if
// CHECK: scf.yield
// CHECK: } else {
// CHECK: %[[STORED:.*]] = gdn_tile.load %sums[{{.*}} axes [1, 3] until(%[[END:.*]], dim = 1)
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[STORED]]
// CHECK: scf.yield %[[SUM]]
// CHECK: scf.if
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[ADDED]]
// CHECK: gdn_tile.store %[[ROUNDED]], %dk[
// CHECK: } else {
// CHECK: gdn_tile.store %[[ADDED]], %sums[
// CHECK: gdn_tile.store {{.*}}, %dq[
// Sums from a row on are products with a triangle, of two parts.
// CHECK: %[[BEFORE:.*]] = gdn_tile.causal strict %[[ONES:.*]] {gdn_tile.reread
// CHECK: %[[UPPER:.*]] = arith.subf %[[ONES]], %[[BEFORE]]
// CHECK: %[[FROM:.*]] = arith.truncf %[[UPPER]]
// CHECK: %[[PART:.*]] = arith.truncf %{{.*}} {gdn_tile.shared
// CHECK: linalg.contract {{.*}} ins(%[[FROM]], %[[PART]] :
// CHECK: %[[REST:.*]] = arith.truncf %{{.*}} {gdn_tile.shared
// CHECK: linalg.contract {{.*}} ins(%[[FROM]], %[[REST]] :
// CHECK: gdn_tile.store {{.*}}, %dgate[

// In a cluster that carries the state its work items add up the gradients of a piece, and keys are decayed to write to it.
// CARRY-LABEL: gdn_tile.program @layer_gradients(
// CARRY: scf.for {{.*}} iter_args(%[[LOW:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CARRY: gdn_tile.repeat %{{.*}} axis 0 block 16 {{.*}}gdn_tile.step = "low_keys"}
// CARRY: %[[K:.*]] = gdn_tile.cluster_sum %{{.*}} of 2 {gdn_tile.step = "low_keys"} : tensor<64x64xf32> -> tensor<64x32xf32>
// CARRY: gdn_tile.store %{{.*}}, %dk[
// CARRY: gdn_tile.cluster_sum
// CARRY: gdn_tile.store %{{.*}}, %dq[
// CARRY: gdn_tile.store %{{.*}}, %dgate[
// CARRY: %[[WHOLE:.*]] = linalg.broadcast {{.*}} outs(%{{.*}} : tensor<64x64xf32>) dimensions = [0]
// CARRY: %[[LEFT:.*]] = arith.mulf %[[LOW]], %[[WHOLE]]
// CARRY: linalg.contract {{.*}} outs(%[[LEFT]] :
func.func @layer(%q: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2x128xbf16>,
    %h0: tensor<?x2x128x128xf32>, %cu: tensor<?xi32>) -> (tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%q : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2x128xbf16>) initial_state(%h0 : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0}
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
  return %r#0, %r#4, %r#5 : tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<?x2x128x128xf32>
}
