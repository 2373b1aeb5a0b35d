// RUN: gdn-opt %s --gdn-cp-split --split-input-file --verify-diagnostics -o /dev/null

// Gradients are not of parts.
func.func @backward(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %length: index {gdn.cut = "segment_length"},
    %parts: index {gdn.cut = "segment_parts"}) -> (
    tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xbf16>, tensor<1x64x1xf32>) {
  // expected-error @below {{expected gdn.cut = "segment_length" alone with a backward, got "segment_parts" beside it}}
  %d:4 = gdn.stage.backward q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) d_o(%q : tensor<1x64x1x64xbf16>) {chunk_size = 32}
      -> tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xbf16>, tensor<1x64x1xf32>
  return %d#0, %d#1, %d#2, %d#3 : tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xbf16>, tensor<1x64x1xf32>
}

// -----

func.func @gradients(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %s: tensor<1x1x64x64xbf16>,
    %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"},
    %longer: index {gdn.cut = "longer_segment_length"}) -> tensor<1x64x1x64xbf16> {
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) gate(%beta : tensor<1x64x1xf32>) d_o(%q : tensor<1x64x1x64xbf16>)
      {chunk_size = 32, segment_length = 64} -> tensor<1x64x1x64xbf16>, tensor<2x1x64x64xbf16>
  // expected-error @below {{expected gdn.cut = "segment_length" alone with a backward, got "segment_parts" beside it}}
  %d:4 = gdn.stage.gradients q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) gate(%beta : tensor<1x64x1xf32>) d_o(%q : tensor<1x64x1x64xbf16>)
      writes(%q : tensor<1x64x1x64xbf16>) dv(%dv : tensor<1x64x1x64xbf16>) states(%s : tensor<1x1x64x64xbf16>)
      d_states(%ds : tensor<2x1x64x64xbf16>) {chunk_size = 64, segment_length = 64, state_interval = 128}
      -> tensor<1x64x1x64xbf16>, tensor<1x64x1x64xbf16>, tensor<1x64x1xf32>, tensor<1x64x1xf32>
  return %d#0 : tensor<1x64x1x64xbf16>
}

// -----

func.func @no_gate(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %length: index {gdn.cut = "segment_length"},
    %parts: index {gdn.cut = "segment_parts"}) -> tensor<1x64x1x64xbf16> {
  // expected-error @below {{expected side-by-side, a decay-tolerance and a gate to 16-bit keys, nothing saved and no state_indices, with segment_parts}}
  %o = gdn.stage.fused q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) {chunk_size = 32} -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

func.func @no_parts(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %length: index {gdn.cut = "segment_length"})
    -> tensor<1x64x1x64xbf16> attributes {gdn.late_forward} {
  // expected-error @below {{expected segment_parts beside gdn.late_forward, got none}}
  %o = gdn.stage.fused q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) {chunk_size = 32} -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

func.func @linear(%q: tensor<1x64x1x64xbf16>, %beta: tensor<1x64x1xf32>, %length: index {gdn.cut = "segment_length"},
    %parts: index {gdn.cut = "segment_parts"}, %longer: index {gdn.cut = "longer_segment_length"}) -> tensor<1x64x1x64xbf16> {
  // expected-error @below {{expected log gates a head, or gates a channel, with longer_segment_length, got others}}
  %o = gdn.stage.fused q(%q : tensor<1x64x1x64xbf16>) k(%q : tensor<1x64x1x64xbf16>) v(%q : tensor<1x64x1x64xbf16>)
      beta(%beta : tensor<1x64x1xf32>) gate(%beta : tensor<1x64x1xf32>) {chunk_size = 32, gate_domain = #gdn.gate_domain<linear>}
      -> tensor<1x64x1x64xbf16>
  return %o : tensor<1x64x1x64xbf16>
}

// -----

func.func @saves(%q: tensor<1x128x1x64xbf16>, %beta: tensor<1x128x1xf32>, %length: index {gdn.cut = "segment_length"},
    %parts: index {gdn.cut = "segment_parts"}) -> (tensor<1x128x1x64xbf16>, tensor<1x128x1x64xbf16>, tensor<2x1x64x64xbf16>) {
  // expected-error @below {{nothing saved and no state_indices, with segment_parts}}
  %o, %writes, %states = gdn.stage.fused q(%q : tensor<1x128x1x64xbf16>) k(%q : tensor<1x128x1x64xbf16>) v(%q : tensor<1x128x1x64xbf16>)
      beta(%beta : tensor<1x128x1xf32>) gate(%beta : tensor<1x128x1xf32>) {chunk_size = 32, state_interval = 128}
      -> tensor<1x128x1x64xbf16>, tensor<1x128x1x64xbf16>, tensor<2x1x64x64xbf16>
  return %o, %writes, %states : tensor<1x128x1x64xbf16>, tensor<1x128x1x64xbf16>, tensor<2x1x64x64xbf16>
}
