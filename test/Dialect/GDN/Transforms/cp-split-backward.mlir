// RUN: gdn-opt %s --gdn-cp-split=segments=4 --split-input-file --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-cp-split="segments=4 decay-tolerance=0" --split-input-file | FileCheck %s --check-prefix=EXACT
// RUN: gdn-opt %s --gdn-cp-split="segments=4 side-by-side=false" --split-input-file | FileCheck %s --check-prefix=APART
// RUN: gdn-opt %s --gdn-cp-split=segment-length=128 --split-input-file | FileCheck %s --check-prefix=LENGTH

// A backward of three stages: the maps serve two scans, one to the states before segments and one back to the gradients
// of the states behind them. Cuts lie on chunks of 64, those of the gradients. The states that are kept have numbers for
// segments: 256 / 64 + 12. What takes nothing of each other runs at the same time, the adjoint's pass, scan and recurrence
// in front of the others; the recurrences do if they did before.

// CHECK-LABEL: func.func @three
// CHECK-SAME: %[[Q:.*]]: tensor<1x256x2x64xbf16>, %[[V:.*]]: tensor<1x256x4x32xbf16>, %[[BETA:.*]]: tensor<1x256x4xf32>, %[[GATE:.*]]: tensor<1x256x4xf32>, %[[H0:.*]]: tensor<3x4x64x32xbf16>, %[[CU:.*]]: tensor<4xi32>, %[[DO:.*]]: tensor<1x256x4x32xbf16>, %[[DHT:.*]]: tensor<3x4x64x32xbf16>
// CHECK-NEXT: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries k(%[[Q]] : {{.*}}) cu_seqlens(%[[CU]] : {{.*}}) {chunk_size = 64 : i64, segments = 4 : i64} -> tensor<13xi32>, tensor<4xi32>
// CHECK-NEXT: %[[END:.*]] = gdn.stage.segment_starts {{.*}} {beside, chunk_size = 32 : i64, reverse, tolerance = 6.{{.*}}E-6 : f64} -> tensor<12x4xi32>
// CHECK-NEXT: %[[START:.*]]:2 = gdn.stage.segment_starts k(%[[Q]] : {{.*}}) gate(%[[GATE]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) {chunk_size = 32 : i64, tolerance = 6.{{.*}}E-6 : f64} -> tensor<12x4xi32>, tensor<12x4xf32>
// CHECK-NEXT: %[[DB:.*]] = gdn.stage.adjoint_pass q(%[[Q]] : {{.*}}) k(%[[Q]] : {{.*}}) v(%[[V]] : {{.*}}) beta(%[[BETA]] : {{.*}}) gate(%[[GATE]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) d_o(%[[DO]] : {{.*}}) ends(%[[END]] : {{.*}}) {beside, chunk_size = 32 : i64, scale = 5.000000e-01 : f64, state_layout = #gdn.state_layout<vk>} -> tensor<12x4x32x64xf32>
// CHECK-NEXT: %[[MAP:.*]] = gdn.stage.segment_map {{.*}} starts(%[[START]]#0 : {{.*}}) {beside, chunk_size = 32 : i64} -> tensor<12x4x64x64xf16>
// CHECK-NEXT: %[[B:.*]] = gdn.stage.state_pass {{.*}} starts(%[[START]]#0 : {{.*}}) {chunk_size = 32 : i64, {{.*}} -> tensor<12x4x32x64xf32>
// CHECK-NEXT: %[[EXIT:.*]]:2 = gdn.stage.segment_scan map(%[[MAP]] : {{.*}}) decay(%[[START]]#1 : {{.*}}) states(%[[DB]] : {{.*}}) initial_state(%[[DHT]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) {beside, reverse, segment_layout = #gdn.state_layout<vk>} -> tensor<12x4x32x64xf32>, tensor<3x4x64x32xbf16>
// CHECK-NEXT: %[[ENTRY:.*]] = gdn.stage.segment_scan map(%[[MAP]] : {{.*}}) decay(%[[START]]#1 : {{.*}}) states(%[[B]] : {{.*}}) initial_state(%[[H0]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) {segment_layout = #gdn.state_layout<vk>} -> tensor<12x4x32x64xf32>
// CHECK-NEXT: %[[A:.*]]:2 = gdn.stage.adjoint {{.*}} cu_seqlens(%[[CUT]]#0 : {{.*}}) d_o(%[[DO]] : {{.*}}) d_final_state(%[[EXIT]]#0 : {{.*}}) {beside, chunk_size = 32 : i64, scale = 5.000000e-01 : f64, segment_length = 64 : i64, state_layout = #gdn.state_layout<vk>} -> tensor<1x256x4x32xbf16>, tensor<16x4x32x64xbf16>
// CHECK-NEXT: %[[F:.*]]:2 = gdn.stage.replay {{.*}} initial_state(%[[ENTRY]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) {chunk_size = 32 : i64, scale = 5.000000e-01 : f64, segment_length = 64 : i64, state_layout = #gdn.state_layout<vk>} -> tensor<1x256x4x32xbf16>, tensor<16x4x32x64xbf16>
// CHECK-NEXT: %[[G:.*]]:4 = gdn.stage.gradients {{.*}} cu_seqlens(%[[CUT]]#0 : {{.*}}) d_o(%[[DO]] : {{.*}}) writes(%[[F]]#0 : {{.*}}) dv(%[[A]]#0 : {{.*}}) states(%[[F]]#1 : {{.*}}) d_states(%[[A]]#1 : {{.*}}) {chunk_size = 64 : i64, scale = 5.000000e-01 : f64, segment_length = 64 : i64, state_layout = #gdn.state_layout<vk>}
// CHECK-NEXT: return %[[G]]#0, %[[A]]#0, %[[G]]#3, %[[EXIT]]#1

