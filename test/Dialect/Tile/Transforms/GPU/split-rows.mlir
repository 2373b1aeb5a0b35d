// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-split-rows),canonicalize)' | FileCheck %s

// Loads, vectors of rows, elementwise ops and stores.
// CHECK-LABEL: gdn_tile.program @scaled
gdn_tile.program @scaled(%x: memref<128x64xf32>, %g: memref<128xf32>) outs(%y: memref<128x64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK: %[[X0:.*]] = gdn_tile.load %{{.*}}[%[[C0]], %[[C0]]] axes [0, 1] until(%{{.*}}, dim = 0) {gdn_tile.step = "state"} : {{.*}} -> tensor<64x64xf32>
  // CHECK: %[[X1:.*]] = gdn_tile.load %{{.*}}[%[[C64]], %[[C0]]] axes [0, 1] until(%{{.*}}, dim = 0) {gdn_tile.step = "state"} : {{.*}} -> tensor<64x64xf32>
  %a = gdn_tile.load %x[%c0, %c0] axes [0, 1] until(%end, dim = 0) {gdn_tile.step = "state"} : memref<128x64xf32> -> tensor<128x64xf32>
  // CHECK-DAG: %[[G0:.*]] = gdn_tile.load %{{.*}}[%[[C0]]] axes [0] {{.*}} -> tensor<64xf32>
  // CHECK-DAG: %[[G1:.*]] = gdn_tile.load %{{.*}}[%[[C64]]] axes [0] {{.*}} -> tensor<64xf32>
  %v0 = gdn_tile.load %g[%c0] axes [0] {gdn_tile.step = "state"} : memref<128xf32> -> tensor<128xf32>
  %e = math.exp2 %v0 {gdn_tile.step = "state"} : tensor<128xf32>
  %empty = tensor.empty() : tensor<128x64xf32>
  %spread = linalg.broadcast ins(%e : tensor<128xf32>) outs(%empty : tensor<128x64xf32>) dimensions = [1] {gdn_tile.step = "state"}
  // CHECK-DAG: %[[M0:.*]] = arith.mulf %[[X0]], %{{.*}} {gdn_tile.step = "state"} : tensor<64x64xf32>
  // CHECK-DAG: %[[M1:.*]] = arith.mulf %[[X1]], %{{.*}} {gdn_tile.step = "state"} : tensor<64x64xf32>
  %m = arith.mulf %a, %spread {gdn_tile.step = "state"} : tensor<128x64xf32>
  // CHECK: gdn_tile.store %[[M0]], %{{.*}}[%[[C0]], %[[C0]]]
  // CHECK: gdn_tile.store %[[M1]], %{{.*}}[%[[C64]], %[[C0]]]
  gdn_tile.store %m, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<128x64xf32> -> memref<128x64xf32>
}

// -----

// A carried tile, a product by its rows, and a tile that products alone read: it stays whole. What is computed and read by them is a stack.
// CHECK-LABEL: gdn_tile.program @product
gdn_tile.program @product(%w: memref<?x128x128xbf16>) outs(%y: memref<128x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<128x128xf32>
  // CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<64x128xf32>, tensor<64x128xf32>)
  %r = scf.for %i = %begin to %end step %c1 iter_args(%s = %zero) -> (tensor<128x128xf32>) {
    // CHECK: %[[W:.*]] = gdn_tile.load {{.*}} -> tensor<128x128xbf16>
    %wt = gdn_tile.load %w[%i, %c0, %c0] axes [1, 2] {gdn_tile.step = "load"} : memref<?x128x128xbf16> -> tensor<128x128xbf16>
    // CHECK: %[[A16:.*]] = arith.truncf %[[A]]
    // CHECK: %[[B16:.*]] = arith.truncf %[[B]]
    // CHECK: %[[S16:.*]] = tensor.concat dim(0) %[[A16]], %[[B16]] {gdn_tile.step = "state"}
    %s16 = arith.truncf %s {gdn_tile.step = "state"} : tensor<128x128xf32> to tensor<128x128xbf16>
    // CHECK: %[[P0:.*]] = linalg.contract {{.*}} ins(%[[A16]], %[[W]] : tensor<64x128xbf16>, tensor<128x128xbf16>) outs(%[[A]] : tensor<64x128xf32>)
    // CHECK: %[[P1:.*]] = linalg.contract {{.*}} ins(%[[B16]], %[[W]] : tensor<64x128xbf16>, tensor<128x128xbf16>) outs(%[[B]] : tensor<64x128xf32>)
    %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%s16, %wt : tensor<128x128xbf16>, tensor<128x128xbf16>) outs(%s : tensor<128x128xf32>) -> tensor<128x128xf32>
    // The columns of a turned left operand.
    // CHECK: %[[L0:.*]] = tensor.extract_slice %[[W]][0, 0] [128, 64] [1, 1]
    // CHECK: %[[L1:.*]] = tensor.extract_slice %[[W]][0, 64] [128, 64] [1, 1]
    // CHECK: %[[Q0:.*]] = linalg.contract {{.*}} ins(%[[L0]], %[[S16]] : {{.*}}) outs(%[[P0]] : tensor<64x128xf32>)
    // CHECK: %[[Q1:.*]] = linalg.contract {{.*}} ins(%[[L1]], %[[S16]] : {{.*}}) outs(%[[P1]] : tensor<64x128xf32>)
    // CHECK: scf.yield %[[Q0]], %[[Q1]]
    %q = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"}
        ins(%wt, %s16 : tensor<128x128xbf16>, tensor<128x128xbf16>) outs(%p : tensor<128x128xf32>) -> tensor<128x128xf32>
    scf.yield %q : tensor<128x128xf32>
  }
  // CHECK: gdn_tile.store %[[R]]#0
  // CHECK: gdn_tile.store %[[R]]#1
  gdn_tile.store %r, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<128x128xf32> -> memref<128x128xf32>
}

