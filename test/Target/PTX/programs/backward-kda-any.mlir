// Gradients with a gate a channel that nothing bounds: pairs of tokens have a second way, and pieces are half as wide.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s

// CHECK: gdn_warp.kernel @layer_gradients({{.*}} threads(512)
// CHECK: gdn_warp.role "pairs" warps(0, 4) registers(104)
// CHECK: gdn_warp.role "low_keys_high_keys" warps(4, 8) registers(184)
// The usual way, and that of any gates: a sum over earlier blocks, of readers alone, and a loop over the tokens of a block.
// CHECK: scf.if {{.*}} -> (tensor<64x32xf32, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>) {
// CHECK: gdn_warp.wgmma {{.*}}<64x16xbf16, swizzle = 128>, <16x32xbf16, swizzle = 128>
// CHECK: } else {
// CHECK: %[[READERS:.*]] = arith.select {{.*}} : tensor<64x16xi1, #gdn_warp.fragment>, tensor<64x16xbf16, #gdn_warp.fragment>
// CHECK: gdn_warp.wgmma %[[READERS]],
// CHECK: scf.for %[[N:.*]] = %c0 to %c16
// CHECK: gdn_warp.fragment_load %{{.*}} row(%[[N]])
// CHECK: } {gdn_warp.likely = true}
// CHECK: gdn_warp.array_store %{{.*}}, %dq[{{.*}} : tensor<64x32xf32, #gdn_warp.fragment>

// PTX: .visible .entry layer_{{replay|adjoint|gradients|map}}
func.func @layer(%q: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>, %gate: tensor<1x?x?x128xf32>,
    %h0: tensor<?x?x128x128xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x128xbf16>) k(%q : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x128xf32>) initial_state(%h0 : tensor<?x?x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x?x128xbf16>) {chunk_size = 16 : i64, qk_l2norm}
      -> tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>,
      tensor<1x?x?x128xf32>, tensor<?x?x128x128xf32>
}
