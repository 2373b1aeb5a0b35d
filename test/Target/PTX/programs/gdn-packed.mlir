// Gated DeltaNet, packed sequences of unknown number: a CTA takes both parts of a head, a warpgroup
// each.
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local

// CHECK: .entry layer_fused(
// CHECK: .maxntid 512
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{ *}}72
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{ *}}104
// CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 {{ *}}168
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
// A warp inverts the triangle.
// CHECK-DAG: fma.rn.f16x2
// CHECK-DAG: ex2.approx
func.func @layer(%q: tensor<1x?x16x128xbf16>, %k: tensor<1x?x16x128xbf16>, %v: tensor<1x?x32x128xbf16>,
    %gate: tensor<1x?x32xf32>, %beta: tensor<1x?x32xf32>, %cu_seqlens: tensor<?xi32>)
    -> (tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>) {
  %o, %state = gdn.stage.fused q(%q : tensor<1x?x16x128xbf16>) k(%k : tensor<1x?x16x128xbf16>)
      v(%v : tensor<1x?x32x128xbf16>) beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) {chunk_size = 32}
      -> tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %o, %state : tensor<1x?x32x128xbf16>, tensor<?x32x128x128xf32>
}
