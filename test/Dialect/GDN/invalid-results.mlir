// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// The final state has to be asked for.
func.func @result_c1(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected results (o), got 2}}
  %r:2 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>, tensor<1x4x32x16xf32>
  return
}

// -----

// A gradient for every operand that is there.
func.func @result_c1_backward(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>,
    %d_o: tensor<1x64x4x16xf32>) {
  // expected-error @below {{expected results (dq, dk, dv, dbeta, dgate), got 4}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      d_o(%d_o : tensor<1x64x4x16xf32>) -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>,
      tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}

// -----

// o is shaped as v.
func.func @result_c2(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected o of shape [B, T, H, V] = [1, 64, 4, 16], got 'tensor<1x64x4x32xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x32xf32>
  return
}

// -----

// The final state is f32 where no initial state says otherwise.
func.func @result_c3(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected final_state to have element type 'f32', got 'bf16'}}
  %r:2 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) {output_final_state} -> tensor<1x64x4x16xf32>,
      tensor<1x4x32x16xbf16>
  return
}

// -----

// bm may have any of the data types, but no other.
func.func @result_c4(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected bm to have a data type, got 'f64'}}
  %r = gdn.stage.prepare k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      {chunk_size = 32} -> tensor<1x64x4x32xf64>
  return
}

// -----

// The buffer form writes its results.
func.func @buffer_c1(%q: memref<1x64x2x32xf32>, %k: memref<1x64x2x32xf32>,
    %v: memref<1x64x4x16xf32>, %beta: memref<1x64x4xf32>) {
  // expected-error @below {{expected no results in the buffer form, got 1}}
  %r = gdn.chunk_gated_delta_rule q(%q : memref<1x64x2x32xf32>)
      k(%k : memref<1x64x2x32xf32>) v(%v : memref<1x64x4x16xf32>)
      beta(%beta : memref<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// o may not overwrite v while other tokens still read it.
func.func @buffer_c2(%q: memref<1x64x2x32xf32>, %k: memref<1x64x2x32xf32>,
    %v: memref<1x64x4x16xf32>, %beta: memref<1x64x4xf32>) {
  // expected-error @below {{expected outs apart from the inputs and from each other, got operand 4 twice}}
  gdn.chunk_gated_delta_rule q(%q : memref<1x64x2x32xf32>) k(%k : memref<1x64x2x32xf32>)
      v(%v : memref<1x64x4x16xf32>) beta(%beta : memref<1x64x4xf32>)
      outs(%v : memref<1x64x4x16xf32>)
  return
}

// -----

// The gradient of o is shaped as o.
func.func @backward_c1(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x32xf32>) {
  // expected-error @below {{expected d_o of shape [B, T, H, V] = [1, 64, 4, 16], got 'tensor<1x64x4x32xf32>'}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) d_o(%d_o : tensor<1x64x4x32xf32>) ->
      tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>,
      tensor<1x64x4xf32>
  return
}

// -----

// The gradient of the final state is shaped as a state.
func.func @backward_c2(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xf32>,
    %d_final_state: tensor<1x4x16x32xf32>) {
  // expected-error @below {{expected d_final_state of shape [B, H, K, V] = [1, 4, 32, 16], got 'tensor<1x4x16x32xf32>'}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) d_o(%d_o : tensor<1x64x4x16xf32>)
      d_final_state(%d_final_state : tensor<1x4x16x32xf32>) -> tensor<1x64x2x32xf32>,
      tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}

// -----

// And it has the type of the final state.
func.func @backward_c3(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xf32>,
    %d_final_state: tensor<1x4x32x16xbf16>) {
  // expected-error @below {{expected d_final_state to have the element type of the final state, 'f32', got 'bf16'}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) d_o(%d_o : tensor<1x64x4x16xf32>)
      d_final_state(%d_final_state : tensor<1x4x32x16xbf16>) -> tensor<1x64x2x32xf32>,
      tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}

// -----

// In one stage gradients of q and k are sums over heads that are known.
func.func @backward_c4(%q: tensor<1x64x?x32xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xf32>) {
  // expected-error @below {{expected a static Hq in q, got 'tensor<1x64x?x32xf32>'}}
  %r:4 = gdn.stage.backward q(%q : tensor<1x64x?x32xf32>)
      k(%q : tensor<1x64x?x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) d_o(%d_o : tensor<1x64x4x16xf32>) {chunk_size = 32}
      -> tensor<1x64x4x32xf32>, tensor<1x64x4x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}
