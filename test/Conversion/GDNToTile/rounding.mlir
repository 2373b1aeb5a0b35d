// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=bf16 --canonicalize --cse --gdn-tile-verify-form | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=f16 --canonicalize --cse --gdn-tile-verify-form | FileCheck %s --check-prefixes=CHECK,F16
// RUN: gdn-opt %s --convert-gdn-to-tile=operand-type=f32 --canonicalize --cse --gdn-tile-verify-form | FileCheck %s --check-prefixes=CHECK,F32

// Where the kernel rounds (spec 8): the operands of every product, to the
// operand type; sums, the state and the solve's diagonal stay in f32. Merges of
// the solve take f16 operands in programs that round, f32 in those that do not.

// CHECK-LABEL: gdn_tile.program @layer_fused(

// bf16 operands: keys and queries are loaded in it, one rounding for the solve,
// five for the chain and one of the output.
// BF16: linalg.contract {{.*}} ins(%{{.*}} : tensor<32x64xbf16>, tensor<32x64xbf16>)
// BF16: linalg.contract {{.*}} ins(%{{.*}} : tensor<32x64xbf16>, tensor<32x64xbf16>)
// BF16: arith.truncf {{.*}}"scores"} : tensor<32x32xf32> to tensor<32x32xf16>
// BF16: arith.truncf {{.*}}"scores"} : tensor<32x32xf32> to tensor<32x32xbf16>
// BF16: gdn_tile.tri_inverse {{.*}} merge f16
// BF16: arith.truncf {{.*}}"solve"} : tensor<32x32xf32> to tensor<32x32xbf16>
// BF16: arith.truncf {{.*}}"state"} : tensor<16x64xf32> to tensor<16x64xbf16>
// BF16: arith.truncf {{.*}}"state"} : tensor<16x32xf32> to tensor<16x32xbf16>
// BF16: arith.truncf {{.*}}"state"} : tensor<16x32xf32> to tensor<16x32xbf16>
// BF16: arith.truncf {{.*}}"state"} : tensor<16x32xf32> to tensor<16x32xbf16>
// BF16-NOT: arith.truncf

// bf16 to f16 goes through f32, which holds both.
// F16: %[[K:.*]] = gdn_tile.load %k{{.*}} -> tensor<32x64xbf16>
// F16: %[[KF:.*]] = arith.extf %[[K]] {gdn_tile.step = "load"}
// F16: %[[KH:.*]] = arith.truncf %[[KF]] {gdn_tile.step = "load"} : tensor<32x64xf32> to tensor<32x64xf16>
// F16: linalg.contract {{.*}} ins(%[[KH]], %[[KH]] :
// F16: gdn_tile.tri_inverse {{.*}} merge f16
// F16: arith.truncf {{.*}} to tensor<16x64xf16>
// F16: arith.truncf {{.*}}"state"} : tensor<16x32xf32> to tensor<16x32xbf16>

// f32: nothing but the output is rounded.
// F32: gdn_tile.tri_inverse {{.*}} merge f32
// F32-NOT: arith.truncf
// F32: arith.truncf {{.*}}"state"} : tensor<16x32xf32> to tensor<16x32xbf16>
// F32-NOT: arith.truncf

// CHECK-LABEL: func.func @layer
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32}
      -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