// -----

// Sums go on from piece to piece; what is left over is a piece of fewer rows.
// CHECK-LABEL: gdn_tile.program @sums
gdn_tile.program @sums(%x: memref<96x64xf32>) outs(%y: memref<96x64xf32>, %z: memref<64xf32>, %u: memref<96xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<64xf32>
  %zeros = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<96xf32>
  // CHECK: %[[X0:.*]] = gdn_tile.load {{.*}} -> tensor<64x64xf32>
  // CHECK: %[[X1:.*]] = gdn_tile.load {{.*}} -> tensor<32x64xf32>
  %a = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<96x64xf32> -> tensor<96x64xf32>
  // CHECK: %[[S0:.*]] = gdn_tile.scan %[[X0]] axis 0
  // CHECK: %[[S1:.*]] = gdn_tile.scan %[[X1]] axis 0
  // CHECK: %[[LAST:.*]] = tensor.extract_slice %[[S0]][63, 0] [1, 64] [1, 1] {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64xf32>
  // CHECK: %[[SPREAD:.*]] = linalg.broadcast ins(%[[LAST]] : tensor<64xf32>) {{.*}} dimensions = [0]
  // CHECK: %[[T1:.*]] = arith.addf %[[S1]], %[[SPREAD]] {gdn_tile.step = "state"} : tensor<32x64xf32>
  %s = gdn_tile.scan %a axis 0 {gdn_tile.step = "state"} : tensor<96x64xf32>
  // CHECK: %[[C0:.*]] = linalg.reduce { arith.addf } ins(%[[S0]] : tensor<64x64xf32>) outs(%{{.*}} : tensor<64xf32>) dimensions = [0]
  // CHECK: %[[C1:.*]] = linalg.reduce { arith.addf } ins(%[[T1]] : tensor<32x64xf32>) outs(%[[C0]] : tensor<64xf32>) dimensions = [0]
  %columns = linalg.reduce { arith.addf } ins(%s : tensor<96x64xf32>) outs(%zero : tensor<64xf32>) dimensions = [0] {gdn_tile.step = "state"}
  // CHECK: %[[R0:.*]] = linalg.reduce { arith.addf } ins(%[[S0]] : tensor<64x64xf32>) {{.*}} dimensions = [1]
  // CHECK: %[[R1:.*]] = linalg.reduce { arith.addf } ins(%[[T1]] : tensor<32x64xf32>) {{.*}} dimensions = [1]
  %rows = linalg.reduce { arith.addf } ins(%s : tensor<96x64xf32>) outs(%zeros : tensor<96xf32>) dimensions = [1] {gdn_tile.step = "state"}
  // Row 70 is row 6 of the second piece.
  // CHECK: tensor.extract_slice %[[T1]][6, 0] [1, 64] [1, 1]
  %row = tensor.extract_slice %s[70, 0] [1, 64] [1, 1] {gdn_tile.step = "state"} : tensor<96x64xf32> to tensor<64xf32>
  %both = arith.addf %columns, %row {gdn_tile.step = "state"} : tensor<64xf32>
  gdn_tile.store %s, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<96x64xf32> -> memref<96x64xf32>
  gdn_tile.store %both, %z[%c0] axes [0] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<64xf32>
  // CHECK: gdn_tile.store %[[R0]], {{.*}} : tensor<64xf32>
  // CHECK: gdn_tile.store %[[R1]], {{.*}} : tensor<32xf32>
  gdn_tile.store %rows, %u[%c0] axes [0] {gdn_tile.step = "state"} : tensor<96xf32> -> memref<96xf32>
}

