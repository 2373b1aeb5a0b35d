// RUN: gdn-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gdn_warp.kernel @tile(
// CHECK: gdn_warp.prefetch %a[%{{.*}}, %{{.*}}] axes [1, 0] sizes [64, 128] : memref<128x128xf32>
gdn_warp.kernel @tile(%a : memref<128x128xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  gdn_warp.prefetch %a[%c0, %c0] axes [1, 0] sizes [64, 128] : memref<128x128xf32>
}

// -----

gdn_warp.kernel @sizes(%a : memref<128x128xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected two sizes of at least 1, got [64, 0]}}
  gdn_warp.prefetch %a[%c0, %c0] axes [0, 1] sizes [64, 0] : memref<128x128xf32>
}

// -----

gdn_warp.kernel @last(%a : memref<4x128x128xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected an axis along the array's last dimension, 2, got [0, 1]}}
  gdn_warp.prefetch %a[%c0, %c0, %c0] axes [0, 1] sizes [4, 128] : memref<4x128x128xf32>
}

// -----

gdn_warp.kernel @offsets(%a : memref<128x128xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 2 offsets, one a dimension of the array, got 1}}
  gdn_warp.prefetch %a[%c0] axes [0, 1] sizes [64, 128] : memref<128x128xf32>
}
