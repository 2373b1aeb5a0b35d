// Decoding with a gate a channel: the state decays in registers before the products. The loop loads five vectors, the gate and
// its bias beside q, k and v, so a multiprocessor has four CTAs with states [K, V], where there are five with a gate a head.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX

// WARP: gdn_warp.kernel @kv_recurrent({{.*}}) threads(128) shared(1072) min_ctas(4)
// WARP: gdn_warp.role "state" warps(0, 4) registers(128)
// WARP: %[[BIAS:.*]] = gdn_warp.array_load %dt_bias[{{.*}} -> tensor<128xf32, #gdn_warp.slice<of = <rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>, axis = 1>>
// WARP: gdn_warp.array_load %gate[{{.*}} -> tensor<128xbf16, #gdn_warp.slice<of = <rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>, axis = 1>>
// WARP-NOT: gdn_warp.barrier
// WARP: gdn_warp.kernel @vk_recurrent({{.*}}) threads(128) shared(0) min_ctas(8)
// WARP: gdn_warp.role "state" warps(0, 4) registers(64)
// WARP: gdn_warp.array_load %gate[{{.*}} -> tensor<128xbf16, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>

// PTX: .entry kv_recurrent(
// PTX: .minnctapersm 4
// The state and the bias of channels, then exponentials: two a channel for a sigmoid and its decay, one for beta.
// PTX-COUNT-8: ld.global.v4.b32
// PTX-COUNT-8: ex2.approx
// PTX-COUNT-8: rcp.approx
// PTX-COUNT-8: ex2.approx
// PTX-COUNT-5: bar.sync
// PTX-NOT: bar.sync
// PTX-COUNT-8: st.global.v4.b32
// PTX: .entry vk_recurrent(
// PTX: .minnctapersm 8
// PTX-COUNT-4: ld.global.v4.b32
// PTX-NOT: bar.sync
// PTX-COUNT-4: st.global.v4.b32
func.func @kv(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x32x128xbf16>, %beta: tensor<?x?x32xbf16>,
    %gate: tensor<?x?x32x128xbf16>, %s: tensor<?x32x128x128xf32>, %a: tensor<32xf32>, %d: tensor<32x128xf32>)
    -> (tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x16x128xbf16>) k(%k : tensor<?x?x16x128xbf16>) v(%v : tensor<?x?x32x128xbf16>)
      beta(%beta : tensor<?x?x32xbf16>) gate(%gate : tensor<?x?x32x128xbf16>) initial_state(%s : tensor<?x32x128x128xf32>)
      a_log(%a : tensor<32xf32>) dt_bias(%d : tensor<32x128xf32>)
      {output_final_state, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64,
       beta_domain = #gdn.beta_domain<logit>, qk_l2norm} -> tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %t : tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
func.func @vk(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x32x128xbf16>, %beta: tensor<?x?x32xbf16>,
    %gate: tensor<?x?x32x128xbf16>, %s: tensor<?x32x128x128xf32>, %a: tensor<32xf32>, %d: tensor<32x128xf32>)
    -> (tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x16x128xbf16>) k(%k : tensor<?x?x16x128xbf16>) v(%v : tensor<?x?x32x128xbf16>)
      beta(%beta : tensor<?x?x32xbf16>) gate(%gate : tensor<?x?x32x128xbf16>) initial_state(%s : tensor<?x32x128x128xf32>)
      a_log(%a : tensor<32xf32>) dt_bias(%d : tensor<32x128xf32>)
      {output_final_state, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm,
       state_layout = #gdn.state_layout<vk>} -> tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %t : tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
