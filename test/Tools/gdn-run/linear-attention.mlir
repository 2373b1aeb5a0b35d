// Linear attention against float64. Its arguments have no roles, so shapes are told by argument.
// RUN: gdn-run %s --arg-shape=0=2x100x2x64 --arg-shape=1=2x100x2x64 --arg-shape=2=2x100x4x64 --check | FileCheck %s

// CHECK: {{ o +tensor}}
// CHECK: final_state
// CHECK-SAME: pass
func.func @linear_attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32>) {
  %o, %state = gdn.stage.linear_attention q(%q : tensor<?x?x?x64xbf16>) k(%k : tensor<?x?x?x64xbf16>)
      v(%v : tensor<?x?x?x64xbf16>) {chunk_size = 32} -> tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32>
  return %o, %state : tensor<?x?x?x64xbf16>, tensor<?x?x64x64xf32>
}
