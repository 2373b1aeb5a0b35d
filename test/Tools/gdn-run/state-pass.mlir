// The state after each sequence, against float64; on a GPU: gdn-run state-pass.mlir --target=sm_90a --dim=... --check
// RUN: gdn-run %s --dim=B=2,T=100,Hq=2,H=4 --check | FileCheck %s
// RUN: gdn-run %s --dim=B=2,T=100,Hq=2,H=4 --check --v-tiles=2 | FileCheck %s

// CHECK: final_state
// CHECK-SAME: pass
func.func @state_pass(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>,
    %beta: tensor<?x?x?xf32>, %gate: tensor<?x?x?xf32>, %h0: tensor<?x?x128x128xf32>) -> tensor<?x?x128x128xf32> {
  %state = gdn.stage.state_pass q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>)
      v(%v : tensor<?x?x?x128xbf16>) beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>)
      initial_state(%h0 : tensor<?x?x128x128xf32>) {chunk_size = 32} -> tensor<?x?x128x128xf32>
  return %state : tensor<?x?x128x128xf32>
}
