// RUN: gdn-opt %s --gdn-cp-split=segment-length=48 --verify-diagnostics --split-input-file
// RUN: not gdn-opt %s --gdn-cp-split="segments=2 segment-length=64" --split-input-file 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not gdn-opt %s --gdn-cp-split=segments=-1 --split-input-file 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not gdn-opt %s --gdn-cp-split=segment-length=-32 --split-input-file 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not gdn-opt %s --gdn-cp-split="segments=2 decay-tolerance=1" --split-input-file 2>&1 | FileCheck %s --check-prefix=TOLERANCE

// BOTH: error: expected one of segments and segment-length, got 2 and 64
// COUNT: error: expected segments of at least 0, got -1
// LENGTH: error: expected segment-length of at least 0, got -32
// TOLERANCE: error: expected decay-tolerance of at least 0 and below 1, got 1
func.func @length(%q: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  // expected-error @below {{expected segment-length to be a multiple of its chunks of 32 tokens, got 48}}
  %o = gdn.stage.fused q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_size = 32} -> tensor<1x64x2x16xf32>
  return %o : tensor<1x64x2x16xf32>
}

// -----

// Gradients of states that nobody knows how to make by segments.
func.func @gradients(%q: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>, %s: tensor<2x2x16x16xf32>) -> tensor<1x64x2x16xf32> {
  // expected-error @below {{expected dv to split of gdn.stage.adjoint, and writes of gdn.stage.replay if of any, with the same operands and rule, got others}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) writes(%q : tensor<1x64x2x16xf32>)
      dv(%q : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%s : tensor<2x2x16x16xf32>)
      {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x16xf32>
}

// -----

// Without segments the states have other numbers.
func.func @states(%q: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> (tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>) {
  %w, %s = gdn.stage.replay q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) {chunk_size = 16, segment_length = 64}
      -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  // expected-error @below {{expected to be the only one that reads the states of its recurrences to split, got others}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) writes(%w : tensor<1x64x2x16xf32>)
      dv(%dv : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%ds : tensor<2x2x16x16xf32>)
      {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0, %s : tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
}

// -----

// The gradient of another output.
func.func @other_output(%q: tensor<1x64x2x16xf32>, %o: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  %w, %s = gdn.stage.replay q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%o : tensor<1x64x2x16xf32>) {chunk_size = 16, segment_length = 64}
      -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  // expected-error @below {{expected dv to split of gdn.stage.adjoint, and writes of gdn.stage.replay if of any, with the same operands and rule, got others}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) writes(%w : tensor<1x64x2x16xf32>)
      dv(%dv : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%ds : tensor<2x2x16x16xf32>)
      {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x16xf32>
}

// -----

// One of the recurrences holds its states the other way round.
func.func @other_layout(%q: tensor<1x64x2x16xf32>, %o: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  %w, %s = gdn.stage.replay q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) {chunk_size = 16, segment_length = 64, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  // expected-error @below {{expected dv to split of gdn.stage.adjoint, and writes of gdn.stage.replay if of any, with the same operands and rule, got others}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) writes(%w : tensor<1x64x2x16xf32>)
      dv(%dv : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%ds : tensor<2x2x16x16xf32>)
      {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x16xf32>
}

// -----

// What replaces both recurrences comes where the second is.
func.func @between(%q: tensor<1x64x2x16xf32>, %o: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  // expected-error @below {{expected results that nobody reads before gdn.stage.adjoint to split, got a reader}}
  %w, %s = gdn.stage.replay q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  // expected-note @below {{reader is here}}
  %n = arith.negf %w : tensor<1x64x2x16xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%n : tensor<1x64x2x16xf32>) {chunk_size = 16, segment_length = 64}
      -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) d_o(%n : tensor<1x64x2x16xf32>) writes(%w : tensor<1x64x2x16xf32>)
      dv(%dv : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%ds : tensor<2x2x16x16xf32>)
      {chunk_size = 16, segment_length = 64} -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x16xf32>
}

// -----

// A forward of two kernels has no gates to make maps of behind the first.
func.func @separate(%q: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  %bm = gdn.stage.prepare k(%q : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) {chunk_size = 16} -> tensor<1x64x2x16xf32>
  // expected-error @below {{expected gdn.stage.fused to split; use plan=fused}}
  %o = gdn.stage.run q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%beta : tensor<1x64x2xf32>) bm(%bm : tensor<1x64x2x16xf32>) {chunk_size = 16} -> tensor<1x64x2x16xf32>
  return %o : tensor<1x64x2x16xf32>
}

// -----

// Segments are not cut again.
func.func @segments(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>, %cu: tensor<3xi32>, %n: tensor<2xi32>)
    -> tensor<1x64x2x32xf32> {
  // expected-error @below {{expected whole sequences to split, got segments}}
  %r:3 = gdn.stage.fused q(%q : tensor<1x64x2x32xf32>) k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) gate(%b : tensor<1x64x2xf32>) cu_seqlens(%cu : tensor<3xi32>)
      sequence_numbers(%n : tensor<2xi32>) {chunk_size = 16, state_interval = 64}
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<3x2x32x32xf32>
  return %r#0 : tensor<1x64x2x32xf32>
}

// -----

func.func @followed(%q: tensor<1x64x2x16xf32>, %b: tensor<1x64x2xf32>, %s: tensor<2x2x16x16xf32>) -> tensor<1x64x2x16xf32> {
  %dv, %ds, %p = gdn.stage.adjoint q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) {chunk_size = 16, segment_length = 64, reporting_tiles = 1}
      -> tensor<1x64x2x16xf32>, tensor<2x2x16x16xf32>, tensor<1x2x1xi32>
  // expected-error @below {{expected whole sequences to split, without progress, got others}}
  %r:3 = gdn.stage.gradients q(%q : tensor<1x64x2x16xf32>) k(%q : tensor<1x64x2x16xf32>) v(%q : tensor<1x64x2x16xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x64x2x16xf32>) writes(%q : tensor<1x64x2x16xf32>)
      dv(%dv : tensor<1x64x2x16xf32>) states(%s : tensor<2x2x16x16xf32>) d_states(%ds : tensor<2x2x16x16xf32>)
      progress(%p : tensor<1x2x1xi32>) {chunk_size = 16, segment_length = 64}
      -> tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x16xf32>
}
