// Causal linear attention: nothing is solved.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local

// CHECK: .entry layer_linear_attention(
// CHECK: .maxntid 384
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{[[:space:]]*}}40
// CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 {{[[:space:]]*}}248
// CHECK-DAG: mbarrier.init.shared.b64
// CHECK-DAG: fence.mbarrier_init
// CHECK-DAG: mbarrier.arrive.expect_tx
// CHECK-DAG: mbarrier.arrive.shared.b64
// CHECK-DAG: mbarrier.try_wait.parity
// CHECK-DAG: fence.proxy.async
// CHECK-DAG: cp.async.bulk.tensor.{{[45]}}d.shared::cta.global{{.*}}mbarrier::complete_tx::bytes
// CHECK-DAG: cp.async.bulk.tensor.{{[45]}}d.global.shared::cta
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>)
    -> tensor<1x?x32x128xbf16> {
  %o = gdn.stage.linear_attention q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>)
      v(%v : tensor<1x?x32x128xbf16>) {chunk_size = 32} -> tensor<1x?x32x128xbf16>
  return %o : tensor<1x?x32x128xbf16>
}
