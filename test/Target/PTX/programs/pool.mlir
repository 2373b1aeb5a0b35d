// Layers with states in a pool, of any heads. The place of a state is computed in 64 bits.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local
// CHECK-LABEL: .entry chunk_fused(
// CHECK: ld.global.b8
// CHECK-LABEL: .entry token_recurrent(
// CHECK: ld.global.s32 %rd
// CHECK: ld.global.s32 %[[ROW:rd[0-9]+]],
// CHECK: mul.lo.s64 %rd{{[0-9]+}}, %rd{{[0-9]+}}, %[[ROW]]
// CHECK-LABEL: .entry token_vk_recurrent(
func.func @chunk(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?xf32>, %pool: tensor<?x?x128x128xf32> {bufferization.writable = true, gdn.strided}, %cu: tensor<?xi32>, %rows: tensor<?xi32>, %first: index,
    %flags: tensor<?xi8> {gdn.optional})
    -> (tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %states = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>) initial_state(%pool : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      has_initial_state(%flags : tensor<?xi8>) {output_final_state, state_layout = #gdn.state_layout<kv>} -> tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %states : tensor<1x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
func.func @token(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xf32>,
    %gate: tensor<?x?x?xf32>, %pool: tensor<?x?x128x128xf32> {bufferization.writable = true}, %rows: tensor<?xi32>, %first: index)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>) initial_state(%pool : tensor<?x?x128x128xf32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      {output_final_state, state_layout = #gdn.state_layout<kv>} -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %states : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
func.func @token_vk(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xf32>,
    %gate: tensor<?x?x?xf32>, %pool: tensor<?x?x128x128xf32> {bufferization.writable = true}, %rows: tensor<?xi32>, %first: index)
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %states = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>) initial_state(%pool : tensor<?x?x128x128xf32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      {output_final_state, state_layout = #gdn.state_layout<vk>} -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %states : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
