// One item of a layer for CPUs: a sequence and a head. A program calls it through
// libgdn-calls for any number of both (items.c).
//
//   gdn-compile docs/examples/items.mlir --parallel=false --emit=obj
!tokens = memref<1x?x1x64xf32, strided<[?, ?, ?, 1], offset: ?>>
!state = memref<1x1x64x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func @head(%q: !tokens, %k: !tokens, %v: !tokens, %beta: memref<1x?x1xf32>, %gate: memref<1x?x1xf32>,
                %initial_state: !state, %o: !tokens, %final_state: !state) {
  gdn.chunk_gated_delta_rule
      q(%q : !tokens) k(%k : !tokens) v(%v : !tokens) beta(%beta : memref<1x?x1xf32>) gate(%gate : memref<1x?x1xf32>)
      initial_state(%initial_state : !state) outs(%o, %final_state : !tokens, !state) {output_final_state}
  return
}
