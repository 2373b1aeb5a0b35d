// RUN: gdn-opt %s --gdn-plan-stages=backward=three --gdn-verify-stages-form --verify-roundtrip | FileCheck %s
// RUN: not gdn-opt %s --gdn-plan-stages=backward=two 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: gdn-opt %s --gdn-plan-stages="backward=three side-by-side" | FileCheck %s --check-prefix=SIDE
// Nothing stands between the two that run at the same time.
// SIDE: gdn.stage.replay {{.*}}{beside, chunk_size
// SIDE-NEXT: gdn.stage.adjoint
// RUN: gdn-opt %s --gdn-plan-stages="backward=three state-interval=128" | FileCheck %s --check-prefix=SPARSE
// RUN: not gdn-opt %s --gdn-plan-stages="backward=three state-interval=96" 2>&1 | FileCheck %s --check-prefix=INTERVAL
// States before every 128th token: floor(200 / 128) + 2 of them, and floor(200 / 64) + 2 gradients of states.
// SPARSE-LABEL: func.func @norm(
// SPARSE: gdn.stage.replay {{.*}} segment_length = 128 : i64} -> tensor<2x100x4x64xbf16>, tensor<3x4x64x32xbf16>
// SPARSE: gdn.stage.adjoint {{.*}} segment_length = 64 : i64} -> tensor<2x100x4x64xbf16>, tensor<5x4x64x32xbf16>,
// SPARSE: gdn.stage.gradients {{.*}} segment_length = 64 : i64, state_interval = 128 : i64}
// INTERVAL: error: expected state-interval to be a positive multiple of 64, got 96
// BAD: error: expected backward 'one' or 'three', got 'two'

// The forward once more, the chain of the state's gradient, and the gradients of all tokens from the states between
// segments of 64 tokens: floor(B T / 64) + N of them. Rows of q and k are normalised before.
// CHECK-LABEL: func.func @norm(
// CHECK-COUNT-2: math.rsqrt
// CHECK: %[[F:.*]]:2 = gdn.stage.replay q(%[[Q:.*]] : {{.*}}) k(%[[K:.*]] : {{.*}}) v({{.*}} initial_state(%arg4 :
// CHECK-SAME: {chunk_size = 32 : i64, segment_length = 64 : i64} -> tensor<2x100x4x64xbf16>, tensor<5x4x64x32xbf16>
// CHECK: %[[A:.*]]:3 = gdn.stage.adjoint q(%[[Q]] : {{.*}}) k(%[[K]] :
// CHECK-SAME: {chunk_size = 32 : i64, segment_length = 64 : i64} -> tensor<2x100x4x64xbf16>, tensor<5x4x64x32xbf16>, tensor<2x4x32x64xf32>
// CHECK: %[[G:.*]]:4 = gdn.stage.gradients q(%[[Q]] : {{.*}}) k(%[[K]] : {{.*}} writes(%[[F]]#0 : {{.*}}) dv(%[[A]]#0 :
// CHECK-SAME: states(%[[F]]#1 : {{.*}}) d_states(%[[A]]#1 :
// CHECK-SAME: {chunk_size = 64 : i64, segment_length = 64 : i64} -> tensor<2x100x2x32xf32>, tensor<2x100x2x32xf32>, tensor<2x100x4xf32>, tensor<2x100x4xf32>
// dq and dk are sums over the heads of a group already.
// CHECK-NOT: tensor.expand_shape
// CHECK: return %{{.*}}, %{{.*}}, %[[A]]#0, %[[G]]#2, %[[G]]#3, %[[A]]#2
func.func @norm(%q: tensor<2x100x2x32xbf16>, %v: tensor<2x100x4x64xbf16>, %beta: tensor<2x100x4xf32>,
    %gate: tensor<2x100x4xf32>, %h0: tensor<2x4x32x64xf32>)
    -> (tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>,
        tensor<2x100x4xf32>, tensor<2x4x32x64xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x100x2x32xbf16>) k(%q : tensor<2x100x2x32xbf16>)
      v(%v : tensor<2x100x4x64xbf16>) beta(%beta : tensor<2x100x4xf32>) gate(%gate : tensor<2x100x4xf32>)
      initial_state(%h0 : tensor<2x4x32x64xf32>) d_o(%v : tensor<2x100x4x64xbf16>) {qk_l2norm}
      -> tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>,
         tensor<2x100x4xf32>, tensor<2x4x32x64xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>,
      tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>, tensor<2x100x4xf32>, tensor<2x4x32x64xf32>
}

