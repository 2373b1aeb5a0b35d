// RUN: gdn-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gdn_warp.kernel @whole(
gdn_warp.kernel @whole(%x: memref<32x128xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // CHECK: gdn_warp.array_load {{.*}} -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<32x128xf32>
      -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
  // CHECK: tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>
  %k = gdn_warp.array_load %x[%c0, %c0] axes [1] : memref<32x128xf32>
      -> tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>
  // CHECK: tensor<1xf32, #gdn_warp.uniform>
  %b = gdn_warp.array_load %x[%c0, %c0] axes [1] : memref<32x128xf32> -> tensor<1xf32, #gdn_warp.uniform>
}

// -----

// expected-error @below {{expected patches of a power of two up to 16 rows and columns, got 1 and 3}}
func.func private @run() -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 3, axis = 1, lanes = 16, warps = 4>>

// -----

// expected-error @below {{expected axis 0 or 1, got 2}}
func.func private @axis() -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 2, lanes = 16, warps = 4>>

// -----

// expected-error @below {{expected lanes that divide 32, got 12}}
func.func private @lanes() -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 12, warps = 4>>

// -----

// expected-error @below {{expected 1 to 32 warps, got 0}}
func.func private @warps() -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 0>>

// -----

// expected-error @below {{expected a multiple of 8 rows, got 12}}
func.func private @rows() -> tensor<12x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>

// -----

// expected-error @below {{expected a multiple of 64 columns, got 96}}
func.func private @columns() -> tensor<32x96xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>

// -----

// expected-error @below {{expected a multiple of 32 rows, got 16}}
func.func private @slice() -> tensor<16xf32, #gdn_warp.slice<of = <rows = 4, columns = 1, axis = 0, lanes = 16, warps = 4>, axis = 0>>

// -----

// expected-error @below {{expected a scalar or a vector of at most 8 elements, got shape [9]}}
func.func private @uniform() -> tensor<9xf32, #gdn_warp.uniform>
