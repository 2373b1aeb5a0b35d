// RUN: gdn-opt %s --convert-gdn-to-tile="operand-type=bf16 v-tiles=2" --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// The chunked formulas of spec 5 in f32: the states on entry of all chunks from
// a replay of the forward, kept in scratch memory of the work item, then the chunks
// from the last to the first. The sums over V need all of it: one tile.

// CHECK-LABEL: gdn_tile.program @layer_backward(
// CHECK-SAME: outs(%dq: memref<1x64x4x64xf32, {{.*}} %dk: {{.*}} %dv: {{.*}} %dbeta: {{.*}} %dgate: {{.*}} %d_initial_state:
// CHECK-NOT: bf16
// CHECK: %[[LENGTH:.*]] = arith.subi %end, %begin
// CHECK: %[[COUNT:.*]] = arith.ceildivui %[[LENGTH]], %[[C:.*]] : index
// CHECK: %[[STATES:.*]] = memref.alloc(%[[COUNT]]) : memref<?x16x64xf32>
// CHECK: scf.for %{{.*}} = %begin to %end step %[[C]]
// CHECK: gdn_tile.store %{{.*}}, %[[STATES]][%{{.*}}] axes [1, 2] {gdn_tile.step = "state"}

// CHECK: gdn_tile.load %d_final_state
// CHECK: %[[SPAN:.*]] = arith.muli %[[COUNT]], %[[C]]
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %[[SPAN]] step %[[C]]
// CHECK: %[[FROM_END:.*]] = arith.subi %[[SPAN]], %[[C]]
// CHECK: %[[BACK:.*]] = arith.subi %[[FROM_END]], %[[STEP]]
// CHECK: %[[T:.*]] = arith.addi %begin, %[[BACK]]
// CHECK: gdn_tile.load %[[STATES]]
// CHECK: gdn_tile.load %q[%batch, %[[T]],
// CHECK: gdn_tile.solve {{.*}} merge f32
// CHECK: gdn_tile.store {{.*}}, %dv
// CHECK: gdn_tile.store {{.*}}, %dbeta
// CHECK: gdn_tile.store {{.*}}, %dq
// CHECK: gdn_tile.store {{.*}}, %dk
// The gradient of gate t is made of sums that do not cancel: over the pairs of
// tokens around t, of the writes before t, of the reads from t on.
// CHECK: %[[BELOW:.*]] = gdn_tile.scan %{{.*}} axis 0 reverse {gdn_tile.step = "gates"} : tensor<32x32xf32>
// CHECK: %[[AROUND:.*]] = gdn_tile.causal strict %[[BELOW]]
// CHECK: %[[PAIRS:.*]] = linalg.reduce ins(%[[AROUND]] :
// CHECK: %[[WRITES:.*]] = tensor.extract_slice %{{.*}}[0] [31] [1]
// CHECK: %[[BEFORE:.*]] = tensor.insert_slice %[[WRITES]] into %{{.*}}[1] [31] [1]
// CHECK: gdn_tile.scan %[[BEFORE]] axis 0 {gdn_tile.step = "gates"} : tensor<32xf32>
// CHECK: gdn_tile.scan %{{.*}} axis 0 reverse {gdn_tile.step = "gates"} : tensor<32xf32>
// CHECK: %[[DG:.*]] = arith.addf %{{.*}}, %[[PAIRS]]
// CHECK: gdn_tile.store %[[DG]], %dgate
// CHECK: memref.dealloc %[[STATES]]
// CHECK: gdn_tile.store {{.*}}, %d_initial_state
// CHECK: gdn_tile.launch @layer_backward grid(%[[ONE:.*]], %{{.*}}, %[[ONE]])
func.func @layer(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>, %initial: tensor<1x4x64x16xf32>,
    %d_o: tensor<1x64x4x16xf32>, %d_state: tensor<1x4x64x16xf32>) -> tensor<1x4x64x16xf32> {
  %r:6 = gdn.stage.backward q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      initial_state(%initial : tensor<1x4x64x16xf32>) d_o(%d_o : tensor<1x64x4x16xf32>)
      d_final_state(%d_state : tensor<1x4x64x16xf32>) {chunk_size = 32}
      -> tensor<1x64x4x64xf32>, tensor<1x64x4x64xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>,
         tensor<1x64x4xf32>, tensor<1x4x64x16xf32>
  return %r#5 : tensor<1x4x64x16xf32>
}

