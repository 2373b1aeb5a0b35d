// Gradients with a gate a channel: the recurrences have the forward's roles, clusters of two V tiles and a warp that stores; of
// the gradients the warps of a half of K make decayed rows, which overwrite rows of q and k, and have one code.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX --implicit-check-not=.local

// CHECK: gdn_warp.kernel @layer_replay({{.*}} threads(384) {{.*}} cluster(2)
// CHECK: gdn_warp.role "prepare" {{.*}} {gdn_warp.alternate_ctas}
// CHECK: gdn_warp.role "store" warps(7, 1)
// CHECK: gdn_warp.role "state" warps(8, 4) registers(208)
// CHECK: gdn_warp.kernel @layer_adjoint({{.*}} threads(384) {{.*}} cluster(2)
// CHECK: gdn_warp.kernel @layer_gradients({{.*}} threads(512)
// CHECK: gdn_warp.role "pairs" warps(0, 4) registers(152) attributes {gdn_warp.late_addresses}
// CHECK: gdn_warp.role "low_keys_high_keys" warps(4, 8) registers(160) attributes {gdn_warp.late_addresses}
// CHECK: %[[ROWS:.*]] = gdn_warp.fragment_load %[[PLACE:[0-9]+]] : <64x64xbf16, swizzle = 128>
// CHECK: gdn_warp.fragment_store %{{.*}}, %[[PLACE]] : tensor<64x64xbf16, #gdn_warp.fragment>
// CHECK: gdn_warp.wgmma {{.*}}<64x16xbf16, swizzle = 128>, <16x64xbf16, swizzle = 128,
// CHECK: gdn_warp.role "factors" warps(15, 1)

// PTX: .visible .entry layer_{{replay|adjoint|gradients}}
func.func @layer(%q: tensor<1x?x4x128xbf16>, %v: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4x128xbf16>,
    %h0: tensor<?x4x128x128xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x4x128xbf16>) k(%q : tensor<1x?x4x128xbf16>) v(%v : tensor<1x?x4x128xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4x128xbf16>) initial_state(%h0 : tensor<?x4x128x128xf32>)
      cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x4x128xbf16>) {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0}
      -> tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>, tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>, tensor<1x?x4xf32>,
      tensor<1x?x4x128xbf16>, tensor<?x4x128x128xf32>
}
