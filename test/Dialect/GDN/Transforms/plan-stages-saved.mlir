// RUN: gdn-opt %s --gdn-plan-stages --gdn-verify-stages-form --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-plan-stages=backward=three | FileCheck %s

// A forward that saves is one stage. Its rows are normalised before it, as the backward takes them, and it has a gate.
// A backward that has what a forward saved is the last two of three stages, whatever the plan: they alone read it.
// CHECK-LABEL: func.func @step(
// CHECK: %[[GATE:.*]] = linalg.fill {{.*}} -> tensor<2x100x4xf32>
// CHECK-COUNT-2: math.rsqrt
// CHECK: %[[F:.*]]:4 = gdn.stage.fused q(%[[Q:.*]] : {{.*}}) k(%[[K:.*]] : {{.*}} gate(%[[GATE]] :
// CHECK-SAME: {chunk_size = 32 : i64, state_interval = 64 : i64} -> tensor<2x100x4x64xbf16>, tensor<2x4x32x64xf32>, tensor<2x100x4x64xbf16>, tensor<5x4x64x32xbf16>
// CHECK-NOT: gdn.stage.replay
// CHECK: %[[A:.*]]:2 = gdn.stage.adjoint
// CHECK: gdn.stage.gradients {{.*}} writes(%[[F]]#2 : {{.*}}) dv(%[[A]]#0 : {{.*}}) states(%[[F]]#3 : {{.*}}) d_states(%[[A]]#1 :
// CHECK-SAME: {chunk_size = 64 : i64, segment_length = 64 : i64
func.func @step(%q: tensor<2x100x2x32xbf16>, %v: tensor<2x100x4x64xbf16>, %beta: tensor<2x100x4xf32>)
    -> (tensor<2x100x4x64xbf16>, tensor<2x4x32x64xf32>, tensor<2x100x2x32xbf16>) {
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<2x100x2x32xbf16>) k(%q : tensor<2x100x2x32xbf16>)
      v(%v : tensor<2x100x4x64xbf16>) beta(%beta : tensor<2x100x4xf32>)
      {output_final_state, qk_l2norm, state_interval = 64 : i64}
      -> tensor<2x100x4x64xbf16>, tensor<2x4x32x64xf32>, tensor<2x100x4x64xbf16>, tensor<5x4x64x32xbf16>
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x100x2x32xbf16>) k(%q : tensor<2x100x2x32xbf16>)
      v(%r#2 : tensor<2x100x4x64xbf16>) beta(%beta : tensor<2x100x4xf32>) d_o(%v : tensor<2x100x4x64xbf16>)
      writes(%r#2 : tensor<2x100x4x64xbf16>) states(%r#3 : tensor<5x4x64x32xbf16>) {qk_l2norm, state_interval = 64 : i64}
      -> tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>
  return %r#0, %r#1, %d#0 : tensor<2x100x4x64xbf16>, tensor<2x4x32x64xf32>, tensor<2x100x2x32xbf16>
}

// Gradients know how far the states of the forward lie apart.
// CHECK-LABEL: func.func @sparse(
// CHECK: gdn.stage.adjoint {{.*}} segment_length = 64 : i64
// CHECK: gdn.stage.gradients {{.*}} {chunk_size = 64 : i64, segment_length = 64 : i64, state_interval = 128 : i64
func.func @sparse(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %s: tensor<1x2x32x32xf32>) -> tensor<1x64x2x32xf32> {
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>) writes(%q : tensor<1x64x2x32xf32>)
      states(%s : tensor<1x2x32x32xf32>) {state_interval = 128 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return %d#0 : tensor<1x64x2x32xf32>
}

// States between those that were saved are made of what tokens write. adjoint may run at the same time.
// CHECK-LABEL: func.func @sparser(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x64x2x32xf32>, %{{[^:]*}}: tensor<1x64x2xf32>, %[[S:[^:]*]]: tensor<1x2x32x32xf32>
// CHECK: gdn.stage.adjoint {{.*}} {beside, {{.*}} segment_length = 64 : i64
// CHECK: %[[ALL:.*]] = gdn.stage.expand {{.*}} v(%[[Q]] : {{.*}}) {{.*}} states(%[[S]] : tensor<1x2x32x32xf32>)
// CHECK-SAME: {chunk_size = 64 : i64, segment_length = 64 : i64, state_interval = 256 : i64} -> tensor<2x2x32x32xf32>
// CHECK: gdn.stage.gradients {{.*}} states(%[[ALL]] : {{.*}} {chunk_size = 64 : i64, segment_length = 64 : i64} ->
func.func @sparser(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %s: tensor<1x2x32x32xf32>) -> tensor<1x64x2x32xf32> {
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>) writes(%q : tensor<1x64x2x32xf32>)
      states(%s : tensor<1x2x32x32xf32>) {state_interval = 256 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return %d#0 : tensor<1x64x2x32xf32>
}
