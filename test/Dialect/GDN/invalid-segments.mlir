// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @segment_boundaries_c1(%k: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected one of segments, segment_length and length, got none}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) {chunk_size = 32} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c1_both(%k: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected one of segments, segment_length and length, got more}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) {chunk_size = 32, segments = 2, segment_length = 32}
      -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c1_chosen(%k: tensor<1x64x2x32xf32>, %length: index) {
  // expected-error @below {{expected one of segments, segment_length and length, got more}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) length(%length : index) {chunk_size = 32, segment_length = 32}
      -> tensor<?xi64>, tensor<2xi64>
  return
}

// -----

// The number of a sequence is a third result.
func.func @result_c3_sequence_numbers(%k: tensor<1x64x2x32xf32>, %length: index) {
  // expected-error @below {{expected sequence_numbers to have element type 'i32', got 'i64'}}
  %r:3 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) length(%length : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<2xi32>, tensor<?xi64>
  return
}

// -----

func.func @segment_boundaries_c2(%k: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected segments of 1 to 2^31 - 1, got 0}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) {chunk_size = 32, segments = 0} -> tensor<1xi64>, tensor<2xi64>
  return
}

// -----

// Times the sequences, that is 2^64.
func.func @segment_boundaries_c2_many(%k: tensor<8x64x2x32xf32>) {
  // expected-error @below {{expected segments of 1 to 2^31 - 1, got 2305843009213693952}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<8x64x2x32xf32>) {chunk_size = 32, segments = 2305843009213693952}
      -> tensor<1xi64>, tensor<9xi64>
  return
}

// -----

func.func @segment_boundaries_c4(%k: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected gate, live_heads, fewer_segments and tolerance together and beside segments, got no gate}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) {chunk_size = 32, segments = 2, fewer_segments = 1}
      -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c5(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected fewer_segments of 1 to segments = 2, got 3}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, segments = 2, fewer_segments = 3, live_heads = array<i64: 1, 3>, tolerance = 1.0e-05} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c7(%k: tensor<1x64x2x32xf32>, %n: index) {
  // expected-error @below {{expected parts beside length, and five results}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) length(%n : index) parts(%n : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<2xi32>
  return
}

// -----

func.func @segment_boundaries_c8(%k: tensor<1x64x2x32xf32>, %n: index) {
  // expected-error @below {{expected gate, live_heads, longer_length and tolerance together beside parts}}
  %r:5 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) length(%n : index) parts(%n : index) longer_length(%n : index)
      {chunk_size = 32} -> tensor<?xi32>, tensor<2xi32>, tensor<?xi32>, tensor<?xi32>, tensor<1xi32>
  return
}

// -----

func.func @segment_boundaries_c8_alone(%k: tensor<1x64x2x32xf32>, %n: index) {
  // expected-error @below {{expected longer_length only beside parts}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) length(%n : index) longer_length(%n : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<2xi32>
  return
}

// -----

func.func @segment_boundaries_c9(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected live_heads = [least, most] of 0 to 8 heads, got array<i64: 3, 2>}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, segments = 2, fewer_segments = 1, live_heads = array<i64: 3, 2>, tolerance = 1.0e-05} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c9_many(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected live_heads = [least, most] of 0 to 8 heads, got array<i64: 0, 9>}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, segments = 2, fewer_segments = 1, live_heads = array<i64: 0, 9>, tolerance = 1.0e-05} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c10(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected longer_length beside parts, or fewer_segments = 1 beside segments, with a gate a channel, and neither live_heads nor tolerance}}
  %r:7 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      {chunk_size = 32, segments = 3, fewer_segments = 2}
      -> tensor<4xi64>, tensor<2xi64>, tensor<4xi32>, tensor<3xi32>, tensor<1xi32>, tensor<3xi32>, tensor<2xi32>
  return
}

// -----

func.func @segment_whole_c1(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x2xf32>, %gate: tensor<1x64x2x32xf32>, %cu: tensor<3xi32>, %whole: tensor<3xi32>, %ends: tensor<2xi32>) {
  // expected-error @below {{expected whole_heads of shape [H] = [2], got 'tensor<3xi32>'}}
  %r:2 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      cu_seqlens(%cu : tensor<3xi32>) whole_heads(%whole : tensor<3xi32>) whole_begins(%ends : tensor<2xi32>) {chunk_size = 32, tolerance = 1.0e-05}
      -> tensor<2x2xi32>, tensor<2xi32>
  return
}

