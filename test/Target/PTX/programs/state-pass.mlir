// The state after a sequence, without an output: the same program with no queries.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local

// CHECK: .entry layer_state_pass(
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>,
    %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32xf32>) -> tensor<1x32x128x128xf32> {
  %state = gdn.stage.state_pass q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>)
      v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>)
      {chunk_size = 32} -> tensor<1x32x128x128xf32>
  return %state : tensor<1x32x128x128xf32>
}
