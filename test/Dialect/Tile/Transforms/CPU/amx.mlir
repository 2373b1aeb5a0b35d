// Products of pairs of bf16 whose sizes fill tile registers are made by them, with 2 x 2 tiles of sums where there are as many.
// RUN: gdn-opt %s --gdn-tile-pack-products=bf16-dot --gdn-tile-fuse-elementwise --split-input-file \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize \
// RUN:   "--gdn-tile-vectorize=vector-bits=512 amx" | FileCheck %s

// A sum of 64 is two products a tile of sums, without a loop.
// CHECK-LABEL: func.func @scores
//   CHECK-DAG:   %[[C32:.+]] = arith.constant 32 : index
//       CHECK:   scf.for %[[I:.+]] = {{.*}} step %[[C32]]
//       CHECK:     scf.for %[[J:.+]] = {{.*}} step %[[C32]]
// CHECK-COUNT-4:     amx.tile_load {{.*}} into !amx.tile<16x16xf32>
//   CHECK-NOT:     scf.for
// CHECK-COUNT-8:     amx.tile_mulf {{.*}} : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
//   CHECK-NOT:     amx.tile_mulf
// CHECK-COUNT-4:     amx.tile_store
//   CHECK-NOT:   linalg
func.func @scores(%q: tensor<64x64xbf16>, %k: tensor<32x64xbf16>, %z: tensor<64x32xf32>) -> tensor<64x32xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<64x64xbf16>, tensor<32x64xbf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// -----

// A chunk of 16 tokens: half the elements of a register's rows. 16 x 48 sums are blocks of one tile.
// CHECK-LABEL: func.func @update
//       CHECK:   amx.tile_load {{.*}} into !amx.tile<16x16xf32>
//   CHECK-DAG:   amx.tile_load {{.*}} into !amx.tile<8x32xbf16>
//   CHECK-DAG:   amx.tile_load {{.*}} into !amx.tile<16x16xbf16>
//       CHECK:   amx.tile_mulf {{.*}} : !amx.tile<16x16xbf16>, !amx.tile<8x32xbf16>, !amx.tile<16x16xf32>
//   CHECK-NOT:   amx.tile_mulf
//       CHECK:   amx.tile_store
func.func @update(%r: tensor<16x16xbf16>, %k: tensor<16x48xbf16>, %s: tensor<16x48xf32>) -> tensor<16x48xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%r, %k : tensor<16x16xbf16>, tensor<16x48xbf16>) outs(%s : tensor<16x48xf32>) -> tensor<16x48xf32>
  return %0 : tensor<16x48xf32>
}

// -----

// 8 rows fill no register: vectors do it.
// CHECK-LABEL: func.func @few
//   CHECK-NOT:   amx
//       CHECK:   x86vector.avx512.dot
func.func @few(%q: tensor<8x32xbf16>, %k: tensor<32x32xbf16>, %z: tensor<8x32xf32>) -> tensor<8x32xf32>
    attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<8x32xbf16>, tensor<32x32xbf16>) outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

// A register has one shape in a function. Blocks of 2 x 2 sums take seven whole registers; tiles of half rows would ask for
// three more, and there are eight: vectors make the product of 16.
// CHECK-LABEL: func.func @both
//   CHECK-NOT:   !amx.tile<8x32xbf16>
// CHECK-COUNT-8: amx.tile_mulf {{.*}} : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
//   CHECK-NOT:   amx.tile_mulf
//       CHECK:   x86vector.avx512.dot
func.func @both(%q: tensor<64x64xbf16>, %k: tensor<32x64xbf16>, %z: tensor<64x32xf32>,
                %r: tensor<64x16xbf16>, %l: tensor<16x128xbf16>, %s: tensor<64x128xf32>)
    -> (tensor<64x32xf32>, tensor<64x128xf32>) attributes {gdn_tile.program} {
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<64x64xbf16>, tensor<32x64xbf16>) outs(%z : tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%r, %l : tensor<64x16xbf16>, tensor<16x128xbf16>) outs(%s : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<64x128xf32>
}
