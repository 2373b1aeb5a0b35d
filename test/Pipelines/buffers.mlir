// A host that has bufferized its module already hands over layer ops on memrefs; every pipeline takes
// them as they are.
// RUN: gdn-opt %s --gdn-to-stages | FileCheck %s --check-prefix=STAGES
// RUN: gdn-opt %s --gdn-to-llvm | FileCheck %s --check-prefix=LLVM

// STAGES-LABEL: func.func @layer
//  STAGES-SAME:   %[[O:[a-z0-9]+]]: memref<1x64x4x64xbf16>)
//       STAGES:   %[[R:.+]] = gdn.stage.fused
//       STAGES:   bufferization.materialize_in_destination %[[R]] in restrict writable %[[O]]
// The result is written where it shall go, without a buffer in between.
//   LLVM-LABEL: llvm.func @layer(
//     LLVM-NOT:   llvm.call @malloc
//         LLVM:   llvm.return
func.func @layer(%q: memref<1x64x2x64xbf16>, %k: memref<1x64x2x64xbf16>,
                 %v: memref<1x64x4x64xbf16>, %beta: memref<1x64x4xf32>,
                 %gate: memref<1x64x4xf32>, %o: memref<1x64x4x64xbf16>) {
  gdn.chunk_gated_delta_rule
      q(%q : memref<1x64x2x64xbf16>) k(%k : memref<1x64x2x64xbf16>)
      v(%v : memref<1x64x4x64xbf16>) beta(%beta : memref<1x64x4xf32>)
      gate(%gate : memref<1x64x4xf32>) outs(%o : memref<1x64x4x64xbf16>)
  return
}
