// RUN: gdn-opt %s --convert-gdn-to-tile=v-tiles=2 --canonicalize --cse --gdn-tile-verify-form | FileCheck %s

// Rows of S^T are independent: a work item may hold a tile of a head's V channels.
// Tile vt starts at channel vt (V / tiles) in v, o and the states.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK: %[[SIZE:.*]] = arith.constant 16 : index
// CHECK: %[[FIRST:.*]] = arith.muli %vt, %[[SIZE]]
// CHECK: gdn_tile.load %initial_state[%n, %h, %{{.*}}, %[[FIRST]]] {{.*}} -> tensor<16x64xf32>
// CHECK: gdn_tile.load %v[%batch, %{{.*}}, %h, %[[FIRST]]] {{.*}} -> tensor<16x32xf32>
// CHECK: gdn_tile.store {{.*}}, %o[%batch, %{{.*}}, %h, %[[FIRST]]]
// CHECK: gdn_tile.store {{.*}}, %final_state[%n, %h, %{{.*}}, %[[FIRST]]]

// CHECK-LABEL: func.func @layer
// CHECK-DAG: %[[N:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[H:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[PARTS:.*]] = arith.constant 2 : index
// CHECK: gdn_tile.launch @layer_fused grid(%[[N]], %[[H]], %[[PARTS]])
func.func @layer(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x32xf32>,
    %beta: tensor<1x64x4xf32>, %initial: tensor<1x4x64x32xf32>)
    -> (tensor<1x64x4x32xf32>, tensor<1x4x64x32xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x32xf32>) beta(%beta : tensor<1x64x4xf32>)
      initial_state(%initial : tensor<1x4x64x32xf32>) {chunk_size = 32}
      -> tensor<1x64x4x32xf32>, tensor<1x4x64x32xf32>
  return %o, %state : tensor<1x64x4x32xf32>, tensor<1x4x64x32xf32>
}
