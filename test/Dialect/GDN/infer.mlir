// RUN: gdn-opt %s --resolve-ranked-shaped-type-result-dims \
// RUN:   --canonicalize --cse | FileCheck %s

// o has the sizes of its operands; which of them does not matter.
// CHECK-LABEL: @output
// CHECK-SAME: %[[Q:.*]]: tensor<?x?x2x32xf32>, %{{.*}}: tensor<?x?x2xf32>
func.func @output(%q: tensor<?x?x2x32xf32>, %b: tensor<?x?x2xf32>)
    -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x2x32xf32>)
      k(%q : tensor<?x?x2x32xf32>) v(%q : tensor<?x?x2x32xf32>)
      beta(%b : tensor<?x?x2xf32>) -> tensor<?x?x2x32xf32>
  // CHECK-DAG: %[[B:.*]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[T:.*]] = tensor.dim %[[Q]], %c1
  // CHECK: return %[[B]], %[[T]]
  %x = tensor.dim %o, %c0 : tensor<?x?x2x32xf32>
  %y = tensor.dim %o, %c1 : tensor<?x?x2x32xf32>
  return %x, %y : index, index
}

// There is a final state a sequence: one less than there are boundaries.
// CHECK-LABEL: @packed
// CHECK-SAME: %[[CU:[a-z0-9]+]]: tensor<?xi32>
func.func @packed(%q: tensor<1x?x2x32xf32>, %b: tensor<1x?x2xf32>,
                  %cu: tensor<?xi32>) -> index {
  %c0 = arith.constant 0 : index
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<1x?x2x32xf32>)
      k(%q : tensor<1x?x2x32xf32>) v(%q : tensor<1x?x2x32xf32>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x2x32xf32>, tensor<?x2x32x32xf32>
  // CHECK: %[[D:.*]] = tensor.dim %[[CU]]
  // CHECK: %[[N:.*]] = arith.subi %[[D]], %c1
  // CHECK: return %[[N]]
  %n = tensor.dim %s, %c0 : tensor<?x2x32x32xf32>
  return %n : index
}

// A size that one operand knows holds for the gradients of all.
// CHECK-LABEL: @backward
func.func @backward(%q: tensor<1x?x2x32xf32>, %b: tensor<1x64x2xf32>) -> index {
  %c1 = arith.constant 1 : index
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x2x32xf32>)
      k(%q : tensor<1x?x2x32xf32>) v(%q : tensor<1x?x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%q : tensor<1x?x2x32xf32>)
      -> tensor<1x?x2x32xf32>, tensor<1x?x2x32xf32>, tensor<1x?x2x32xf32>,
         tensor<1x64x2xf32>
  // CHECK: %[[T:.*]] = arith.constant 64 : index
  // CHECK: return %[[T]]
  %t = tensor.dim %r#0, %c1 : tensor<1x?x2x32xf32>
  return %t : index
}