// Without a gate the stages get one of zeros, and its gradient is dropped.
// CHECK-LABEL: func.func @ungated(
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[GATE:.*]] = linalg.fill ins(%[[ZERO]] : f32) {{.*}} -> tensor<2x100x4xf32>
// CHECK: gdn.stage.replay {{.*}} gate(%[[GATE]] :
// CHECK: gdn.stage.adjoint {{.*}} gate(%[[GATE]] :
// CHECK: %[[G:.*]]:4 = gdn.stage.gradients {{.*}} gate(%[[GATE]] :
// CHECK: return %[[G]]#0, %[[G]]#1, %{{.*}}, %[[G]]#2
func.func @ungated(%q: tensor<2x100x2x32xbf16>, %v: tensor<2x100x4x64xbf16>, %beta: tensor<2x100x4xf32>)
    -> (tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>) {
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x100x2x32xbf16>) k(%q : tensor<2x100x2x32xbf16>)
      v(%v : tensor<2x100x4x64xbf16>) beta(%beta : tensor<2x100x4xf32>) d_o(%v : tensor<2x100x4x64xbf16>)
      -> tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x100x2x32xbf16>, tensor<2x100x2x32xbf16>, tensor<2x100x4x64xbf16>, tensor<2x100x4xf32>
}

// The gradient of a linear gate is right where the gate is 0 in both plans.
// CHECK-LABEL: func.func @linear(
// CHECK: gdn.stage.replay
// CHECK: gdn.stage.adjoint
// CHECK: gdn.stage.gradients {{.*}}gate_domain = #gdn.gate_domain<linear>
func.func @linear(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4xf32>) -> tensor<1x64x4xf32> {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      d_o(%v : tensor<1x64x4x16xf32>) {gate_domain = #gdn.gate_domain<linear>}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>
  return %r#4 : tensor<1x64x4xf32>
}

// A gate a channel: its gradient is that of each channel.
// CHECK-LABEL: func.func @channels(
// CHECK: %[[F:.*]]:2 = gdn.stage.replay {{.*}} gate(%arg3 : tensor<1x64x4x32xf32>)
// CHECK: %[[A:.*]]:2 = gdn.stage.adjoint {{.*}} gate(%arg3 : tensor<1x64x4x32xf32>)
// CHECK: %[[G:.*]]:4 = gdn.stage.gradients {{.*}} gate(%arg3 : tensor<1x64x4x32xf32>) {{.*}} writes(%[[F]]#0 : {{.*}}) dv(%[[A]]#0 :
// CHECK-SAME: -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>, tensor<1x64x4x32xf32>
// CHECK: return %[[G]]#3
func.func @channels(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4x32xf32>) -> tensor<1x64x4x32xf32> {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x32xf32>)
      d_o(%v : tensor<1x64x4x16xf32>)
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>, tensor<1x64x4x32xf32>
  return %r#4 : tensor<1x64x4x32xf32>
}

