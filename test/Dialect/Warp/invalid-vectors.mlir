// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// Whole warps write the rows of a store.
gdn_warp.kernel @k() threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<24xf32>
  %r = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  // expected-error @below {{expected rows [a, b] in multiples of 16 up to 64, got [8, 32]}}
  gdn_warp.vector_store %r, %v rows [8, 32] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<24xf32>
}

// -----

// All threads hold all columns in turn: there is no warp that could write some.
gdn_warp.kernel @k() threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  %r = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.columns>
  // expected-error @below {{expected a vector of rows, of which `rows` are written, got 'tensor<64xf32, #gdn_warp.columns>'}}
  gdn_warp.vector_store %r, %v rows [0, 32] : tensor<64xf32, #gdn_warp.columns> -> !gdn_warp.view<32xf32>
}

// -----

// The view has as many elements as are written.
gdn_warp.kernel @k() threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  %r = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  // expected-error @below {{expected a view of 32 elements of 'f32', got '!gdn_warp.view<64xf32>'}}
  gdn_warp.vector_store %r, %v rows [0, 32] : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
}

// -----

gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x16xbf16>
  // expected-error @below {{expected f16 or bf16, 16 rows or a multiple of 32, a multiple of 32 columns, and rows a multiple of 16 bytes apart, got '!gdn_warp.view<32x16xbf16>'}}
  %k = gdn_warp.row_dots %v, %v : !gdn_warp.view<32x16xbf16>, !gdn_warp.view<32x16xbf16> -> tensor<32xf32, #gdn_warp.lanes>
}

// -----

gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16>
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x32xf16>
  // expected-error @below {{expected tiles of one shape and type, got '!gdn_warp.view<32x32xbf16>' and '!gdn_warp.view<32x32xf16>'}}
  %k = gdn_warp.row_dots %v, %w : !gdn_warp.view<32x32xbf16>, !gdn_warp.view<32x32xf16> -> tensor<32xf32, #gdn_warp.lanes>
}

// -----

gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16>
  // expected-error @below {{expected a vector of 32 elements of f32, got 'tensor<64xf32, #gdn_warp.lanes>' of '!gdn_warp.view<32x32xbf16>'}}
  %k = gdn_warp.row_dots %v, %v : !gdn_warp.view<32x32xbf16>, !gdn_warp.view<32x32xbf16> -> tensor<64xf32, #gdn_warp.lanes>
}

// -----

// A warpgroup has 64 rows.
gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16>
  // expected-error @below {{expected a vector of 64 elements of f32, got 'tensor<64xf32, #gdn_warp.rows>' of '!gdn_warp.view<32x32xbf16>'}}
  %k = gdn_warp.row_dots %v, %v : !gdn_warp.view<32x32xbf16>, !gdn_warp.view<32x32xbf16> -> tensor<64xf32, #gdn_warp.rows>
}

// -----

// Factors of the solve's rows and columns are vectors of f32, of its size.
gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<16x16xf16, stride = 48>
  %x = gdn_warp.view %c0 : !gdn_warp.view<16x16xbf16>
  %f = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  // expected-error @below {{expected factors of 16 elements of f32, got '!gdn_warp.view<32xf32>'}}
  gdn_warp.tri_inverse %m, %x times %f, %f : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xbf16>,
      !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
}

// -----

// M is f32 where its columns have factors, f16 where they have none.
gdn_warp.kernel @k() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<16x16xf16, stride = 48>
  %x = gdn_warp.view %c0 : !gdn_warp.view<16x16xbf16>
  %f = gdn_warp.view %c0 : !gdn_warp.view<16xf32>
  // expected-error @below {{expected M in f32 without a swizzle}}
  gdn_warp.tri_inverse %m by(%f : !gdn_warp.view<16xf32>), %x : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xbf16>
}

// -----

