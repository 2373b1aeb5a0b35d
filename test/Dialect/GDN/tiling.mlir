// RUN: gdn-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// A row of the batch and a q/k head with its two value heads at a time.
// CHECK-LABEL: @forward
// CHECK-SAME: (%[[Q:[a-z0-9]+]]: {{[^%]*}}, %[[V:[a-z0-9]+]]: {{[^%]*}}, %[[B:[a-z0-9]+]]: {{[^%]*}}, %[[H:[a-z0-9]+]]: {{[^%]*}}, %[[A:[a-z0-9]+]]:
func.func @forward(%q: tensor<3x?x4x32xf32>, %v: tensor<3x?x8x16xf32>,
                   %b: tensor<3x?x8xf32>, %h: tensor<3x8x32x16xf32>,
                   %a: tensor<8xf32>)
    -> (tensor<3x?x8x16xf32>, tensor<3x8x32x16xf32>) {
  // CHECK: %[[T:.*]] = tensor.dim %[[Q]]
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
  // CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step {{.*}} iter_args(%[[O:.*]] = %{{.*}}, %[[S:.*]] = %{{.*}})
  // CHECK-DAG: %[[HEAD:.*]] = arith.muli %[[J]]
  // CHECK-DAG: %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[I]], 0, %[[J]], 0] [1, %[[T]], 1, 32]
  // CHECK-DAG: %[[VT:.*]] = tensor.extract_slice %[[V]][%[[I]], 0, %[[HEAD]], 0] [1, %[[T]], 2, 16]
  // CHECK-DAG: %[[BT:.*]] = tensor.extract_slice %[[B]][%[[I]], 0, %[[HEAD]]] [1, %[[T]], 2]
  // CHECK-DAG: %[[HT:.*]] = tensor.extract_slice %[[H]][%[[I]], %[[HEAD]], 0, 0] [1, 2, 32, 16]
  // CHECK-DAG: %[[AT:.*]] = tensor.extract_slice %[[A]][%[[HEAD]]] [2]
  // CHECK: %[[R:.*]]:2 = gdn.chunk_gated_delta_rule q(%[[QT]] : {{[^)]*}}) k(%[[QT]] : {{[^)]*}})
  // CHECK-SAME: v(%[[VT]] : {{[^)]*}}) beta(%[[BT]] : {{[^)]*}}) gate(%[[BT]] : {{[^)]*}})
  // CHECK-SAME: initial_state(%[[HT]] : {{[^)]*}}) a_log(%[[AT]] :
  // CHECK-SAME: -> tensor<1x?x2x16xf32>, tensor<1x2x32x16xf32>
  // CHECK: tensor.insert_slice %[[R]]#0 into %[[O]][%[[I]], 0, %[[HEAD]], 0] [1, %[[T]], 2, 16]
  // CHECK: tensor.insert_slice %[[R]]#1 into %[[S]][%[[I]], %[[HEAD]], 0, 0] [1, 2, 32, 16]
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<3x?x4x32xf32>)
      k(%q : tensor<3x?x4x32xf32>) v(%v : tensor<3x?x8x16xf32>)
      beta(%b : tensor<3x?x8xf32>) gate(%b : tensor<3x?x8xf32>)
      initial_state(%h : tensor<3x8x32x16xf32>) a_log(%a : tensor<8xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, output_final_state}
      -> tensor<3x?x8x16xf32>, tensor<3x8x32x16xf32>
  return %o, %s : tensor<3x?x8x16xf32>, tensor<3x8x32x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.chunk_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [1, 1]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Packed sequences: all of them go to every tile of heads, and the states are
// not cut along N.
// CHECK-LABEL: @packed
// CHECK-SAME: %[[CU:[a-z0-9]+]]: tensor<4xi32>
func.func @packed(%q: tensor<1x64x4x32xf32>, %b: tensor<1x64x4xf32>,
                  %h: tensor<3x4x32x32xf32>, %cu: tensor<4xi32>)
    -> (tensor<1x64x4x32xf32>, tensor<3x4x32x32xf32>) {
  // CHECK: scf.forall (%[[I:.*]]) in (2)
  // CHECK: %[[J:.*]] = affine.apply #{{.*}}(%[[I]])
  // CHECK: %[[HT:.*]] = tensor.extract_slice %{{.*}}[0, %[[J]], 0, 0] [3, 2, 32, 32]
  // CHECK: %[[R:.*]]:2 = gdn.recurrent_gated_delta_rule {{.*}} cu_seqlens(%[[CU]] :
  // CHECK-SAME: -> tensor<1x64x2x32xf32>, tensor<3x2x32x32xf32>
  // CHECK: tensor.parallel_insert_slice %[[R]]#0 into %{{.*}}[0, 0, %[[J]], 0] [1, 64, 2, 32]
  // CHECK: tensor.parallel_insert_slice %[[R]]#1 into %{{.*}}[0, %[[J]], 0, 0] [3, 2, 32, 32]
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<1x64x4x32xf32>)
      k(%q : tensor<1x64x4x32xf32>) v(%q : tensor<1x64x4x32xf32>)
      beta(%b : tensor<1x64x4xf32>) initial_state(%h : tensor<3x4x32x32xf32>)
      cu_seqlens(%cu : tensor<4xi32>) {output_final_state}
      -> tensor<1x64x4x32xf32>, tensor<3x4x32x32xf32>
  return %o, %s : tensor<1x64x4x32xf32>, tensor<3x4x32x32xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["gdn.recurrent_gated_delta_rule"]} in %root
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
