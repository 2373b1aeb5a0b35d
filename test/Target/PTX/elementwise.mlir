// Register tiles: shared memory both ways, vectors of rows and columns, masks, functions, ragged ends.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// CHECK: .entry elementwise(
// CHECK-DAG: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-DAG: ex2.approx.ftz.f32
// CHECK-DAG: lg2.approx.ftz.f32
// CHECK-DAG: rsqrt.approx.ftz.f32
// CHECK-DAG: st.shared.v2.b32
// CHECK-NOT: local

gdn_warp.kernel @elementwise(%x : memref<?x64xbf16>, %r : memref<64xf32>, %c : memref<64xf32>,
    %y : memref<64x64xf32>, %part : memref<32x64xbf16>, %cut : memref<64x?xf32>,
    %sums : memref<2x64xf32>, %rows : i32, %scale : f32) threads(128) shared(29696) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %at_f32 = arith.constant 8192 : index
  %at_part = arith.constant 24576 : index
  %at_r = arith.constant 29184 : index
  %at_c = arith.constant 29440 : index
  %thread = gdn_warp.id thread
  %end = arith.index_cast %rows : i32 to index
  %width = memref.dim %cut, %c1 : memref<64x?xf32>
  %vt = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  %vf = gdn_warp.view %at_f32 : !gdn_warp.view<64x64xf32, swizzle = 128>
  %vp = gdn_warp.view %at_part : !gdn_warp.view<32x64xbf16, stride = 144>
  %vr = gdn_warp.view %at_r : !gdn_warp.view<64xf32>
  %vc = gdn_warp.view %at_c : !gdn_warp.view<64xf32>
  %low = arith.cmpi ult, %thread, %c64 : index
  scf.if %low {
    %a = memref.load %r[%thread] : memref<64xf32>
    %b = memref.load %c[%thread] : memref<64xf32>
    gdn_warp.store %a, %vr[%thread] : f32 -> !gdn_warp.view<64xf32>
    gdn_warp.store %b, %vc[%thread] : f32 -> !gdn_warp.view<64xf32>
  }
  // x^T, through shared memory; rows of x from `rows` on are zero.
  %xf = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] until(%end, dim = 0)
      : memref<?x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
  gdn_warp.fragment_store %xf, %vt transpose
      : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
  gdn_warp.sync cta
  %xt = gdn_warp.fragment_load %vt : !gdn_warp.view<64x64xbf16, swizzle = 128>
      -> tensor<64x64xbf16, #gdn_warp.fragment>
  %xw = arith.extf %xt : tensor<64x64xbf16, #gdn_warp.fragment> to tensor<64x64xf32, #gdn_warp.fragment>
  %rv = gdn_warp.vector_load %vr : !gdn_warp.view<64xf32> -> tensor<64xf32, #gdn_warp.rows>
  %cv = gdn_warp.vector_load %vc : !gdn_warp.view<64xf32> -> tensor<64xf32, #gdn_warp.columns>
  %none = tensor.empty() : tensor<64x64xf32, #gdn_warp.fragment>
  %rb = linalg.broadcast ins(%rv : tensor<64xf32, #gdn_warp.rows>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [1]
  %cb = linalg.broadcast ins(%cv : tensor<64xf32, #gdn_warp.columns>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [0]
  // y = causal(scale exp(x^T c + r))
  %s = tensor.splat %scale : tensor<64x64xf32, #gdn_warp.fragment>
  %t = math.fma %xw, %cb, %rb : tensor<64x64xf32, #gdn_warp.fragment>
  %e = math.exp %t : tensor<64x64xf32, #gdn_warp.fragment>
  %m = arith.mulf %e, %s : tensor<64x64xf32, #gdn_warp.fragment>
  %i = gdn_warp.iota 0 : tensor<64x64xi32, #gdn_warp.fragment>
  %j = gdn_warp.iota 1 : tensor<64x64xi32, #gdn_warp.fragment>
  %keep = arith.cmpi sge, %i, %j : tensor<64x64xi32, #gdn_warp.fragment>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #gdn_warp.fragment>
  %z = arith.select %keep, %m, %zero
      : tensor<64x64xi1, #gdn_warp.fragment>, tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.fragment_store %z, %vf
      : tensor<64x64xf32, #gdn_warp.fragment> -> !gdn_warp.view<64x64xf32, swizzle = 128>
  %mb = arith.truncf %m : tensor<64x64xf32, #gdn_warp.fragment> to tensor<64x64xbf16, #gdn_warp.fragment>
  %zb = gdn_warp.causal %mb : tensor<64x64xbf16, #gdn_warp.fragment>
  gdn_warp.fragment_store %zb, %vp rows [32, 64]
      : tensor<64x64xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, stride = 144>
  gdn_warp.array_store %z, %cut[%c0, %c0] axes [0, 1] until(%width, dim = 1)
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x?xf32>
  gdn_warp.sync cta
  // log, log1p and rsqrt on vectors, back to shared memory.
  %l = math.log %rv : tensor<64xf32, #gdn_warp.rows>
  %l1 = math.log1p %l : tensor<64xf32, #gdn_warp.rows>
  %q = math.rsqrt %cv : tensor<64xf32, #gdn_warp.columns>
  gdn_warp.vector_store %l1, %vr : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
  gdn_warp.vector_store %q, %vc : tensor<64xf32, #gdn_warp.columns> -> !gdn_warp.view<64xf32>
  gdn_warp.sync cta
  scf.if %low {
    %a = gdn_warp.load %vr[%thread] : !gdn_warp.view<64xf32> -> f32
    %b = gdn_warp.load %vc[%thread] : !gdn_warp.view<64xf32> -> f32
    memref.store %a, %sums[%c0, %thread] : memref<2x64xf32>
    memref.store %b, %sums[%c1, %thread] : memref<2x64xf32>
    scf.for %k = %c0 to %c64 step %c1 {
      %f = gdn_warp.load %vf[%k, %thread] : !gdn_warp.view<64x64xf32, swizzle = 128> -> f32
      memref.store %f, %y[%k, %thread] : memref<64x64xf32>
    }
    %c32 = arith.constant 32 : index
    scf.for %k = %c0 to %c32 step %c1 {
      %f = gdn_warp.load %vp[%k, %thread] : !gdn_warp.view<32x64xbf16, stride = 144> -> bf16
      memref.store %f, %part[%k, %thread] : memref<32x64xbf16>
    }
  }
}
