// Products: descriptors, the order of steps, accumulators.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// Left operand in registers: inline assembly, the first step ignores the accumulator. The right
// operand shares 128-byte rows with another tile (64 bytes on: 4 units), rows are K: no transpose
// of nvvm, step 16 rows of 128 bytes (128 units).
// CHECK-LABEL: llvm.func @registers(
gdn_warp.kernel @registers(%y : memref<64x32xf32>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
  %a = arith.constant dense<1.0> : tensor<64x32xbf16, #gdn_warp.fragment>
  // LBO 4096, SBO 1024, swizzle of 128 bytes: (256 << 16) + 4 below, (1 << 30) + 64 above.
  // CHECK: nvvm.wgmma.fence.aligned
  // CHECK: arith.shrui
  // CHECK: %[[UNIT:.*]] = arith.andi %{{.*}}, %c16383_i32
  // CHECK: %[[LOW:.*]] = arith.addi %[[UNIT]], %c16777220_i32
  // CHECK: %[[D0:.*]] = llvm.inline_asm {{.*}}"mov.b64 $0, {$1, 1073741888};", "=l,r" %[[LOW]]
  // CHECK: llvm.inline_asm has_side_effects {{.*}}setp.ne.b32 p, 0, 0;{{.*}}wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {$0, {{.*}}$15}, {$32, $33, $34, $35}, $36, p, 1, 1, 1;{{.*}} %[[D0]]
  // CHECK: %[[D1:.*]] = arith.addi %[[D0]], %c128_i64
  // CHECK: llvm.inline_asm has_side_effects {{.*}}setp.ne.b32 p, 1, 0;{{.*}} %[[D1]]
  // CHECK: nvvm.wgmma.commit.group.sync.aligned
  gdn_warp.wgmma_fence
  %d = gdn_warp.wgmma %a, %w : tensor<64x32xbf16, #gdn_warp.fragment>,
      !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      -> tensor<64x32xf32, #gdn_warp.fragment>
  gdn_warp.wgmma_commit
  // The wait hands the accumulators on, so that nothing reads them before it.
  // CHECK: %[[DONE:.*]] = llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;", "=f,{{.*}},0,1,{{.*}},~{memory}"
  // CHECK: llvm.extractvalue %[[DONE]][0]
  %e = gdn_warp.wgmma_wait 0 of %d : tensor<64x32xf32, #gdn_warp.fragment>
  gdn_warp.array_store %e, %y[%c0, %c0] axes [0, 1]
      : tensor<64x32xf32, #gdn_warp.fragment> -> memref<64x32xf32>
}

// A product that is alone has registers of its own between its fence and its wait, filled before the fence and read
// behind the wait.
// CHECK-LABEL: llvm.func @alone(
// CHECK: %[[IN:.*]] = llvm.inline_asm has_side_effects {{.*}}"mov.f32 $0, ${{.*}}mov.b32 $16, ${{.*}}wgmma.fence.sync.aligned;", "=&f,{{.*}}=&r,
// CHECK: llvm.extractvalue %[[IN]][0]
// CHECK-COUNT-2: wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;{{.*}}mov.f32 $0, $16;
gdn_warp.kernel @alone(%y : memref<64x32xf32>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
  %a = arith.constant dense<1.0> : tensor<64x32xbf16, #gdn_warp.fragment>
  %d = gdn_warp.wgmma alone %a, %w : tensor<64x32xbf16, #gdn_warp.fragment>,
      !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
      -> tensor<64x32xf32, #gdn_warp.fragment>
  gdn_warp.array_store %d, %y[%c0, %c0] axes [0, 1]
      : tensor<64x32xf32, #gdn_warp.fragment> -> memref<64x32xf32>
}

