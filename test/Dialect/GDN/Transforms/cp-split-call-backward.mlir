// RUN: gdn-opt %s --gdn-plan-stages="backward=three side-by-side" --gdn-cp-split --split-input-file --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-plan-stages="backward=one" --gdn-cp-split --split-input-file --verify-roundtrip | FileCheck %s --check-prefix=ONE

// Gradients in segments of a length that a call chooses. Ends are found beside starts; the adjoint's pass runs beside the
// maps and B, its scan beside that of the states, and its recurrence beside replay.

// CHECK-LABEL: func.func @inputs
// CHECK-SAME: %[[LENGTH:[^ ]*]]: index {gdn.cut = "segment_length"}
// CHECK-NEXT: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries k(%{{.*}}) cu_seqlens(%{{.*}}) length(%[[LENGTH]] : index) {chunk_size = 64 : i64} -> tensor<?xi32>, tensor<?xi32>
// CHECK-NEXT: gdn.stage.segment_starts {{.*}} {beside, chunk_size = 32 : i64, reverse,
// CHECK-NEXT: gdn.stage.segment_starts {{.*}} {chunk_size = 32 : i64, tolerance
// CHECK-NEXT: gdn.stage.adjoint_pass {{.*}} {beside,
// CHECK-NEXT: gdn.stage.segment_map {{.*}} {beside,
// CHECK-NEXT: gdn.stage.state_pass {{.*}} {chunk_size
// CHECK-NEXT: %[[EXIT:.*]]:2 = gdn.stage.segment_scan {{.*}} {beside, reverse,
// CHECK-NEXT: %[[ENTRY:.*]] = gdn.stage.segment_scan {{.*}} {segment_layout
// CHECK-NEXT: gdn.stage.adjoint {{.*}} d_final_state(%[[EXIT]]#0 : {{.*}} {beside,
// CHECK-NEXT: gdn.stage.replay {{.*}} initial_state(%[[ENTRY]] : {{.*}} {chunk_size
// CHECK-NEXT: gdn.stage.gradients {{.*}} cu_seqlens(%[[CUT]]#0 :
// CHECK-NOT: sequence_
// CHECK: return
func.func @inputs(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>, %h0: tensor<?x4x64x64xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x4x64xbf16>, %dht: tensor<?x4x64x64xf32>,
    %length: index {gdn.cut = "segment_length"}) -> (tensor<1x?x2x64xbf16>, tensor<?x4x64x64xf32>) {
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x4x64xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>)
      initial_state(%h0 : tensor<?x4x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x4x64xbf16>) d_final_state(%dht : tensor<?x4x64x64xf32>)
      -> tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x64x64xf32>
  return %d#0, %d#5 : tensor<1x?x2x64xbf16>, tensor<?x4x64x64xf32>
}

// -----

// States that a forward saved have the numbers of sequences, and cuts lie at them. What they replace is left out, and what
// it ran beside waits for nothing.

// CHECK-LABEL: func.func @saved
// CHECK-NEXT: %[[CUT:.*]]:3 = gdn.stage.segment_boundaries {{.*}} length(%{{.*}} : index) {chunk_size = 128 : i64} -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
// CHECK-NEXT: gdn.stage.segment_starts {{.*}} {beside, {{.*}}reverse
// CHECK-NEXT: gdn.stage.segment_starts
// CHECK-NEXT: gdn.stage.adjoint_pass {{.*}} {beside,
// CHECK-NEXT: gdn.stage.segment_map {{.*}} {chunk_size
// CHECK-NEXT: gdn.stage.segment_scan {{.*}} {reverse,
// CHECK-NEXT: gdn.stage.adjoint {{.*}} {chunk_size
// CHECK-NEXT: gdn.stage.gradients {{.*}} sequence_numbers(%[[CUT]]#2 : tensor<?xi32>)
// CHECK-SAME: {chunk_size = 64 : i64, segment_length = 64 : i64, state_interval = 128 : i64, state_layout = #gdn.state_layout<vk>}
// CHECK-NEXT: return
func.func @saved(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>, %h0: tensor<?x4x64x64xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x4x64xbf16>, %dht: tensor<?x4x64x64xf32>, %w: tensor<1x?x4x64xbf16>, %s: tensor<?x4x64x64xbf16>,
    %length: index {gdn.cut = "segment_length"}) -> (tensor<1x?x2x64xbf16>, tensor<?x4x64x64xf32>) {
  %d:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x4x64xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>)
      initial_state(%h0 : tensor<?x4x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x4x64xbf16>) d_final_state(%dht : tensor<?x4x64x64xf32>)
      writes(%w : tensor<1x?x4x64xbf16>) states(%s : tensor<?x4x64x64xbf16>) {state_interval = 128} -> tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<?x4x64x64xf32>
  return %d#0, %d#5 : tensor<1x?x2x64xbf16>, tensor<?x4x64x64xf32>
}

// -----

// A backward of one stage runs twice. With a gate a channel the three find where segments begin, not where they end for the
// gradients of states: the adjoint's pass takes all of each. The scans know which segments forget.

// ONE-LABEL: func.func @channels
// ONE: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries {{.*}} length(%{{.*}} : index) {chunk_size = 32 : i64} -> tensor<?xi32>, tensor<?xi32>
// ONE-COUNT-2: gdn.stage.backward {{.*}} cu_seqlens(%[[CUT]]#0 :
// CHECK-LABEL: func.func @channels
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries {{.*}} length(%{{.*}} : index) {chunk_size = 64 : i64} -> tensor<?xi32>, tensor<?xi32>
// CHECK-NEXT: %[[STARTS:.*]] = gdn.stage.segment_starts {{.*}} {chunk_size = 32 : i64, tolerance
// CHECK-NOT: ends(
// CHECK: gdn.stage.adjoint_pass {{.*}} cu_seqlens(%[[CUT]]#0 :
// CHECK-NEXT: gdn.stage.segment_map
// CHECK-NEXT: gdn.stage.state_pass
// CHECK-NEXT: gdn.stage.segment_scan {{.*}} starts(%[[STARTS]] : {{.*}} reverse,
// CHECK-NEXT: gdn.stage.segment_scan {{.*}} starts(%[[STARTS]] :
// CHECK-NEXT: gdn.stage.adjoint
// CHECK-NEXT: gdn.stage.replay
// CHECK-NEXT: gdn.stage.gradients
func.func @channels(%q: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>, %cu: tensor<?xi32>, %length: index {gdn.cut = "segment_length"}) -> tensor<1x?x4x64xbf16> {
  %d:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x4x64xbf16>) k(%q : tensor<1x?x4x64xbf16>) v(%q : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%q : tensor<1x?x4x64xbf16>) cu_seqlens(%cu : tensor<?xi32>) d_o(%q : tensor<1x?x4x64xbf16>)
      -> tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x4x64xbf16>, tensor<1x?x4xf32>, tensor<1x?x4x64xbf16>
  return %d#0 : tensor<1x?x4x64xbf16>
}
