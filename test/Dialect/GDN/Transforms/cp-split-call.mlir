// RUN: gdn-opt %s --gdn-cp-split --split-input-file --verify-roundtrip | FileCheck %s

// A call chooses the tokens of a segment. Boundaries of batch rows are of 32 bits, too.

// CHECK-LABEL: func.func @length_of_call
// CHECK-SAME: %[[LENGTH:[^ ]*]]: index {gdn.cut = "segment_length"}
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries k(%{{.*}}) length(%[[LENGTH]] : index) {chunk_size = 32 : i64} -> tensor<?xi32>, tensor<?xi32>
// CHECK: gdn.stage.fused {{.*}} cu_seqlens(%[[CUT]]#0 : tensor<?xi32>)
func.func @length_of_call(%q: tensor<?x?x4x64xbf16>, %beta: tensor<?x?x4xf32>, %gate: tensor<?x?x4xf32>,
    %length: index {gdn.cut = "segment_length"}) -> tensor<?x?x4x64xbf16> {
  %o = gdn.stage.fused q(%q : tensor<?x?x4x64xbf16>) k(%q : tensor<?x?x4x64xbf16>) v(%q : tensor<?x?x4x64xbf16>)
      beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4xf32>) {chunk_size = 32} -> tensor<?x?x4x64xbf16>
  return %o : tensor<?x?x4x64xbf16>
}

// -----

// A forward that saves numbers its states by sequences, whatever its segments are.

// CHECK-LABEL: func.func @saving_of_call
// CHECK: %[[CUT:.*]]:3 = gdn.stage.segment_boundaries k(%{{.*}}) cu_seqlens(%{{.*}}) length(%{{.*}} : index) {chunk_size = 128 : i64} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
// CHECK: gdn.stage.fused {{.*}} sequence_numbers(%[[CUT]]#2 : tensor<?xi32>) {{.*}}state_interval = 128
func.func @saving_of_call(%q: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>, %cu: tensor<?xi32>,
    %length: index {gdn.cut = "segment_length"}) -> (tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<?x4x64x64xbf16>) {
  %o, %writes, %states = gdn.stage.fused q(%q : tensor<1x?x4x64xbf16>) k(%q : tensor<1x?x4x64xbf16>) v(%q : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {chunk_size = 32, state_interval = 128} -> tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<?x4x64x64xbf16>
  return %o, %writes, %states : tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<?x4x64x64xbf16>
}

// -----

// With parts the forward takes what is before a segment from the first of its parts, and where it starts from the last one
// of the segment before it.

// CHECK-LABEL: func.func @parts_of_call
// CHECK-SAME: %[[LENGTH:[^ ]*]]: index {gdn.cut = "segment_length"}, %[[PARTS:[^ ]*]]: index {gdn.cut = "segment_parts"}, %[[LONGER:[^ ]*]]: index {gdn.cut = "longer_segment_length"}
// CHECK: %[[PART:.*]] = arith.divui %[[LENGTH]], %[[PARTS]] : index
// CHECK: %[[LONGER_PART:.*]] = arith.divui %[[LONGER]], %[[PARTS]] : index
// CHECK: %[[CUT:.*]]:5 = gdn.stage.segment_boundaries {{.*}} length(%[[PART]] : index) parts(%[[PARTS]] : index) longer_length(%[[LONGER_PART]] : index) {{.*}}live_heads = array<i64: 1, 3>
// CHECK: %[[SCAN:.*]] = gdn.stage.segment_scan {{.*}}{beside,
// CHECK: %[[ENTRY:.*]] = tensor.extract_slice %[[SCAN]][0, 0, 0, 0] [%{{.*}}, 4, 64, 64] [%[[PARTS]], 1, 1, 1]
// CHECK: %[[BOUNDS:.*]] = tensor.extract_slice %[[CUT]]#0[0] [%{{.*}}] [%[[PARTS]]]
// CHECK: %[[STARTS:.*]] = tensor.extract_slice %{{.*}}[%[[LAST:.*]], 0] [%{{.*}}, 4] [%[[PARTS]], 1]
// CHECK: gdn.stage.fused {{.*}} initial_state(%[[ENTRY]] : {{.*}}) cu_seqlens(%[[BOUNDS]] : tensor<?xi32>) starts(%[[STARTS]]
func.func @parts_of_call(%q: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>, %cu: tensor<?xi32>,
    %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"},
    %longer: index {gdn.cut = "longer_segment_length"}) -> tensor<1x?x4x64xbf16> attributes {gdn.late_forward} {
  %o = gdn.stage.fused q(%q : tensor<1x?x4x64xbf16>) k(%q : tensor<1x?x4x64xbf16>) v(%q : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) cu_seqlens(%cu : tensor<?xi32>) {chunk_size = 32}
      -> tensor<1x?x4x64xbf16>
  return %o : tensor<1x?x4x64xbf16>
}

// -----

// With gates a channel heads that keep a state have whole sequences. Whoever finds where segments begin says which those are.

// CHECK-LABEL: func.func @whole_heads
// CHECK: %[[CUT:.*]]:7 = gdn.stage.segment_boundaries k(%{{.*}}) gate(%{{.*}} : tensor<1x?x4x64xbf16>) cu_seqlens(%{{.*}}) length(%{{.*}}) parts(%{{.*}}) longer_length(%{{.*}}) {chunk_size = 32 : i64} -> {{.*}}, tensor<?xi32>, tensor<4xi32>
// CHECK: %[[STARTS:.*]]:2 = gdn.stage.segment_starts {{.*}} whole_heads(%[[CUT]]#6 : tensor<4xi32>) whole_begins(%[[CUT]]#5 : tensor<?xi32>)
// CHECK: gdn.stage.state_pass {{.*}} whole_heads(%[[STARTS]]#1 : tensor<4xi32>)
// CHECK: gdn.stage.segment_map {{.*}} whole_heads(%[[STARTS]]#1 : tensor<4xi32>)
// CHECK: gdn.stage.segment_scan {{.*}} whole_heads(%[[STARTS]]#1 : tensor<4xi32>)
// CHECK: %[[ENDS:.*]] = tensor.extract_slice %[[CUT]]#5[0]
// CHECK: gdn.stage.fused {{.*}} whole_heads(%[[STARTS]]#1 : tensor<4xi32>) whole_begins(%[[ENDS]] : tensor<?xi32>)
func.func @whole_heads(%q: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4x64xbf16>, %cu: tensor<?xi32>,
    %a_log: tensor<4xf32>, %dt_bias: tensor<4x64xf32>, %length: index {gdn.cut = "segment_length"}, %parts: index {gdn.cut = "segment_parts"},
    %longer: index {gdn.cut = "longer_segment_length"}) -> tensor<1x?x4x64xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x?x4x64xbf16>) k(%q : tensor<1x?x4x64xbf16>) v(%q : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4x64xbf16>) cu_seqlens(%cu : tensor<?xi32>) a_log(%a_log : tensor<4xf32>)
      dt_bias(%dt_bias : tensor<4x64xf32>) {chunk_size = 32, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64}
      -> tensor<1x?x4x64xbf16>
  return %o : tensor<1x?x4x64xbf16>
}