gdn_warp.kernel @k(%x: memref<64x24xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x24xf32> -> tensor<64x24xf32, #gdn_warp.fragment>
  // expected-error @below {{expected squares of floats, of 16, 32 or 64 rows each, got 'tensor<64x24xf32, #gdn_warp.fragment>'}}
  %d = gdn_warp.causal %t : tensor<64x24xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a square of rows of the fragment, from a multiple of 16 on, got 32 rows from 40 on}}
  %d = gdn_warp.diagonal %t from 40 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a vector of 64 elements of 'f32', got 'tensor<64xi32, #gdn_warp.rows>'}}
  %d = gdn_warp.diagonal %t from 0 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xi32, #gdn_warp.rows>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected rows [a, b] in multiples of 16 up to 64, got [0, 40]}}
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] rows [0, 40] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a fragment or a vector of rows, of which `rows` are accessed, got 'tensor<32xf32, #gdn_warp.columns>'}}
  %t = gdn_warp.array_load %x[%c0, %c0] axes [1] rows [0, 16] : memref<64x32xf32> -> tensor<32xf32, #gdn_warp.columns>
}

// -----

gdn_warp.kernel @k() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // expected-error @below {{expected a view of shape [16, 64], got [32, 64]}}
  %t = gdn_warp.fragment_load %v rows [0, 16] : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  // expected-error @below {{expected a whole view that lies as the fragment, of which to repeat a row}}
  %t = gdn_warp.fragment_load %v transpose row(%c0) : !gdn_warp.view<64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // expected-error @below {{expected a row of '!gdn_warp.view<32x64xbf16, swizzle = 128>', got 32}}
  %t = gdn_warp.vector_load %v row(32) : !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64xbf16, #gdn_warp.columns>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a row in [0, 64), got 64}}
  %d = gdn_warp.row %t[64] : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<32xf32, #gdn_warp.columns>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a column in [0, 32), got 32}}
  %d = gdn_warp.column %t[32] : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
}

// -----

gdn_warp.kernel @k(%x: memref<64x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a result of 64 columns, got}}
  %d = gdn_warp.join %t, %t : tensor<64x32xf32, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k(%x: memref<64x64xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // expected-error @below {{expected a view of shape [64, 128], got [128, 64]}}
  %v = gdn_warp.publish %t, %t transpose : tensor<64x64xbf16, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment>
      -> !gdn_warp.view<128x64xbf16, swizzle = 128>
}

// -----

gdn_warp.kernel @k(%x: memref<64x64xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> tensor<64x64xbf16, #gdn_warp.fragment>
  // expected-error @below {{expected a view of shape [128, 64], got [64, 64]}}
  %v = gdn_warp.publish %t, %t : tensor<64x64xbf16, #gdn_warp.fragment>, tensor<64x64xbf16, #gdn_warp.fragment>
      -> !gdn_warp.view<64x64xbf16, swizzle = 128>
}

// -----

gdn_warp.kernel @k() threads(128) shared(1024) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a half, a quarter or an eighth of 64 columns, got 24}}
  %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x24xf32, #gdn_warp.fragment>
}

// -----

// expected-note @below {{the kernel}}
gdn_warp.kernel @k() threads(128) shared(1024) cluster(4) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a cluster of 2 CTAs, got 4}}
  %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k() threads(128) shared(1024) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf32, #gdn_warp.fragment>
  // expected-error @below {{expected four integers in place, got 2}}
  %s = gdn_warp.cluster_send %x number %c0 place [0, 8] : tensor<64x64xf32, #gdn_warp.fragment> -> tensor<64x32xf32, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k() threads(128) shared(1024) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x64xf16, #gdn_warp.fragment>
  // expected-error @below {{expected tiles of f32, got 'tensor<64x64xf16, #gdn_warp.fragment>' and 'tensor<64x32xf16, #gdn_warp.fragment>'}}
  %s = gdn_warp.cluster_send %x number %c0 : tensor<64x64xf16, #gdn_warp.fragment> -> tensor<64x32xf16, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @k() threads(128) shared(1024) cluster(2) {
  %c0 = arith.constant 0 : index
  %x = arith.constant dense<1.0> : tensor<64x32xf32, #gdn_warp.fragment>
  // expected-error @below {{expected a result of type 'tensor<64x32xf32, #gdn_warp.fragment>', got 'tensor<64x16xf32, #gdn_warp.fragment>'}}
  %s = gdn_warp.cluster_add %x number %c0 of 2 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64x16xf32, #gdn_warp.fragment>
}
