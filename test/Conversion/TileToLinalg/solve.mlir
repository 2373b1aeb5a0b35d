// RUN: gdn-opt %s --convert-gdn-tile-to-linalg --canonicalize | FileCheck %s

// One block: substitution alone, in f32, and no merge.
// CHECK-LABEL: func.func @solve_block
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     vector.fma %{{.*}} : vector<16xf32>
// CHECK-NOT: linalg.contract
func.func @solve_block(%kk : tensor<16x16xf32>, %b : tensor<16xf32>) -> tensor<16x16xf32> {
  %r = gdn_tile.solve %kk, %b merge f16 : tensor<16x16xf32>, tensor<16xf32>
  return %r : tensor<16x16xf32>
}

// Two blocks: one merge of two products, whose operands are rounded to the merge
// type and whose sums are f32.
// CHECK-LABEL: func.func @solve_merge
// CHECK: %[[LEFT:.*]] = arith.truncf %{{.*}} : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: %[[RIGHT:.*]] = arith.truncf %{{.*}} : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: %[[MIDDLE:.*]] = arith.truncf %{{.*}} : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: %[[FIRST:.*]] = linalg.contract {{.*}} ins(%[[LEFT]], %[[MIDDLE]] : {{.*}}) outs(%{{.*}} : tensor<16x16xf32>)
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[FIRST]]
// CHECK: %[[MERGED:.*]] = linalg.contract {{.*}} ins(%[[ROUNDED]], %[[RIGHT]]
// CHECK: tensor.insert_slice %[[MERGED]] into %{{.*}}[16, 0] [16, 16]
// CHECK-NOT: linalg.contract
func.func @solve_merge(%kk : tensor<32x32xf32>, %b : tensor<32xf32>) -> tensor<32x32xf32> {
  %r = gdn_tile.solve %kk, %b merge f16 : tensor<32x32xf32>, tensor<32xf32>
  return %r : tensor<32x32xf32>
}

// With f32 nothing is rounded.
// CHECK-LABEL: func.func @solve_f32
// CHECK-NOT: truncf
func.func @solve_f32(%kk : tensor<64x64xf32>, %b : tensor<64xf32>) -> tensor<64x64xf32> {
  %r = gdn_tile.solve %kk, %b merge f32 : tensor<64x64xf32>, tensor<64xf32>
  return %r : tensor<64x64xf32>
}
