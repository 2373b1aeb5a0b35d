// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @steps_c10(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %x: tensor<9x2x32x32xf32>, %s: tensor<2xi32>, %i: tensor<2xi32>) {
  // expected-error @below {{expected step_starts of shape [B+1] = [3], got 'tensor<2xi32>'}}
  %o, %r = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_starts(%s : tensor<2xi32>) step_intervals(%i : tensor<2xi32>)
      -> tensor<2x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c11(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %x: tensor<9x2x32x32xf32>, %s: tensor<3xi32>, %i: tensor<3xi32>) {
  // expected-error @below {{expected step_intervals of shape [B] = [2], got 'tensor<3xi32>'}}
  %o, %r = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_starts(%s : tensor<3xi32>) step_intervals(%i : tensor<3xi32>)
      -> tensor<2x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c12(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %x: tensor<9x2x32x32xf32>, %s: tensor<3xi32>) {
  // expected-error @below {{expected step_intervals with step_starts or step_indices, got no step_intervals}}
  %o, %r = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_starts(%s : tensor<3xi32>)
      -> tensor<2x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c13(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %x: tensor<9x2x32x32xf32>, %s: tensor<3xi32>, %i: tensor<2xi32>) {
  // expected-error @below {{expected no state_interval beside step_intervals, got 64}}
  %r:4 = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_starts(%s : tensor<3xi32>) step_intervals(%i : tensor<2xi32>)
      {state_interval = 64} -> tensor<2x80x2x32xf32>, tensor<2x80x2x32xf32>, tensor<4x2x32x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c14(%q: tensor<1x80x2x32xf32>, %b: tensor<1x80x2xf32>, %cu: tensor<3xi32>, %x: tensor<9x2x32x32xf32>, %s: tensor<3xi32>, %i: tensor<2xi32>, %starts: tensor<2x2xi32>) {
  // expected-error @below {{expected sequences as a whole with step_intervals, got segments}}
  %o, %r = gdn.stage.fused q(%q : tensor<1x80x2x32xf32>) k(%q : tensor<1x80x2x32xf32>) v(%q : tensor<1x80x2x32xf32>) beta(%b : tensor<1x80x2xf32>) gate(%b : tensor<1x80x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_starts(%s : tensor<3xi32>) step_intervals(%i : tensor<2xi32>) starts(%starts : tensor<2x2xi32>)
      {chunk_size = 32} -> tensor<1x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c12_rows(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %x: tensor<9x2x32x32xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{expected step_intervals with step_starts or step_indices, got no step_starts}}
  %o, %r = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      step_states(%x : tensor<9x2x32x32xf32>) step_intervals(%i : tensor<2xi32>)
      -> tensor<2x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c12_indices(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %pool: tensor<9x2x32x32xf32>, %r: tensor<2xi32>, %s: tensor<2x3xi32>) {
  // expected-error @below {{expected step_intervals with step_starts or step_indices, got no step_intervals}}
  %o, %p = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%r : tensor<2xi32>) step_indices(%s : tensor<2x3xi32>)
      {output_final_state} -> tensor<2x80x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @steps_c15(%q: tensor<2x80x2x32xf32>, %b: tensor<2x80x2xf32>, %pool: tensor<9x2x32x32xf32>, %r: tensor<2xi32>, %s: tensor<2x3xi32>, %i: tensor<2xi32>) {
  // expected-error @below {{expected step_states, or step_indices of a pool that is a result, got neither}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x32xf32>) k(%q : tensor<2x80x2x32xf32>) v(%q : tensor<2x80x2x32xf32>) beta(%b : tensor<2x80x2xf32>)
      initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%r : tensor<2xi32>) step_indices(%s : tensor<2x3xi32>) step_intervals(%i : tensor<2xi32>)
      -> tensor<2x80x2x32xf32>
  return
}
