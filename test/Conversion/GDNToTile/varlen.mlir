// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Packed sequences: N + 1 boundaries give N work items a head. The program does not
// change, its token range comes from the launch; every load and store of tokens
// is bounded by it, so a ragged tail reads zeros and writes nothing beyond.

// CHECK-LABEL: gdn_tile.program @packed_fused(
// CHECK-NOT: cu_seqlens
// CHECK: scf.for %{{.*}} = %begin to %end
// CHECK-NOT: gdn_tile.load {{.*}}axes [1, 3] {gdn
// CHECK-NOT: gdn_tile.store {{.*}}axes [3, 1] {gdn

// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[Q:.*]]: tensor<1x?x2x64xbf16>, {{.*}}, %[[CU:.*]]: tensor<?xi64>)
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[BOUNDARIES:.*]] = tensor.dim %[[CU]]
// CHECK: %[[N:.*]] = arith.subi %[[BOUNDARIES]], %[[C1]]
// CHECK: %[[T:.*]] = tensor.dim %{{.*}}, %[[C1]] : tensor<1x?x2x64xbf16>
// CHECK: %[[O:.*]] = tensor.empty(%[[T]]) : tensor<1x?x4x16xbf16>
// CHECK: %[[STATE:.*]] = tensor.empty(%[[N]]) : tensor<?x4x64x16xf32>
// CHECK: gdn_tile.launch @packed_fused grid(%[[N]], %{{.*}}, %{{.*}}) tokens(%[[T]]) cu_seqlens(%[[CU]] : tensor<?xi64>)
// CHECK-SAME: outs(%[[O]], %[[STATE]] :
func.func @packed(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x16xbf16>,
    %beta: tensor<1x?x4xf32>, %cu_seqlens: tensor<?xi64>)
    -> (tensor<1x?x4x16xbf16>, tensor<?x4x64x16xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x16xbf16>) beta(%beta : tensor<1x?x4xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi64>) {chunk_size = 32}
      -> tensor<1x?x4x16xbf16>, tensor<?x4x64x16xf32>
  return %o, %state : tensor<1x?x4x16xbf16>, tensor<?x4x64x16xf32>
}

// CHECK-LABEL: func.func @static(
// CHECK-DAG: %[[N:.*]] = arith.constant 3 : index
// CHECK: gdn_tile.launch @static_fused grid(%[[N]], {{.*}} cu_seqlens(%{{.*}} : tensor<4xi32>)
func.func @static(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %cu_seqlens: tensor<4xi32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>)
      cu_seqlens(%cu_seqlens : tensor<4xi32>) {chunk_size = 32} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
