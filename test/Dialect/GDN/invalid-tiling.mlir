// RUN: gdn-opt %s --transform-interpreter --split-input-file --verify-diagnostics

// Three heads leave one over, whose tile would have another static size.
func.func @heads_left_over(%q: tensor<1x64x4x32xf32>, %b: tensor<1x64x4xf32>)
    -> tensor<1x64x4x32xf32> {
  // expected-error @below {{expected a tile size that divides Hq = 4, got one that leaves a rest}}
  // expected-error @below {{faild to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x4x32xf32>)
      k(%q : tensor<1x64x4x32xf32>) v(%q : tensor<1x64x4x32xf32>)
      beta(%b : tensor<1x64x4xf32>) -> tensor<1x64x4x32xf32>
  return %o : tensor<1x64x4x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.chunk_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 3]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads that are known when running alone make no tile of static size.
func.func @dynamic_heads(%q: tensor<1x64x?x32xf32>, %b: tensor<1x64x?xf32>)
    -> tensor<1x64x?x32xf32> {
  // expected-error @below {{expected static Hq and H when tiling, got a dynamic one}}
  // expected-error @below {{faild to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x?x32xf32>)
      k(%q : tensor<1x64x?x32xf32>) v(%q : tensor<1x64x?x32xf32>)
      beta(%b : tensor<1x64x?xf32>) -> tensor<1x64x?x32xf32>
  return %o : tensor<1x64x?x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.chunk_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 1]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// States of all batch rows have one numbering.
func.func @saved(%q: tensor<2x64x2x32xf32>, %b: tensor<2x64x2xf32>) -> tensor<2x64x2x32xf32> {
  // expected-error @below {{expected a forward that saves nothing when tiling, got a state_interval}}
  // expected-error @below {{faild to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r:3 = gdn.chunk_gated_delta_rule q(%q : tensor<2x64x2x32xf32>) k(%q : tensor<2x64x2x32xf32>) v(%q : tensor<2x64x2x32xf32>)
      beta(%b : tensor<2x64x2xf32>) {state_interval = 64 : i64}
      -> tensor<2x64x2x32xf32>, tensor<2x64x2x32xf32>, tensor<4x2x32x32xf32>
  return %r#0 : tensor<2x64x2x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.chunk_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [1]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A pool is one for all batch rows.
func.func @pool(%q: tensor<2x64x2x32xf32>, %b: tensor<2x64x2xf32>, %pool: tensor<9x2x32x32xf32>, %rows: tensor<2xi32>)
    -> tensor<2x64x2x32xf32> {
  // expected-error @below {{expected states of sequences when tiling, got state_indices}}
  // expected-error @below {{faild to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<2x64x2x32xf32>) k(%q : tensor<2x64x2x32xf32>) v(%q : tensor<2x64x2x32xf32>)
      beta(%b : tensor<2x64x2xf32>) initial_state(%pool : tensor<9x2x32x32xf32>) state_indices(%rows : tensor<2xi32>)
      -> tensor<2x64x2x32xf32>
  return %o : tensor<2x64x2x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.chunk_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [1]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
