// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// Without a gate there is nothing to read in a domain.
func.func @delta_rule_c15(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a gate with gate_domain linear, got none}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) {gate_domain = #gdn.gate_domain<linear>} ->
      tensor<1x64x4x16xf32>
  return
}

// -----

// A log gate has no parameters.
func.func @delta_rule_c16(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>,
    %dt_bias: tensor<4xf32>) {
  // expected-error @below {{expected dt_bias only with gate_domain softplus or bounded, got log}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      dt_bias(%dt_bias : tensor<4xf32>) -> tensor<1x64x4x16xf32>
  return
}

// -----

// The softplus form multiplies with exp(A_log).
func.func @delta_rule_c17(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a_log with gate_domain softplus, got none}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {gate_domain = #gdn.gate_domain<softplus>} -> tensor<1x64x4x16xf32>
  return
}

// -----

// A bounded gate has a bound.
func.func @delta_rule_c18(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) {
  // expected-error @below {{expected lower_bound with gate_domain bounded, and none with linear, got none with bounded}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {gate_domain = #gdn.gate_domain<bounded>} -> tensor<1x64x4x16xf32>
  return
}

// -----

// No other gate has one but logarithms, which may be said not to be below it.
func.func @delta_rule_c18_unused(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) {
  // expected-error @below {{expected lower_bound with gate_domain bounded, and none with linear, got one with linear}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {gate_domain = #gdn.gate_domain<linear>, lower_bound = -5.0}
      -> tensor<1x64x4x16xf32>
  return
}

// -----

// A decay is not a growth.
func.func @delta_rule_c19(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a finite, negative lower_bound, got 5.0}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = 5.0} -> tensor<1x64x4x16xf32>
  return
}

// -----

// A read-out with factor zero reads nothing.
func.func @delta_rule_c20(%q: tensor<1x64x2x32xf32>, %k: tensor<1x64x2x32xf32>,
    %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a finite, positive scale, got 0.0}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%k : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%beta : tensor<1x64x4xf32>) {scale = 0.0} -> tensor<1x64x4x16xf32>
  return
}

// -----

// A misspelled attribute is no default.
func.func @unknown(%q: tensor<1x64x2x32xf32>, %beta: tensor<1x64x2xf32>) {
  // expected-error @below {{expected attributes of the op, or under a dialect's name, got 'chunk_sise'}}
  %r = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_sise = 16 : i64} -> tensor<1x64x2x32xf32>
  return
}

// -----

// The words are those of the table of forms.
// expected-error @+2 {{expected log or linear or softplus or bounded}}
// expected-error @+1 {{failed to parse GDN_GateDomainAttr parameter 'value'}}
func.func private @no_form() attributes {gate = #gdn.gate_domain<strong>}
