// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// A stage is a function of tensors.
func.func @delta_rule_c1_stage(%q: memref<1x64x2x32xf32>, %k: memref<1x64x2x32xf32>,
    %v: memref<1x64x4x16xf32>, %beta: memref<1x64x4xf32>) {
  // expected-error @below {{expected tensors, got a memref operand}}
  %r = gdn.stage.fused q(%q : memref<1x64x2x32xf32>) k(%k : memref<1x64x2x32xf32>)
      v(%v : memref<1x64x4x16xf32>) beta(%beta : memref<1x64x4xf32>) {chunk_size = 32} ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// A stage has the chunk that its program has.
func.func @chunk_c2_stage(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected chunk_size to be one of 16, 32, 64, got 0}}
  %r = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 0} ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// Without a gate there is no decay.
func.func @result_c1_prepare(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected results (bm), got 2}}
  %r:2 = gdn.stage.prepare k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      {chunk_size = 32} -> tensor<1x64x4x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

// A state pass has no read-out.
func.func @result_c1_state_pass(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected results (final_state), got 2}}
  %r:2 = gdn.stage.state_pass q(%q : tensor<1x64x2x32xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32} ->
      tensor<1x64x4x16xf32>, tensor<1x4x32x16xf32>
  return
}

// -----

// A row of bm is as long as a chunk.
func.func @result_c2_prepare(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected bm of shape [B, T, H, C] = [1, 64, 4, 16], got 'tensor<1x64x4x32xf32>'}}
  %r = gdn.stage.prepare k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      {chunk_size = 16} -> tensor<1x64x4x32xf32>
  return
}

// -----

// bm was made for the same chunks.
func.func @stage_run_c1(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %bm: tensor<1x64x4x32xf32>) {
  // expected-error @below {{expected bm of shape [B, T, H, C] = [1, 64, 4, 16], got 'tensor<1x64x4x32xf32>'}}
  %r = gdn.stage.run q(%q : tensor<1x64x2x32xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>)
      bm(%bm : tensor<1x64x4x32xf32>) {chunk_size = 16} -> tensor<1x64x4x16xf32>
  return
}

// -----

// decay is shaped as the gate was.
func.func @stage_run_c2(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %bm: tensor<1x64x4x32xf32>,
    %decay: tensor<1x64x4x16xf32>) {
  // expected-error @below {{expected decay of shape [B, T, H, K] = [1, 64, 4, 32], got 'tensor<1x64x4x16xf32>'}}
  %r = gdn.stage.run q(%q : tensor<1x64x2x32xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>)
      bm(%bm : tensor<1x64x4x32xf32>) decay(%decay : tensor<1x64x4x16xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xf32>
  return
}

// -----

// dq and dk are those of the value heads.
func.func @result_c2_backward(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xf32>) {
  // expected-error @below {{expected dq of shape [B, T, H, K] = [1, 64, 4, 32], got 'tensor<1x64x2x32xf32>'}}
  %r:4 = gdn.stage.backward q(%q : tensor<1x64x2x32xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>)
      d_o(%d_o : tensor<1x64x4x16xf32>) {chunk_size = 32} -> tensor<1x64x2x32xf32>,
      tensor<1x64x2x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}

// -----

// They are summed over a group later, so they are not rounded yet.
func.func @result_c3_backward(%q: tensor<1x64x2x32xbf16>, %k: tensor<1x64x2x32xbf16>,
    %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>, %d_o: tensor<1x64x4x16xbf16>)
    {
  // expected-error @below {{expected dk to have element type 'f32', got 'bf16'}}
  %r:4 = gdn.stage.backward q(%q : tensor<1x64x2x32xbf16>) k(%k : tensor<1x64x2x32xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>)
      d_o(%d_o : tensor<1x64x4x16xbf16>) {chunk_size = 32} -> tensor<1x64x4x32xf32>,
      tensor<1x64x4x32xbf16>, tensor<1x64x4x16xbf16>, tensor<1x64x4xf32>
  return
}

// -----

// Linear attention takes the same q, k and v.
func.func @delta_rule_c4_linear_attention(%q: tensor<1x64x2x32xf32>,
    %k: tensor<1x64x2x32xf32>, %v: tensor<1x32x4x16xf32>) {
  // expected-error @below {{expected v of shape [B, T, H, V] = [1, 64, ?, ?], got 'tensor<1x32x4x16xf32>'}}
  %r = gdn.stage.linear_attention q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x32x4x16xf32>) {chunk_size = 32} ->
      tensor<1x64x4x16xf32>
  return
}