// -----

func.func @segment_whole_c2(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x2xf32>, %gate: tensor<1x64x2x32xf32>, %cu: tensor<3xi32>, %whole: tensor<2xi32>) {
  // expected-error @below {{expected whole_heads and whole_begins together, got no whole_begins}}
  %r:2 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      cu_seqlens(%cu : tensor<3xi32>) whole_heads(%whole : tensor<2xi32>) {chunk_size = 32, tolerance = 1.0e-05} -> tensor<2x2xi32>, tensor<2xi32>
  return
}

// -----

func.func @segment_whole_c3(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %whole: tensor<2xi32>, %ends: tensor<2xi32>) {
  // expected-error @below {{expected a gate a channel beside whole_heads, got a gate a head}}
  %r:3 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      whole_heads(%whole : tensor<2xi32>) whole_begins(%ends : tensor<2xi32>) {chunk_size = 32, tolerance = 1.0e-05}
      -> tensor<2x2xi32>, tensor<2x2xf32>, tensor<2xi32>
  return
}

// -----

func.func @segment_boundaries_c6(%k: tensor<1x64x2x32xf32>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected a tolerance between 0 and 1, got 0.000000e+00 : f64}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, segments = 2, fewer_segments = 1, live_heads = array<i64: 1, 3>, tolerance = 0.0} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

func.func @segment_boundaries_c3(%k: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected segment_length to be a positive multiple of chunk_size = 32, got 48}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) {chunk_size = 32, segment_length = 48}
      -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

// Segments of 32 tokens of 64, and one more, since the second sequence may begin inside one.
func.func @result_c2_segment_boundaries(%k: tensor<1x64x2x32xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected boundaries of shape [S+1] = [4], got 'tensor<3xi32>'}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) cu_seqlens(%cu : tensor<3xi32>)
      {chunk_size = 32, segment_length = 32} -> tensor<3xi32>, tensor<3xi32>
  return
}

// -----

// Boundaries have the type of those that they divide.
func.func @result_c3_segment_boundaries(%k: tensor<1x64x2x32xf32>, %cu: tensor<2xi32>) {
  // expected-error @below {{expected boundaries to have element type 'i32', got 'i64'}}
  %r:2 = gdn.stage.segment_boundaries k(%k : tensor<1x64x2x32xf32>) cu_seqlens(%cu : tensor<2xi32>)
      {chunk_size = 32, segments = 2} -> tensor<3xi64>, tensor<2xi64>
  return
}

// -----

// The decay of a map is beside it.
func.func @result_c1_segment_map(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) {
  // expected-error @below {{expected results (map, decay), got 1}}
  %r = gdn.stage.segment_map k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      gate(%gate : tensor<1x64x4xf32>) {chunk_size = 32} -> tensor<1x4x32x32xf32>
  return
}

// -----

func.func @result_c2_segment_map(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected map of shape [B, H, K, K] = [1, 4, 32, 32], got 'tensor<1x4x32x16xf32>'}}
  %r = gdn.stage.segment_map k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32}
      -> tensor<1x4x32x16xf32>
  return
}

// -----

// A value head reads a head of keys.
func.func @delta_rule_c10_segment_map(%k: tensor<1x64x2x32xf32>, %beta: tensor<1x64x3xf32>) {
  // expected-error @below {{expected H to be a multiple of Hq, got H = 3 and Hq = 2}}
  %r = gdn.stage.segment_map k(%k : tensor<1x64x2x32xf32>) beta(%beta : tensor<1x64x3xf32>) {chunk_size = 32}
      -> tensor<1x3x32x32xf32>
  return
}

// -----

func.func @segment_scan_c1(%map: tensor<4x2x32x16xf16>, %b: tensor<4x2x32x16xf32>, %first: tensor<2xi32>) {
  // expected-error @below {{expected map of shape [S, H, K, K] = [4, 2, 32, 32], got 'tensor<4x2x32x16xf16>'}}
  %r = gdn.stage.segment_scan map(%map : tensor<4x2x32x16xf16>) states(%b : tensor<4x2x32x16xf32>)
      first_segments(%first : tensor<2xi32>) -> tensor<4x2x32x16xf32>
  return
}

// -----