// All maps, and what a segment adds of all of its tokens.
// EXACT-LABEL: func.func @three
// EXACT-NOT: gdn.stage.segment_starts
// EXACT: gdn.stage.adjoint_pass
// EXACT-NOT: ends(
// EXACT: %[[MAP:.*]]:2 = gdn.stage.segment_map {{.*}} gate(
// EXACT: gdn.stage.segment_scan map(%[[MAP]]#0 : {{.*}}) decay(%[[MAP]]#1 : {{.*}}) {{.*}}{beside, reverse

// One behind the other, if somebody wants that, but for the recurrences.
// APART-LABEL: func.func @three
// APART-NOT: beside
// APART: gdn.stage.segment_scan {{.*}}{reverse
// APART-NOT: beside
// APART: gdn.stage.adjoint {{.*}}{beside,
// APART: gdn.stage.gradients

// 256 / 128 + 3 - 1 segments keep 256 / 64 + 4 states.
// LENGTH-LABEL: func.func @three
// LENGTH: gdn.stage.segment_boundaries {{.*}} {chunk_size = 64 : i64, segment_length = 128 : i64} -> tensor<5xi32>, tensor<4xi32>
// LENGTH: gdn.stage.replay {{.*}} -> tensor<1x256x4x32xbf16>, tensor<8x4x32x64xbf16>
func.func @three(%q: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xf32>,
    %h0: tensor<3x4x64x32xbf16>, %cu: tensor<4xi32>, %do: tensor<1x256x4x32xbf16>, %dht: tensor<3x4x64x32xbf16>)
    -> (tensor<1x256x2x64xbf16>, tensor<1x256x4x32xbf16>, tensor<1x256x4xf32>, tensor<3x4x64x32xbf16>) {
  %w, %s = gdn.stage.replay q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) initial_state(%h0 : tensor<3x4x64x32xbf16>)
      cu_seqlens(%cu : tensor<4xi32>) {beside, chunk_size = 32, segment_length = 64, scale = 0.5} -> tensor<1x256x4x32xbf16>, tensor<7x4x32x64xbf16>
  %dv, %ds, %dh0 = gdn.stage.adjoint q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) initial_state(%h0 : tensor<3x4x64x32xbf16>)
      cu_seqlens(%cu : tensor<4xi32>) d_o(%do : tensor<1x256x4x32xbf16>) d_final_state(%dht : tensor<3x4x64x32xbf16>)
      {chunk_size = 32, segment_length = 64, scale = 0.5} -> tensor<1x256x4x32xbf16>, tensor<7x4x32x64xbf16>, tensor<3x4x64x32xbf16>
  %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>)
      v(%v : tensor<1x256x4x32xbf16>) beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>)
      initial_state(%h0 : tensor<3x4x64x32xbf16>) cu_seqlens(%cu : tensor<4xi32>) d_o(%do : tensor<1x256x4x32xbf16>)
      writes(%w : tensor<1x256x4x32xbf16>) dv(%dv : tensor<1x256x4x32xbf16>) states(%s : tensor<7x4x32x64xbf16>)
      d_states(%ds : tensor<7x4x32x64xbf16>) {chunk_size = 64, segment_length = 64, scale = 0.5}
      -> tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x4xf32>, tensor<1x256x4xf32>
  return %dq, %dv, %dg, %dh0 : tensor<1x256x2x64xbf16>, tensor<1x256x4x32xbf16>, tensor<1x256x4xf32>, tensor<3x4x64x32xbf16>
}

// -----

// Batch rows become packed sequences and back; f32 layers forget nothing. The adjoint may come before the replay, and
// nobody may want the gradient of the initial state.

