// RUN: gdn-opt %s --gdn-plan-calls --split-input-file --verify-diagnostics

// expected-error @below {{expected one layer op in a function with gdn.variants}}
func.func @no_layer(%x: tensor<4xf32>) -> tensor<4xf32> attributes {gdn.variants = [{schedule = "cta_per_head"}]} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected gdn.variants of dictionaries with a schedule, and a name, a cut, a state_layout or attributes of dialects, got {name = "x"}}}
func.func @no_schedule(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
    attributes {gdn.variants = [{name = "x"}]} {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

// expected-error @below {{a state_layout or attributes of dialects, got cuts = ["segment_length"]}}
func.func @unknown(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
    attributes {gdn.variants = [{cuts = ["segment_length"], schedule = "cta_per_head"}]} {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

// expected-error @below {{expected at least one variant in gdn.variants, got none}}
func.func @none(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16> attributes {gdn.variants = []} {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

// expected-error @below {{expected variants of names that nothing else has, got twice_cta_per_head twice; a variant may have a name}}
func.func @twice(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
    attributes {gdn.variants = [{schedule = "cta_per_head"}, {schedule = "cta_per_head"}]} {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

func.func @cast(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %state: tensor<?x1x64x64xf32>) -> tensor<1x64x1x64xbf16>
    attributes {gdn.variants = [{schedule = "cta_per_head", state_layout = #gdn.state_layout<vk>}]} {
  %initial = tensor.cast %state : tensor<?x1x64x64xf32> to tensor<1x1x64x64xf32>
  // expected-error @below {{expected initial_state to be the function's own for a variant with another state_layout, got another value}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) initial_state(%initial : tensor<1x1x64x64xf32>) -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}
