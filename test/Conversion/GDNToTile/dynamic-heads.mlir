// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Heads that are known when running alone: the q/k head of a work item is
// h Hq / H, in 32 bits, and the grid and the results have the heads of v.

// CHECK-LABEL: gdn_tile.program @heads_fused(
// CHECK-SAME: %k: memref<?x?x?x64xbf16, {{.*}}>, %v: memref<?x?x?x16xbf16,
// CHECK-SAME: work_item(%{{.*}}, %[[HEAD:.*]], %{{.*}}) tokens
// CHECK-DAG: %[[H:.*]] = memref.dim %v, %c2
// CHECK-DAG: %[[HQ:.*]] = memref.dim %k, %c2
// CHECK-DAG: %[[HEAD32:.*]] = arith.index_castui %[[HEAD]] : index to i32
// CHECK-DAG: %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG: %[[HQ32:.*]] = arith.index_castui %[[HQ]] : index to i32
// CHECK-DAG: %[[PRODUCT:.*]] = arith.muli %[[HEAD32]], %[[HQ32]] : i32
// CHECK-DAG: %[[QUOTIENT:.*]] = arith.divui %[[PRODUCT]], %[[H32]] : i32
// CHECK: %[[KEYHEAD:.*]] = arith.index_castui %[[QUOTIENT]] : i32 to index
// CHECK: gdn_tile.load %k[%{{.*}}, %{{.*}}, %[[KEYHEAD]], %{{.*}}]

// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<?x?x?x16xbf16>
// CHECK-DAG: %[[HEADS:.*]] = tensor.dim %[[V]], %c2
// CHECK-DAG: tensor.empty(%{{.*}}, %{{.*}}, %[[HEADS]]) : tensor<?x?x?x16xbf16>
// CHECK-DAG: tensor.empty(%{{.*}}, %[[HEADS]]) : tensor<?x?x64x16xf32>
// CHECK: gdn_tile.launch @heads_fused grid(%{{.*}}, %[[HEADS]], %{{.*}})
func.func @heads(%q: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x16xbf16>, %beta: tensor<?x?x?xf32>)
    -> (tensor<?x?x?x16xbf16>, tensor<?x?x64x16xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<?x?x?x64xbf16>) k(%q : tensor<?x?x?x64xbf16>)
      v(%v : tensor<?x?x?x16xbf16>) beta(%beta : tensor<?x?x?xf32>) {chunk_size = 32}
      -> tensor<?x?x?x16xbf16>, tensor<?x?x64x16xf32>
  return %o, %state : tensor<?x?x?x16xbf16>, tensor<?x?x64x16xf32>
}

// Gradients of a q/k head: the value heads of its group are H / Hq, in 32 bits, and dq and dk have the heads of k.

// CHECK-LABEL: gdn_tile.program @group_gradients(
// CHECK-DAG: %[[H:.*]] = memref.dim %beta, %c2
// CHECK-DAG: %[[HQ:.*]] = memref.dim %k, %c2
// CHECK-DAG: %[[H32:.*]] = arith.index_castui %[[H]] : index to i32
// CHECK-DAG: %[[HQ32:.*]] = arith.index_castui %[[HQ]] : index to i32
// CHECK: arith.divui %[[H32]], %[[HQ32]] : i32

// CHECK-LABEL: func.func @group(
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<1x?x?x64xbf16>
// CHECK-DAG: %[[KEYHEADS:.*]] = tensor.dim %[[K]], %c2
// CHECK-DAG: tensor.empty(%{{.*}}, %[[KEYHEADS]]) : tensor<1x?x?x64xbf16>
// CHECK-DAG: tensor.empty(%{{.*}}, %[[KEYHEADS]]) : tensor<1x?x?x64xf32>
// CHECK: gdn_tile.launch @group_gradients grid(%{{.*}}, %[[KEYHEADS]], %{{.*}})
func.func @group(%k: tensor<1x?x?x64xbf16>, %v: tensor<1x?x?x64xbf16>, %beta: tensor<1x?x?xf32>, %s: tensor<?x?x64x64xbf16>)
    -> (tensor<1x?x?x64xbf16>, tensor<1x?x?x64xf32>, tensor<1x?x?xf32>) {
  %dq, %dk, %dbeta = gdn.stage.gradients q(%k : tensor<1x?x?x64xbf16>) k(%k : tensor<1x?x?x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) d_o(%v : tensor<1x?x?x64xbf16>) writes(%v : tensor<1x?x?x64xbf16>) dv(%v : tensor<1x?x?x64xbf16>)
      states(%s : tensor<?x?x64x64xbf16>) d_states(%s : tensor<?x?x64x64xbf16>) {chunk_size = 64, segment_length = 64}
      -> tensor<1x?x?x64xbf16>, tensor<1x?x?x64xf32>, tensor<1x?x?xf32>
  return %dq, %dk, %dbeta : tensor<1x?x?x64xbf16>, tensor<1x?x?x64xf32>, tensor<1x?x?xf32>
}

// With single_heads a q/k head has one value head: no size is divided, and dq is stored in one place.

// CHECK-LABEL: gdn_tile.program @single_gradients(
// CHECK-NOT: memref.dim %beta
// CHECK: gdn_tile.store {{.*}}, %dq[
// CHECK-NOT: gdn_tile.store {{.*}}, %dq[
// CHECK-LABEL: func.func @single(
// CHECK: gdn_tile.launch @single_gradients
func.func @single(%k: tensor<1x?x?x64xbf16>, %v: tensor<1x?x?x64xbf16>, %beta: tensor<1x?x?xf32>, %g: tensor<1x?x?x64xf32>,
    %s: tensor<?x?x64x64xbf16>) -> (tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>) {
  %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(%k : tensor<1x?x?x64xbf16>) k(%k : tensor<1x?x?x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%g : tensor<1x?x?x64xf32>) d_o(%v : tensor<1x?x?x64xbf16>)
      writes(%v : tensor<1x?x?x64xbf16>) dv(%v : tensor<1x?x?x64xbf16>)
      states(%s : tensor<?x?x64x64xbf16>) d_states(%s : tensor<?x?x64x64xbf16>) {chunk_size = 64, lower_bound = -5.0 : f64, segment_length = 64, single_heads}
      -> tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>
  return %dq, %dk, %dbeta, %dg : tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>
}

// Without it these are a group, too.

// CHECK-LABEL: gdn_tile.program @channel_group_gradients(
// CHECK: memref.dim %beta, %c2
// CHECK: arith.divui
func.func @channel_group(%k: tensor<1x?x?x64xbf16>, %v: tensor<1x?x?x64xbf16>, %beta: tensor<1x?x?xf32>, %g: tensor<1x?x?x64xf32>,
    %s: tensor<?x?x64x64xbf16>) -> (tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>) {
  %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(%k : tensor<1x?x?x64xbf16>) k(%k : tensor<1x?x?x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%g : tensor<1x?x?x64xf32>) d_o(%v : tensor<1x?x?x64xbf16>)
      writes(%v : tensor<1x?x?x64xbf16>) dv(%v : tensor<1x?x?x64xbf16>)
      states(%s : tensor<?x?x64x64xbf16>) d_states(%s : tensor<?x?x64x64xbf16>) {chunk_size = 64, lower_bound = -5.0 : f64, segment_length = 64}
      -> tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>
  return %dq, %dk, %dbeta, %dg : tensor<1x?x?x64xbf16>, tensor<1x?x?x64xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x64xf32>
}
