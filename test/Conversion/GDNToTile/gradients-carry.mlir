// RUN: gdn-compile %s --target=sm_90a --state-interval=512 --emit=tile | FileCheck %s
// RUN: gdn-compile %s --state-interval=512 --backward=three --emit=tile | FileCheck %s --check-prefix=CPU
// RUN: not gdn-opt %S/Inputs/gradients-many-heads.mlir --convert-gdn-to-tile=cluster-heads 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not gdn-opt %S/Inputs/gradients-any-heads.mlir --convert-gdn-to-tile=cluster-heads 2>&1 | FileCheck %s --check-prefix=ANY
// HEADS: error: 'gdn.stage.gradients' op expected 1, 2 or 4 value heads a query/key head with a state_interval of 256, got 8
// ANY: error: 'gdn.stage.gradients' op expected static numbers of heads with a state_interval of 256, got dynamic ones

// A work item has one value head of two, and a part of a sequence, whole intervals of 512 tokens; the call says how many parts. It loads the kept state before
// its first token and carries the state, in pieces of 64 x 64. Each of the two keeps half of the columns of a piece.
// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK-SAME: %part_count: index
// CHECK-SAME: work_item(%n, %h, %vt, %[[PART:[a-z0-9]+]])
// CHECK: arith.remui %vt, %c2
// CHECK: %[[TOKENS:.*]] = arith.muli %part_count, %c512
// CHECK: %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %[[TOKENS]]
// CHECK: %[[LENGTH:.*]] = arith.muli %[[COUNT]], %c512
// CHECK: arith.muli %[[PART]], %[[LENGTH]]
// CHECK-COUNT-4: gdn_tile.load %states[
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %c64 iter_args({{.*}}) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)
// CHECK: gdn_tile.load %writes[%batch, %[[T]], {{.*}} axes [3, 1]
// CHECK: gdn_tile.load %d_o[%batch, %[[T]], {{.*}}gdn_tile.step = "load_output"
// CHECK: %[[DQ:.*]] = gdn_tile.cluster_sum %{{.*}} number %{{.*}} of 2 {gdn_tile.step = "low_keys"} : tensor<64x64xf32> -> tensor<64x32xf32>
// CHECK: arith.truncf %[[DQ]]
// CHECK: gdn_tile.store %{{.*}}, %dq[
// CHECK: %[[DK:.*]] = gdn_tile.cluster_sum
// CHECK: linalg.contract
// CHECK: arith.truncf %[[DK]]
// CHECK: gdn_tile.store %{{.*}}, %dk[
// CHECK-COUNT-2: gdn_tile.cluster_sum {{.*}}gdn_tile.step = "high_keys"
// CHECK: %[[PARTS:.*]] = arith.remui %{{.*}}, %c65536
// CHECK: gdn_tile.launch @layer_gradients grid(%{{.*}}, %c1{{.*}}, %c2{{.*}}, %[[PARTS]]){{.*}} ins({{.*}}%[[PARTS]]

// A CPU runs work items one after the other: the value heads are at turn, and their states lie in memory.
// CPU-LABEL: gdn_tile.program @layer_gradients(
// CPU: memref.alloc
// CPU: scf.for
// CPU: gdn_tile.load %states[
// CPU: scf.for
// CPU-NOT: gdn_tile.cluster_sum
// CPU: gdn_tile.store %{{.*}}, %dq[
// CPU: memref.dealloc
func.func @layer(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x2x128xbf16>)
    -> (tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>) {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x2x128xbf16>)
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>
}
