// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// Channels are compiled in.
func.func @delta_rule_c2(%q: tensor<1x64x2x?xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a static, positive K in q, got 'tensor<1x64x2x?xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x?xf32>) k(%k : tensor<1x64x2x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// No heads would leave nothing to divide H by.
func.func @delta_rule_c21(%q: tensor<1x64x0x32xf32>, %k: tensor<1x64x0x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a positive Hq in q, got 'tensor<1x64x0x32xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x0x32xf32>)
      k(%k : tensor<1x64x0x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// k is shaped as q; sizes known when running agree with any.
func.func @delta_rule_c3(%q: tensor<?x64x2x32xf32>, %k: tensor<1x64x2x16xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected k of shape [B, T, Hq, K] = [1, 64, 2, 32], got 'tensor<1x64x2x16xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<?x64x2x32xf32>)
      k(%k : tensor<1x64x2x16xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// v has the tokens of q.
func.func @delta_rule_c4(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x63x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected v of shape [B, T, H, V] = [1, 64, ?, ?], got 'tensor<1x63x4x16xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x63x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// beta belongs to the value heads, not to the q/k heads.
func.func @delta_rule_c5(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x2xf32>) {
  // expected-error @below {{expected beta of shape [B, T, H] = [1, 64, 4], got 'tensor<1x64x2xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// A gate a channel has the channels of k, not those of v.
func.func @delta_rule_c6(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x16xf32>)
    {
  // expected-error @below {{expected gate of shape [B, T, H, K] = [1, 64, 4, 32], got 'tensor<1x64x4x16xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x16xf32>) ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// The layout says which channels come first.
func.func @delta_rule_c7(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %initial_state: tensor<1x4x32x16xf32>) {
  // expected-error @below {{expected initial_state of shape [B, H, V, K] = [1, 4, 16, 32], got 'tensor<1x4x32x16xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) initial_state(%initial_state : tensor<1x4x32x16xf32>)
      {state_layout = #gdn.state_layout<vk>} -> tensor<1x64x4x16xf32>
  return
}

// -----

// With boundaries there is a state a sequence.
func.func @delta_rule_c7_packed(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %initial_state: tensor<1x4x32x16xf32>, %cu_seqlens: tensor<4xi32>) {
  // expected-error @below {{expected initial_state of shape [N, H, K, V] = [3, 4, 32, 16], got 'tensor<1x4x32x16xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) initial_state(%initial_state : tensor<1x4x32x16xf32>)
      cu_seqlens(%cu_seqlens : tensor<4xi32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// a_log belongs to the head, also with a gate a channel.
func.func @delta_rule_c8(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x32xf32>,
    %a_log: tensor<4x32xf32>) {
  // expected-error @below {{expected a_log of shape [H] = [4], got 'tensor<4x32xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x32xf32>)
      a_log(%a_log : tensor<4x32xf32>) {gate_domain = #gdn.gate_domain<softplus>} ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// dt_bias has the channels of the gate.
func.func @delta_rule_c9(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x32xf32>,
    %a_log: tensor<4xf32>, %dt_bias: tensor<4xf32>) {
  // expected-error @below {{expected dt_bias of shape [H, K] = [4, 32], got 'tensor<4xf32>'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x32xf32>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4xf32>)
      {gate_domain = #gdn.gate_domain<softplus>} -> tensor<1x64x4x16xf32>
  return
}

// -----

// Every q/k head serves the same number of value heads.
func.func @delta_rule_c10(%q: tensor<1x64x3x32xf32>, %k: tensor<1x64x3x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected H to be a multiple of Hq, got H = 4 and Hq = 3}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x3x32xf32>)
      k(%k : tensor<1x64x3x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return
}