// A gate a channel: the gradient of the gate keeps its channels, and the decay
// by halves is safe with any gates. Their sum is f64, and so are its differences,
// of which a row has one of two; what f32 rounds off them is in the decays.
// CHECK-LABEL: gdn_tile.program @kda_backward(
// CHECK: %[[EXPONENT:.*]] = gdn_tile.rebase {{.*}} axis 0 block 2 at 0 {gdn_tile.step = "scores"} : tensor<32x64xf64>
// CHECK: %[[CUT:.*]] = arith.mulf %[[EXPONENT]], %{{.*}} : tensor<32x64xf64>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[CUT]] {{.*}} : tensor<32x64xf64> to tensor<32x64xf32>
// CHECK: math.exp2 %[[ROUNDED]]
// CHECK: arith.subf %[[CUT]], %{{.*}} : tensor<32x64xf64>
// CHECK: gdn_tile.scan %{{.*}} axis 0 reverse {gdn_tile.step = "gates"} : tensor<32x64xf32>
// CHECK: gdn_tile.store {{.*}}, %dgate{{.*}} axes [1, 3] until(%end, dim = 1)
func.func @kda(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>, %d_o: tensor<1x64x4x16xf32>)
    -> tensor<1x64x4x64xf32> {
  %r:5 = gdn.stage.backward q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      d_o(%d_o : tensor<1x64x4x16xf32>) {chunk_size = 32}
      -> tensor<1x64x4x64xf32>, tensor<1x64x4x64xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>,
         tensor<1x64x4x64xf32>
  return %r#4 : tensor<1x64x4x64xf32>
}

// A gate that is the decay itself: its gradient is not that of the logarithm
// over the gate, so nothing is summed in reverse and nothing divided.
// CHECK-LABEL: gdn_tile.program @linear_backward(
// CHECK-NOT: reverse
// CHECK-NOT: arith.divf
// CHECK: gdn_tile.store {{.*}}, %dgate{{.*}} axes [1] until(%end, dim = 1)
func.func @linear(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xf32>)
    -> tensor<1x64x4xf32> {
  %r:5 = gdn.stage.backward q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      d_o(%d_o : tensor<1x64x4x16xf32>) {chunk_size = 32, gate_domain = #gdn.gate_domain<linear>}
      -> tensor<1x64x4x64xf32>, tensor<1x64x4x64xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>,
         tensor<1x64x4xf32>
  return %r#4 : tensor<1x64x4xf32>
}

// With a gate a channel, pairs decay in K ways: a token at a time.
// CHECK-LABEL: gdn_tile.program @kda_linear_backward(
// CHECK-NOT: reverse
// CHECK-NOT: arith.divf
// CHECK: %[[DG:.*]] = scf.for {{.*}} -> (tensor<32x64xf32>)
// CHECK: gdn_tile.store %[[DG]], %dgate
func.func @kda_linear(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>, %d_o: tensor<1x64x4x16xf32>)
    -> tensor<1x64x4x64xf32> {
  %r:5 = gdn.stage.backward q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      d_o(%d_o : tensor<1x64x4x16xf32>) {chunk_size = 32, gate_domain = #gdn.gate_domain<linear>}
      -> tensor<1x64x4x64xf32>, tensor<1x64x4x64xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>,
         tensor<1x64x4x64xf32>
  return %r#4 : tensor<1x64x4x64xf32>
}
