// RUN: gdn-opt %s --gdn-plan-stages=plan=separate --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Two kernels with Bm and the cumulated gate between them. Bm is stored with
// its decay and without beta, in f16; prepare has no V tiles.

// CHECK-LABEL: gdn_tile.program @layer_prepare(
// CHECK-SAME: outs(%bm: memref<1x?x4x32xf16, {{.*}}>, %decay: memref<1x?x4xf32,
// CHECK: %[[G:.*]] = gdn_tile.scan
// CHECK: %[[KK:.*]] = gdn_tile.causal strict
// CHECK: %[[SOLVED:.*]] = gdn_tile.solve %[[KK]]
// CHECK: %[[D:.*]] = math.exp2
// CHECK: %[[BM:.*]] = arith.mulf %[[SOLVED]], %[[D]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[BM]] {gdn_tile.step = "store"}
// CHECK: gdn_tile.store %[[ROUNDED]], %bm{{.*}} axes [1, 3] until(%end, dim = 1)
// CHECK: gdn_tile.store %[[G]], %decay{{.*}} axes [1] until(%end, dim = 1)

// Run solves nothing and uses the form of spec 3.3. Beyond the end, where
// prepare stores nothing, G stays flat: the padding takes the last value.
// CHECK-LABEL: gdn_tile.program @layer_run(
// CHECK-NOT: gdn_tile.solve
// CHECK-NOT: gdn_tile.scan
// CHECK: scf.for %[[T:.*]] = %begin
// CHECK: %[[BM:.*]] = gdn_tile.load %bm{{.*}}"load"}
// CHECK: %[[NEXT:.*]] = arith.addi %[[T]], %
// CHECK: %[[STOP:.*]] = arith.minui %[[NEXT]], %end
// CHECK: %[[LAST:.*]] = arith.subi %[[STOP]], %
// CHECK: %[[STORED:.*]] = gdn_tile.load %decay[%batch, %[[T]], %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
// CHECK: gdn_tile.load %decay[%batch, %[[LAST]], %h] axes [1] {gdn_tile.step = "gates"} : {{.*}} -> tensor<1xf32>
// CHECK: arith.addf %[[STORED]], %
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<32xf32>) {{.*}} dimensions = [1] {gdn_tile.step = "solve"}
// CHECK: gdn_tile.store {{.*}}, %o
// CHECK-NOT: gdn_tile.solve

// CHECK-LABEL: func.func @layer
// CHECK: %[[PREPARED:.*]]:2 = gdn_tile.launch @layer_prepare
// CHECK: gdn_tile.launch @layer_run {{.*}} ins(%arg0, %arg1, %arg2, %arg3, %[[PREPARED]]#0, %[[PREPARED]]#1 :
func.func @layer(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x16xbf16>,
    %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>) -> tensor<1x?x4x16xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x16xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>)
      -> tensor<1x?x4x16xbf16>
  return %o : tensor<1x?x4x16xbf16>
}

// A gate a channel: G keeps its channels, prepare needs no queries.
// CHECK-LABEL: gdn_tile.program @kda_prepare(%k: {{.*}} %beta: {{.*}} %gate: {{[^%]*}}) outs(%bm: {{.*}} %decay: memref<1x?x4x64xf32,
// CHECK: scf.if {{.*}} -> (tensor<32x32xf32>) {
// CHECK: gdn_tile.store {{.*}}, %decay{{.*}} axes [1, 3] until(%end, dim = 1)
// CHECK-LABEL: gdn_tile.program @kda_run(
// CHECK: gdn_tile.load %decay{{.*}} axes [1, 3] until
// CHECK: gdn_tile.load %decay{{.*}} axes [3] {{.*}} -> tensor<64xf32>
func.func @kda(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x16xbf16>,
    %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4x64xf32>) -> tensor<1x?x4x16xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x16xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4x64xf32>)
      -> tensor<1x?x4x16xbf16>
  return %o : tensor<1x?x4x16xbf16>
}
