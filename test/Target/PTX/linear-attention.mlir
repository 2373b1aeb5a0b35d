// A producer warp, a ring of stages, two warpgroups that carry the state in registers.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// CHECK: .entry linear_attention(
// CHECK: .maxntid 384
// CHECK: shfl.sync.idx
// CHECK-DAG: setmaxnreg.dec.sync.aligned.u32 {{ *}}40
// CHECK-DAG: setmaxnreg.inc.sync.aligned.u32 {{ *}}232
// CHECK-DAG: cp.async.bulk.tensor.4d.shared::cta.global
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK-DAG: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-DAG: fence.proxy.async.shared::cta
// CHECK-DAG: cp.async.bulk.tensor.3d.global.shared::cta

gdn_warp.kernel @linear_attention(
    %q : memref<?x2x128xbf16, strided<[?, ?, 1]>>, %k : memref<?x2x128xbf16, strided<[?, ?, 1]>>,
    %v : memref<?x2x128xbf16, strided<[?, ?, 1]>>, %o : memref<?x2x128xbf16>,
    %s : memref<2x128x128xf32>, %chunks : i32) threads(384) shared(82432) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c16384 = arith.constant 16384 : index
  %stage_bytes = arith.constant 24576 : index
  %at_o = arith.constant 73728 : index
  %at_full = arith.constant 81920 : index
  %at_empty = arith.constant 81952 : index
  %n = arith.index_cast %chunks : i32 to index
  %head = gdn_warp.id cta
  %thread = gdn_warp.id thread
  %lane = gdn_warp.id lane
  %warp = gdn_warp.id warp
  %lane0 = arith.cmpi eq, %lane, %c0 : index
  %first = arith.cmpi eq, %thread, %c0 : index
  scf.if %first {
    scf.for %i = %c0 to %c3 step %c1 {
      %offset = arith.muli %i, %c8 : index
      %full_at = arith.addi %at_full, %offset : index
      %empty_at = arith.addi %at_empty, %offset : index
      %full = gdn_warp.barrier %full_at
      %empty = gdn_warp.barrier %empty_at
      gdn_warp.barrier_init %full, 1
      gdn_warp.barrier_init %empty, 8
    }
    gdn_warp.fence barrier_init
  }
  gdn_warp.sync cta
  gdn_warp.role "move" warps(0, 1) registers(40) {
    scf.if %lane0 {
      scf.for %i = %c0 to %n step %c1 {
        %slot = arith.remui %i, %c3 : index
        %round = arith.divui %i, %c3 : index
        %phase = arith.remui %round, %c2 : index
        %after = arith.subi %c1, %phase : index
        %parity = arith.index_cast %after : index to i32
        %at = arith.muli %slot, %stage_bytes : index
        %offset = arith.muli %slot, %c8 : index
        %full_at = arith.addi %at_full, %offset : index
        %empty_at = arith.addi %at_empty, %offset : index
        %full = gdn_warp.barrier %full_at
        %empty = gdn_warp.barrier %empty_at
        %k_at = arith.addi %at, %c8192 : index
        %v_at = arith.addi %at, %c16384 : index
        %qv = gdn_warp.view %at : !gdn_warp.view<32x128xbf16, swizzle = 128>
        %kv = gdn_warp.view %k_at : !gdn_warp.view<32x128xbf16, swizzle = 128>
        %vv = gdn_warp.view %v_at : !gdn_warp.view<32x128xbf16, swizzle = 128>
        %token = arith.muli %i, %c32 : index
        gdn_warp.barrier_wait %empty, %parity
        gdn_warp.barrier_expect %full, 24576
        gdn_warp.bulk_tensor_load %q[%token, %head, %c0] axes [0, 2], %qv signal %full
            : memref<?x2x128xbf16, strided<[?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
        gdn_warp.bulk_tensor_load %k[%token, %head, %c0] axes [0, 2], %kv signal %full
            : memref<?x2x128xbf16, strided<[?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
        gdn_warp.bulk_tensor_load %v[%token, %head, %c0] axes [0, 2], %vv signal %full
            : memref<?x2x128xbf16, strided<[?, ?, 1]>> -> !gdn_warp.view<32x128xbf16, swizzle = 128>
      }
    }
  }
  gdn_warp.role "state" warps(4, 8) registers(232) {
    %group = arith.divui %warp, %c4 : index
    %part = arith.subi %group, %c1 : index
    %in_group = arith.remui %warp, %c4 : index
    %warp0 = arith.cmpi eq, %in_group, %c0 : index
    %leader = arith.andi %warp0, %lane0 : i1
    %id = arith.index_cast %group : index to i32
    %v0 = arith.muli %part, %c64 : index
    %panel = arith.muli %part, %c4096 : index
    %o_at = arith.addi %at_o, %panel : index
    %ov = gdn_warp.view %o_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #gdn_warp.fragment>
    %final = scf.for %i = %c0 to %n step %c1 iter_args(%state = %zero)
        -> (tensor<64x128xf32, #gdn_warp.fragment>) {
      %slot = arith.remui %i, %c3 : index
      %round = arith.divui %i, %c3 : index
      %phase = arith.remui %round, %c2 : index
      %parity = arith.index_cast %phase : index to i32
      %at = arith.muli %slot, %stage_bytes : index
      %offset = arith.muli %slot, %c8 : index
      %full_at = arith.addi %at_full, %offset : index
      %empty_at = arith.addi %at_empty, %offset : index
      %full = gdn_warp.barrier %full_at
      %empty = gdn_warp.barrier %empty_at
      %k_at = arith.addi %at, %c8192 : index
      %v_first = arith.addi %at, %c16384 : index
      %v_at = arith.addi %v_first, %panel : index
      %qv = gdn_warp.view %at : !gdn_warp.view<32x128xbf16, swizzle = 128>
      %kv = gdn_warp.view %k_at : !gdn_warp.view<32x128xbf16, swizzle = 128>
      %vv = gdn_warp.view %v_at : !gdn_warp.view<32x64xbf16, swizzle = 128>
      gdn_warp.barrier_wait %full, %parity
      %vt = gdn_warp.fragment_load %vv transpose : !gdn_warp.view<32x64xbf16, swizzle = 128>
          -> tensor<64x32xbf16, #gdn_warp.fragment>
      %sb = arith.truncf %state
          : tensor<64x128xf32, #gdn_warp.fragment> to tensor<64x128xbf16, #gdn_warp.fragment>
      gdn_warp.wgmma_fence
      %o0 = gdn_warp.wgmma %sb, %qv transpose_b : tensor<64x128xbf16, #gdn_warp.fragment>,
          !gdn_warp.view<32x128xbf16, swizzle = 128> -> tensor<64x32xf32, #gdn_warp.fragment>
      gdn_warp.wgmma_commit
      %s0 = gdn_warp.wgmma %vt, %kv into(%state : tensor<64x128xf32, #gdn_warp.fragment>)
          : tensor<64x32xbf16, #gdn_warp.fragment>, !gdn_warp.view<32x128xbf16, swizzle = 128>
          -> tensor<64x128xf32, #gdn_warp.fragment>
      gdn_warp.wgmma_commit
      scf.if %leader {
        gdn_warp.bulk_wait 0 read
      }
      gdn_warp.sync_group %id, 128
      %o1 = gdn_warp.wgmma_wait 1 of %o0 : tensor<64x32xf32, #gdn_warp.fragment>
      %ob = arith.truncf %o1
          : tensor<64x32xf32, #gdn_warp.fragment> to tensor<64x32xbf16, #gdn_warp.fragment>
      gdn_warp.fragment_store %ob, %ov transpose
          : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
      gdn_warp.fence async
      gdn_warp.sync_group %id, 128
      %token = arith.muli %i, %c32 : index
      scf.if %leader {
        gdn_warp.bulk_tensor_store %ov, %o[%token, %head, %v0] axes [0, 2]
            : !gdn_warp.view<32x64xbf16, swizzle = 128> -> memref<?x2x128xbf16>
        gdn_warp.bulk_commit
      }
      %s1 = gdn_warp.wgmma_wait 0 of %s0 : tensor<64x128xf32, #gdn_warp.fragment>
      scf.if %lane0 {
        gdn_warp.barrier_arrive %empty
      }
      scf.yield %s1 : tensor<64x128xf32, #gdn_warp.fragment>
    }
    gdn_warp.array_store %final, %s[%head, %v0, %c0] axes [1, 2]
        : tensor<64x128xf32, #gdn_warp.fragment> -> memref<2x128x128xf32>
    scf.if %leader {
      gdn_warp.bulk_wait 0
    }
  }
}
