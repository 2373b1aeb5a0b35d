// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// An index for each sequence, which here is a batch row.
func.func @pool_c1(%q: tensor<2x1x2x32xf32>, %b: tensor<2x1x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<3xi32>) {
  // expected-error @below {{expected state_indices of shape [B] = [2], got 'tensor<3xi32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x32xf32>) k(%q : tensor<2x1x2x32xf32>) v(%q : tensor<2x1x2x32xf32>)
      beta(%b : tensor<2x1x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<3xi32>)
      {output_final_state} -> tensor<2x1x2x32xf32>, tensor<9x2x32x32xf32>
  return
}

// -----

func.func @pool_c1_packed(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %pool: tensor<9x2x32x32xf32>, %cu: tensor<4xi32>,
                          %rows: tensor<1xi64>) {
  // expected-error @below {{expected state_indices of shape [N] = [3], got 'tensor<1xi64>'}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) cu_seqlens(%cu : tensor<4xi32>)
      state_indices(%rows : tensor<1xi64>) -> tensor<1x64x2x32xf32>
  return
}

// -----

// The result is the pool, of which there are more rows than sequences.
func.func @result_c2_pool(%q: tensor<2x1x2x32xf32>, %b: tensor<2x1x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>) {
  // expected-error @below {{expected final_state of shape [P, H, K, V] = [9, 2, 32, 32], got 'tensor<2x2x32x32xf32>'}}
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x32xf32>) k(%q : tensor<2x1x2x32xf32>) v(%q : tensor<2x1x2x32xf32>)
      beta(%b : tensor<2x1x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>)
      {output_final_state} -> tensor<2x1x2x32xf32>, tensor<2x2x32x32xf32>
  return
}

// -----

func.func @pool_c2(%q: tensor<2x1x2x32xf32>, %b: tensor<2x1x2xf32>, %states: tensor<2x2x32x32xf32>, %first: index) {
  // expected-error @below {{expected first_state only beside state_indices, got no state_indices}}
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x32xf32>) k(%q : tensor<2x1x2x32xf32>) v(%q : tensor<2x1x2x32xf32>)
      beta(%b : tensor<2x1x2xf32>) initial_state(%states : tensor<2x2x32x32xf32>) first_state(%first : index)
      -> tensor<2x1x2x32xf32>
  return
}

// -----

func.func @pool_c3(%q: tensor<2x1x2x32xf32>, %b: tensor<2x1x2xf32>, %rows: tensor<2xi32>) {
  // expected-error @below {{expected initial_state, a pool of states, beside state_indices, got none}}
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x32xf32>) k(%q : tensor<2x1x2x32xf32>) v(%q : tensor<2x1x2x32xf32>)
      beta(%b : tensor<2x1x2xf32>) state_indices(%rows : tensor<2xi32>) -> tensor<2x1x2x32xf32>
  return
}

// -----

func.func @pool_c4(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<1xi32>) {
  // expected-error @below {{expected no state_interval beside state_indices, got 64}}
  %r:3 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<1xi32>)
      {state_interval = 64 : i64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  return
}

// -----

func.func @pool_c5(%q: memref<2x1x2x32xf32>, %b: memref<2x1x2xf32>, %pool: memref<9x2x32x32xf32>, %rows: memref<2xi32>,
                   %o: memref<2x1x2x32xf32>, %other: memref<9x2x32x32xf32>) {
  // expected-error @below {{expected initial_state, the pool, as the second of outs, got another array}}
  gdn.recurrent_gated_delta_rule q(%q : memref<2x1x2x32xf32>) k(%q : memref<2x1x2x32xf32>) v(%q : memref<2x1x2x32xf32>)
      beta(%b : memref<2x1x2xf32>) initial_state(%pool : memref<9x2x32x32xf32>) state_indices(%rows : memref<2xi32>)
      outs(%o, %other : memref<2x1x2x32xf32>, memref<9x2x32x32xf32>) {output_final_state}
  return
}

// -----

func.func @pool_c6(%map: tensor<4x2x32x32xf32>, %added: tensor<4x2x32x32xf32>, %pool: tensor<9x2x32x32xf32>,
                   %first: tensor<3xi32>, %rows: tensor<2xi32>) {
  // expected-error @below {{expected no reverse beside state_indices, got it}}
  %e = gdn.stage.segment_scan map(%map : tensor<4x2x32x32xf32>) states(%added : tensor<4x2x32x32xf32>)
      initial_state(%pool : tensor<9x2x32x32xf32>) first_segments(%first : tensor<3xi32>) state_indices(%rows : tensor<2xi32>)
      {reverse} -> tensor<4x2x32x32xf32>
  return
}

// -----

// Segments know their sequences, or they are sequences.
func.func @pool_c7(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %entry: tensor<4x2x32x32xf32>, %cu: tensor<5xi32>,
                   %rows: tensor<2xi32>, %count: index) {
  // expected-error @below {{expected num_states and sequence_numbers together beside state_indices, got one of them}}
  %o = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%entry : tensor<4x2x32x32xf32>) cu_seqlens(%cu : tensor<5xi32>)
      state_indices(%rows : tensor<2xi32>) num_states(%count : index) {chunk_size = 32} -> tensor<1x64x2x32xf32>
  return
}

// -----

func.func @pool_c2_flags(%q: tensor<2x1x2x32xf32>, %b: tensor<2x1x2xf32>, %states: tensor<2x2x32x32xf32>, %flags: tensor<2xi8>) {
  // expected-error @below {{expected has_initial_state only beside state_indices, got no state_indices}}
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x32xf32>) k(%q : tensor<2x1x2x32xf32>) v(%q : tensor<2x1x2x32xf32>)
      beta(%b : tensor<2x1x2xf32>) initial_state(%states : tensor<2x2x32x32xf32>) has_initial_state(%flags : tensor<2xi8>)
      -> tensor<2x1x2x32xf32>
  return
}

// -----

func.func @pool_c8(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %pool: tensor<9x2x32x32xf32>, %cu: tensor<4xi32>,
                   %rows: tensor<3xi64>, %flags: tensor<1xi8>) {
  // expected-error @below {{expected has_initial_state of shape [N] = [3], got 'tensor<1xi8>'}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) cu_seqlens(%cu : tensor<4xi32>)
      state_indices(%rows : tensor<3xi64>) has_initial_state(%flags : tensor<1xi8>) -> tensor<1x64x2x32xf32>
  return
}

// -----

// Segments begin with what the scan has made, which has looked at the flags.
func.func @pool_c9(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %entry: tensor<4x2x32x32xf32>, %cu: tensor<5xi32>,
                   %rows: tensor<2xi32>, %flags: tensor<4xi8>, %numbers: tensor<4xi32>, %count: index) {
  // expected-error @below {{expected no has_initial_state beside num_states, got it: segments begin with states of their own}}
  %o = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%entry : tensor<4x2x32x32xf32>) cu_seqlens(%cu : tensor<5xi32>)
      state_indices(%rows : tensor<2xi32>) has_initial_state(%flags : tensor<4xi8>) sequence_numbers(%numbers : tensor<4xi32>)
      num_states(%count : index) {chunk_size = 32} -> tensor<1x64x2x32xf32>
  return
}

// -----

// No backward takes a pool.
func.func @backward(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<1xi32>) {
  // expected-error @+2 {{expected no state_indices in a backward, got them: gradients are those of states [N, ...]}}
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<1xi32>)
      d_o(%q : tensor<1x64x2x32xf32>) -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>,
         tensor<1x64x2xf32>, tensor<9x2x32x32xf32>
  return
}
