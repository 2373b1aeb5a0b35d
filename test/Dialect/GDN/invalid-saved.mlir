// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// A backward has both arrays, and the interval, or none.
func.func @saved_c1_writes(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected writes and states exactly with state_interval, got none}}
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>) writes(%q : tensor<1x64x2x32xf32>)
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return
}

// -----

func.func @saved_c1_interval(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected writes and states exactly with state_interval, got a state_interval}}
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>) {state_interval = 64 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return
}

// -----

// States lie between chunks, whatever their length.
func.func @saved_c2(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected state_interval to be a positive multiple of 64, got 32}}
  %r:3 = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {state_interval = 32 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<3x2x32x32xf32>
  return
}

// -----

// The results are those of the attribute.
func.func @result_c1_saved(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected results (o, writes, states), got 1}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {state_interval = 64 : i64} -> tensor<1x64x2x32xf32>
  return
}

// -----

// floor(1 x 64 / 64) + 1 states.
func.func @saved_c4(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %s: tensor<3x2x32x32xf32>) {
  // expected-error @below {{expected 2 states in states, got 'tensor<3x2x32x32xf32>'}}
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>) writes(%q : tensor<1x64x2x32xf32>)
      states(%s : tensor<3x2x32x32xf32>) {state_interval = 64 : i64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return
}

// -----

// What is saved has the type of the operands.
func.func @delta_rule_c14_saved(%q: tensor<1x64x2x32xbf16>, %b: tensor<1x64x2xf32>, %s: tensor<2x2x32x32xf32>) {
  // expected-error @below {{expected states to have the element type of k, 'bf16', got 'f32'}}
  %d:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xbf16>) k(%q : tensor<1x64x2x32xbf16>) v(%q : tensor<1x64x2x32xbf16>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xbf16>) writes(%q : tensor<1x64x2x32xbf16>)
      states(%s : tensor<2x2x32x32xf32>) {state_interval = 64 : i64}
      -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<1x64x2xf32>
  return
}

// -----

// Only states that are saved have numbers of whole sequences.
func.func @saved_c5(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected sequence_segments to be positive and beside saved states, got 4}}
  %r = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {chunk_size = 32, sequence_segments = 4} -> tensor<1x64x2x32xf32>
  return
}

// -----

// Two sequences in four segments each have floor(512 / 64) + 2 states.
func.func @result_c2_saved_segments(%q: tensor<1x512x2x32xf32>, %b: tensor<1x512x2xf32>, %cu: tensor<9xi32>) {
  // expected-error @below {{expected states of shape [S, H, V, K] = [10, 2, 32, 32], got 'tensor<16x2x32x32xf32>'}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x512x2x32xf32>) k(%q : tensor<1x512x2x32xf32>) v(%q : tensor<1x512x2x32xf32>)
      beta(%b : tensor<1x512x2xf32>) gate(%b : tensor<1x512x2xf32>) cu_seqlens(%cu : tensor<9xi32>)
      {chunk_size = 32, sequence_segments = 4, state_interval = 64}
      -> tensor<1x512x2x32xf32>, tensor<1x512x2x32xf32>, tensor<16x2x32x32xf32>
  return
}

// -----

// The verifier asks for sizes, which are divided by it, before it looks at it.
func.func @saved_c5_zero(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected sequence_segments to be positive and beside saved states, got 0}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%b : tensor<1x64x2xf32>) {chunk_size = 32, sequence_segments = 0, state_interval = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  return
}

// -----

func.func @saved_c5_divides(%q: tensor<1x512x2x32xf32>, %b: tensor<1x512x2xf32>, %cu: tensor<10xi32>) {
  // expected-error @below {{expected sequence_segments to divide the 9 segments, got 4}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x512x2x32xf32>) k(%q : tensor<1x512x2x32xf32>) v(%q : tensor<1x512x2x32xf32>)
      beta(%b : tensor<1x512x2xf32>) gate(%b : tensor<1x512x2xf32>) cu_seqlens(%cu : tensor<10xi32>)
      {chunk_size = 32, sequence_segments = 4, state_interval = 64}
      -> tensor<1x512x2x32xf32>, tensor<1x512x2x32xf32>, tensor<10x2x32x32xf32>
  return
}

// -----

// A chunk without a gate keeps no states.
func.func @saved_c6(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>) {
  // expected-error @below {{expected a gate beside state_interval, got none}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) {chunk_size = 32, state_interval = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<2x2x32x32xf32>
  return
}

// -----

func.func @saved_c3(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %n: tensor<2xi32>) {
  // expected-error @below {{expected sequence_numbers beside cu_seqlens and saved states or num_states, without sequence_segments}}
  %o = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>) sequence_numbers(%n : tensor<2xi32>)
      {chunk_size = 32} -> tensor<1x64x2x32xf32>
  return
}

// -----

func.func @saved_c3_count(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{expected sequence_numbers of shape [N] = [2], got 'tensor<3xi32>'}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%b : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      sequence_numbers(%n : tensor<3xi32>) {chunk_size = 32, state_interval = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<3x2x32x32xf32>
  return
}

// -----

func.func @saved_c3_gradients(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %s: tensor<2x2x32x32xf32>, %n: tensor<1xi32>) {
  // expected-error @below {{expected sequence_numbers beside cu_seqlens and saved states or num_states, without sequence_segments}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%q : tensor<1x64x2x32xf32>) beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xf32>)
      writes(%q : tensor<1x64x2x32xf32>) dv(%q : tensor<1x64x2x32xf32>)
      states(%s : tensor<2x2x32x32xf32>) d_states(%s : tensor<2x2x32x32xf32>) sequence_numbers(%n : tensor<1xi32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return
}
