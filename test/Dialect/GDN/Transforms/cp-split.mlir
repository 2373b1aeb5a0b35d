// RUN: gdn-opt %s --gdn-cp-split="segments=4 own-starts" --split-input-file --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-cp-split="segment-length=64 own-starts" --split-input-file | FileCheck %s --check-prefix=LENGTH
// RUN: gdn-opt %s --gdn-cp-split="segments=4 own-starts fewer-segments=2" --split-input-file | FileCheck %s --check-prefix=LIVE
// RUN: gdn-opt %s --gdn-cp-split --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: gdn-opt %s --gdn-cp-split="segments=4 own-starts side-by-side=false" --split-input-file | FileCheck %s --check-prefix=APART
// RUN: gdn-opt %s --gdn-cp-split="segments=4 decay-tolerance=0" --split-input-file | FileCheck %s --check-prefix=EXACT

// Packed sequences: the segments' boundaries and the states before them go where those of the sequences were.

// CHECK-LABEL: func.func @packed
// CHECK-SAME: %[[Q:.*]]: tensor<1x256x2x64xbf16>, %[[K:.*]]: tensor<1x256x2x64xbf16>, %[[V:.*]]: tensor<1x256x4x32xbf16>, %[[BETA:.*]]: tensor<1x256x4xf32>, %[[GATE:.*]]: tensor<1x256x4xbf16>, %[[H0:.*]]: tensor<3x4x32x64xbf16>, %[[CU:.*]]: tensor<4xi32>, %[[RATE:.*]]: tensor<4xf32>, %[[BIAS:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[CUT:.*]]:5 = gdn.stage.segment_boundaries k(%[[K]] : {{.*}}) cu_seqlens(%[[CU]] : {{.*}}) {chunk_size = 32 : i64, segments = 4 : i64} -> tensor<13xi32>, tensor<4xi32>, tensor<13xi32>, tensor<12xi32>, tensor<3xi32>
// CHECK-NEXT: %[[START:.*]]:2 = gdn.stage.segment_starts k(%[[K]] : {{.*}}) gate(%[[GATE]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) a_log(%[[RATE]] : {{.*}}) dt_bias(%[[BIAS]] : {{.*}}) {chunk_size = 32 : i64, gate_domain = #gdn.gate_domain<softplus>, tolerance = 6.{{.*}}E-6 : f64} -> tensor<12x4xi32>, tensor<12x4xf32>
// CHECK-NEXT: %[[B:.*]] = gdn.stage.state_pass q(%[[Q]] : {{.*}}) k(%[[K]] : {{.*}}) v(%[[V]] : {{.*}}) beta(%[[BETA]] : {{.*}}) gate(%[[GATE]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) a_log(%[[RATE]] : {{.*}}) dt_bias(%[[BIAS]] : {{.*}}) starts(%[[START]]#0 : {{.*}}) before(%[[CUT]]#2 : {{.*}}) closes(%[[CUT]]#3 : {{.*}}) sequence_state(%[[H0]] : {{.*}}) {beside, beta_domain = #gdn.beta_domain<logit>, chunk_size = 32 : i64, gate_domain = #gdn.gate_domain<softplus>, qk_l2norm, scale = 5.000000e-01 : f64, sequence_layout = #gdn.state_layout<vk>, state_layout = #gdn.state_layout<vk>} -> tensor<12x4x32x64xf32>
// CHECK-NEXT: %[[MAP:.*]] = gdn.stage.segment_map k(%[[K]] : {{.*}}) beta(%[[BETA]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) starts(%[[START]]#0 : {{.*}}) before(%[[CUT]]#2 : {{.*}}) closes(%[[CUT]]#3 : {{.*}}) {beta_domain = #gdn.beta_domain<logit>, chunk_size = 32 : i64, qk_l2norm} -> tensor<12x4x64x64xf16>
// CHECK-NEXT: %[[SCAN:.*]] = gdn.stage.segment_scan map(%[[MAP]] : {{.*}}) decay(%[[START]]#1 : {{.*}}) states(%[[B]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) before(%[[CUT]]#2 : {{.*}}) starts(%[[START]]#0 : {{.*}}) boundaries(%[[CUT]]#0 : {{.*}}) last_segments(%[[CUT]]#4 : {{.*}}) {segment_layout = #gdn.state_layout<vk>, state_layout = #gdn.state_layout<vk>} -> tensor<12x4x32x64xf32>
// CHECK-NEXT: %[[O:.*]]:2 = gdn.stage.fused q(%[[Q]] : {{.*}}) k(%[[K]] : {{.*}}) v(%[[V]] : {{.*}}) beta(%[[BETA]] : {{.*}}) gate(%[[GATE]] : {{.*}}) initial_state(%[[SCAN]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) a_log(%[[RATE]] : {{.*}}) dt_bias(%[[BIAS]] : {{.*}}) starts(%[[START]]#0 : {{.*}}) before(%[[CUT]]#2 : {{.*}}) closes(%[[CUT]]#3 : {{.*}}) sequence_state(%[[H0]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) {beta_domain = #gdn.beta_domain<logit>, chunk_size = 32 : i64, gate_domain = #gdn.gate_domain<softplus>, qk_l2norm, scale = 5.000000e-01 : f64, sequence_layout = #gdn.state_layout<vk>, state_layout = #gdn.state_layout<vk>} -> tensor<1x256x4x32xbf16>, tensor<3x4x32x64xbf16>
// CHECK-NEXT: return %[[O]]#0, %[[O]]#1

