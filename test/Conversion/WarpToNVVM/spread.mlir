// Tiles over lanes: accesses of 16 bytes where strides and addresses allow it, sums by shuffles.
// RUN: gdn-opt %s --split-input-file --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

!tile = tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
!row = tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>
!column = tensor<32xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 0>>

// A thread has 4 rows, and of each two runs of 4; 16 lanes share a row.
// CHECK-LABEL: llvm.func @rows(
// CHECK: %[[BITS:.*]] = llvm.ptrtoint
// CHECK: %[[REST:.*]] = arith.andi %{{.*}}, %c15_i64
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]], %c0_i64
// CHECK: scf.if %[[ALIGNED]] -> (vector<32xf32>)
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: } else {
// CHECK-COUNT-32: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<1xf32>
// The columns of a thread: two runs.
// CHECK: -> (vector<8xf32>)
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64}
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
// Four rows: after two steps a lane sums one of them, after four it has it, and takes the others from lanes of its four (clamp
// 31, segments of 4: 7199). One lane of the sixteen writes them.
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: bfly
// CHECK-COUNT-4: nvvm.shfl.sync idx {{.*}} %c7199_i32
// CHECK-NOT: nvvm.shfl.sync
// CHECK: arith.cmpi eq
// CHECK: scf.if
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64}
gdn_warp.kernel @rows(%x: memref<?x128xf32, strided<[?, 1]>>, %k: memref<128xf32>, %o: memref<32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !column
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<?x128xf32, strided<[?, 1]>> -> !tile
  %key = gdn_warp.array_load %k[%c0] axes [0] : memref<128xf32> -> !row
  %empty = tensor.empty() : !tile
  %keys = linalg.broadcast ins(%key : !row) outs(%empty : !tile) dimensions = [0]
  %terms = arith.mulf %tile, %keys : !tile
  %sums = linalg.reduce { arith.addf } ins(%terms : !tile) outs(%zero : !column) dimensions = [1]
  gdn_warp.array_store %sums, %o[%c0] axes [0] : !column -> memref<32xf32>
}

// -----

!tile = tensor<64x128xbf16, #gdn_warp.spread<rows = 1, columns = 8, axis = 1, lanes = 16, warps = 4>>

// A tile that lies before the end is accessed in runs of 16 bytes. Otherwise each element is where its row is before it.
// CHECK-LABEL: llvm.func @ends(
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c64
// CHECK: %[[WHOLE:.*]] = arith.cmpi sle, %[[LAST]], %[[END:.*]] : index
// CHECK: %[[FAST:.*]] = arith.andi %{{.*}}, %[[WHOLE]]
// CHECK: scf.if %[[FAST]] -> (vector<64xbf16>)
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: } else {
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[END]]
// CHECK: scf.if %[[INSIDE]] -> (vector<1xbf16>)
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64}
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : vector<1xbf16>
// CHECK: scf.if %{{.*}} {
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64}
// CHECK: } else {
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} {alignment = 2 : i64}
gdn_warp.kernel @ends(%x: memref<?x128xbf16, strided<[?, 1]>>, %y: memref<?x128xbf16, strided<[?, 1]>>, %tokens: i64, %from: i64) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %tokens : i64 to index
  %first = arith.index_cast %from : i64 to index
  %tile = gdn_warp.array_load %x[%first, %c0] axes [0, 1] until(%end, dim = 0) : memref<?x128xbf16, strided<[?, 1]>> -> !tile
  gdn_warp.array_store %tile, %y[%first, %c0] axes [0, 1] until(%end, dim = 0) : !tile -> memref<?x128xbf16, strided<[?, 1]>>
}

// -----

!row = tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>