func.func @segment_scan_c2(%map: tensor<4x2x32x32xf16>, %decay: tensor<4x3xf32>, %b: tensor<4x2x32x16xf32>, %first: tensor<2xi32>) {
  // expected-error @below {{expected decay of shape [S, H] = [4, 2], got 'tensor<4x3xf32>'}}
  %r = gdn.stage.segment_scan map(%map : tensor<4x2x32x32xf16>) decay(%decay : tensor<4x3xf32>)
      states(%b : tensor<4x2x32x16xf32>) first_segments(%first : tensor<2xi32>) -> tensor<4x2x32x16xf32>
  return
}

// -----

func.func @segment_scan_c3(%map: tensor<4x2x32x32xf16>, %b: tensor<5x2x32x16xf32>, %first: tensor<2xi32>) {
  // expected-error @below {{expected states of shape [S, H, K, V] = [4, 2, 32, ?], got 'tensor<5x2x32x16xf32>'}}
  %r = gdn.stage.segment_scan map(%map : tensor<4x2x32x32xf16>) states(%b : tensor<5x2x32x16xf32>)
      first_segments(%first : tensor<2xi32>) -> tensor<4x2x32x16xf32>
  return
}

// -----

func.func @segment_scan_c4(%map: tensor<4x2x32x32xf16>, %b: tensor<4x2x32x16xf32>, %first: tensor<1xi32>) {
  // expected-error @below {{expected first_segments to have N+1 >= 2 entries, got 1}}
  %r = gdn.stage.segment_scan map(%map : tensor<4x2x32x32xf16>) states(%b : tensor<4x2x32x16xf32>)
      first_segments(%first : tensor<1xi32>) -> tensor<4x2x32x16xf32>
  return
}

// -----

func.func @segment_scan_c5(%map: tensor<8x2x32x32xf16>, %decay: tensor<8x2x32xf32>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %boundaries: tensor<9xi64>) {
  // expected-error @below {{expected starts and boundaries together, got no starts}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) decay(%decay : tensor<8x2x32xf32>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) boundaries(%boundaries : tensor<9xi64>) -> tensor<8x2x32x32xf32>
  return
}

// -----

func.func @segment_scan_c5_rank(%map: tensor<8x2x32x32xf16>, %decay: tensor<8x2xf32>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %starts: tensor<8x2xi32>, %boundaries: tensor<9xi64>) {
  // expected-error @below {{expected decay [S, H, K] beside starts without before, got 'tensor<8x2xf32>'}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) decay(%decay : tensor<8x2xf32>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) starts(%starts : tensor<8x2xi32>) boundaries(%boundaries : tensor<9xi64>)
      -> tensor<8x2x32x32xf32>
  return
}

// -----

// A final state has the type of the initial one.
func.func @result_c3_segment_scan(%map: tensor<4x2x32x32xf16>, %b: tensor<4x2x32x16xf32>, %h0: tensor<1x2x32x16xbf16>, %first: tensor<2xi32>) {
  // expected-error @below {{expected final_state to have element type 'bf16', got 'f32'}}
  %r:2 = gdn.stage.segment_scan map(%map : tensor<4x2x32x32xf16>) states(%b : tensor<4x2x32x16xf32>)
      initial_state(%h0 : tensor<1x2x32x16xbf16>) first_segments(%first : tensor<2xi32>)
      -> tensor<4x2x32x16xf32>, tensor<1x2x32x16xf32>
  return
}

// -----

func.func @segment_starts_c1(%k: tensor<1x64x2x32xbf16>) {
  // expected-error @below {{expected a gate, got none}}
  %r:2 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xbf16>) {chunk_size = 32, tolerance = 1.0e-05}
      -> tensor<1x2xi32>, tensor<1x2xf32>
  return
}

// -----

func.func @segment_starts_c2(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected a tolerance between 0 and 1, got 1.000000e+00 : f64}}
  %r:2 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, tolerance = 1.0} -> tensor<1x2xi32>, tensor<1x2xf32>
  return
}

// -----

func.func @segment_starts_c3(%k: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %starts: tensor<1x3xi32>) {
  // expected-error @below {{expected starts of shape [B, H] = [1, 2], got 'tensor<1x3xi32>'}}
  %r = gdn.stage.segment_map k(%k : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>)
      starts(%starts : tensor<1x3xi32>) {chunk_size = 32} -> tensor<1x2x32x32xf16>
  return
}

// -----

func.func @segment_starts_c4(%q: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %ends: tensor<2x2xi32>) {
  // expected-error @below {{expected ends of shape [B, H] = [1, 2], got 'tensor<2x2xi32>'}}
  %r = gdn.stage.adjoint_pass q(%q : tensor<1x64x2x32xbf16>) k(%q : tensor<1x64x2x32xbf16>) v(%q : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x32xbf16>) ends(%ends : tensor<2x2xi32>) {chunk_size = 32}
      -> tensor<1x2x32x32xf32>
  return
}

