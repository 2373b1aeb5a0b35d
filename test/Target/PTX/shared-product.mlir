// Both operands from tensor-map copies: the classes of instructions, and the launch facts.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-launch-json | FileCheck %s --check-prefix=JSON

// CHECK: .target sm_90a
// CHECK: .entry shared_product(
// CHECK: .param .align 64 .b8 shared_product_param_{{[0-9]+}}[128]
// CHECK: .maxntid 128
// CHECK: .minnctapersm 1
// CHECK: mbarrier.init.shared.b64
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: mbarrier.arrive.expect_tx
// CHECK-COUNT-2: cp.async.bulk.tensor.3d.shared::cta.global
// CHECK: mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: st.global.v2.b32

// JSON: "sizes": [
// JSON-NEXT: null,
// JSON-NEXT: 128
// JSON: "name": "shared_product"
// JSON: "shared_bytes": 33024
// JSON: "tensor_maps"
// JSON: "argument": 0
// JSON: "swizzle": 128
// JSON: "threads": 128

// C = A B^T, 64 rows of A a CTA.
gdn_warp.kernel @shared_product(%a : memref<?x128xbf16>, %b : memref<?x128xbf16>, %c : memref<?x64xf32>)
    threads(128) shared(33024) {
  %c0 = arith.constant 0 : index
  %at_b = arith.constant 16384 : index
  %at_bar = arith.constant 32768 : index
  %p0 = arith.constant 0 : i32
  %cta = gdn_warp.id cta
  %thread = gdn_warp.id thread
  %c64 = arith.constant 64 : index
  %row = arith.muli %cta, %c64 : index
  %va = gdn_warp.view %c0 : !gdn_warp.view<64x128xbf16, swizzle = 128>
  %vb = gdn_warp.view %at_b : !gdn_warp.view<64x128xbf16, swizzle = 128>
  %full = gdn_warp.barrier %at_bar
  %first = arith.cmpi eq, %thread, %c0 : index
  scf.if %first {
    gdn_warp.barrier_init %full, 1
    gdn_warp.fence barrier_init
    gdn_warp.barrier_expect %full, 32768
    gdn_warp.bulk_tensor_load %a[%row, %c0] axes [0, 1], %va signal %full
        : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
    gdn_warp.bulk_tensor_load %b[%c0, %c0] axes [0, 1], %vb signal %full
        : memref<?x128xbf16> -> !gdn_warp.view<64x128xbf16, swizzle = 128>
  }
  gdn_warp.sync cta
  gdn_warp.role "all" warps(0, 4) {
    gdn_warp.barrier_wait %full, %p0
    gdn_warp.wgmma_fence
    %d = gdn_warp.wgmma %va, %vb transpose_b : !gdn_warp.view<64x128xbf16, swizzle = 128>,
        !gdn_warp.view<64x128xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.wgmma_commit
    %e = gdn_warp.wgmma_wait 0 of %d : tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.array_store %e, %c[%row, %c0] axes [0, 1]
        : tensor<64x64xf32, #gdn_warp.fragment> -> memref<?x64xf32>
  }
}
