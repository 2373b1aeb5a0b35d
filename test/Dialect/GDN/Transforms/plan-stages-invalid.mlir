// RUN: gdn-opt %s --gdn-plan-stages -verify-diagnostics -split-input-file
// RUN: not gdn-opt %s --gdn-plan-stages=plan=both 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not gdn-opt %s --gdn-plan-stages=chunk-size=48 2>&1 | FileCheck %s --check-prefix=CHUNK

// RUN: not gdn-opt %S/plan-stages-saved.mlir --gdn-plan-stages=plan=separate 2>&1 | FileCheck %s --check-prefix=SAVED

// SAVED: error: 'gdn.chunk_gated_delta_rule' op expected plan 'fused' with state_interval, got 'separate'
// PLAN: error: expected plan 'fused' or 'separate', got 'both'
// CHUNK: error: expected chunk-size to be one of 16, 32, 64, got 48

// Stages are functions of tensors.
func.func @buffers(%q: memref<1x64x2x64xf32>, %v: memref<1x64x4x16xf32>, %beta: memref<1x64x4xf32>,
    %o: memref<1x64x4x16xf32>) {
  // expected-error @below {{expected the tensor form, got operands of type 'memref<1x64x2x64xf32>'}}
  gdn.chunk_gated_delta_rule q(%q : memref<1x64x2x64xf32>) k(%q : memref<1x64x2x64xf32>)
      v(%v : memref<1x64x4x16xf32>) beta(%beta : memref<1x64x4xf32>) outs(%o : memref<1x64x4x16xf32>)
  return
}

// -----

// In one stage gradients of q and k are summed over heads that are known.
func.func @heads(%q: tensor<1x64x?x32xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>) {
  // expected-error @below {{expected a static Hq for a backward in one stage, got 'tensor<1x64x?x32xf32>'}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x?x32xf32>) k(%q : tensor<1x64x?x32xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) d_o(%v : tensor<1x64x4x16xf32>)
      -> tensor<1x64x?x32xf32>, tensor<1x64x?x32xf32>, tensor<1x64x4x16xf32>, tensor<1x64x4xf32>
  return
}
