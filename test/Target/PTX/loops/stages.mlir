// Two kernels of one function: a state pass, and a forward that begins with its states.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx -o - | FileCheck %s
// CHECK-DAG: .entry layer_state_pass(
// CHECK-DAG: .entry layer_fused(
func.func @layer(%q: tensor<1x4096x8x128xbf16>, %v: tensor<1x4096x8x128xbf16>, %beta: tensor<1x4096x8xf32>, %g: tensor<1x4096x8xf32>, %h0: tensor<16x8x128x128xf32>, %cu: tensor<17xi32>) -> (tensor<1x4096x8x128xbf16>, tensor<16x8x128x128xf32>) {
  %s = gdn.stage.state_pass q(%q : tensor<1x4096x8x128xbf16>) k(%q : tensor<1x4096x8x128xbf16>) v(%v : tensor<1x4096x8x128xbf16>)
      beta(%beta : tensor<1x4096x8xf32>) gate(%g : tensor<1x4096x8xf32>) initial_state(%h0 : tensor<16x8x128x128xf32>) cu_seqlens(%cu : tensor<17xi32>) {chunk_size = 32} -> tensor<16x8x128x128xf32>
  %o, %t = gdn.stage.fused q(%q : tensor<1x4096x8x128xbf16>) k(%q : tensor<1x4096x8x128xbf16>) v(%v : tensor<1x4096x8x128xbf16>)
      beta(%beta : tensor<1x4096x8xf32>) gate(%g : tensor<1x4096x8xf32>) initial_state(%s : tensor<16x8x128x128xf32>) cu_seqlens(%cu : tensor<17xi32>) {chunk_size = 32} -> tensor<1x4096x8x128xbf16>, tensor<16x8x128x128xf32>
  return %o, %t : tensor<1x4096x8x128xbf16>, tensor<16x8x128x128xf32>
}
