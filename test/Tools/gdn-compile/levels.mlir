// Each level can be asked for, from a file or from stdin, and an object of it
// is an ELF file with the function's C interface.

// RUN: gdn-compile %s | FileCheck %s --check-prefix=STAGES
// RUN: gdn-compile - --emit=stages --plan=separate --chunk-size=16 < %s | FileCheck %s --check-prefix=SEPARATE
// RUN: gdn-compile %s --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: gdn-compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: gdn-compile %s --emit=obj --cpu=x86-64-v3 -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=OBJ

// What is verified does not change what is made.
// RUN: gdn-compile %s --emit=llvm -o %t.each
// RUN: gdn-compile %s --emit=llvm --verify-each=false -o %t.levels
// RUN: cmp %t.each %t.levels

// STAGES: gdn.stage.fused {{.*}}chunk_size = 32
// SEPARATE: gdn.stage.prepare {{.*}}chunk_size = 16
// SEPARATE: gdn.stage.run
// TILE: gdn_tile.program
// TILE: gdn_tile.launch
// LLVM: define {{.*}}@_mlir_ciface_layer(
// OBJ: T _mlir_ciface_layer
func.func @layer(%q: tensor<1x32x1x16xf32>, %v: tensor<1x32x1x16xf32>,
                 %beta: tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32> {
  %o = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x32x1x16xf32>) k(%q : tensor<1x32x1x16xf32>)
      v(%v : tensor<1x32x1x16xf32>) beta(%beta : tensor<1x32x1xf32>)
      -> tensor<1x32x1x16xf32>
  return %o : tensor<1x32x1x16xf32>
}