// The least number of segments that is known without the lengths: 256 / 64 + 3 - 1.
// LENGTH-LABEL: func.func @packed
// LENGTH: gdn.stage.segment_boundaries {{.*}} {chunk_size = 32 : i64, segment_length = 64 : i64} -> tensor<7xi32>, tensor<4xi32>, tensor<7xi32>, tensor<6xi32>, tensor<3xi32>
// LENGTH: gdn.stage.segment_scan {{.*}} -> tensor<6x4x32x64xf32>

// APART-LABEL: func.func @packed
// Nothing runs before its turn: no own starts, and all segments wait for the scan.
// APART: gdn.stage.segment_boundaries {{.*}} -> tensor<13xi32>, tensor<4xi32>
// APART: gdn.stage.state_pass {{.*}} {beta_domain
// APART-NEXT: gdn.stage.segment_map
// APART: gdn.stage.fused
// APART-NOT: before(
// APART: return

// Without a tolerance all maps are made, and their stage sums the gates.
// EXACT-LABEL: func.func @packed
// EXACT-NOT: gdn.stage.segment_starts
// EXACT: %[[MAP:.*]]:2 = gdn.stage.segment_map {{.*}} gate(
// EXACT: gdn.stage.segment_scan map(%[[MAP]]#0 : {{.*}}) decay(%[[MAP]]#1 : {{.*}})

// NONE-LABEL: func.func @packed
// NONE-NEXT: gdn.stage.fused
// NONE-NEXT: return
func.func @packed(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>,
    %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xbf16>, %h0: tensor<3x4x32x64xbf16>, %cu: tensor<4xi32>,
    %a_log: tensor<4xf32>, %dt_bias: tensor<4xf32>) -> (tensor<1x256x4x32xbf16>, tensor<3x4x32x64xbf16>) {
  %o, %ht = gdn.stage.fused q(%q : tensor<1x256x2x64xbf16>) k(%k : tensor<1x256x2x64xbf16>)
      v(%v : tensor<1x256x4x32xbf16>) beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xbf16>)
      initial_state(%h0 : tensor<3x4x32x64xbf16>) cu_seqlens(%cu : tensor<4xi32>) a_log(%a_log : tensor<4xf32>)
      dt_bias(%dt_bias : tensor<4xf32>) {chunk_size = 32, scale = 0.5, qk_l2norm,
      gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>,
      state_layout = #gdn.state_layout<vk>} -> tensor<1x256x4x32xbf16>, tensor<3x4x32x64xbf16>
  return %o, %ht : tensor<1x256x4x32xbf16>, tensor<3x4x32x64xbf16>
}

// -----

// The device looks at log gates, and cuts into fewer segments unless some heads, but fewer than half, keep a state.

// LIVE-LABEL: func.func @packed
// LIVE-NOT: fewer_segments
// LIVE-LABEL: func.func @log_gates
// LIVE: gdn.stage.segment_boundaries k(%{{.*}}) gate(%{{.*}} : tensor<1x256x4xf32>) cu_seqlens(%{{.*}}) {chunk_size = 32 : i64, fewer_segments = 2 : i64, live_heads = array<i64: 1, 3>, segments = 4 : i64, tolerance = 6.{{.*}}E-6 : f64} ->
func.func @log_gates(%q: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>,
    %gate: tensor<1x256x4xf32>, %cu: tensor<4xi32>) -> tensor<1x256x4x32xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>) {chunk_size = 32}
      -> tensor<1x256x4x32xbf16>
  return %o : tensor<1x256x4x32xbf16>
}

// -----

