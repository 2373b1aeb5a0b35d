// RUN: gdn-opt %s --canonicalize | FileCheck %s

// What canonicalisation must not touch, as the results would change.

// A softplus gate of zero decays: softplus(0) = ln 2. So does a linear gate of
// zero, which resets the state.
// CHECK-LABEL: @decaying_gates
func.func @decaying_gates(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>,
    %a: tensor<2xf32>) -> (tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule {{.*}} gate(
  // CHECK: gdn.chunk_gated_delta_rule {{.*}} gate(
  %g = arith.constant dense<0.0> : tensor<1x64x2xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%g : tensor<1x64x2xf32>)
      a_log(%a : tensor<2xf32>) {gate_domain = #gdn.gate_domain<softplus>}
      -> tensor<1x64x2x32xf32>
  %p = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%g : tensor<1x64x2xf32>)
      {gate_domain = #gdn.gate_domain<linear>} -> tensor<1x64x2x32xf32>
  return %o, %p : tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>
}

// A softplus gate needs its a_log, also where that is zero.
// CHECK-LABEL: @softplus_factor
func.func @softplus_factor(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK: a_log(
  %z = arith.constant dense<0.0> : tensor<2xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%b : tensor<1x64x2xf32>)
      a_log(%z : tensor<2xf32>) {gate_domain = #gdn.gate_domain<softplus>}
      -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// Without its bf16 initial state the op would return an f32 state. A state of
// ones is no zero.
// CHECK-LABEL: @initial_states
func.func @initial_states(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> (tensor<1x2x32x32xbf16>, tensor<1x64x2x32xf32>) {
  // CHECK: initial_state(
  // CHECK: initial_state(
  %h = arith.constant dense<0.0> : tensor<1x2x32x32xbf16>
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%h : tensor<1x2x32x32xbf16>)
      {output_final_state} -> tensor<1x64x2x32xf32>, tensor<1x2x32x32xbf16>
  %ones = arith.constant dense<1.0> : tensor<1x2x32x32xf32>
  %p = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%ones : tensor<1x2x32x32xf32>)
      -> tensor<1x64x2x32xf32>
  return %s, %p : tensor<1x2x32x32xbf16>, tensor<1x64x2x32xf32>
}

// beta = 0 makes rows inert, but the op still decays and reads the state.
// CHECK-LABEL: @zero_beta
func.func @zero_beta(%q: tensor<1x64x2x32xf32>, %h: tensor<1x2x32x32xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK: gdn.chunk_gated_delta_rule {{.*}} initial_state(
  %z = arith.constant dense<0.0> : tensor<1x64x2xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%z : tensor<1x64x2xf32>) initial_state(%h : tensor<1x2x32x32xf32>)
      -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// Two sequences, one of them empty, have two final states. T may be more than
// one when running. The scale is close to the default, but is not it.
// CHECK-LABEL: @boundaries_tokens_scale
func.func @boundaries_tokens_scale(%q: tensor<1x64x2x32xf32>,
    %b: tensor<1x64x2xf32>, %x: tensor<1x?x2x32xf32>, %c: tensor<1x?x2xf32>)
    -> (tensor<2x2x32x32xf32>, tensor<1x?x2x32xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule {{.*}} cu_seqlens(
  // CHECK: gdn.chunk_gated_delta_rule {{.*}} {scale = 1.767000e-01
  %cu = arith.constant dense<[0, 64, 64]> : tensor<3xi32>
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      {output_final_state} -> tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  %p = gdn.chunk_gated_delta_rule q(%x : tensor<1x?x2x32xf32>)
      k(%x : tensor<1x?x2x32xf32>) v(%x : tensor<1x?x2x32xf32>)
      beta(%c : tensor<1x?x2xf32>) {scale = 0.1767} -> tensor<1x?x2x32xf32>
  return %s, %p : tensor<2x2x32x32xf32>, tensor<1x?x2x32xf32>
}

// A backward returns a gradient for its gate and its state, whatever they are;
// only a zero gradient of the final state may go.
// CHECK-LABEL: @backward
func.func @backward(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> (tensor<1x64x2xf32>, tensor<1x2x32x32xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule_bwd {{.*}} gate({{.*}} initial_state(
  // CHECK-NOT: d_final_state
  // CHECK: return
  %g = arith.constant dense<0.0> : tensor<1x64x2xf32>
  %h = arith.constant dense<0.0> : tensor<1x2x32x32xf32>
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%g : tensor<1x64x2xf32>)
      initial_state(%h : tensor<1x2x32x32xf32>) d_o(%q : tensor<1x64x2x32xf32>)
      d_final_state(%h : tensor<1x2x32x32xf32>) -> tensor<1x64x2x32xf32>,
      tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>,
      tensor<1x64x2xf32>, tensor<1x2x32x32xf32>
  return %r#4, %r#5 : tensor<1x64x2xf32>, tensor<1x2x32x32xf32>
}

// The casts hide that the sizes contradict each other: folding them would make
// an op that does not verify.
// CHECK-LABEL: @contradicting_casts
func.func @contradicting_casts(%q: tensor<1x64x2x32xf32>, %b: tensor<1x63x2xf32>)
    -> tensor<1x?x2x32xf32> {
  // CHECK-COUNT-2: tensor.cast
  %d = tensor.cast %q : tensor<1x64x2x32xf32> to tensor<1x?x2x32xf32>
  %c = tensor.cast %b : tensor<1x63x2xf32> to tensor<1x?x2xf32>
  %o = gdn.chunk_gated_delta_rule q(%d : tensor<1x?x2x32xf32>)
      k(%d : tensor<1x?x2x32xf32>) v(%d : tensor<1x?x2x32xf32>)
      beta(%c : tensor<1x?x2xf32>) -> tensor<1x?x2x32xf32>
  return %o : tensor<1x?x2x32xf32>
}
