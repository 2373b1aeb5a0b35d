// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=f16 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,F16
// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=bf16 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=f32 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,F32

// How far exp(-G) may go depends on the operand type (spec 3.7, 4.3). f16 has
// no room: one form only, the decayed one, and nothing to choose at run time.
// f32 stops earlier than bf16, where the rounding of G itself would show, and
// sums the gates in f64, so that differences of large sums are right. At a new
// reference point G is 24, in f32 0: what it is rounded by adds up. Keys as they
// are, of any length, leave less room.

// CHECK-LABEL: gdn_tile.program @gdn_fused(
// F16-NOT: scf.if
// F16: gdn_tile.scan %{{.*}} : tensor<32xf32>
// F16: gdn_tile.causal %{{.*}} {gdn_tile.step = "scores"} : tensor<32x32xf32>
// F16-NOT: scf.if
// BF16-DAG: arith.constant -1.000000e+02 : f32
// BF16-DAG: arith.constant 2.400000e+01 : f32
// BF16: gdn_tile.scan %{{.*}} : tensor<32xf32>
// BF16: scf.if
// F32: arith.constant -4.000000e+01 : f32
// F32-NOT: arith.constant 2.400000e+01 : f32
// F32: gdn_tile.scan %{{.*}} : tensor<32xf64>
// F32: scf.if
// CHECK-LABEL: func.func @gdn
func.func @gdn(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}

// CHECK-LABEL: gdn_tile.program @norms_fused(
// BF16: arith.constant -9.000000e+01 : f32
// F32: arith.constant -4.000000e+01 : f32
// CHECK-LABEL: func.func @norms
func.func @norms(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {chunk_size = 32, qk_l2norm} -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}

// Halves of a chunk with a channel gate: factors up to 2^8 in f16, 2^116 otherwise.
// CHECK-LABEL: gdn_tile.program @kda_fused(
// F16: arith.constant 8.000000e+00 : f32
// BF16: arith.constant 1.160000e+02 : f32
// F32: arith.constant 1.160000e+02 : f32
func.func @kda(%q: tensor<1x64x2x64xf32>, %k: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>) -> tensor<1x64x4x16xf32> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xf32>) k(%k : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}