// Batch rows become packed sequences and back. f32 layers keep maps in f32 and forget nothing; a gate a channel has a decay a channel.

// CHECK-LABEL: func.func @batch
// CHECK-SAME: %[[Q:.*]]: tensor<?x?x2x64xf32>, %[[K:.*]]: tensor<?x?x2x64xf32>, %[[V:.*]]: tensor<?x?x4x64xf32>, %[[BETA:.*]]: tensor<?x?x4xf32>, %[[GATE:.*]]: tensor<?x?x4x64xf32>
// CHECK: %[[JOINED:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] : tensor<?x?x2x64xf32> into tensor<?x2x64xf32>
// CHECK: %[[QP:.*]] = tensor.expand_shape %[[JOINED]] {{\[\[}}0, 1], [2], [3]] output_shape [1, %{{.*}}, 2, 64] : tensor<?x2x64xf32> into tensor<1x?x2x64xf32>
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries k(%[[K]] : tensor<?x?x2x64xf32>) {{.*}} -> tensor<?xi64>, tensor<?xi64>
// CHECK: gdn.stage.segment_map {{.*}} cu_seqlens(%[[CUT]]#0 : tensor<?xi64>) {chunk_size = 32 : i64} -> tensor<?x4x64x64xf32>, tensor<?x4x64xf32>
// CHECK: %[[ENTRY:.*]] = gdn.stage.segment_scan {{.*}} first_segments(%[[CUT]]#1 : tensor<?xi64>) {segment_layout = #gdn.state_layout<vk>} -> tensor<?x4x64x64xf32>
// CHECK: %[[O:.*]] = gdn.stage.fused q(%[[QP]] : tensor<1x?x2x64xf32>) {{.*}} initial_state(%[[ENTRY]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : tensor<?xi64>) {{.*}} -> tensor<1x?x4x64xf32>
// CHECK: %[[TOKENS:.*]] = tensor.collapse_shape %[[O]] {{\[\[}}0, 1], [2], [3]] : tensor<1x?x4x64xf32> into tensor<?x4x64xf32>
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[TOKENS]] {{\[\[}}0, 1], [2], [3]] output_shape [%{{.*}}, %{{.*}}, 4, 64] : tensor<?x4x64xf32> into tensor<?x?x4x64xf32>
// CHECK: return %[[ROWS]]
func.func @batch(%q: tensor<?x?x2x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x4x64xf32>,
    %beta: tensor<?x?x4xf32>, %gate: tensor<?x?x4x64xf32>) -> tensor<?x?x4x64xf32> {
  %o = gdn.stage.fused q(%q : tensor<?x?x2x64xf32>) k(%k : tensor<?x?x2x64xf32>) v(%v : tensor<?x?x4x64xf32>)
      beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4x64xf32>) {chunk_size = 32} -> tensor<?x?x4x64xf32>
  return %o : tensor<?x?x4x64xf32>
}

// -----

// A gate a channel to keys of 16 bits: where segments forget is found from keys and beta, too. The maps come with the decays,
// and the scan knows which segments have none.

// CHECK-LABEL: func.func @channels
// CHECK: %[[CUT:.*]]:5 = gdn.stage.segment_boundaries
// CHECK: %[[STARTS:.*]] = gdn.stage.segment_starts {{.*}} -> tensor<12x4xi32>
// CHECK: gdn.stage.segment_map {{.*}} starts(%[[STARTS]] : tensor<12x4xi32>) before(%[[CUT]]#2 : {{.*}}) closes(%[[CUT]]#3 : {{.*}} -> tensor<12x4x64x64xf16>, tensor<12x4x64xf32>
// CHECK: gdn.stage.segment_scan {{.*}} before(%[[CUT]]#2 : {{.*}}) starts(%[[STARTS]] : {{.*}}) boundaries(%[[CUT]]#0 : {{.*}}) last_segments(%[[CUT]]#4
// CHECK: gdn.stage.fused {{.*}} starts(%[[STARTS]] : {{.*}}) before(%[[CUT]]#2

