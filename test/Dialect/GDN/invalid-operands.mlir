// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// An op is in one of the two forms.
func.func @delta_rule_c1(%q: tensor<1x64x2x32xf32>, %k: memref<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected all operands to be tensors or all to be memrefs, got 'tensor<1x64x2x32xf32>' and 'memref<1x64x2x32xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : memref<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// One token by itself has the same largest head.
func.func @delta_rule_c11(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x257xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected V to be at most 256, got 257}}
  %r = gdn.recurrent_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x257xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x257xf32>
  return
}

// -----

// Packed sequences have no batch.
func.func @delta_rule_c12(%q: tensor<2x64x2x32xf32>, %k: tensor<2x64x2x32xf32>,
    %v: tensor<2x64x4x16xf32>, %beta: tensor<2x64x4xf32>, %cu_seqlens: tensor<4xi32>) {
  // expected-error @below {{expected B = 1 with cu_seqlens, got B = 2}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<2x64x2x32xf32>)
      k(%k : tensor<2x64x2x32xf32>) v(%v : tensor<2x64x4x16xf32>)
      beta(%beta : tensor<2x64x4xf32>) cu_seqlens(%cu_seqlens : tensor<4xi32>) ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// N sequences have N + 1 boundaries, and N is not zero.
func.func @delta_rule_c13(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %cu_seqlens: tensor<1xi32>) {
  // expected-error @below {{expected cu_seqlens to have N+1 >= 2 entries, got 1}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) cu_seqlens(%cu_seqlens : tensor<1xi32>) ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// q, k and v are multiplied with each other: one type.
func.func @delta_rule_c14(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected v to have the element type of k, 'f32', got 'bf16'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xbf16>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xbf16>
  return
}

// -----

// A chunk is solved in blocks of 16.
func.func @chunk_c1(%q: tensor<1x64x2x24xf32>, %k: tensor<1x64x2x24xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected K to be a multiple of 16, got 24}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x24xf32>)
      k(%k : tensor<1x64x2x24xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// There are programs for these chunks only.
func.func @chunk_c2(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected chunk_size to be one of 16, 32, 64, got 48}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) {chunk_size = 48} -> tensor<1x64x4x16xf32>
  return
}

// -----

// An operand out of order is named, not taken for the end of the op.
func.func @order(%q: tensor<1x64x2x32xf32>, %beta: tensor<1x64x2xf32>, %a: tensor<2xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected operands in the order q, k, v, beta, gate, initial_state, cu_seqlens, a_log, dt_bias, state_indices, first_state, has_initial_state, step_states, step_indices, num_accepted, parents, step_starts, step_intervals, d_o, d_final_state, writes, states, outs, each once, got 'cu_seqlens' behind a later one}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%beta : tensor<1x64x2xf32>) a_log(%a : tensor<2xf32>) cu_seqlens(%cu : tensor<3xi32>) -> tensor<1x64x2x32xf32>
  return
}
