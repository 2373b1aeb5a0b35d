// Decoding: a CTA of four warps for a V tile, several on a multiprocessor, states by 16 bytes. Of states [K, V] the
// warps have parts of K, and add up through shared memory: the products of q and k, and two with the state.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: gdn-compile %s --target=sm_90a --explain --dim=B=8,T=1,H=32,Hq=16 | FileCheck %s --check-prefix=EXPLAIN

// WARP: gdn_warp.kernel @layer_recurrent({{.*}}) threads(128) shared(1072) min_ctas(5)
// WARP: gdn_warp.role "state" warps(0, 4) registers(96)
// WARP: gdn_warp.array_load %initial_state[{{.*}}] axes [3, 2] : {{.*}} -> tensor<32x128xf32, #gdn_warp.spread<rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>>
// WARP-NOT: gdn_warp.barrier

// PTX: .entry layer_recurrent(
// PTX: .maxntid 128
// PTX: .minnctapersm 5
// PTX-COUNT-8: ld.global.v4.b32
// PTX: shfl.sync.bfly
// PTX-COUNT-5: bar.sync
// PTX-NOT: bar.sync
// PTX-COUNT-8: st.global.v4.b32

// EXPLAIN: token
func.func @layer(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xbf16>,
    %gate: tensor<?x?x?xbf16>, %s: tensor<?x?x128x128xf32>, %a: tensor<?xf32>, %d: tensor<?xf32>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xbf16>) gate(%gate : tensor<?x?x?xbf16>) initial_state(%s : tensor<?x?x128x128xf32>)
      a_log(%a : tensor<?xf32>) dt_bias(%d : tensor<?xf32>)
      {output_final_state, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm}
      -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %t : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