// APART-LABEL: func.func @channels
// APART: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries
// APART: %[[STARTS:.*]] = gdn.stage.segment_starts k(%{{.*}}) beta(%{{.*}}) gate(%{{.*}} : tensor<1x256x4x64xf32>) cu_seqlens(%[[CUT]]#0 : {{.*}}) a_log(%{{.*}}) dt_bias(%{{.*}} : tensor<4x64xf32>) {beta_domain = #gdn.beta_domain<logit>, chunk_size = 32 : i64, gate_domain = #gdn.gate_domain<softplus>, qk_l2norm, tolerance = 6.{{.*}}E-6 : f64} -> tensor<12x4xi32>
// APART: %[[B:.*]] = gdn.stage.state_pass {{.*}} starts(%[[STARTS]] : tensor<12x4xi32>)
// APART: %[[MAP:.*]]:2 = gdn.stage.segment_map {{.*}} gate(%{{.*}} : tensor<1x256x4x64xf32>) {{.*}} starts(%[[STARTS]] : tensor<12x4xi32>) {{.*}} -> tensor<12x4x64x64xf16>, tensor<12x4x64xf32>
// APART: gdn.stage.segment_scan map(%[[MAP]]#0 : {{.*}}) decay(%[[MAP]]#1 : {{.*}}) states(%[[B]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) starts(%[[STARTS]] : tensor<12x4xi32>) boundaries(%[[CUT]]#0 : tensor<13xi32>)
// APART: gdn.stage.fused {{.*}} cu_seqlens(%[[CUT]]#0 : tensor<13xi32>) a_log(%{{.*}}) dt_bias(%{{.*}}) {
func.func @channels(%q: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4x64xf32>,
    %a: tensor<4xf32>, %d: tensor<4x64xf32>, %cu: tensor<4xi32>) -> tensor<1x256x4x32xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4x64xf32>) cu_seqlens(%cu : tensor<4xi32>)
      a_log(%a : tensor<4xf32>) dt_bias(%d : tensor<4x64xf32>)
      {chunk_size = 32, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm}
      -> tensor<1x256x4x32xbf16>
  return %o : tensor<1x256x4x32xbf16>
}

// -----

// One row needs no packing; without a gate there is no decay.

// CHECK-LABEL: func.func @row
// CHECK-NEXT: gdn.stage.segment_boundaries k(%{{.*}}) {chunk_size = 16 : i64, segments = 4 : i64} -> tensor<5xi64>, tensor<2xi64>
// CHECK-NEXT: gdn.stage.state_pass
// CHECK-NEXT: %[[MAP:.*]] = gdn.stage.segment_map {{.*}} -> tensor<4x?x64x64xf16>
// CHECK-NEXT: gdn.stage.segment_scan map(%[[MAP]] : tensor<4x?x64x64xf16>) states(
// CHECK-NEXT: gdn.stage.fused
// CHECK-NEXT: return
func.func @row(%q: tensor<1x?x?x64xf16>, %v: tensor<1x?x?x64xf16>, %beta: tensor<1x?x?xf32>) -> tensor<1x?x?x64xf16> {
  %o = gdn.stage.fused q(%q : tensor<1x?x?x64xf16>) k(%q : tensor<1x?x?x64xf16>) v(%v : tensor<1x?x?x64xf16>)
      beta(%beta : tensor<1x?x?xf32>) {chunk_size = 16} -> tensor<1x?x?x64xf16>
  return %o : tensor<1x?x?x64xf16>
}

// -----

// Decoding stays as it is.

// CHECK-LABEL: func.func @decoding
// CHECK-NEXT: gdn.stage.recurrent
// CHECK-NEXT: return
func.func @decoding(%q: tensor<1x32x2x16xf32>, %beta: tensor<1x32x2xf32>) -> tensor<1x32x2x16xf32> {
  %o = gdn.stage.recurrent q(%q : tensor<1x32x2x16xf32>) k(%q : tensor<1x32x2x16xf32>) v(%q : tensor<1x32x2x16xf32>)
      beta(%beta : tensor<1x32x2xf32>) -> tensor<1x32x2x16xf32>
  return %o : tensor<1x32x2x16xf32>
}

// -----

// The backward of a segment has the state before it and the gradient of the state behind it. The first backward is for
// what each segment adds to the gradient of the state before it.

// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[H0:[^ ]*]]: tensor<3x2x64x64xbf16>
// CHECK: %[[CUT:.*]]:2 = gdn.stage.segment_boundaries
// CHECK: %[[B:.*]] = gdn.stage.state_pass
// CHECK: %[[MAP:.*]] = gdn.stage.segment_map
// CHECK: %[[ENTRY:.*]] = gdn.stage.segment_scan map(%[[MAP]] : {{.*}}) states(%[[B]] : {{.*}}) initial_state(%[[H0]] : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) {segment_layout = #gdn.state_layout<vk>} -> tensor<12x2x64x64xf32>
// CHECK: %[[ONE:.*]]:5 = gdn.stage.backward {{.*}} initial_state(%[[ENTRY]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) d_o(%{{[^ ]*}} : {{[^ ]*}}) {chunk_size = 16 : i64, state_layout = #gdn.state_layout<vk>} -> {{.*}}, tensor<12x2x64x64xf32>
// CHECK: %[[EXIT:.*]]:2 = gdn.stage.segment_scan map(%[[MAP]] : {{.*}}) states(%[[ONE]]#4 : {{.*}}) first_segments(%[[CUT]]#1 : {{.*}}) {reverse, segment_layout = #gdn.state_layout<vk>} -> tensor<12x2x64x64xf32>, tensor<3x2x64x64xf32>
// CHECK: %[[DH0:.*]] = arith.truncf %[[EXIT]]#1 : tensor<3x2x64x64xf32> to tensor<3x2x64x64xbf16>
// CHECK: %[[ALL:.*]]:5 = gdn.stage.backward {{.*}} initial_state(%[[ENTRY]] : {{.*}}) cu_seqlens(%[[CUT]]#0 : {{.*}}) d_o(%{{.*}}) d_final_state(%[[EXIT]]#0 : {{.*}}) {chunk_size = 16 : i64, state_layout = #gdn.state_layout<vk>}
// CHECK: return %[[ALL]]#0, %[[DH0]]
func.func @backward(%q: tensor<1x256x2x64xbf16>, %beta: tensor<1x256x2xf32>, %do: tensor<1x256x2x64xbf16>,
    %h0: tensor<3x2x64x64xbf16>, %cu: tensor<4xi32>) -> (tensor<1x256x2x64xf32>, tensor<3x2x64x64xbf16>) {
  %dq, %dk, %dv, %dbeta, %dh0 = gdn.stage.backward q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>)
      v(%q : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x2xf32>) initial_state(%h0 : tensor<3x2x64x64xbf16>)
      cu_seqlens(%cu : tensor<4xi32>) d_o(%do : tensor<1x256x2x64xbf16>) {chunk_size = 16}
      -> tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xbf16>, tensor<1x256x2xf32>, tensor<3x2x64x64xbf16>
  return %dq, %dh0 : tensor<1x256x2x64xf32>, tensor<3x2x64x64xbf16>
}

// -----

// A layer without tokens has nothing to cut.

// CHECK-LABEL: func.func @no_tokens
// CHECK-NOT: gdn.stage.segment
// CHECK: gdn.stage.fused
// CHECK-NOT: gdn.stage.segment
// CHECK: return
func.func @no_tokens(%q: tensor<?x0x2x64xf32>, %beta: tensor<?x0x2xf32>) -> tensor<?x0x2x64xf32> {
  %o = gdn.stage.fused q(%q : tensor<?x0x2x64xf32>) k(%q : tensor<?x0x2x64xf32>) v(%q : tensor<?x0x2x64xf32>)
      beta(%beta : tensor<?x0x2xf32>) {chunk_size = 32} -> tensor<?x0x2x64xf32>
  return %o : tensor<?x0x2x64xf32>
}

// -----

// CHECK-LABEL: func.func @no_rows
// CHECK-NOT: gdn.stage.segment
// CHECK: return
func.func @no_rows(%q: tensor<0x256x2x64xf32>, %beta: tensor<0x256x2xf32>) -> tensor<0x256x2x64xf32> {
  %o = gdn.stage.fused q(%q : tensor<0x256x2x64xf32>) k(%q : tensor<0x256x2x64xf32>) v(%q : tensor<0x256x2x64xf32>)
      beta(%beta : tensor<0x256x2xf32>) {chunk_size = 32} -> tensor<0x256x2x64xf32>
  return %o : tensor<0x256x2x64xf32>
}

// -----

// Segments behind the last chunk would have no token: no sequence is cut into more than it may have chunks.

// CHECK-LABEL: func.func @few_chunks
// CHECK: gdn.stage.segment_boundaries {{.*}} {chunk_size = 32 : i64, segments = 2 : i64} -> tensor<7xi32>, tensor<4xi32>
func.func @few_chunks(%q: tensor<1x50x2x64xf32>, %beta: tensor<1x50x2xf32>, %cu: tensor<4xi32>) -> tensor<1x50x2x64xf32> {
  %o = gdn.stage.fused q(%q : tensor<1x50x2x64xf32>) k(%q : tensor<1x50x2x64xf32>) v(%q : tensor<1x50x2x64xf32>)
      beta(%beta : tensor<1x50x2xf32>) cu_seqlens(%cu : tensor<4xi32>) {chunk_size = 32} -> tensor<1x50x2x64xf32>
  return %o : tensor<1x50x2x64xf32>
}
