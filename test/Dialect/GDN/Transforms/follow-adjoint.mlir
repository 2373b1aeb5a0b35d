// RUN: gdn-opt %s --gdn-follow-adjoint --gdn-verify-stages-form --verify-roundtrip | FileCheck %s

// Both V tiles of the adjoint report, for each head of each sequence, and the gradients read it.
// CHECK-LABEL: func.func @packed(
// CHECK: %[[A:.*]]:4 = gdn.stage.adjoint {{.*}} {chunk_size = 32 : i64, reporting_tiles = 2 : i64, segment_length = 64 : i64}
// CHECK-SAME: -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>, tensor<?x2x64x128xf32>, tensor<?x2x2xi32>
// CHECK: gdn.stage.gradients {{.*}} dv(%[[A]]#0 : {{.*}} d_states(%[[A]]#1 : {{.*}} progress(%[[A]]#3 : tensor<?x2x2xi32>)
// CHECK: return %{{.*}}, %[[A]]#2
func.func @packed(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x128xbf16>, %b: tensor<1x?x2xf32>, %h: tensor<?x2x64x128xf32>,
    %s: tensor<?x2x128x64xbf16>, %cu: tensor<?xi32>) -> (tensor<1x?x1x64xbf16>, tensor<?x2x64x128xf32>) {
  %a:3 = gdn.stage.adjoint q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) initial_state(%h : tensor<?x2x64x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%v : tensor<1x?x2x128xbf16>) {chunk_size = 32 : i64, segment_length = 64 : i64}
      -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>, tensor<?x2x64x128xf32>
  %g:3 = gdn.stage.gradients q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      writes(%v : tensor<1x?x2x128xbf16>) dv(%a#0 : tensor<1x?x2x128xbf16>)
      states(%s : tensor<?x2x128x64xbf16>) d_states(%a#1 : tensor<?x2x128x64xbf16>)
      {chunk_size = 64 : i64, segment_length = 64 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2xf32>
  return %g#0, %a#2 : tensor<1x?x1x64xbf16>, tensor<?x2x64x128xf32>
}

// Batches that are not packed stay as they are.
// CHECK-LABEL: func.func @batches(
// CHECK-NOT: progress
func.func @batches(%q: tensor<2x64x1x32xbf16>, %v: tensor<2x64x2x64xbf16>, %b: tensor<2x64x2xf32>, %s: tensor<4x2x64x32xbf16>)
    -> tensor<2x64x1x32xbf16> {
  %a:2 = gdn.stage.adjoint q(%q : tensor<2x64x1x32xbf16>) k(%q : tensor<2x64x1x32xbf16>) v(%v : tensor<2x64x2x64xbf16>)
      beta(%b : tensor<2x64x2xf32>) d_o(%v : tensor<2x64x2x64xbf16>) {chunk_size = 32 : i64, segment_length = 64 : i64}
      -> tensor<2x64x2x64xbf16>, tensor<4x2x64x32xbf16>
  %g:3 = gdn.stage.gradients q(%q : tensor<2x64x1x32xbf16>) k(%q : tensor<2x64x1x32xbf16>) v(%v : tensor<2x64x2x64xbf16>)
      beta(%b : tensor<2x64x2xf32>) d_o(%v : tensor<2x64x2x64xbf16>)
      writes(%v : tensor<2x64x2x64xbf16>) dv(%a#0 : tensor<2x64x2x64xbf16>)
      states(%s : tensor<4x2x64x32xbf16>) d_states(%a#1 : tensor<4x2x64x32xbf16>)
      {chunk_size = 64 : i64, segment_length = 64 : i64}
      -> tensor<2x64x1x32xbf16>, tensor<2x64x1x32xbf16>, tensor<2x64x2xf32>
  return %g#0 : tensor<2x64x1x32xbf16>
}

// So do gradients that carry states, and those of states that are made beside the adjoint.
// CHECK-LABEL: func.func @sparse(
// CHECK-NOT: progress
func.func @sparse(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x128xbf16>, %b: tensor<1x?x2xf32>,
    %s: tensor<?x2x128x64xbf16>, %cu: tensor<?xi32>) -> tensor<1x?x1x64xbf16> {
  %a:2 = gdn.stage.adjoint q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%v : tensor<1x?x2x128xbf16>) {chunk_size = 32 : i64, segment_length = 64 : i64}
      -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>
  %g:3 = gdn.stage.gradients q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      writes(%v : tensor<1x?x2x128xbf16>) dv(%a#0 : tensor<1x?x2x128xbf16>)
      states(%s : tensor<?x2x128x64xbf16>) d_states(%a#1 : tensor<?x2x128x64xbf16>)
      {chunk_size = 64 : i64, segment_length = 64 : i64, state_interval = 256 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2xf32>
  return %g#0 : tensor<1x?x1x64xbf16>
}

// CHECK-LABEL: func.func @replayed(
// CHECK-NOT: progress
func.func @replayed(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x128xbf16>, %b: tensor<1x?x2xf32>, %cu: tensor<?xi32>)
    -> tensor<1x?x1x64xbf16> {
  %r:2 = gdn.stage.replay q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {beside, chunk_size = 32 : i64, segment_length = 64 : i64}
      -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>
  %a:2 = gdn.stage.adjoint q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      d_o(%v : tensor<1x?x2x128xbf16>) {chunk_size = 32 : i64, segment_length = 64 : i64}
      -> tensor<1x?x2x128xbf16>, tensor<?x2x128x64xbf16>
  %g:3 = gdn.stage.gradients q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x2x128xbf16>)
      writes(%r#0 : tensor<1x?x2x128xbf16>) dv(%a#0 : tensor<1x?x2x128xbf16>)
      states(%r#1 : tensor<?x2x128x64xbf16>) d_states(%a#1 : tensor<?x2x128x64xbf16>)
      {chunk_size = 64 : i64, segment_length = 64 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x2xf32>
  return %g#0 : tensor<1x?x1x64xbf16>
}
