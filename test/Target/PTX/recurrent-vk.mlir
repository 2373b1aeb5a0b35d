// Decoding with states [V, K]: V tiles of 16, eight CTAs on a multiprocessor. 16 lanes have a row, so nothing goes through
// shared memory.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX

// WARP: gdn_warp.kernel @layer_recurrent({{.*}}) threads(128) shared(0) min_ctas(8)
// WARP: gdn_warp.role "state" warps(0, 4) registers(64)
// WARP: gdn_warp.array_load %initial_state[{{.*}}] axes [2, 3] : {{.*}} -> tensor<16x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>

// PTX: .maxntid 128
// PTX: .minnctapersm 8
// PTX-COUNT-4: ld.global.v4.b32
// PTX-NOT: bar.sync
// PTX-COUNT-4: st.global.v4.b32
func.func @layer(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %beta: tensor<?x?x?xbf16>,
    %gate: tensor<?x?x?xbf16>, %s: tensor<?x?x128x128xf32>, %a: tensor<?xf32>, %d: tensor<?xf32>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>) {
  %o, %t = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xbf16>) gate(%gate : tensor<?x?x?xbf16>) initial_state(%s : tensor<?x?x128x128xf32>)
      a_log(%a : tensor<?xf32>) dt_bias(%d : tensor<?xf32>)
      {output_final_state, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>, qk_l2norm,
       state_layout = #gdn.state_layout<vk>} -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %t : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