// Both operands in shared memory, both K-major: 32 bytes a step, then the next panel (8192 bytes,
// 512 units). f16 operands.
// CHECK-LABEL: llvm.func @shared(
gdn_warp.kernel @shared(%y : memref<64x64xf32>) threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x128xf16, swizzle = 128>
  // CHECK: %[[LOW:.*]] = arith.addi %{{.*}}, %c65536_i32
  // CHECK: %[[D:.*]] = llvm.inline_asm {{.*}}"mov.b64 $0, {$1, 1073741888};", "=l,r" %[[LOW]]
  // CHECK: nvvm.wgmma.mma_async %[[D]], %[[D]], %{{.*}}, <m = 64, n = 64, k = 16>, D[<f32>, <zero>], A[<f16>, <one>, <row>], B[<f16>, <one>, <col>]
  // CHECK: arith.addi %[[D]], %c2_i64
  // CHECK: D[<f32>, <one>]
  // CHECK-COUNT-2: nvvm.wgmma.mma_async
  // CHECK: arith.addi %[[D]], %c512_i64
  // CHECK-COUNT-4: nvvm.wgmma.mma_async
  // CHECK-NOT: nvvm.wgmma.mma_async
  %d = gdn_warp.wgmma %v, %v transpose_b : !gdn_warp.view<64x128xf16, swizzle = 128>,
      !gdn_warp.view<64x128xf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  %e = gdn_warp.wgmma_wait 0 of %d : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.array_store %e, %y[%c0, %c0] axes [0, 1]
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// Descriptors of alternative branches differ, in a field that a K-major operand leaves unused: of equal ones ptxas would
// make each step by five instructions.
// CHECK-LABEL: llvm.func @branches(
gdn_warp.kernel @branches(%y : memref<64x64xf32>, %first: i1, %second: i1) threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xf16, swizzle = 128>
  // CHECK-DAG: arith.addi %{{.*}}, %c196608_i32
  // CHECK-DAG: arith.addi %{{.*}}, %c262144_i32
  // CHECK-DAG: arith.addi %{{.*}}, %c393216_i32
  %e = scf.if %first -> tensor<64x64xf32, #gdn_warp.fragment> {
    %inner = scf.if %second -> tensor<64x64xf32, #gdn_warp.fragment> {
      %d = gdn_warp.wgmma %v, %v transpose_b : !gdn_warp.view<64x64xf16, swizzle = 128>,
          !gdn_warp.view<64x64xf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
      %done = gdn_warp.wgmma_wait 0 of %d : tensor<64x64xf32, #gdn_warp.fragment>
      scf.yield %done : tensor<64x64xf32, #gdn_warp.fragment>
    } else {
      %d = gdn_warp.wgmma %v, %v transpose_b : !gdn_warp.view<64x64xf16, swizzle = 128>,
          !gdn_warp.view<64x64xf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
      %done = gdn_warp.wgmma_wait 0 of %d : tensor<64x64xf32, #gdn_warp.fragment>
      scf.yield %done : tensor<64x64xf32, #gdn_warp.fragment>
    }
    scf.yield %inner : tensor<64x64xf32, #gdn_warp.fragment>
  } else {
    %d = gdn_warp.wgmma %v, %v transpose_b : !gdn_warp.view<64x64xf16, swizzle = 128>,
        !gdn_warp.view<64x64xf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
    %done = gdn_warp.wgmma_wait 0 of %d : tensor<64x64xf32, #gdn_warp.fragment>
    scf.yield %done : tensor<64x64xf32, #gdn_warp.fragment>
  }
  gdn_warp.array_store %e, %y[%c0, %c0] axes [0, 1]
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// A transposed left operand is MN-major.
// CHECK-LABEL: llvm.func @transposed(
gdn_warp.kernel @transposed() threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<16x64xbf16, swizzle = 128>
  // CHECK: nvvm.wgmma.mma_async {{.*}}A[<bf16>, <one>, <col>], B[<bf16>, <one>, <row>]
  %d = gdn_warp.wgmma %v transpose_a, %v : !gdn_warp.view<16x64xbf16, swizzle = 128>,
      !gdn_warp.view<16x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  // Without accumulators the wait is the plain one.
  // CHECK: nvvm.wgmma.wait.group.sync.aligned 1
  gdn_warp.wgmma_wait 1
}

// Minus a b: the left operand is negated by the instruction.
// CHECK-LABEL: llvm.func @negated(
gdn_warp.kernel @negated(%x : memref<64x64xf32>) threads(128) shared(16384) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x16xbf16, swizzle = 128>
  %f = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x16xf32, #gdn_warp.fragment>
  %a = arith.truncf %f : tensor<64x16xf32, #gdn_warp.fragment> to tensor<64x16xbf16, #gdn_warp.fragment>
  gdn_warp.wgmma_fence
  // CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16{{.*}}, p, -1, 1, 0;
  %d = gdn_warp.wgmma negate %a, %v transpose_b : tensor<64x16xbf16, #gdn_warp.fragment>,
      !gdn_warp.view<64x16xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
  // CHECK: nvvm.wgmma.mma_async {{.*}}A[<bf16>, <neg>, <row>]
  %e = gdn_warp.wgmma negate %v, %v transpose_b into(%d : tensor<64x64xf32, #gdn_warp.fragment>)
      : !gdn_warp.view<64x16xbf16, swizzle = 128>, !gdn_warp.view<64x16xbf16, swizzle = 128>
      -> tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.wgmma_commit
  %r = gdn_warp.wgmma_wait 0 of %e : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.array_store %r, %x[%c0, %c0] axes [0, 1] : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}