// -----

func.func @gradients_c1(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %w: tensor<1x64x4x32xf32>, %dv: tensor<1x64x4x16xf32>, %s: tensor<2x4x16x32xf32>, %ds: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected writes of shape [B, T, H, V] = [1, 64, 4, 16], got 'tensor<1x64x4x32xf32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%w : tensor<1x64x4x32xf32>) dv(%dv : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

func.func @gradients_c2(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %w: tensor<1x64x4x16xf32>, %dv: tensor<1x32x4x16xf32>, %s: tensor<2x4x16x32xf32>, %ds: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected dv of shape [B, T, H, V] = [1, 64, 4, 16], got 'tensor<1x32x4x16xf32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%w : tensor<1x64x4x16xf32>) dv(%dv : tensor<1x32x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

func.func @gradients_c3(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %w: tensor<1x64x4x16xf32>, %dv: tensor<1x64x4x16xf32>, %s: tensor<2x4x32x16xf32>, %ds: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected states of shape [S of states, H, V, K] = [2, 4, 16, 32], got 'tensor<2x4x32x16xf32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%w : tensor<1x64x4x16xf32>) dv(%dv : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x32x16xf32>) d_states(%ds : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

func.func @gradients_c4(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %w: tensor<1x64x4x16xf32>, %dv: tensor<1x64x4x16xf32>, %s: tensor<2x4x16x32xf32>, %ds: tensor<3x4x16x32xf32>) {
  // expected-error @below {{expected 2 states in d_states, got 'tensor<3x4x16x32xf32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%w : tensor<1x64x4x16xf32>) dv(%dv : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<3x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

func.func @gradients_c5(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %w: tensor<1x64x4x16xf32>, %dv: tensor<1x64x4x16xf32>, %s: tensor<2x4x16x32xf32>, %ds: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected state_interval to be a positive multiple of segment_length = 64, got 96}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%w : tensor<1x64x4x16xf32>) dv(%dv : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64, state_interval = 96} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

// As many entries as the adjoint has sequences and heads.
func.func @gradients_c6(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %s: tensor<2x4x16x32xf32>, %p: tensor<1x2x1xi32>) {
  // expected-error @below {{expected progress of shape [B, H, V tiles] = [1, 4, ?], got 'tensor<1x2x1xi32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%v : tensor<1x64x4x16xf32>) dv(%v : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%s : tensor<2x4x16x32xf32>) progress(%p : tensor<1x2x1xi32>)
      {chunk_size = 64, segment_length = 64} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

// Gradients that carry states from one that is saved do not take blocks from the end.
func.func @gradients_c7(%q: tensor<1x256x2x32xf32>, %v: tensor<1x256x4x16xf32>, %beta: tensor<1x256x4xf32>,
    %s: tensor<2x4x16x32xf32>, %ds: tensor<5x4x16x32xf32>, %p: tensor<1x4x1xi32>) {
  // expected-error @below {{expected a state_interval of at most two segments beside progress, got 256}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x256x2x32xf32>) k(%q : tensor<1x256x2x32xf32>)
      v(%v : tensor<1x256x4x16xf32>) beta(%beta : tensor<1x256x4xf32>) d_o(%v : tensor<1x256x4x16xf32>)
      writes(%v : tensor<1x256x4x16xf32>) dv(%v : tensor<1x256x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<5x4x16x32xf32>) progress(%p : tensor<1x4x1xi32>)
      {chunk_size = 64, segment_length = 64, state_interval = 256} -> tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x4xf32>
  return
}

// -----

func.func @gradients_c8(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x32xf32>, %s: tensor<2x2x16x32xf32>, %ds: tensor<2x2x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{q_rstd}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      writes(%v : tensor<1x64x2x16xf32>) dv(%v : tensor<1x64x2x16xf32>)
      states(%s : tensor<2x2x16x32xf32>) d_states(%ds : tensor<2x2x16x32xf32>) q_rstd(%other : tensor<1x64x3xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64, lower_bound = -5.0}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return
}

// -----

func.func @gradients_c8_one(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x32xf32>, %s: tensor<2x2x16x32xf32>, %ds: tensor<2x2x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{expected q_rstd and k_rstd or neither, got one}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      writes(%v : tensor<1x64x2x16xf32>) dv(%v : tensor<1x64x2x16xf32>)
      states(%s : tensor<2x2x16x32xf32>) d_states(%ds : tensor<2x2x16x32xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64, lower_bound = -5.0}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return
}

// -----

func.func @gradients_c9(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x32xf32>, %s: tensor<2x2x16x32xf32>, %ds: tensor<2x2x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{expected a gate a channel with a lower_bound that keeps blocks in range beside k_rstd, got none}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      writes(%v : tensor<1x64x2x16xf32>) dv(%v : tensor<1x64x2x16xf32>)
      states(%s : tensor<2x2x16x32xf32>) d_states(%ds : tensor<2x2x16x32xf32>) q_rstd(%norm : tensor<1x64x2xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>
  return
}

// -----

func.func @gradients_c9_unbounded(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x32xf32>, %s: tensor<2x2x16x32xf32>, %ds: tensor<2x2x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{expected a gate a channel with a lower_bound that keeps blocks in range beside k_rstd, got another gate}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      writes(%v : tensor<1x64x2x16xf32>) dv(%v : tensor<1x64x2x16xf32>)
      states(%s : tensor<2x2x16x32xf32>) d_states(%ds : tensor<2x2x16x32xf32>) q_rstd(%norm : tensor<1x64x2xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return
}

// -----

func.func @gradients_c9_heads(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4x32xf32>, %s: tensor<2x4x16x32xf32>, %ds: tensor<2x4x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{expected a value head a query/key head beside k_rstd, got H = 4 and Hq = 2}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x32xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%v : tensor<1x64x4x16xf32>) dv(%v : tensor<1x64x4x16xf32>)
      states(%s : tensor<2x4x16x32xf32>) d_states(%ds : tensor<2x4x16x32xf32>) q_rstd(%norm : tensor<1x64x2xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64, lower_bound = -5.0}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>, tensor<1x64x4x32xf32>
  return
}

// -----

func.func @gradients_c9_open(%q: tensor<1x64x?x32xf32>, %v: tensor<1x64x?x16xf32>, %beta: tensor<1x64x?xf32>,
    %gate: tensor<1x64x?x32xf32>, %s: tensor<2x?x16x32xf32>, %norm: tensor<1x64x?xf32>) {
  // expected-error @below {{expected single_heads beside k_rstd and open numbers of heads, got none}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x?x32xf32>) k(%q : tensor<1x64x?x32xf32>)
      v(%v : tensor<1x64x?x16xf32>) beta(%beta : tensor<1x64x?xf32>) gate(%gate : tensor<1x64x?x32xf32>) d_o(%v : tensor<1x64x?x16xf32>)
      writes(%v : tensor<1x64x?x16xf32>) dv(%v : tensor<1x64x?x16xf32>)
      states(%s : tensor<2x?x16x32xf32>) d_states(%s : tensor<2x?x16x32xf32>) q_rstd(%norm : tensor<1x64x?xf32>) k_rstd(%norm : tensor<1x64x?xf32>)
      {chunk_size = 64, segment_length = 64, lower_bound = -5.0}
      -> tensor<1x64x?x32xf32>, tensor<1x64x?x32xf32>, tensor<1x64x?xf32>, tensor<1x64x?x32xf32>
  return
}

// -----

func.func @gradients_c10(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %s: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected a value head a query/key head with single_heads, got H = 4 and Hq = 2}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      writes(%v : tensor<1x64x4x16xf32>) dv(%v : tensor<1x64x4x16xf32>) states(%s : tensor<2x4x16x32xf32>) d_states(%s : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64, single_heads} -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x4xf32>
  return
}

// -----

func.func @gradients_c9_interval(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x32xf32>, %s: tensor<1x2x16x32xf32>, %ds: tensor<2x2x16x32xf32>, %norm: tensor<1x64x2xf32>, %other: tensor<1x64x3xf32>) {
  // expected-error @below {{expected a state_interval of at most two segments beside k_rstd, got 256}}
  %r:4 = gdn.stage.gradients q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      writes(%v : tensor<1x64x2x16xf32>) dv(%v : tensor<1x64x2x16xf32>)
      states(%s : tensor<1x2x16x32xf32>) d_states(%ds : tensor<2x2x16x32xf32>) q_rstd(%norm : tensor<1x64x2xf32>) k_rstd(%norm : tensor<1x64x2xf32>)
      {chunk_size = 64, segment_length = 64, lower_bound = -5.0, state_interval = 256}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2xf32>, tensor<1x64x2x32xf32>
  return
}

// -----

func.func @adjoint_c1(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected reporting_tiles to be positive and to divide V, got 3}}
  %r:3 = gdn.stage.adjoint q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      {chunk_size = 64, segment_length = 64, reporting_tiles = 3}
      -> tensor<1x64x4x16xf32>, tensor<2x4x16x32xf32>, tensor<1x4x3xi32>
  return
}

// -----

// Fewer states than gradients of states.
func.func @gradients_c3_interval(%q: tensor<1x256x2x32xf32>, %v: tensor<1x256x4x16xf32>, %beta: tensor<1x256x4xf32>,
    %w: tensor<1x256x4x16xf32>, %dv: tensor<1x256x4x16xf32>, %s: tensor<5x4x16x32xf32>, %ds: tensor<5x4x16x32xf32>) {
  // expected-error @below {{expected 3 states in states, got 'tensor<5x4x16x32xf32>'}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x256x2x32xf32>) k(%q : tensor<1x256x2x32xf32>)
      v(%v : tensor<1x256x4x16xf32>) beta(%beta : tensor<1x256x4xf32>) d_o(%v : tensor<1x256x4x16xf32>)
      writes(%w : tensor<1x256x4x16xf32>) dv(%dv : tensor<1x256x4x16xf32>)
      states(%s : tensor<5x4x16x32xf32>) d_states(%ds : tensor<5x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64, state_interval = 128} -> tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x4xf32>
  return
}

// -----

func.func @gradients_c5_expand(%q: tensor<1x256x2x32xf32>, %r: tensor<1x256x4x16xf32>, %beta: tensor<1x256x4xf32>, %s: tensor<2x4x16x32xf32>) {
  // expected-error @below {{expected state_interval to be a positive multiple of segment_length = 64, got 96}}
  %all = gdn.stage.expand q(%q : tensor<1x256x2x32xf32>) k(%q : tensor<1x256x2x32xf32>) v(%r : tensor<1x256x4x16xf32>)
      beta(%beta : tensor<1x256x4xf32>) states(%s : tensor<2x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64, state_interval = 96} -> tensor<5x4x16x32xf32>
  return
}

// -----

func.func @saved_c4_expand(%q: tensor<1x256x2x32xf32>, %r: tensor<1x256x4x16xf32>, %beta: tensor<1x256x4xf32>, %s: tensor<5x4x16x32xf32>) {
  // expected-error @below {{expected 3 states in states, got 'tensor<5x4x16x32xf32>'}}
  %all = gdn.stage.expand q(%q : tensor<1x256x2x32xf32>) k(%q : tensor<1x256x2x32xf32>) v(%r : tensor<1x256x4x16xf32>)
      beta(%beta : tensor<1x256x4xf32>) states(%s : tensor<5x4x16x32xf32>)
      {chunk_size = 64, segment_length = 64, state_interval = 128} -> tensor<5x4x16x32xf32>
  return
}

// -----

// What work items find is one number.
func.func @gate_bound_c1(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x4x32xf32>, %none: tensor<1x1x4xf32>) {
  // expected-error @below {{expected none of shape [1, 1, 1] = [1, 1, 1], got 'tensor<1x1x4xf32>'}}
  %r = gdn.stage.gate_bound k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x4x32xf32>) none(%none : tensor<1x1x4xf32>)
      {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return
}

// -----

// Gates that have a bound keep it.
func.func @gate_bound_c2(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x4x32xf32>, %none: tensor<1x1x1xf32>) {
  // expected-error @below {{expected gates that may break the bound, got gate_domain bounded}}
  %r = gdn.stage.gate_bound k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x4x32xf32>) none(%none : tensor<1x1x1xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return
}

// -----

// The look is at gates of the channels that keys have.
func.func @delta_rule_c6_gate_bound(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x4x16xf32>, %none: tensor<1x1x1xf32>) {
  // expected-error @below {{expected gate of shape [B, T, H, K] = [1, 64, 4, 32], got 'tensor<1x64x4x16xf32>'}}
  %r = gdn.stage.gate_bound k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x4x16xf32>) none(%none : tensor<1x1x1xf32>)
      {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return
}
