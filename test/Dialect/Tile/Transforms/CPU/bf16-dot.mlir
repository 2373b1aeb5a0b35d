// Products of bf16 keep their operands for AVX512_BF16: in pairs along the sum, both sides.
// RUN: gdn-opt %s --gdn-tile-pack-products=bf16-dot --split-input-file | FileCheck %s
// RUN: gdn-opt %s --gdn-tile-pack-products=bf16-dot --gdn-tile-fuse-elementwise --split-input-file \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize \
// RUN:   "--gdn-tile-vectorize=vector-bits=512" | FileCheck %s --check-prefix=VECTOR

// The right operand already has the sum innermost: its 32-bit words are transposed.
// CHECK-LABEL: func.func @scores
//  CHECK-SAME:   %[[Q:.+]]: tensor<32x64xbf16>, %[[K:.+]]: tensor<32x64xbf16>
//   CHECK-DAG:   %[[L:.+]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2]] {{.*}} into tensor<32x32x2xbf16>
//   CHECK-DAG:   %[[P:.+]] = tensor.expand_shape %[[K]] {{\[\[}}0], [1, 2]] {{.*}} into tensor<32x32x2xbf16>
//   CHECK-DAG:   %[[R:.+]] = linalg.transpose ins(%[[P]] : {{.*}}) outs({{.*}} : tensor<32x32x2xbf16>) permutation = [1, 0, 2]
//       CHECK:   linalg.contract {{.*}} ins(%[[L]], %[[R]] : tensor<32x32x2xbf16>, tensor<32x32x2xbf16>)
// VECTOR-LABEL: func.func @scores
//   VECTOR-NOT:   linalg
//       VECTOR:   x86vector.avx512.dot
//   VECTOR-NOT:   linalg
func.func @scores(%q: tensor<32x64xbf16>, %k: tensor<32x64xbf16>, %z: tensor<32x32xf32>) -> tensor<32x32xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<32x64xbf16>, tensor<32x64xbf16>) outs(%z : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// The sum runs down the right operand: two rows interleave.
// CHECK-LABEL: func.func @update
//       CHECK:   linalg.transpose {{.*}} permutation = [0, 2, 1]
// VECTOR-LABEL: func.func @update
//       VECTOR:   vector.interleave
//       VECTOR:   x86vector.avx512.dot
func.func @update(%r: tensor<64x32xbf16>, %k: tensor<32x64xbf16>, %s: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%r, %k : tensor<64x32xbf16>, tensor<32x64xbf16>) outs(%s : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// f16 has no such instruction: operands are widened as ever.
// CHECK-LABEL: func.func @half
//       CHECK:   linalg.contract {{.*}} ins({{.*}} : tensor<32x64xf32>, tensor<64x32xf32>)
// VECTOR-LABEL: func.func @half
//       VECTOR:   vector.fma
func.func @half(%q: tensor<32x64xf16>, %k: tensor<32x64xf16>, %z: tensor<32x32xf32>) -> tensor<32x32xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<32x64xf16>, tensor<32x64xf16>) outs(%z : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
