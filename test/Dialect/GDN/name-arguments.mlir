// RUN: gdn-opt %s --gdn-name-arguments | FileCheck %s

// Through casts, and with what a tool without MLIR needs to know.
// CHECK-LABEL: func.func @one(
//  CHECK-SAME: tensor<1x?x2x64xbf16> {gdn.dims = ["B", "T", "Hq", "K"], gdn.name = "q"}
//  CHECK-SAME: {gdn.dims = ["B", "T", "Hq", "K"], gdn.name = "k"}
//  CHECK-SAME: {gdn.dims = ["B", "T", "H", "V"], gdn.name = "v"}
//  CHECK-SAME: {gdn.dims = ["B", "T", "H"], gdn.name = "beta"})
//  CHECK-SAME: -> (tensor<1x?x4x64xbf16> {gdn.dims = ["B", "T", "H", "V"], gdn.name = "o"},
//  CHECK-SAME: tensor<1x4x64x64xf32> {gdn.dims = ["B", "H", "V", "K"], gdn.name = "final_state"})
//  CHECK-SAME: gdn.source = {beta_domain = "logit", gate_domain = "log", op = "gdn.chunk_gated_delta_rule", qk_l2norm, scale = 5.000000e-01 : f64, state_layout = "vk"}
func.func @one(%q: tensor<1x?x2x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<1x?x4x64xbf16>,
               %beta: tensor<1x?x4xf32>) -> (tensor<1x?x4x64xbf16>, tensor<1x4x64x64xf32>) {
  %c = tensor.cast %k : tensor<?x?x2x64xbf16> to tensor<1x?x2x64xbf16>
  %o, %s = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x?x2x64xbf16>) k(%c : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x64xbf16>) beta(%beta : tensor<1x?x4xf32>)
      {scale = 0.5 : f64, qk_l2norm, beta_domain = #gdn.beta_domain<logit>,
       state_layout = #gdn.state_layout<vk>, output_final_state}
      -> tensor<1x?x4x64xbf16>, tensor<1x4x64x64xf32>
  return %o, %s : tensor<1x?x4x64xbf16>, tensor<1x4x64x64xf32>
}

// The arrays of a second op have a number; no one op is the whole function.
// CHECK-LABEL: func.func @two(
//  CHECK-SAME: gdn.name = "beta"}
//  CHECK-SAME: {gdn.dims = ["B1", "T1", "H1"], gdn.name = "beta1"}
//   CHECK-NOT: gdn.source
//       CHECK: return
func.func @two(%x: tensor<1x32x2x64xf32>, %b: tensor<1x32x2xf32>, %c: tensor<1x32x2xf32>)
    -> tensor<1x32x2x64xf32> {
  %y = gdn.chunk_gated_delta_rule
      q(%x : tensor<1x32x2x64xf32>) k(%x : tensor<1x32x2x64xf32>)
      v(%x : tensor<1x32x2x64xf32>) beta(%b : tensor<1x32x2xf32>) -> tensor<1x32x2x64xf32>
  %z = gdn.chunk_gated_delta_rule
      q(%y : tensor<1x32x2x64xf32>) k(%y : tensor<1x32x2x64xf32>)
      v(%y : tensor<1x32x2x64xf32>) beta(%c : tensor<1x32x2xf32>) -> tensor<1x32x2x64xf32>
  return %z : tensor<1x32x2x64xf32>
}
