// RUN: gdn-opt %s --canonicalize | FileCheck %s

// exp(0) = 1: nothing decays. -0.0 is a zero too.
// CHECK-LABEL: @identity_log_gate
func.func @identity_log_gate(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK-NOT: gate(
  // CHECK: return
  %g = arith.constant dense<-0.0> : tensor<1x64x2x32xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%g : tensor<1x64x2x32xf32>)
      -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// A linear gate of 1, of dynamic size. The domain goes with the gate.
// CHECK-LABEL: @identity_linear_gate
func.func @identity_linear_gate(%q: tensor<1x?x2x32xf32>, %b: tensor<1x?x2xf32>,
                                %t: index) -> tensor<1x?x2x32xf32> {
  // CHECK: gdn.recurrent_gated_delta_rule
  // CHECK-NOT: gate(
  // CHECK-NOT: gate_domain
  // CHECK: return
  %one = arith.constant 1.0 : bf16
  %g = tensor.splat %one[%t] : tensor<1x?x2xbf16>
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x2x32xf32>)
      k(%q : tensor<1x?x2x32xf32>) v(%q : tensor<1x?x2x32xf32>)
      beta(%b : tensor<1x?x2xf32>) gate(%g : tensor<1x?x2xbf16>)
      {gate_domain = #gdn.gate_domain<linear>} -> tensor<1x?x2x32xf32>
  return %o : tensor<1x?x2x32xf32>
}

// A state starts at zero anyway; the final state keeps its type.
// CHECK-LABEL: @zero_initial_state
func.func @zero_initial_state(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x2x32x32xf32> {
  // CHECK-NOT: initial_state
  // CHECK: output_final_state
  // CHECK-SAME: -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>
  %h = arith.constant dense<0.0> : tensor<1x2x32x32xf32>
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%h : tensor<1x2x32x32xf32>)
      {output_final_state} -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>
  return %s : tensor<1x2x32x32xf32>
}

// A bias of zero and a factor exp(0).
// CHECK-LABEL: @neutral_gate_parameters
func.func @neutral_gate_parameters(%q: tensor<1x64x2x32xf32>,
    %b: tensor<1x64x2xf32>) -> tensor<1x64x2x32xf32> {
  // CHECK: gate(
  // CHECK-NOT: a_log
  // CHECK-NOT: dt_bias
  // CHECK: return
  %z = arith.constant dense<0.0> : tensor<2xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%b : tensor<1x64x2xf32>)
      a_log(%z : tensor<2xf32>) dt_bias(%z : tensor<2xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0}
      -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// Nobody reads the final state.
// CHECK-LABEL: @unused_final_state
func.func @unused_final_state(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK: %[[O:.*]] = gdn.chunk_gated_delta_rule
  // CHECK-NOT: output_final_state
  // CHECK: return %[[O]]
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {output_final_state}
      -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// One token in all, also where it is spread over sequences: no chunks. Other
// attributes stay.
// CHECK-LABEL: @one_token
func.func @one_token(%q: tensor<1x1x2x32xf32>, %b: tensor<1x1x2xf32>,
                     %cu: tensor<3xi32>) -> tensor<2x2x32x32xf32> {
  // CHECK-NOT: gdn.chunk_gated_delta_rule
  // CHECK: gdn.recurrent_gated_delta_rule
  // CHECK-SAME: cu_seqlens(
  // CHECK-SAME: {my.note, output_final_state, qk_l2norm, scale = 2.0
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x1x2x32xf32>)
      k(%q : tensor<1x1x2x32xf32>) v(%q : tensor<1x1x2x32xf32>)
      beta(%b : tensor<1x1x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      {chunk_size = 16, qk_l2norm, scale = 2.0, output_final_state, my.note}
      -> tensor<1x1x2x32xf32>, tensor<2x2x32x32xf32>
  return %s : tensor<2x2x32x32xf32>
}

// One sequence from 0 to T is what B = 1 says.
// CHECK-LABEL: @trivial_boundaries
func.func @trivial_boundaries(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK-NOT: cu_seqlens
  // CHECK: return
  %cu = arith.constant dense<[0, 64]> : tensor<2xi64>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<2xi64>)
      -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// 16^(-1/2) is the scale anyway, also of a backward.
// CHECK-LABEL: @default_scale
func.func @default_scale(%q: tensor<1x64x2x16xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2xf32> {
  // CHECK: gdn.chunk_gated_delta_rule_bwd
  // CHECK-NOT: scale
  // CHECK: return
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x16xf32>)
      k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>)
      {scale = 0.25} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>,
      tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#3 : tensor<1x64x2xf32>
}

// Static sizes reach the op; its result types stay as they were.
// CHECK-LABEL: @casts
// CHECK-SAME: %[[Q:.*]]: tensor<1x64x2x32xf32>
func.func @casts(%q: tensor<1x64x2x32xf32>, %b: tensor<1x?x2xf32>)
    -> tensor<1x?x2x32xf32> {
  // CHECK-NOT: tensor.cast
  // CHECK: gdn.chunk_gated_delta_rule q(%[[Q]] : tensor<1x64x2x32xf32>)
  // CHECK-SAME: -> tensor<1x?x2x32xf32>
  %d = tensor.cast %q : tensor<1x64x2x32xf32> to tensor<1x?x2x32xf32>
  %o = gdn.chunk_gated_delta_rule q(%d : tensor<1x?x2x32xf32>)
      k(%d : tensor<1x?x2x32xf32>) v(%d : tensor<1x?x2x32xf32>)
      beta(%b : tensor<1x?x2xf32>) -> tensor<1x?x2x32xf32>
  return %o : tensor<1x?x2x32xf32>
}
