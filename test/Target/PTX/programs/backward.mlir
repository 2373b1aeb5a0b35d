// A backward of packed sequences is three kernels, which sum dq and dk over the value heads of a group.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx -o %t
// RUN: FileCheck %s --implicit-check-not=.local --implicit-check-not=.red.global --implicit-check-not=atom.global < %t

// Both halves of K have one copy of the code, of 44 products; the scores of pairs have 16.
// RUN: FileCheck %s --check-prefix=ONCE < %t
// ONCE: .entry layer_gradients(
// ONCE-COUNT-60: wgmma.mma_async
// ONCE-NOT: wgmma.mma_async

// The CTAs of a head's two V tiles are a cluster. Replay begins when what is before it has ended. Adjoint begins beside it
// where both have a place, and waits else.
// CHECK: .entry layer_replay(
// CHECK: .reqnctapercluster 2
// CHECK-NOT: griddepcontrol.wait;
// CHECK: griddepcontrol.launch_dependents;
// CHECK-NOT: griddepcontrol.wait;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: .entry layer_adjoint(
// CHECK: .reqnctapercluster 2
// CHECK: griddepcontrol.launch_dependents;
// CHECK: setp.{{.*}} %p{{[0-9]+}}, %r{{[0-9]+}}, 6{{[67]}};
// CHECK: griddepcontrol.wait;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: .entry layer_gradients(
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// Rows of dq and dk are stored in 16 bytes.
// CHECK: st.global.v4.b32
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32xf32>, %h0: tensor<?x32x128x128xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x32x128xbf16>, %dht: tensor<?x32x128x128xf32>)
    -> (tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>) v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>)
      initial_state(%h0 : tensor<?x32x128x128xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x32x128xbf16>) d_final_state(%dht : tensor<?x32x128x128xf32>) -> tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32xf32>, tensor<1x?x32xf32>, tensor<?x32x128x128xf32>
}