// Heads that are known when running alone: those of gates and of beta are those of v. The gradients of tokens in no
// sequence are zeros, whatever the gates hold there.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<1x?x?x32xbf16>, %[[V:[a-z0-9]*]]: tensor<1x?x?x32xbf16>
// CHECK: %[[G:.*]]:4 = gdn.stage.gradients {{.*}} -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>
// CHECK: %[[H:.*]] = tensor.dim %[[V]], %c2
// CHECK: tensor.empty(%{{.*}}, %[[H]]) : tensor<1x?x?xbf16>
// CHECK: ins(%{{.*}}, %[[G]]#3,
// CHECK: ^bb0(%{{.*}}: bf16, %[[DG:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: bf16):
// CHECK: %[[DA:.*]] = arith.mulf %{{.*}}, %[[DG]]
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[DG]], %[[ZERO:.*]] : f32
// CHECK: arith.select %[[NONE]], %[[ZERO]], %[[DA]]
func.func @heads(%q: tensor<1x?x?x32xbf16>, %v: tensor<1x?x?x32xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?xbf16>,
    %cu: tensor<?xi32>, %a: tensor<?xf32>, %b: tensor<?xf32>) -> (tensor<1x?x?xbf16>, tensor<?xf32>) {
  %r:7 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x32xbf16>) k(%q : tensor<1x?x?x32xbf16>)
      v(%v : tensor<1x?x?x32xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xbf16>)
      cu_seqlens(%cu : tensor<?xi32>) a_log(%a : tensor<?xf32>) dt_bias(%b : tensor<?xf32>)
      d_o(%v : tensor<1x?x?x32xbf16>) {gate_domain = #gdn.gate_domain<softplus>}
      -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xbf16>,
         tensor<?xf32>, tensor<?xf32>
  return %r#4, %r#5 : tensor<1x?x?xbf16>, tensor<?xf32>
}

// With a gate a channel that a bound keeps in range, and a value head a query/key head, dq and dk are those of rows in front
// of their norm: the stage takes the reciprocals of lengths that rows had.
// CHECK-LABEL: func.func @bounded_norm(
// CHECK: %[[SQUARES:.*]] = linalg.generic {{.*}} ins(%arg0, %arg0
// CHECK: %[[RSTD:.*]] = linalg.generic {{.*}} ins(%[[SQUARES]] : tensor<1x64x2xf32>)
// CHECK: math.rsqrt
// CHECK: %[[D:.*]]:4 = gdn.stage.gradients {{.*}} q_rstd(%[[RSTD]] : tensor<1x64x2xf32>) k_rstd(%{{.*}} : tensor<1x64x2xf32>) {{.*}} -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
// CHECK-NOT: linalg
// CHECK: return %[[D]]#0,
// Else dq and dk are summed over a group and rounded before the chain rule of the norm, since that is a pass that memory
// binds; they stay f32 until there if no bound keeps gates in range.
// CHECK-LABEL: func.func @groups_norm(
// CHECK: gdn.stage.gradients
// CHECK-NOT: q_rstd
// CHECK-SAME: -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x4xf32>, tensor<1x64x4x32xf32>, tensor<1x64x4x32xf32>
// CHECK: linalg.generic
// CHECK-LABEL: func.func @unbounded_norm(
// CHECK: gdn.stage.gradients {{.*}} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
// Of open numbers of heads the call decides.
// CHECK-LABEL: func.func @open_norm(
// CHECK: %[[HQ:.*]] = tensor.dim %arg0, %{{.*}} : tensor<1x?x?x32xbf16>
// CHECK: %[[H:.*]] = tensor.dim %arg1, %{{.*}} : tensor<1x?x?x32xbf16>
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[HQ]], %[[H]] : index
// CHECK: scf.if %[[IS]]
// CHECK: gdn.stage.gradients {{.*}} q_rstd(
// CHECK: } else {
// CHECK: gdn.stage.gradients
// CHECK-NOT: q_rstd
// CHECK: scf.yield
func.func @bounded_norm(%q: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %gate: tensor<1x64x2x32xf32>)
    -> (tensor<1x64x2x32xbf16>, tensor<1x64x2x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xbf16>) k(%q : tensor<1x64x2x32xbf16>)
      v(%q : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      d_o(%q : tensor<1x64x2x32xbf16>) {lower_bound = -5.0 : f64, qk_l2norm}
      -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return %d#0, %d#4 : tensor<1x64x2x32xbf16>, tensor<1x64x2x32xf32>
}
func.func @groups_norm(%q: tensor<1x64x2x32xbf16>, %v: tensor<1x64x4x32xbf16>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x32xf32>)
    -> (tensor<1x64x2x32xbf16>, tensor<1x64x4x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xbf16>) k(%q : tensor<1x64x2x32xbf16>)
      v(%v : tensor<1x64x4x32xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x32xf32>)
      d_o(%v : tensor<1x64x4x32xbf16>) {lower_bound = -5.0 : f64, qk_l2norm}
      -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x4x32xbf16>, tensor<1x64x4xf32>, tensor<1x64x4x32xf32>
  return %d#0, %d#4 : tensor<1x64x2x32xbf16>, tensor<1x64x4x32xf32>
}
func.func @unbounded_norm(%q: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %gate: tensor<1x64x2x32xf32>)
    -> (tensor<1x64x2x32xbf16>, tensor<1x64x2x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xbf16>) k(%q : tensor<1x64x2x32xbf16>)
      v(%q : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      d_o(%q : tensor<1x64x2x32xbf16>) {qk_l2norm}
      -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return %d#0, %d#4 : tensor<1x64x2x32xbf16>, tensor<1x64x2x32xf32>
}
func.func @open_norm(%q: tensor<1x?x?x32xbf16>, %v: tensor<1x?x?x32xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x32xf32>)
    -> (tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x32xbf16>) k(%q : tensor<1x?x?x32xbf16>)
      v(%v : tensor<1x?x?x32xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x32xf32>)
      d_o(%v : tensor<1x?x?x32xbf16>) {lower_bound = -5.0 : f64, qk_l2norm}
      -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
  return %d#0, %d#4 : tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>
}

