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
  gdn_warp.solve %m, %x times %f, %f : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xbf16>,
      !gdn_warp.view<32xf32>, !gdn_warp.view<32xf32>
}