// -----

func.func @segment_starts_c5(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected beta exactly with a gate a channel, got none}}
  %r = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x2x32xf32>)
      {chunk_size = 32, tolerance = 1.0e-05} -> tensor<1x2xi32>
  return
}

// -----

func.func @segment_starts_c6(%k: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %gate: tensor<1x64x2x32xf32>) {
  // expected-error @below {{expected no reverse with a gate a channel, got it}}
  %r = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x32xf32>)
      {chunk_size = 32, tolerance = 1.0e-05, reverse} -> tensor<1x2xi32>
  return
}

// -----

// Where segments end, nobody asks for their decay.
func.func @result_c1_segment_starts(%k: tensor<1x64x2x32xbf16>, %gate: tensor<1x64x2xf32>) {
  // expected-error @below {{expected results (ends), got 2}}
  %r:2 = gdn.stage.segment_starts k(%k : tensor<1x64x2x32xbf16>) gate(%gate : tensor<1x64x2xf32>)
      {chunk_size = 32, tolerance = 1.0e-05, reverse} -> tensor<1x2xi32>, tensor<1x2xf32>
  return
}

// -----

func.func @segment_before_c1(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %starts: tensor<2x2xi32>,
    %before: tensor<2xi32>) {
  // expected-error @below {{expected before of shape [N+1] = [3], got 'tensor<2xi32>'}}
  %r = gdn.stage.state_pass q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>) starts(%starts : tensor<2x2xi32>)
      before(%before : tensor<2xi32>) {chunk_size = 32} -> tensor<2x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c2(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %before: tensor<3xi32>) {
  // expected-error @below {{expected starts beside before, got none}}
  %r = gdn.stage.state_pass q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>) before(%before : tensor<3xi32>) {chunk_size = 32}
      -> tensor<2x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c2_closes(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>,
    %starts: tensor<2x2xi32>, %before: tensor<3xi32>) {
  // expected-error @below {{expected closes beside before, got none}}
  %r = gdn.stage.segment_map k(%x : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      starts(%starts : tensor<2x2xi32>) before(%before : tensor<3xi32>) {chunk_size = 32} -> tensor<2x2x32x32xf16>
  return
}

// -----

func.func @segment_before_c2_scan(%map: tensor<8x2x32x32xf16>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %starts: tensor<8x2xi32>, %before: tensor<9xi32>) {
  // expected-error @below {{expected boundaries beside before, got none}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) before(%before : tensor<9xi32>) starts(%starts : tensor<8x2xi32>)
      -> tensor<8x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c2_state(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>,
    %h0: tensor<1x2x32x32xf32>) {
  // expected-error @below {{expected sequence_state only beside before, got no before}}
  %r = gdn.stage.state_pass q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>) sequence_state(%h0 : tensor<1x2x32x32xf32>)
      {chunk_size = 32} -> tensor<2x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c2_last(%map: tensor<8x2x32x32xf16>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %last: tensor<1xi32>) {
  // expected-error @below {{expected last_segments only beside before, got no before}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) last_segments(%last : tensor<1xi32>) -> tensor<8x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c3(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %starts: tensor<2x2xi32>) {
  // expected-error @below {{expected starts beside before and initial_state, got no before}}
  %r = gdn.stage.fused q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>) starts(%starts : tensor<2x2xi32>) {chunk_size = 32}
      -> tensor<1x64x2x32xbf16>
  return
}

// -----

func.func @segment_before_c4(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %h0: tensor<2x2x32x32xf32>, %cu: tensor<3xi32>,
    %starts: tensor<2x2xi32>, %before: tensor<3xi32>, %closes: tensor<2xi32>) {
  // expected-error @below {{expected first_segments beside before exactly with a final state, got a final state alone}}
  %r:2 = gdn.stage.fused q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) initial_state(%h0 : tensor<2x2x32x32xf32>) cu_seqlens(%cu : tensor<3xi32>)
      starts(%starts : tensor<2x2xi32>) before(%before : tensor<3xi32>) closes(%closes : tensor<2xi32>) {chunk_size = 32}
      -> tensor<1x64x2x32xbf16>, tensor<2x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c8(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %h0: tensor<2x2x32x32xf32>, %cu: tensor<3xi32>,
    %starts: tensor<2x2xi32>, %before: tensor<3xi32>, %closes: tensor<2xi32>) {
  // expected-error @below {{expected no state_interval beside before, got 64}}
  %r:3 = gdn.stage.fused q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) gate(%beta : tensor<1x64x2xf32>) initial_state(%h0 : tensor<2x2x32x32xf32>)
      cu_seqlens(%cu : tensor<3xi32>) starts(%starts : tensor<2x2xi32>) before(%before : tensor<3xi32>)
      closes(%closes : tensor<2xi32>) {chunk_size = 32, state_interval = 64}
      -> tensor<1x64x2x32xbf16>, tensor<1x64x2x32xbf16>, tensor<3x2x32x32xbf16>
  return
}

