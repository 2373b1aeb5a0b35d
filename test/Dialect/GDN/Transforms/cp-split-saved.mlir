// RUN: gdn-opt %s --gdn-cp-split=segments=4 --verify-roundtrip | FileCheck %s
// RUN: not gdn-opt %s --gdn-cp-split=segment-length=128 2>&1 | FileCheck %s --check-prefix=LENGTH

// LENGTH: error: 'gdn.stage.fused' op expected segments to split what has saved states, got segment-length 128

// A forward that saves: cuts lie between its states, which have the numbers of sequences: 512 / 64 + 2.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries {{.*}} {chunk_size = 64 : i64, segments = 4 : i64} -> tensor<9xi32>, tensor<3xi32>
// CHECK: gdn.stage.state_pass
// CHECK: gdn.stage.segment_map
// CHECK: %[[SCAN:.*]]:2 = gdn.stage.segment_scan
// CHECK: %[[F:.*]]:3 = gdn.stage.fused {{.*}} initial_state(%[[SCAN]]#0 : {{.*}}) cu_seqlens(%[[CUT]]#0 :
// CHECK-SAME: {chunk_size = 32 : i64, sequence_segments = 4 : i64, state_interval = 64 : i64, state_layout = #gdn.state_layout<vk>}
// CHECK-SAME: -> tensor<1x512x4x32xbf16>, tensor<1x512x4x32xbf16>, tensor<10x4x32x64xbf16>
// CHECK: return %[[F]]#0, %[[SCAN]]#1, %[[F]]#1, %[[F]]#2
func.func @forward(%q: tensor<1x512x2x64xbf16>, %v: tensor<1x512x4x32xbf16>, %beta: tensor<1x512x4xf32>, %gate: tensor<1x512x4xf32>,
    %cu: tensor<3xi32>) -> (tensor<1x512x4x32xbf16>, tensor<2x4x64x32xf32>, tensor<1x512x4x32xbf16>, tensor<10x4x32x64xbf16>) {
  %r:4 = gdn.stage.fused q(%q : tensor<1x512x2x64xbf16>) k(%q : tensor<1x512x2x64xbf16>) v(%v : tensor<1x512x4x32xbf16>)
      beta(%beta : tensor<1x512x4xf32>) gate(%gate : tensor<1x512x4xf32>) cu_seqlens(%cu : tensor<3xi32>)
      {chunk_size = 32, state_interval = 64}
      -> tensor<1x512x4x32xbf16>, tensor<2x4x64x32xf32>, tensor<1x512x4x32xbf16>, tensor<10x4x32x64xbf16>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x512x4x32xbf16>, tensor<2x4x64x32xf32>, tensor<1x512x4x32xbf16>, tensor<10x4x32x64xbf16>
}

// A backward that reads it has no state pass, one scan and no replay.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<1x512x4x32xbf16>, %[[S:[a-z0-9]+]]: tensor<10x4x32x64xbf16>
// CHECK-NOT: gdn.stage.state_pass
// CHECK-COUNT-1: gdn.stage.segment_scan {{.*}}reverse
// CHECK-NOT: gdn.stage.replay
// CHECK: %[[A:.*]]:2 = gdn.stage.adjoint {{.*}} -> tensor<1x512x4x32xbf16>, tensor<16x4x32x64xbf16>
// CHECK: gdn.stage.gradients {{.*}} writes(%[[R]] : {{.*}}) dv(%[[A]]#0 : {{.*}}) states(%[[S]] : {{.*}}) d_states(%[[A]]#1 :
// CHECK-SAME: {chunk_size = 64 : i64, segment_length = 64 : i64, sequence_segments = 4 : i64, state_layout = #gdn.state_layout<vk>}
func.func @backward(%q: tensor<1x512x2x64xbf16>, %r: tensor<1x512x4x32xbf16>, %s: tensor<10x4x32x64xbf16>, %beta: tensor<1x512x4xf32>,
    %gate: tensor<1x512x4xf32>, %cu: tensor<3xi32>, %do: tensor<1x512x4x32xbf16>) -> tensor<1x512x2x64xbf16> {
  %dv, %ds = gdn.stage.adjoint q(%q : tensor<1x512x2x64xbf16>) k(%q : tensor<1x512x2x64xbf16>) v(%r : tensor<1x512x4x32xbf16>)
      beta(%beta : tensor<1x512x4xf32>) gate(%gate : tensor<1x512x4xf32>) cu_seqlens(%cu : tensor<3xi32>)
      d_o(%do : tensor<1x512x4x32xbf16>) {chunk_size = 32, segment_length = 64} -> tensor<1x512x4x32xbf16>, tensor<10x4x32x64xbf16>
  %g:4 = gdn.stage.gradients q(%q : tensor<1x512x2x64xbf16>) k(%q : tensor<1x512x2x64xbf16>) v(%r : tensor<1x512x4x32xbf16>)
      beta(%beta : tensor<1x512x4xf32>) gate(%gate : tensor<1x512x4xf32>) cu_seqlens(%cu : tensor<3xi32>)
      d_o(%do : tensor<1x512x4x32xbf16>) writes(%r : tensor<1x512x4x32xbf16>) dv(%dv : tensor<1x512x4x32xbf16>)
      states(%s : tensor<10x4x32x64xbf16>) d_states(%ds : tensor<10x4x32x64xbf16>) {chunk_size = 64, segment_length = 64}
      -> tensor<1x512x2x64xbf16>, tensor<1x512x2x64xbf16>, tensor<1x512x4xf32>, tensor<1x512x4xf32>
  return %g#0 : tensor<1x512x2x64xbf16>
}