// Without norms, too: the kernel of one value head rounds once, and adds nothing up. A bound leaves groups memory for sums.
// CHECK-LABEL: func.func @open_bounded(
// CHECK: scf.if
// CHECK: %[[ONE:.*]]:4 = gdn.stage.gradients {{.*}}single_heads} -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
// CHECK-NOT: linalg
// CHECK: scf.yield %[[ONE]]#0,
// CHECK: gdn.stage.gradients {{.*}}segment_length = 64 : i64} -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>, tensor<1x?x?x32xf32>
// Gates of any strength have a pass behind the kernel of groups.
// CHECK-LABEL: func.func @open_any(
// CHECK: scf.if
// CHECK: %[[ONE:.*]]:4 = gdn.stage.gradients {{.*}}single_heads} -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
// CHECK-NOT: linalg
// CHECK: scf.yield %[[ONE]]#0,
// CHECK: gdn.stage.gradients {{.*}}segment_length = 64 : i64} -> tensor<1x?x?x32xf32>, tensor<1x?x?x32xf32>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
// CHECK: linalg.generic
// With norms these have a pass behind either, so there is one kernel.
// CHECK-LABEL: func.func @open_any_norm(
// CHECK-NOT: scf.if
// CHECK: return
func.func @open_bounded(%q: tensor<1x?x?x32xbf16>, %v: tensor<1x?x?x32xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x32xf32>)
    -> (tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x32xbf16>) k(%q : tensor<1x?x?x32xbf16>)
      v(%v : tensor<1x?x?x32xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x32xf32>)
      d_o(%v : tensor<1x?x?x32xbf16>) {lower_bound = -5.0 : f64}
      -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
  return %d#0, %d#4 : tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>
}
func.func @open_any(%q: tensor<1x?x?x32xbf16>, %v: tensor<1x?x?x32xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x32xf32>)
    -> (tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x32xbf16>) k(%q : tensor<1x?x?x32xbf16>)
      v(%v : tensor<1x?x?x32xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x32xf32>)
      d_o(%v : tensor<1x?x?x32xbf16>)
      -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
  return %d#0, %d#4 : tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>
}
func.func @open_any_norm(%q: tensor<1x?x?x32xbf16>, %v: tensor<1x?x?x32xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x32xf32>)
    -> (tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>) {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x32xbf16>) k(%q : tensor<1x?x?x32xbf16>)
      v(%v : tensor<1x?x?x32xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x32xf32>)
      d_o(%v : tensor<1x?x?x32xbf16>) {qk_l2norm}
      -> tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?x32xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x32xf32>
  return %d#0, %d#4 : tensor<1x?x?x32xbf16>, tensor<1x?x?x32xf32>
}
