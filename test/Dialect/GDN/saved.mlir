// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s --check-prefix=ROUND
// RUN: gdn-opt %s --canonicalize | FileCheck %s --check-prefix=CANON
// RUN: gdn-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s --check-prefix=DIMS

// A forward that saves what its backward reads: r in the place of v, and states between segments of 128 tokens, of which
// there are floor(2 x 200 / 128) + 2.
// ROUND-LABEL: @step
// ROUND: gdn.chunk_gated_delta_rule {{.*}} {output_final_state, state_interval = 128 : i64}
// ROUND-SAME: -> tensor<2x200x4x16xbf16>, tensor<2x4x32x16xf32>, tensor<2x200x4x16xbf16>, tensor<5x4x16x32xbf16>
// ROUND: gdn.chunk_gated_delta_rule_bwd {{.*}} v(%[[R:.*]] : tensor<2x200x4x16xbf16>) {{.*}} writes(%[[R]] : tensor<2x200x4x16xbf16>)
// ROUND-SAME: states(%{{.*}} : tensor<5x4x16x32xbf16>) {state_interval = 128 : i64}
func.func @step(%q: tensor<2x200x2x32xbf16>, %v: tensor<2x200x4x16xbf16>, %beta: tensor<2x200x4xf32>)
    -> (tensor<2x200x4x16xbf16>, tensor<2x4x32x16xf32>, tensor<2x200x4x16xbf16>) {
  %o, %s, %r, %states = gdn.chunk_gated_delta_rule q(%q : tensor<2x200x2x32xbf16>) k(%q : tensor<2x200x2x32xbf16>)
      v(%v : tensor<2x200x4x16xbf16>) beta(%beta : tensor<2x200x4xf32>) {output_final_state, state_interval = 128 : i64}
      -> tensor<2x200x4x16xbf16>, tensor<2x4x32x16xf32>, tensor<2x200x4x16xbf16>, tensor<5x4x16x32xbf16>
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x200x2x32xbf16>) k(%q : tensor<2x200x2x32xbf16>)
      v(%r : tensor<2x200x4x16xbf16>) beta(%beta : tensor<2x200x4xf32>) d_o(%o : tensor<2x200x4x16xbf16>)
      writes(%r : tensor<2x200x4x16xbf16>) states(%states : tensor<5x4x16x32xbf16>) {state_interval = 128 : i64}
      -> tensor<2x200x2x32xbf16>, tensor<2x200x2x32xbf16>, tensor<2x200x4x16xbf16>, tensor<2x200x4xf32>
  return %o, %s, %d#2 : tensor<2x200x4x16xbf16>, tensor<2x4x32x16xf32>, tensor<2x200x4x16xbf16>
}

// A final state that nobody reads is dropped, and what is saved stays. What no backward reads is not saved.
// CANON-LABEL: @unused_state
// CANON: %[[F:.*]]:3 = gdn.chunk_gated_delta_rule {{.*}} {state_interval = 64 : i64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
// CANON: return %[[F]]#1, %[[F]]#2
func.func @unused_state(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) -> (tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {output_final_state, state_interval = 64 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  return %r#2, %r#3 : tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
}
// CANON-LABEL: @unused_saves
// CANON-NOT: state_interval
// CANON: return
func.func @unused_saves(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) -> (tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {output_final_state, state_interval = 64 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  return %r#0, %r#1 : tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>
}
// One token is no work for chunks, but the recurrent op saves nothing.
// CANON-LABEL: @one_token
// CANON: gdn.chunk_gated_delta_rule
func.func @one_token(%q: tensor<3x1x2x32xf32>, %b: tensor<3x1x2xf32>) -> tensor<3x1x2x32xf32> {
  %r:3 = gdn.chunk_gated_delta_rule q(%q : tensor<3x1x2x32xf32>) k(%q : tensor<3x1x2x32xf32>) v(%q : tensor<3x1x2x32xf32>)
      beta(%b : tensor<3x1x2xf32>) {state_interval = 64 : i64}
      -> tensor<3x1x2x32xf32>, tensor<3x1x2x32xf32>, tensor<3x2x32x32xf32>
  return %r#1 : tensor<3x1x2x32xf32>
}

// The number of states, where sizes are known when running alone.
// DIMS-LABEL: @count
// DIMS-SAME: (%[[Q:.*]]: tensor<1x?x2x32xf32>, %{{.*}}: tensor<1x?x2xf32>, %[[CU:.*]]: tensor<?xi32>)
// DIMS-DAG: %[[T:.*]] = tensor.dim %[[Q]], %c1
// DIMS-DAG: %[[WHOLE:.*]] = arith.divui %[[T]], %c64
// DIMS-DAG: %[[D:.*]] = tensor.dim %[[CU]], %c0
// DIMS-DAG: %[[N:.*]] = arith.subi %[[D]], %c1
// DIMS: %[[S:.*]] = arith.addi %[[WHOLE]], %[[N]]
// DIMS: return %[[S]]
func.func @count(%q: tensor<1x?x2x32xf32>, %b: tensor<1x?x2xf32>, %cu: tensor<?xi32>) -> index {
  %c0 = arith.constant 0 : index
  %r:3 = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x32xf32>) k(%q : tensor<1x?x2x32xf32>) v(%q : tensor<1x?x2x32xf32>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) {state_interval = 64 : i64}
      -> tensor<1x?x2x32xf32>, tensor<1x?x2x32xf32>, tensor<?x2x32x32xf32>
  %n = tensor.dim %r#2, %c0 : tensor<?x2x32x32xf32>
  return %n : index
}