// CHECK-LABEL: func.func @batch
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries k(%{{[^ ]*}} : tensor<2x?x2x64xf32>) {chunk_size = 64 : i64, segments = 4 : i64} -> tensor<9xi64>, tensor<3xi64>
// CHECK-NOT: gdn.stage.segment_starts
// CHECK: gdn.stage.segment_scan {{.*}} {beside, reverse, segment_layout = #gdn.state_layout<vk>} -> tensor<8x2x64x64xf32>{{$}}
// CHECK: %[[A:.*]]:2 = gdn.stage.adjoint
// CHECK: gdn.stage.replay q(%{{[^ ]*}} : tensor<1x?x2x64xf32>) {{.*}} -> tensor<1x?x2x64xf32>, tensor<?x2x64x64xf32>
// CHECK: %[[G:.*]]:3 = gdn.stage.gradients {{.*}} -> tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2xf32>
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2], [3]] output_shape [2, %{{.*}}, 2, 64] : tensor<?x2x64xf32> into tensor<2x?x2x64xf32>
// CHECK: return %[[ROWS]]
func.func @batch(%q: tensor<2x?x2x64xf32>, %beta: tensor<2x?x2xf32>) -> tensor<2x?x2x64xf32> {
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) d_o(%q : tensor<2x?x2x64xf32>) {chunk_size = 32, segment_length = 64}
      -> tensor<2x?x2x64xf32>, tensor<?x2x64x64xf32>
  %w, %s = gdn.stage.replay q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) {chunk_size = 32, segment_length = 64} -> tensor<2x?x2x64xf32>, tensor<?x2x64x64xf32>
  %dq, %dk, %dbeta = gdn.stage.gradients q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) d_o(%q : tensor<2x?x2x64xf32>) writes(%w : tensor<2x?x2x64xf32>)
      dv(%dv : tensor<2x?x2x64xf32>) states(%s : tensor<?x2x64x64xf32>) d_states(%ds : tensor<?x2x64x64xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>, tensor<2x?x2xf32>
  return %dq : tensor<2x?x2x64xf32>
}

// -----

// Rows of writes are unpacked, too, if somebody else reads them.

// CHECK-LABEL: func.func @replay_first
// CHECK: %[[W:.*]]:2 = gdn.stage.replay
// CHECK: gdn.stage.gradients
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[W]]#0
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[FLAT]] {{.*}} into tensor<2x?x2x64xf32>
// CHECK: return %{{.*}}, %[[ROWS]]
func.func @replay_first(%q: tensor<2x?x2x64xf32>, %beta: tensor<2x?x2xf32>) -> (tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>) {
  %w, %s = gdn.stage.replay q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) {chunk_size = 32, segment_length = 64} -> tensor<2x?x2x64xf32>, tensor<?x2x64x64xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) d_o(%q : tensor<2x?x2x64xf32>) {chunk_size = 32, segment_length = 64}
      -> tensor<2x?x2x64xf32>, tensor<?x2x64x64xf32>
  %dq, %dk, %dbeta = gdn.stage.gradients q(%q : tensor<2x?x2x64xf32>) k(%q : tensor<2x?x2x64xf32>) v(%q : tensor<2x?x2x64xf32>)
      beta(%beta : tensor<2x?x2xf32>) d_o(%q : tensor<2x?x2x64xf32>) writes(%w : tensor<2x?x2x64xf32>)
      dv(%dv : tensor<2x?x2x64xf32>) states(%s : tensor<?x2x64x64xf32>) d_states(%ds : tensor<?x2x64x64xf32>)
      {chunk_size = 64, segment_length = 64} -> tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>, tensor<2x?x2xf32>
  return %dq, %w : tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>
}

// -----

// The same with static sizes. States are not packed as tokens are, so nothing unpacks them. The sequences have two chunks
// of 64 tokens each, so none is cut into four segments.

// CHECK-LABEL: func.func @static
// CHECK: gdn.stage.segment_boundaries {{.*}} {chunk_size = 64 : i64, segments = 2 : i64} -> tensor<5xi64>, tensor<3xi64>
// CHECK: gdn.stage.gradients
// CHECK-NOT: tensor<{{[0-9]+}}x2x64x64xf32> into
// CHECK: return
func.func @static(%q: tensor<2x100x2x64xf32>, %beta: tensor<2x100x2xf32>) -> tensor<2x100x2x64xf32> {
  %w, %s = gdn.stage.replay q(%q : tensor<2x100x2x64xf32>) k(%q : tensor<2x100x2x64xf32>) v(%q : tensor<2x100x2x64xf32>)
      beta(%beta : tensor<2x100x2xf32>) {chunk_size = 32, segment_length = 64} -> tensor<2x100x2x64xf32>, tensor<5x2x64x64xf32>
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<2x100x2x64xf32>) k(%q : tensor<2x100x2x64xf32>) v(%q : tensor<2x100x2x64xf32>)
      beta(%beta : tensor<2x100x2xf32>) d_o(%q : tensor<2x100x2x64xf32>) {chunk_size = 32, segment_length = 64}
      -> tensor<2x100x2x64xf32>, tensor<5x2x64x64xf32>
  %dq, %dk, %dbeta = gdn.stage.gradients q(%q : tensor<2x100x2x64xf32>) k(%q : tensor<2x100x2x64xf32>)
      v(%q : tensor<2x100x2x64xf32>) beta(%beta : tensor<2x100x2xf32>) d_o(%q : tensor<2x100x2x64xf32>)
      writes(%w : tensor<2x100x2x64xf32>) dv(%dv : tensor<2x100x2x64xf32>) states(%s : tensor<5x2x64x64xf32>)
      d_states(%ds : tensor<5x2x64x64xf32>) {chunk_size = 64, segment_length = 64}
      -> tensor<2x100x2x64xf32>, tensor<2x100x2x64xf32>, tensor<2x100x2xf32>
  return %dq : tensor<2x100x2x64xf32>
}
