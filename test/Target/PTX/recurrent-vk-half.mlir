// Decoding with states [V, K] of 16 bits: a warp a CTA, twelve CTAs on a multiprocessor. The state is on its way while the
// token's keys, queries and gates are loaded and made; it is converted behind them.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX

// WARP: gdn_warp.kernel @layer_recurrent({{.*}}) threads(32) shared(0) min_ctas(12)
// WARP: gdn_warp.role "state" warps(0, 1) registers(168)
// WARP: %[[STORED:.*]] = scf.if
// WARP: gdn_warp.array_load %final_state[{{.*}}] axes [2, 3] : {{.*}} -> tensor<16x128xbf16, #gdn_warp.spread<rows = 1, columns = 8, axis = 1, lanes = 16, warps = 1>>
// WARP-NOT: arith.extf
// WARP: scf.for
// WARP-SAME: = %[[STORED]]
// WARP: gdn_warp.array_load %k
// WARP: gdn_warp.array_load %q
// WARP: gdn_warp.array_load %v
// WARP: gdn_warp.array_load %gate
// WARP: math.rsqrt
// WARP: math.rsqrt
// WARP: arith.extf {{.*}} : tensor<16x128xbf16
// WARP: linalg.reduce ins({{.*}} : tensor<16x128xf32

// PTX: .maxntid 32
// PTX: .minnctapersm 12
// PTX-COUNT-8: ld.global.v4.b32
// PTX-NOT: bar.sync
// PTX-COUNT-8: st.global.v4.b32
func.func @layer(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xbf16>,
    %gate: tensor<?x?x?xbf16>, %s: tensor<?x?x128x128xbf16> {bufferization.writable = true}, %a: tensor<?xf32>, %d: tensor<?xf32>,
    %rows: tensor<?xi32>, %first: index) -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xbf16>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xbf16>) gate(%gate : tensor<?x?x?xbf16>) initial_state(%s : tensor<?x?x128x128xbf16>)
      a_log(%a : tensor<?xf32>) dt_bias(%d : tensor<?xf32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      {output_final_state, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm,
       state_layout = #gdn.state_layout<vk>} -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xbf16>
  return %o, %t : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xbf16>
}
