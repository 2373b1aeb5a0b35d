// RUN: gdn-opt %s --verify-roundtrip | gdn-opt | FileCheck %s

// The least that a layer needs: no gate, no state, no boundaries.
// CHECK-LABEL: @ungated
func.func @ungated(%q: tensor<2x64x2x32xf32>, %k: tensor<2x64x2x32xf32>,
                   %v: tensor<2x64x4x16xf32>, %b: tensor<2x64x4xf32>)
    -> tensor<2x64x4x16xf32> {
  // CHECK: gdn.chunk_gated_delta_rule q(%{{.*}} : tensor<2x64x2x32xf32>)
  // CHECK-NOT: gate
  // CHECK-SAME: -> tensor<2x64x4x16xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<2x64x2x32xf32>)
      k(%k : tensor<2x64x2x32xf32>) v(%v : tensor<2x64x4x16xf32>)
      beta(%b : tensor<2x64x4xf32>) -> tensor<2x64x4x16xf32>
  return %o : tensor<2x64x4x16xf32>
}

// Every optional operand and attribute at once, with sizes known when running.
// CHECK-LABEL: @everything
func.func @everything(%q: tensor<1x?x2x32xbf16>, %v: tensor<1x?x4x16xbf16>,
                      %b: tensor<1x?x4xbf16>, %g: tensor<1x?x4x32xbf16>,
                      %h: tensor<?x4x16x32xf32>, %cu: tensor<?xi64>,
                      %al: tensor<4xf32>, %dt: tensor<4x32xf32>)
    -> (tensor<1x?x4x16xbf16>, tensor<?x4x16x32xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule
  // CHECK-SAME: gate(%{{.*}} : tensor<1x?x4x32xbf16>)
  // CHECK-SAME: initial_state(%{{.*}} : tensor<?x4x16x32xf32>)
  // CHECK-SAME: cu_seqlens(%{{.*}} : tensor<?xi64>)
  // CHECK-SAME: a_log(%{{.*}} : tensor<4xf32>)
  // CHECK-SAME: dt_bias(%{{.*}} : tensor<4x32xf32>)
  // CHECK-SAME: beta_domain = #gdn.beta_domain<doubled_logit>
  // CHECK-SAME: chunk_size = 16
  // CHECK-SAME: gate_domain = #gdn.gate_domain<bounded>
  // CHECK-SAME: lower_bound = -5.0
  // CHECK-SAME: output_final_state
  // CHECK-SAME: qk_l2norm
  // CHECK-SAME: scale = 2.5
  // CHECK-SAME: state_layout = #gdn.state_layout<vk>
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x32xbf16>)
      k(%q : tensor<1x?x2x32xbf16>) v(%v : tensor<1x?x4x16xbf16>)
      beta(%b : tensor<1x?x4xbf16>) gate(%g : tensor<1x?x4x32xbf16>)
      initial_state(%h : tensor<?x4x16x32xf32>) cu_seqlens(%cu : tensor<?xi64>)
      a_log(%al : tensor<4xf32>) dt_bias(%dt : tensor<4x32xf32>)
      {scale = 2.5, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0,
       qk_l2norm, beta_domain = #gdn.beta_domain<doubled_logit>,
       state_layout = #gdn.state_layout<vk>, output_final_state,
       chunk_size = 16}
      -> tensor<1x?x4x16xbf16>, tensor<?x4x16x32xf32>
  return %o, %s : tensor<1x?x4x16xbf16>, tensor<?x4x16x32xf32>
}

// Decoding: one token; K and V of any size up to the largest.
// CHECK-LABEL: @recurrent
func.func @recurrent(%q: tensor<8x1x2x20xf16>, %v: tensor<8x1x4x7xf16>,
                     %b: tensor<8x1x4xf32>, %h: tensor<8x4x20x7xbf16>)
    -> tensor<8x4x20x7xbf16> {
  // CHECK: gdn.recurrent_gated_delta_rule
  // CHECK-SAME: {output_final_state} -> tensor<8x1x4x7xf16>, tensor<8x4x20x7xbf16>
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<8x1x2x20xf16>)
      k(%q : tensor<8x1x2x20xf16>) v(%v : tensor<8x1x4x7xf16>)
      beta(%b : tensor<8x1x4xf32>) initial_state(%h : tensor<8x4x20x7xbf16>)
      {output_final_state} -> tensor<8x1x4x7xf16>, tensor<8x4x20x7xbf16>
  return %s : tensor<8x4x20x7xbf16>
}

// A gradient for every operand that is there, in the order of the operands.
// CHECK-LABEL: @backward
func.func @backward(%q: tensor<2x64x2x32xf16>, %v: tensor<2x64x4x16xf16>,
                    %b: tensor<2x64x4xf32>, %g: tensor<2x64x4xf32>,
                    %h: tensor<2x4x32x16xf32>, %al: tensor<4xf32>,
                    %dt: tensor<4xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule_bwd
  // CHECK-SAME: d_o(%{{.*}} : tensor<2x64x4x16xf16>)
  // CHECK-SAME: d_final_state(%{{.*}} : tensor<2x4x32x16xf32>)
  // CHECK-SAME: chunk_size = 64
  %r:8 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<2x64x2x32xf16>)
      k(%q : tensor<2x64x2x32xf16>) v(%v : tensor<2x64x4x16xf16>)
      beta(%b : tensor<2x64x4xf32>) gate(%g : tensor<2x64x4xf32>)
      initial_state(%h : tensor<2x4x32x16xf32>)
      a_log(%al : tensor<4xf32>) dt_bias(%dt : tensor<4xf32>)
      d_o(%v : tensor<2x64x4x16xf16>) d_final_state(%h : tensor<2x4x32x16xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, chunk_size = 64}
      -> tensor<2x64x2x32xf16>, tensor<2x64x2x32xf16>, tensor<2x64x4x16xf16>,
         tensor<2x64x4xf32>, tensor<2x64x4xf32>, tensor<2x4x32x16xf32>,
         tensor<4xf32>, tensor<4xf32>
  return
}

// The buffer form: memrefs of any layout in, `outs` written, nothing returned.
// CHECK-LABEL: @buffers
func.func @buffers(%q: memref<1x8x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>,
                   %v: memref<1x8x2x16xf32>, %b: memref<1x8x2xf32>,
                   %o: memref<1x8x2x16xf32>, %s: memref<1x2x32x16xf32>) {
  // CHECK: gdn.chunk_gated_delta_rule
  // CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<1x8x2x16xf32>, memref<1x2x32x16xf32>)
  // CHECK-SAME: {output_final_state}
  // CHECK-NOT: ->
  gdn.chunk_gated_delta_rule
      q(%q : memref<1x8x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>)
      k(%q : memref<1x8x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>)
      v(%v : memref<1x8x2x16xf32>) beta(%b : memref<1x8x2xf32>)
      outs(%o, %s : memref<1x8x2x16xf32>, memref<1x2x32x16xf32>)
      {output_final_state}
  return
}
