// Inverses of 16, 32 and 64 rows, each by one warp.
// RUN: gdn-opt %s --gdn-warp-to-llvm | gdn-translate --gdn-to-ptx | FileCheck %s

// Runs of M are broadcasts of 16 bytes, steps of the substitution pairs of f16, merges products of tensor cores.
// CHECK: .entry solve(
// CHECK-DAG: ld.shared.v4.b32
// CHECK-DAG: fma.rn.f16x2
// CHECK-DAG: cvt.rn.bf16x2.f32
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-DAG: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: local

gdn_warp.kernel @solve(%m16 : memref<16x16xf32>, %m32 : memref<32x32xf32>, %m64 : memref<64x64xf32>,
    %x16 : memref<16x16xf32>, %x32 : memref<32x32xf32>, %x64 : memref<64x64xf32>)
    threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %lane = gdn_warp.id lane
  %at_m16 = arith.constant 0 : index
  %at_m32 = arith.constant 1024 : index
  %at_m64 = arith.constant 4096 : index
  %at_x16 = arith.constant 14336 : index
  %at_x32 = arith.constant 16384 : index
  %at_x64 = arith.constant 20480 : index
  gdn_warp.role "16" warps(0, 1) {
    %m = gdn_warp.view %at_m16 : !gdn_warp.view<16x16xf16, stride = 48>
    %x = gdn_warp.view %at_x16 : !gdn_warp.view<16x16xf16, stride = 48>
    %low = arith.cmpi ult, %lane, %c16 : index
    scf.if %low {
      scf.for %i = %c0 to %c16 step %c1 {
        %f = memref.load %m16[%i, %lane] : memref<16x16xf32>
        %h = arith.truncf %f : f32 to f16
        gdn_warp.store %h, %m[%lane, %i] : f16 -> !gdn_warp.view<16x16xf16, stride = 48>
      }
    }
    gdn_warp.sync warp
    gdn_warp.tri_inverse %m, %x : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xf16, stride = 48>
    gdn_warp.sync warp
    scf.if %low {
      scf.for %i = %c0 to %c16 step %c1 {
        %h = gdn_warp.load %x[%lane, %i] : !gdn_warp.view<16x16xf16, stride = 48> -> f16
        %f = arith.extf %h : f16 to f32
        memref.store %f, %x16[%i, %lane] : memref<16x16xf32>
      }
    }
  }
  gdn_warp.role "32" warps(1, 1) {
    %m = gdn_warp.view %at_m32 : !gdn_warp.view<32x32xf16, stride = 80>
    %t = gdn_warp.view %at_x32 : !gdn_warp.view<32x64xbf16, swizzle = 128>
    %x = gdn_warp.slice %t[0, 32] : !gdn_warp.view<32x64xbf16, swizzle = 128>
        -> !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
    scf.for %i = %c0 to %c32 step %c1 {
      %f = memref.load %m32[%i, %lane] : memref<32x32xf32>
      %h = arith.truncf %f : f32 to f16
      gdn_warp.store %h, %m[%lane, %i] : f16 -> !gdn_warp.view<32x32xf16, stride = 80>
    }
    gdn_warp.sync warp
    gdn_warp.tri_inverse %m, %x : !gdn_warp.view<32x32xf16, stride = 80>,
        !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64>
    gdn_warp.sync warp
    scf.for %i = %c0 to %c32 step %c1 {
      %h = gdn_warp.load %x[%lane, %i]
          : !gdn_warp.view<32x32xbf16, swizzle = 128, stride = 4096, column = 64> -> bf16
      %f = arith.extf %h : bf16 to f32
      memref.store %f, %x32[%i, %lane] : memref<32x32xf32>
    }
  }
  gdn_warp.role "64" warps(2, 1) {
    %m = gdn_warp.view %at_m64 : !gdn_warp.view<64x64xf16, stride = 144>
    %x = gdn_warp.view %at_x64 : !gdn_warp.view<64x64xbf16, swizzle = 128>
    scf.for %i = %c0 to %c64 step %c1 {
      scf.for %j = %c0 to %c64 step %c32 {
        %column = arith.addi %j, %lane : index
        %f = memref.load %m64[%i, %column] : memref<64x64xf32>
        %h = arith.truncf %f : f32 to f16
        gdn_warp.store %h, %m[%column, %i] : f16 -> !gdn_warp.view<64x64xf16, stride = 144>
      }
    }
    gdn_warp.sync warp
    gdn_warp.tri_inverse %m, %x : !gdn_warp.view<64x64xf16, stride = 144>,
        !gdn_warp.view<64x64xbf16, swizzle = 128>
    gdn_warp.sync warp
    scf.for %i = %c0 to %c64 step %c1 {
      scf.for %j = %c0 to %c64 step %c32 {
        %column = arith.addi %j, %lane : index
        %h = gdn_warp.load %x[%column, %i] : !gdn_warp.view<64x64xbf16, swizzle = 128> -> bf16
        %f = arith.extf %h : bf16 to f32
        memref.store %f, %x64[%i, %column] : memref<64x64xf32>
      }
    }
  }
}
