// A CPU without AVX512_BF16 needs no function of libgcc for bf16, wherever LLVM moves the stores of a branch.
// RUN: gdn-compile %s --emit=obj --parallel=false --cpu=x86-64-v3 -o %t.o
// RUN: llvm-nm --undefined-only %t.o | FileCheck %s --implicit-check-not=bf
// CHECK: U malloc

!rows = memref<1x?x1x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!state = memref<1x1x64x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!column = memref<1x?x1xf32>
func.func @step(%q: !rows, %k: !rows, %v: !rows, %beta: !column, %gate: !column, %h0: !state, %o: !rows, %ht: !state) {
  gdn.recurrent_gated_delta_rule q(%q : !rows) k(%k : !rows) v(%v : !rows) beta(%beta : !column)
      gate(%gate : !column) initial_state(%h0 : !state) outs(%o, %ht : !rows, !state) {output_final_state}
  return
}
