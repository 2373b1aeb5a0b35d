// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// Plain causal linear attention: v itself is written, nothing is solved. The
// levels below must not need the delta rule.

// CHECK-LABEL: gdn_tile.program @layer_linear_attention(%q: {{.*}} %k: {{.*}} %v: {{.*}}) outs(%o:
// CHECK-NOT: gdn_tile.solve
// CHECK-NOT: "solve"
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] =
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[V:.*]] = gdn_tile.load %v{{.*}} axes [3, 1]
// CHECK: %[[QK:.*]] = linalg.contract {{.*}}"scores"} ins(%[[Q]], %[[K]] :
// CHECK: %[[PF:.*]] = gdn_tile.causal %[[QK]]
// CHECK: %[[P:.*]] = arith.truncf %[[PF]] {gdn_tile.step = "scores"}
// CHECK: %[[SB:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: %[[OQ:.*]] = linalg.contract {{.*}}"state"} ins(%[[SB]], %[[Q]] :
// CHECK: %[[OF:.*]] = linalg.contract {{.*}}"state"} ins(%[[V]], %[[P]] : {{.*}}) outs(%[[OQ]] :
// CHECK: %[[NEXT:.*]] = linalg.contract {{.*}}"state"} ins(%[[V]], %[[K]] : {{.*}}) outs(%[[S]] :
// CHECK: gdn_tile.store {{.*}}, %o
// CHECK: scf.yield %[[NEXT]]
// CHECK-NOT: gdn_tile.solve
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>)
    -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.linear_attention q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) {chunk_size = 32} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