// -----

func.func @segment_before_c5(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %cu: tensor<3xi32>,
    %starts: tensor<2x2xi32>, %before: tensor<3xi32>, %closes: tensor<3xi32>) {
  // expected-error @below {{expected closes of shape [N] = [2], got 'tensor<3xi32>'}}
  %r = gdn.stage.segment_map k(%x : tensor<1x64x2x32xbf16>) beta(%beta : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      starts(%starts : tensor<2x2xi32>) before(%before : tensor<3xi32>) closes(%closes : tensor<3xi32>) {chunk_size = 32}
      -> tensor<2x2x32x32xf16>
  return
}

// -----

func.func @segment_before_c6(%x: tensor<1x64x2x32xbf16>, %beta: tensor<1x64x2xf32>, %h0: tensor<2x2x32x32xf32>, %cu: tensor<3xi32>,
    %starts: tensor<2x2xi32>, %before: tensor<3xi32>, %closes: tensor<2xi32>, %first: tensor<2xi32>) {
  // expected-error @below {{expected sequence_state of shape [sequences, H, K, V] = [1, 2, 32, 32], got 'tensor<2x2x32x32xf32>'}}
  %r:2 = gdn.stage.fused q(%x : tensor<1x64x2x32xbf16>) k(%x : tensor<1x64x2x32xbf16>) v(%x : tensor<1x64x2x32xbf16>)
      beta(%beta : tensor<1x64x2xf32>) initial_state(%h0 : tensor<2x2x32x32xf32>) cu_seqlens(%cu : tensor<3xi32>)
      starts(%starts : tensor<2x2xi32>) before(%before : tensor<3xi32>) closes(%closes : tensor<2xi32>)
      sequence_state(%h0 : tensor<2x2x32x32xf32>) first_segments(%first : tensor<2xi32>) {chunk_size = 32}
      -> tensor<1x64x2x32xbf16>, tensor<1x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c7(%map: tensor<8x2x32x32xf16>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %starts: tensor<8x2xi32>, %before: tensor<9xi32>, %boundaries: tensor<9xi64>) {
  // expected-error @below {{expected neither initial_state nor a final state beside before, got a final state}}
  %r:2 = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) before(%before : tensor<9xi32>) starts(%starts : tensor<8x2xi32>)
      boundaries(%boundaries : tensor<9xi64>) -> tensor<8x2x32x32xf32>, tensor<1x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c9(%map: tensor<8x2x32x32xf16>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %starts: tensor<8x2xi32>, %before: tensor<9xi32>, %boundaries: tensor<9xi64>) {
  // expected-error @below {{expected decay beside before, got none}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) before(%before : tensor<9xi32>) starts(%starts : tensor<8x2xi32>)
      boundaries(%boundaries : tensor<9xi64>) -> tensor<8x2x32x32xf32>
  return
}

// -----

func.func @segment_before_c9_reverse(%map: tensor<8x2x32x32xf16>, %decay: tensor<8x2xf32>, %b: tensor<8x2x32x32xf32>, %first: tensor<2xi64>,
    %starts: tensor<8x2xi32>, %before: tensor<9xi32>, %boundaries: tensor<9xi64>) {
  // expected-error @below {{expected no reverse beside before, got it}}
  %r = gdn.stage.segment_scan map(%map : tensor<8x2x32x32xf16>) decay(%decay : tensor<8x2xf32>) states(%b : tensor<8x2x32x32xf32>)
      first_segments(%first : tensor<2xi64>) before(%before : tensor<9xi32>) starts(%starts : tensor<8x2xi32>)
      boundaries(%boundaries : tensor<9xi64>) {reverse} -> tensor<8x2x32x32xf32>
  return
}