// The sum of a vector is a scalar of every thread, which is extracted without an exchange.
// CHECK-LABEL: llvm.func @scalar(
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
gdn_warp.kernel @scalar(%k: memref<128xf32>, %o: memref<1xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<f32, #gdn_warp.uniform>
  %key = gdn_warp.array_load %k[%c0] axes [0] : memref<128xf32> -> !row
  %sum = linalg.reduce { arith.addf } ins(%key : !row) outs(%zero : tensor<f32, #gdn_warp.uniform>) dimensions = [0]
  %scalar = tensor.extract %sum[] : tensor<f32, #gdn_warp.uniform>
  memref.store %scalar, %o[%c0] : memref<1xf32>
}

// -----

!turned = tensor<32x128xf32, #gdn_warp.spread<rows = 4, columns = 1, axis = 0, lanes = 16, warps = 4>>

// Contiguous along the rows of the tile: a run is of four rows, and a thread has eight columns.
// CHECK-LABEL: llvm.func @turned(
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
gdn_warp.kernel @turned(%x: memref<128x32xf32>, %y: memref<128x32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [1, 0] : memref<128x32xf32> -> !turned
  gdn_warp.array_store %tile, %y[%c0, %c0] axes [1, 0] : !turned -> memref<128x32xf32>
}

// -----

// Every thread has a uniform vector, and looks at each element whether it is inside.
// CHECK-LABEL: llvm.func @ends
// CHECK-COUNT-4: arith.cmpi sgt
!u = tensor<4xf32, #gdn_warp.uniform>
gdn_warp.kernel @ends(%x: memref<?xf32>, %y: memref<?xf32>, %tokens: i64) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %tokens : i64 to index
  %v = gdn_warp.array_load %x[%c0] axes [0] until(%end, dim = 0) : memref<?xf32> -> !u
  gdn_warp.array_store %v, %y[%c0] axes [0] until(%end, dim = 0) : !u -> memref<?xf32>
}

// -----

!tile = tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
!row = tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>

// Sums of columns: a thread adds its four rows, and a step of shuffles those of the two lanes of a column. Then each of the
// four warps leaves its eight columns in scratch memory, and reads those of all.
// CHECK-LABEL: llvm.func @columns(
// CHECK-COUNT-24: arith.addf
// CHECK-COUNT-8: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c16_i32
// CHECK-NOT: nvvm.shfl.sync
// CHECK: arith.cmpi slt, %{{.*}}, %c16_i32
// CHECK: scf.if
// CHECK-COUNT-8: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-32: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT: llvm.load
// CHECK: llvm.return
gdn_warp.kernel @columns(%x: memref<?x128xf32, strided<[?, 1]>>, %o: memref<128xf32>) threads(128) shared(2048) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !row
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<?x128xf32, strided<[?, 1]>> -> !tile
  %sums = linalg.reduce { arith.addf } ins(%tile : !tile) outs(%zero : !row) dimensions = [0]
    {gdn_warp.scratch_bytes = 2048 : i64, gdn_warp.scratch = array<i64: 0, 2048>, gdn_warp.scratch_apart}
  gdn_warp.array_store %sums, %o[%c0] axes [0] : !row -> memref<128xf32>
}

// -----

!column = tensor<32xi32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 0>>
!row = tensor<128xi32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>

// The numbers of a thread's four rows, eight apart, and of its two runs of columns.
// CHECK-LABEL: llvm.func @numbers(
// CHECK-DAG: arith.constant dense<[0, 8, 16, 24]> : vector<4xi32>
// CHECK-DAG: arith.constant dense<[0, 1, 2, 3, 64, 65, 66, 67]> : vector<8xi32>
gdn_warp.kernel @numbers(%o: memref<32xi32>, %p: memref<128xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %rows = gdn_warp.iota 0 : !column
  %columns = gdn_warp.iota 0 : !row
  gdn_warp.array_store %rows, %o[%c0] axes [0] : !column -> memref<32xi32>
  gdn_warp.array_store %columns, %p[%c0] axes [0] : !row -> memref<128xi32>
}

// -----

// Of warps that take turns each stores what it has found: its first lane does. Where warps have a vector together one thread stores.
// CHECK-LABEL: llvm.func @turns(
// CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %c32_i32
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: scf.if %[[FIRST]]
// CHECK: llvm.store
// CHECK-LABEL: llvm.func @together(
// CHECK-NOT: arith.remui
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[FIRST]]
// CHECK: llvm.store
gdn_warp.kernel @turns(%o: memref<1xf32>) threads(128) shared(0) {
  gdn_warp.role "look" warps(0, 4) attributes {gdn_warp.round_robin} {
    %c0 = arith.constant 0 : index
    %one = arith.constant dense<1.0> : tensor<1xf32, #gdn_warp.uniform>
    gdn_warp.array_store %one, %o[%c0] axes [0] : tensor<1xf32, #gdn_warp.uniform> -> memref<1xf32>
  }
}
gdn_warp.kernel @together(%o: memref<1xf32>) threads(128) shared(0) {
  gdn_warp.role "look" warps(0, 4) {
    %c0 = arith.constant 0 : index
    %one = arith.constant dense<1.0> : tensor<1xf32, #gdn_warp.uniform>
    gdn_warp.array_store %one, %o[%c0] axes [0] : tensor<1xf32, #gdn_warp.uniform> -> memref<1xf32>
  }
}
