// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @steps_c1(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %x: tensor<30x2x32x16xf32>, %slots: tensor<2x4xi32>) {
  // expected-error @below {{expected step_states of shape [R, H, K, V] = [30, 2, 32, 32], got 'tensor<30x2x32x16xf32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_states(%x : tensor<30x2x32x16xf32>) step_indices(%slots : tensor<2x4xi32>)
      -> tensor<2x4x2x32xf32>, tensor<30x2x32x16xf32>
  return
}

// -----

func.func @steps_c2(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %x: tensor<3x4xi32>) {
  // expected-error @below {{expected step_indices of shape [B, steps] = [2, ?], got 'tensor<3x4xi32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_indices(%x : tensor<3x4xi32>)
      {output_final_state} -> tensor<2x4x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c3(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %slots: tensor<2x4xi32>, %x: tensor<3xi32>) {
  // expected-error @below {{expected num_accepted of shape [B] = [2], got 'tensor<3xi32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_indices(%slots : tensor<2x4xi32>) num_accepted(%x : tensor<3xi32>)
      {output_final_state} -> tensor<2x4x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c4(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %slots: tensor<2x4xi32>, %x: tensor<2x3xi32>) {
  // expected-error @below {{expected parents of shape [B, steps] = [2, 4], got 'tensor<2x3xi32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_indices(%slots : tensor<2x4xi32>) parents(%x : tensor<2x3xi32>)
      {output_final_state} -> tensor<2x4x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c5(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %x: tensor<2xi32>) {
  // expected-error @below {{expected num_accepted only beside step_indices, got no step_indices}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) num_accepted(%x : tensor<2xi32>)
      {output_final_state} -> tensor<2x4x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c6(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<2x2x32x32xf32>, %rows: tensor<2xi32>, %slots: tensor<2x4xi32>) {
  // expected-error @below {{expected state_indices beside step_indices, got none}}
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<2x2x32x32xf32>) step_indices(%slots : tensor<2x4xi32>)
      -> tensor<2x4x2x32xf32>
  return
}

// -----

func.func @steps_c7(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %slots: tensor<2x4xi32>) {
  // expected-error @below {{expected the pool as a result, which keeps the states of step_indices, or step_states, got neither}}
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_indices(%slots : tensor<2x4xi32>)
      -> tensor<2x4x2x32xf32>
  return
}

// -----

func.func @steps_c8(%q: tensor<2x4x2x32xf32>, %b: tensor<2x4x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>, %x: tensor<30x2x32x32xbf16>, %slots: tensor<2x4xi32>) {
  // expected-error @below {{expected step_states to have the element type of initial_state, 'f32', got 'bf16'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x4x2x32xf32>) k(%q : tensor<2x4x2x32xf32>) v(%q : tensor<2x4x2x32xf32>)
      beta(%b : tensor<2x4x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>) step_states(%x : tensor<30x2x32x32xbf16>) step_indices(%slots : tensor<2x4xi32>)
      -> tensor<2x4x2x32xf32>, tensor<30x2x32x32xbf16>
  return
}

// -----

func.func @steps_c9(%q: memref<2x4x2x32xf32>, %b: memref<2x4x2xf32>, %pool: memref<9x2x32x32xf32>, %rows: memref<2xi32>, %x: memref<30x2x32x32xf32>, %slots: memref<2x4xi32>, %o: memref<2x4x2x32xf32>,
                   %other: memref<30x2x32x32xf32>) {
  // expected-error @below {{expected step_states as the last of outs, got another array}}
  gdn.recurrent_gated_delta_rule q(%q : memref<2x4x2x32xf32>) k(%q : memref<2x4x2x32xf32>) v(%q : memref<2x4x2x32xf32>)
      beta(%b : memref<2x4x2xf32>) initial_state(%pool : memref<9x2x32x32xf32>) state_indices(%rows : memref<2xi32>) step_states(%x : memref<30x2x32x32xf32>) step_indices(%slots : memref<2x4xi32>)
      outs(%o, %other : memref<2x4x2x32xf32>, memref<30x2x32x32xf32>)
  return
}
