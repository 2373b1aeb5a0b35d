// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-transpose-tiles),canonicalize,cse)' | FileCheck %s
// RUN: not gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-transpose-tiles{rows=0}))' \
// RUN:   2>&1 | FileCheck %s --check-prefix=BOUND

// BOUND: error: 'gdn_tile.program' op expected fragments of at least one row, got 0

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>

// Everything that a product's operand is made of, in a branch too: axes of scans and broadcasts, rows, sums and maps turn.
// CHECK-DAG: #[[$KI:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$KJ:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: gdn_tile.program @products(
// CHECK: %[[K:.*]] = gdn_tile.load %k{{.*}} -> tensor<32x128xbf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[K]] : {{.*}}) outs(%{{.*}} : tensor<128x32xbf16>) permutation = [1, 0] {gdn_tile.step = "decay"}
// CHECK: %[[F:.*]] = arith.extf %[[T]] {{.*}} : tensor<128x32xbf16> to tensor<128x32xf32>
// CHECK: %[[G:.*]] = gdn_tile.scan %[[F]] axis 1 {{.*}} : tensor<128x32xf32>
// CHECK: %[[E:.*]] = gdn_tile.rebase %[[G]] axis 1 block 32 at 15
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[E]][0, 31] [128, 1] [1, 1] {{.*}} : tensor<128x32xf32> to tensor<128xf32>
// CHECK: linalg.broadcast ins(%[[LAST]] : {{.*}} dimensions = [1]
// CHECK: linalg.reduce {{.*}} ins(%[[F]] : {{.*}} dimensions = [0]
// CHECK: %[[CHOSEN:.*]] = scf.if {{.*}} -> (tensor<128x32xbf16>)
// CHECK: } else {
// CHECK: %[[AGAIN:.*]] = linalg.transpose ins(%[[K]]
// CHECK: scf.yield %[[AGAIN]]
// CHECK: linalg.contract indexing_maps = [#[[$KI]], #[[$KJ]], #{{.*}}] {{.*}} ins(%[[CHOSEN]], %[[CHOSEN]] : tensor<128x32xbf16>, tensor<128x32xbf16>)
gdn_tile.program @products(%k: memref<32x128xbf16>) outs(%x: memref<32x32xf32>, %s: memref<32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %f = arith.extf %kt {gdn_tile.step = "decay"} : tensor<32x128xbf16> to tensor<32x128xf32>
  %g = gdn_tile.scan %f axis 0 {gdn_tile.step = "decay"} : tensor<32x128xf32>
  %e = gdn_tile.rebase %g axis 0 block 32 at 15 {gdn_tile.step = "decay"} : tensor<32x128xf32>
  %last = tensor.extract_slice %e[31, 0] [1, 128] [1, 1] {gdn_tile.step = "decay"} : tensor<32x128xf32> to tensor<128xf32>
  %empty = tensor.empty() {gdn_tile.step = "decay"} : tensor<32x128xf32>
  %lasts = linalg.broadcast ins(%last : tensor<128xf32>) outs(%empty : tensor<32x128xf32>) dimensions = [0] {gdn_tile.step = "decay"}
  %p = arith.mulf %e, %lasts {gdn_tile.step = "decay"} : tensor<32x128xf32>
  %sums = linalg.reduce { arith.addf } ins(%f : tensor<32x128xf32>) outs(%none : tensor<32xf32>) dimensions = [1] {gdn_tile.step = "decay"}
  %some = arith.cmpi ult, %begin, %end : index
  %chosen = scf.if %some -> (tensor<32x128xbf16>) {
    %pb = arith.truncf %p {gdn_tile.step = "decay"} : tensor<32x128xf32> to tensor<32x128xbf16>
    scf.yield %pb : tensor<32x128xbf16>
  } else {
    scf.yield %kt : tensor<32x128xbf16>
  }
  %kk = linalg.contract indexing_maps = [#ik, #jk, #ij] {gdn_tile.step = "scores"}
      ins(%chosen, %chosen : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  gdn_tile.store %kk, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %sums, %s[%c0] axes [0] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<32xf32>
}

// -----

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>

// A tile that is stored, one that a product makes, and sums that no product reads stay as they are.
// CHECK-LABEL: gdn_tile.program @stay(
// CHECK-NOT: linalg.transpose
// CHECK-NOT: tensor<128x32x
gdn_tile.program @stay(%k: memref<32x128xbf16>) outs(%x: memref<32x32xf32>, %y: memref<32x128xbf16>, %z: memref<32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %twice = arith.addf %kt, %kt {gdn_tile.step = "decay"} : tensor<32x128xbf16>
  %kk = linalg.contract indexing_maps = [#ik, #jk, #ij] {gdn_tile.step = "scores"}
      ins(%twice, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %f = arith.extf %kt {gdn_tile.step = "norms"} : tensor<32x128xbf16> to tensor<32x128xf32>
  %sums = linalg.reduce { arith.addf } ins(%f : tensor<32x128xf32>) outs(%none : tensor<32xf32>) dimensions = [1] {gdn_tile.step = "norms"}
  gdn_tile.store %kk, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %twice, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x128xbf16> -> memref<32x128xbf16>
  gdn_tile.store %sums, %z[%c0] axes [0] {gdn_tile.step = "store"} : tensor<32xf32> -> memref<32xf32>
}
