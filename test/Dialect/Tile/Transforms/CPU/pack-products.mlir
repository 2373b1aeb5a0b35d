// RUN: gdn-opt %s --gdn-tile-pack-products | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, k) -> (m, k)>
#vec = affine_map<(m, k) -> (k)>
#out = affine_map<(m, k) -> (m)>

// 16-bit operands are widened, the right one is turned so that n is innermost.
// CHECK: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[$KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func @matrices
// CHECK-SAME: (%[[A:.*]]: tensor<64x128xbf16>, %[[B:.*]]: tensor<32x128xbf16>
// CHECK-DAG: %[[AW:.*]] = arith.extf %[[A]]
// CHECK-DAG: %[[BW:.*]] = arith.extf %[[B]]
// CHECK-DAG: %[[BT:.*]] = linalg.transpose ins(%[[BW]] {{.*}} permutation = [1, 0]
// CHECK: linalg.contract indexing_maps = [#[[$MK]], #[[$KN]], #{{.*}}] ins(%[[AW]], %[[BT]]
func.func @matrices(%a : tensor<64x128xbf16>, %b : tensor<32x128xbf16>, %c : tensor<64x32xf32>)
    -> tensor<64x32xf32> attributes {gdn_tile.program} {
  %r = linalg.contract indexing_maps = [#mk, #nk, #mn]
      ins(%a, %b : tensor<64x128xbf16>, tensor<32x128xbf16>)
      outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}

// A matrix times a vector is a dot product a row: nothing is turned.
// CHECK-LABEL: func.func @vector
// CHECK-NOT: linalg.transpose
func.func @vector(%a : tensor<64x128xf32>, %b : tensor<128xf32>, %c : tensor<64xf32>)
    -> tensor<64xf32> attributes {gdn_tile.program} {
  %r = linalg.contract indexing_maps = [#row, #vec, #out]
      ins(%a, %b : tensor<64x128xf32>, tensor<128xf32>)
      outs(%c : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// What is rounded only to be turned is turned first: there are no shuffles of
// 16-bit elements.
// CHECK-LABEL: func.func @transpose
// CHECK-SAME: (%[[A:.*]]: tensor<64x32xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[A]] : tensor<64x32xf32>)
// CHECK: arith.truncf %[[T]] : tensor<32x64xf32> to tensor<32x64xbf16>
func.func @transpose(%a : tensor<64x32xf32>) -> tensor<32x64xbf16>
    attributes {gdn_tile.program} {
  %r = arith.truncf %a : tensor<64x32xf32> to tensor<64x32xbf16>
  %e = tensor.empty() : tensor<32x64xbf16>
  %t = linalg.transpose ins(%r : tensor<64x32xbf16>) outs(%e : tensor<32x64xbf16>) permutation = [1, 0]
  return %t : tensor<32x64xbf16>
}
