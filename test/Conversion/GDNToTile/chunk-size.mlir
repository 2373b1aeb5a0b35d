// RUN: gdn-opt %s --gdn-plan-stages=chunk-size=16 --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form | FileCheck %s '-D$C=16'
// RUN: gdn-opt %s --gdn-plan-stages --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form | FileCheck %s '-D$C=32'
// RUN: gdn-opt %s --gdn-plan-stages=chunk-size=64 --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form | FileCheck %s '-D$C=64'

// The chunk is a parameter of every program; 32 is the default.

// CHECK-LABEL: gdn_tile.program @gdn_fused(
// CHECK: %[[STEP:.*]] = arith.constant [[$C]] : index
// CHECK: scf.for %{{.*}} = %begin to %end step %[[STEP]]
// CHECK: gdn_tile.load %k{{.*}} -> tensor<[[$C]]x128xf32>
// CHECK: gdn_tile.tri_inverse {{.*}} : tensor<[[$C]]x[[$C]]xf32>
func.func @gdn(%q: tensor<1x64x2x128xf32>, %k: tensor<1x64x2x128xf32>, %v: tensor<1x64x4x48xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) -> tensor<1x64x4x48xf32> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x128xf32>) k(%k : tensor<1x64x2x128xf32>)
      v(%v : tensor<1x64x4x48xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      -> tensor<1x64x4x48xf32>
  return %o : tensor<1x64x4x48xf32>
}

// CHECK-LABEL: gdn_tile.program @kda_fused(
// CHECK: gdn_tile.scan {{.*}} : tensor<[[$C]]x128xf64>
// CHECK: scf.if {{.*}} -> ({{.*}}, tensor<[[$C]]x[[$C]]xf32>, tensor<[[$C]]x128xf32>, tensor<[[$C]]x[[$C]]xf32>)
// CHECK: gdn_tile.tri_inverse {{.*}} : tensor<[[$C]]x[[$C]]xf32>
func.func @kda(%q: tensor<1x64x2x128xf32>, %k: tensor<1x64x2x128xf32>, %v: tensor<1x64x4x48xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x128xf32>) -> tensor<1x64x4x48xf32> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x128xf32>) k(%k : tensor<1x64x2x128xf32>)
      v(%v : tensor<1x64x4x48xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x128xf32>)
      -> tensor<1x64x4x48xf32>
  return %o : tensor<1x64x4x48xf32>
}