// -----

// Differences along the columns, tiles side by side, a column, and a vector of one that every row of another tile repeats.
// CHECK-LABEL: gdn_tile.program @columns
gdn_tile.program @columns(%x: memref<128x32xf32>, %s: memref<64x128xf32>) outs(%y: memref<128x64xf32>, %z: memref<64x128xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %a = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<128x32xf32> -> tensor<128x32xf32>
  // CHECK: %[[E0:.*]] = gdn_tile.rebase %{{.*}} axis 1 block 8 at 3 {{.*}} : tensor<64x32xf32>
  // CHECK: %[[E1:.*]] = gdn_tile.rebase %{{.*}} axis 1 block 8 at 3 {{.*}} : tensor<64x32xf32>
  %e = gdn_tile.rebase %a axis 1 block 8 at 3 {gdn_tile.step = "state"} : tensor<128x32xf32>
  // CHECK: tensor.concat dim(1) %[[E0]], %{{.*}} -> tensor<64x64xf32>
  // CHECK: tensor.concat dim(1) %[[E1]], %{{.*}} -> tensor<64x64xf32>
  %both = tensor.concat dim(1) %e, %a {gdn_tile.step = "state"} : (tensor<128x32xf32>, tensor<128x32xf32>) -> tensor<128x64xf32>
  gdn_tile.store %both, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<128x64xf32> -> memref<128x64xf32>
  // CHECK: %[[L0:.*]] = tensor.extract_slice %[[E0]][0, 31] [64, 1] [1, 1] {{.*}} to tensor<64xf32>
  // CHECK: %[[L1:.*]] = tensor.extract_slice %[[E1]][0, 31] [64, 1] [1, 1] {{.*}} to tensor<64xf32>
  %last = tensor.extract_slice %e[0, 31] [128, 1] [1, 1] {gdn_tile.step = "state"} : tensor<128x32xf32> to tensor<128xf32>
  // CHECK: %[[L:.*]] = tensor.concat dim(0) %[[L0]], %[[L1]] {{.*}} -> tensor<128xf32>
  // CHECK: linalg.broadcast ins(%[[L]] : tensor<128xf32>) outs(%{{.*}} : tensor<64x128xf32>) dimensions = [0]
  %empty = tensor.empty() {gdn_tile.step = "state"} : tensor<64x128xf32>
  %lasts = linalg.broadcast ins(%last : tensor<128xf32>) outs(%empty : tensor<64x128xf32>) dimensions = [0] {gdn_tile.step = "state"}
  %t = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<64x128xf32> -> tensor<64x128xf32>
  %m = arith.mulf %t, %lasts {gdn_tile.step = "state"} : tensor<64x128xf32>
  gdn_tile.store %m, %z[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x128xf32> -> memref<64x128xf32>
}

// -----

// A vector that each iteration makes of a column of a tall tile is carried in pieces.
// CHECK-LABEL: gdn_tile.program @sums
gdn_tile.program @sums(%x: memref<?x128x32xf32>) outs(%y: memref<128xf32>) work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant {gdn_tile.step = "state"} dense<0.0> : tensor<128xf32>
  // CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<64xf32>, tensor<64xf32>)
  %r = scf.for %i = %begin to %end step %c1 iter_args(%sum = %zero) -> (tensor<128xf32>) {
    %a = gdn_tile.load %x[%i, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : memref<?x128x32xf32> -> tensor<128x32xf32>
    %last = tensor.extract_slice %a[0, 31] [128, 1] [1, 1] {gdn_tile.step = "state"} : tensor<128x32xf32> to tensor<128xf32>
    // CHECK-DAG: %[[S0:.*]] = arith.addf %[[A]], %{{.*}} : tensor<64xf32>
    // CHECK-DAG: %[[S1:.*]] = arith.addf %[[B]], %{{.*}} : tensor<64xf32>
    %next = arith.addf %sum, %last {gdn_tile.step = "state"} : tensor<128xf32>
    // CHECK: scf.yield %[[S0]], %[[S1]]
    scf.yield %next : tensor<128xf32>
  }
  // CHECK: gdn_tile.store %[[R]]#0, {{.*}} : tensor<64xf32>
  // CHECK: gdn_tile.store %[[R]]#1, {{.*}} : tensor<64xf32>
  gdn_tile.store %r, %y[%c0] axes [0] {gdn_tile.step = "state"} : tensor<128xf32> -> memref<128xf32>
}
