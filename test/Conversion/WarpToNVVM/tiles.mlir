// Register tiles: upstream ops on them are the same ops on the vectors of a thread.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func @elementwise(
gdn_warp.kernel @elementwise(%x : memref<64x64xf32>, %s : f32) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %at = gdn_warp.view %c0 : !gdn_warp.view<8xf32>
  %none = tensor.empty() : tensor<64x8xf32, #gdn_warp.fragment>
  // Column 8 j + 2 (l mod 4) + b is element 2 j + b of a vector and 4 j + 2 h + b of a fragment.
  // CHECK: %[[C:.*]] = llvm.load {{.*}} -> vector<2xf32>
  %c = gdn_warp.vector_load %at : !gdn_warp.view<8xf32> -> tensor<8xf32, #gdn_warp.columns>
  // CHECK: %[[CB:.*]] = vector.shuffle %[[C]], %[[C]] [0, 1, 0, 1]
  %cb = linalg.broadcast ins(%c : tensor<8xf32, #gdn_warp.columns>)
      outs(%none : tensor<64x8xf32, #gdn_warp.fragment>) dimensions = [0]
  // CHECK: %[[SPLAT:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
  %b = tensor.splat %s : tensor<64x8xf32, #gdn_warp.fragment>
  // A loop carries the vector.
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[SPLAT]]) -> (vector<4xf32>)
  // CHECK: arith.mulf %[[ACC]], %[[CB]] : vector<4xf32>
  %l = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %b)
      -> (tensor<64x8xf32, #gdn_warp.fragment>) {
    %m = arith.mulf %acc, %cb : tensor<64x8xf32, #gdn_warp.fragment>
    scf.yield %m : tensor<64x8xf32, #gdn_warp.fragment>
  }
  // CHECK: arith.cmpi sgt, %{{.*}}, %{{.*}} : vector<4xi32>
  // CHECK: arith.select %{{.*}} : vector<4xi1>, vector<4xf32>
  %i = gdn_warp.iota 0 : tensor<64x8xi32, #gdn_warp.fragment>
  %j = gdn_warp.iota 1 : tensor<64x8xi32, #gdn_warp.fragment>
  %k = arith.cmpi sgt, %i, %j : tensor<64x8xi32, #gdn_warp.fragment>
  %z = arith.select %k, %l, %b
      : tensor<64x8xi1, #gdn_warp.fragment>, tensor<64x8xf32, #gdn_warp.fragment>
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  %e = math.exp2 %z : tensor<64x8xf32, #gdn_warp.fragment>
  // 1 / x is an instruction, x / y a division.
  // CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK: arith.divf %{{.*}} : vector<4xf32>
  %one = arith.constant dense<1.0> : tensor<64x8xf32, #gdn_warp.fragment>
  %r = arith.divf %one, %e : tensor<64x8xf32, #gdn_warp.fragment>
  %d = arith.divf %r, %z : tensor<64x8xf32, #gdn_warp.fragment>
  // Two neighbours of a row are one store.
  // CHECK-COUNT-2: llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
  gdn_warp.array_store %d, %x[%c0, %c0] axes [0, 1]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
  // Along columns of memory they are not, and each has its own end.
  // CHECK-COUNT-4: scf.if
  gdn_warp.array_store %e, %x[%c0, %c0] axes [1, 0] until(%c2, dim = 0)
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// Strides of an array without a layout are even where its rows are.
// CHECK-LABEL: llvm.func @pairs(
gdn_warp.kernel @pairs(%dense : memref<?x?x64xf32>,
    %strided : memref<?x?x64xf32, strided<[?, ?, 1]>>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %f = arith.constant dense<1.0> : tensor<64x8xf32, #gdn_warp.fragment>
  // CHECK-COUNT-2: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
  gdn_warp.array_store %f, %dense[%c0, %c0, %c0] axes [1, 2]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<?x?x64xf32>
  // CHECK-COUNT-4: llvm.store {{.*}} : vector<1xf32>, !llvm.ptr<1>
  gdn_warp.array_store %f, %strided[%c0, %c0, %c0] axes [1, 2]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<?x?x64xf32, strided<[?, ?, 1]>>
}

// Of a row that all of a warp's are a thread reads its columns once, in pairs.
// CHECK-LABEL: llvm.func @repeated_row(
gdn_warp.kernel @repeated_row(%x : memref<64x64xf32>) threads(128) shared(2048) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x8xf32>
  // CHECK: %[[PAIR:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK-NOT: llvm.load
  %t = gdn_warp.fragment_load %v row(%c5) : !gdn_warp.view<64x8xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
  gdn_warp.array_store %t, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// A 16 x 16 block is one matrix instruction; the swizzle of a thread's address is found once and
// the block's bytes come by exclusive or.
// CHECK-LABEL: llvm.func @matrices(
gdn_warp.kernel @matrices() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x32xbf16, swizzle = 128>
  %t = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // CHECK: %[[A:.*]] = nvvm.ldmatrix %{{.*}} {{.*}}#nvvm.mma_layout<row>, num = 4
  // CHECK: arith.xori
  // CHECK: nvvm.ldmatrix
  %f = gdn_warp.fragment_load %v
      : !gdn_warp.view<64x32xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
  // CHECK: %[[FIRST:.*]] = llvm.getelementptr
  // CHECK: nvvm.stmatrix {{.*}}#nvvm.mma_layout<col>
  // CHECK: nvvm.stmatrix {{.*}}#nvvm.mma_layout<col>
  gdn_warp.fragment_store %f, %t transpose
      : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
}

// Of each of its two rows a lane has the diagonal if it has that column, or its neighbour has; the warp's place among
// the rows says in which 16 columns. Transposed, elements of f32 are stored each by itself.
// CHECK-LABEL: llvm.func @diagonal(
gdn_warp.kernel @diagonal(%x : memref<64x32xf32>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %f = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x32xf32> -> tensor<64x32xf32, #gdn_warp.fragment>
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c1_i32 : i32
  // CHECK: arith.select %[[FIRST]], %{{.*}}, %{{.*}} : f32
  // CHECK: nvvm.shfl.sync idx
  // CHECK: arith.select %[[FIRST]], %{{.*}}, %{{.*}} : f32
  // CHECK: nvvm.shfl.sync idx
  %d = gdn_warp.diagonal %f from 0 : tensor<64x32xf32, #gdn_warp.fragment> -> tensor<64xf32, #gdn_warp.rows>
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  gdn_warp.vector_store %d, %v : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
  %t = gdn_warp.view %c0 : !gdn_warp.view<32x32xf32, stride = 144>
  // CHECK-COUNT-16: llvm.store {{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
  gdn_warp.fragment_store %f, %t transpose rows [0, 32]
      : tensor<64x32xf32, #gdn_warp.fragment> -> !gdn_warp.view<32x32xf32, stride = 144>
}

// A fragment that lies turned in swizzled panels of 32 columns of f32: 16 rows of a warp are half of one, and a thread's two
// columns are rows that the swizzle moves differently.
// CHECK-LABEL: llvm.func @turned(
gdn_warp.kernel @turned() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<16x64xf32, swizzle = 128>
  // CHECK: %[[BYTE:.*]] = arith.muli %{{.*}}, %c4_i32
  // CHECK: %[[PANEL:.*]] = arith.divui %[[BYTE]], %c128_i32
  // CHECK: arith.andi %[[BYTE]], %c127_i32
  // CHECK: arith.muli %[[PANEL]], %c2048_i32
  // CHECK: arith.xori
  // CHECK: arith.xori
  // CHECK-COUNT-8: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  %f = gdn_warp.fragment_load %v transpose
      : !gdn_warp.view<16x64xf32, swizzle = 128> -> tensor<64x16xf32, #gdn_warp.fragment>
  // CHECK-COUNT-8: llvm.store {{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
  gdn_warp.fragment_store %f, %v transpose
      : tensor<64x16xf32, #gdn_warp.fragment> -> !gdn_warp.view<16x64xf32, swizzle = 128>
}

// A thread's elements lie in blocks of 8 x 8, of rows 16 w + 8 h and of columns 8 j on: what a block keeps depends on
// 2 w + h - j. Of two warps the masks differ where h = j or below, and three serve all eight pairs; the pair of h - j = 1
// is whole, the one of -3 nothing.
// CHECK-LABEL: llvm.func @causal(
gdn_warp.kernel @causal() threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x32xbf16, swizzle = 128>
  %f = gdn_warp.fragment_load %v : !gdn_warp.view<64x32xbf16, swizzle = 128> -> tensor<64x32xbf16, #gdn_warp.fragment>
  // CHECK-DAG: %[[ALL:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[LOWER:.*]] = arith.constant 65535 : i32
  // CHECK-DAG: %[[UPPER:.*]] = arith.constant -65536 : i32
  // CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c4_i32
  // CHECK: %[[EVEN:.*]] = arith.cmpi uge, %[[ROW]],
  // CHECK: %[[FIRST:.*]] = arith.select %[[EVEN]], %[[LOWER]], %[[NONE]]
  // CHECK: %[[ODD:.*]] = arith.cmpi uge, %[[ROW]],
  // CHECK: %[[SECOND:.*]] = arith.select %[[ODD]], %[[UPPER]], %[[NONE]]
  // CHECK: %[[DIAGONAL:.*]] = arith.ori %[[FIRST]], %[[SECOND]]
  // CHECK: %[[FIRST_WARP:.*]] = arith.cmpi ult,
  // CHECK: %[[AT:.*]] = arith.select %[[FIRST_WARP]], %[[DIAGONAL]], %[[ALL]]
  // CHECK: arith.andi %{{.*}}, %[[AT]]
  // CHECK: %[[BELOW:.*]] = arith.select %[[FIRST_WARP]], %[[NONE]], %[[ALL]]
  // CHECK: arith.andi %{{.*}}, %[[BELOW]]
  // CHECK: arith.andi %{{.*}}, %[[AT]]
  // CHECK: %[[LATER:.*]] = arith.select %[[FIRST_WARP]], %[[NONE]], %[[DIAGONAL]]
  // CHECK: arith.andi %{{.*}}, %[[LATER]]
  // CHECK: arith.andi %{{.*}}, %[[BELOW]]
  // CHECK: arith.andi %{{.*}}, %[[LATER]]
  // CHECK-NOT: arith.andi %{{.*}}, %[[AT]]
  // CHECK: nvvm.stmatrix
  %c = gdn_warp.causal %f : tensor<64x32xbf16, #gdn_warp.fragment>
  gdn_warp.fragment_store %c, %v : tensor<64x32xbf16, #gdn_warp.fragment> -> !gdn_warp.view<64x32xbf16, swizzle = 128>
}

// Of f32 each element has a mask; without the diagonal no pair of h - j = 0 is whole in the first warp.
// CHECK-LABEL: llvm.func @strict(
gdn_warp.kernel @strict(%y : memref<64x16xf32>) threads(128) shared(4096) {
  %c0 = arith.constant 0 : index
  %f = gdn_warp.array_load %y[%c0, %c0] axes [0, 1] : memref<64x16xf32> -> tensor<64x16xf32, #gdn_warp.fragment>
  // CHECK: %[[EVEN:.*]] = arith.cmpi ugt, %{{.*}}, %{{.*}} : i32
  // CHECK: %[[MASK:.*]] = arith.select %[[EVEN]], %c-1_i32, %c0_i32 : i32
  // CHECK: arith.andi %{{.*}}, %[[MASK]] : i32
  %c = gdn_warp.causal strict %f : tensor<64x16xf32, #gdn_warp.fragment>
  gdn_warp.array_store %c, %y[%c0, %c0] axes [0, 1] : tensor<64x16xf32, #gdn_warp.fragment> -> memref<64x16xf32>
}

// Rows of any number of elements begin anywhere: no pairs.
// CHECK-LABEL: llvm.func @rows(
// CHECK-NOT: vector<2xf32>, !llvm.ptr<1>
// CHECK: llvm.store {{.*}} {alignment = 4 : i64} : vector<1xf32>, !llvm.ptr<1>
gdn_warp.kernel @rows(%x : memref<?x?xf32>, %s : f32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %b = tensor.splat %s : tensor<64x8xf32, #gdn_warp.fragment>
  gdn_warp.array_store %b, %x[%c0, %c0] axes [0, 1]
      : tensor<64x8xf32, #gdn_warp.fragment> -> memref<?x?xf32>
}

// Four lanes exchange what they hold of a row of 32 16-bit elements, and each stores eight neighbours, where all rows begin at
// 16 bytes: two rows of a thread, each with its own end. Else an element at a time.
// CHECK-LABEL: llvm.func @runs(
gdn_warp.kernel @runs(%y : memref<?x2x32xbf16, strided<[?, ?, 1]>>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %end = arith.constant 50 : index
  %h = arith.constant dense<1.0> : tensor<64x32xbf16, #gdn_warp.fragment>
  // CHECK: %[[REST:.*]] = arith.andi %{{.*}}, %{{.*}} : i32
  // CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]], %{{.*}} : i32
  // CHECK: scf.if %[[ALIGNED]] {
  // CHECK-COUNT-4: nvvm.shfl.sync bfly
  // CHECK: scf.if
  // CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  // CHECK-COUNT-4: nvvm.shfl.sync bfly
  // CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  // CHECK: } else {
  // CHECK-COUNT-16: llvm.store {{.*}} : vector<1xbf16>, !llvm.ptr<1>
  gdn_warp.array_store %h, %y[%c0, %c0, %c0] axes [0, 2] until(%end, dim = 0)
      : tensor<64x32xbf16, #gdn_warp.fragment> -> memref<?x2x32xbf16, strided<[?, ?, 1]>>
}

// Of 32-bit elements two lanes exchange what they hold of two times eight columns, and each stores four neighbours. A state has
// no end. Where its rows are not contiguous, elements are stored as they are.
// CHECK-LABEL: llvm.func @state_runs(
// CHECK: scf.if
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK: } else {
// CHECK-COUNT-8: llvm.store {{.*}} : vector<1xf32>, !llvm.ptr<1>
// CHECK: }
// CHECK-NOT: nvvm.shfl.sync bfly
gdn_warp.kernel @state_runs(%x : memref<?x64x16xf32, strided<[?, ?, 1]>>, %y : memref<?x16x64xf32, strided<[?, ?, 1]>>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %s = arith.constant dense<1.0> : tensor<64x16xf32, #gdn_warp.fragment>
  gdn_warp.array_store %s, %x[%c0, %c0, %c0] axes [1, 2]
      : tensor<64x16xf32, #gdn_warp.fragment> -> memref<?x64x16xf32, strided<[?, ?, 1]>>
  gdn_warp.array_store %s, %y[%c0, %c0, %c0] axes [2, 1]
      : tensor<64x16xf32, #gdn_warp.fragment> -> memref<?x16x64xf32, strided<[?, ?, 1]>>
}

// Differences from a row of each 16 rows, which one warp has: row 9 is the lower one of quad 1. Of 4 rows each half has its own, of a quad
// of the same four.
// CHECK-LABEL: llvm.func @rebase_rows(
gdn_warp.kernel @rebase_rows(%x : memref<64x64xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[QUAD:.*]] = arith.constant 4 : i32
  // CHECK-DAG: %[[LAST:.*]] = arith.constant 3 : i32
  // CHECK: llvm.load
  // CHECK: llvm.load
  // CHECK: %[[LEFT:.*]] = vector.extract
  // CHECK: %[[RIGHT:.*]] = vector.extract
  %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
  // CHECK: %[[IN_QUAD:.*]] = arith.andi %{{.*}}, %[[LAST]]
  // CHECK: %[[FROM:.*]] = arith.addi %[[IN_QUAD]], %[[QUAD]]
  // CHECK: %[[BASE:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[LEFT]], %[[FROM]]
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[RIGHT]], %[[FROM]]
  // CHECK-NOT: nvvm.shfl
  // CHECK: arith.subf %[[LEFT]], %[[BASE]]
  %r = gdn_tile.rebase %t axis 0 block 16 at 9 : tensor<64x8xf32, #gdn_warp.fragment>
  gdn_warp.array_store %r, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
  // CHECK: arith.andi %{{.*}}, %c19_i32
  // CHECK-COUNT-4: nvvm.shfl.sync idx
  %s = gdn_tile.rebase %t axis 0 block 4 at 2 : tensor<64x8xf32, #gdn_warp.fragment>
  gdn_warp.array_store %s, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// An array adds up tiles a few elements at a time: 16 bytes of a row where the array allows it.
// CHECK-LABEL: llvm.func @sum_in_memory(
// CHECK: scf.if
// CHECK: %[[ADDS:.*]] = arith.cmpi slt, %{{.*}}, %c32
// CHECK: %[[SUM:.*]] = scf.if %[[ADDS]] -> (vector<4xf32>) {
// CHECK-NEXT: %[[OLD:.*]] = llvm.load %[[AT:.*]] {alignment = 16
// CHECK-NEXT: arith.addf %{{.*}}, %[[OLD]]
// CHECK: } else {
// CHECK: llvm.store %[[SUM]], %[[AT]] {alignment = 16
gdn_warp.kernel @sum_in_memory(%x : memref<64x64xf32>) threads(128) shared(1024) {
  gdn_warp.role "late" warps(0, 4) attributes {gdn_warp.late_addresses} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c60 = arith.constant 60 : index
    %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
    scf.for %i = %c0 to %c32 step %c1 {
      gdn_warp.array_store %t, %x[%c0, %c0] axes [0, 1] until(%c60, dim = 0) sum(%c32)
          : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
    }
  }
}

// A tile that is to be made here goes through an instruction that LLVM knows nothing of; so do addresses of loops that are to be late.
// CHECK-LABEL: llvm.func @made_here(
gdn_warp.kernel @made_here(%x : memref<64x64xf32>) threads(128) shared(1024) {
  gdn_warp.role "late" warps(0, 4) attributes {gdn_warp.late_addresses} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %t = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xf32> -> tensor<64x8xf32, #gdn_warp.fragment>
    // CHECK: scf.for
    // CHECK: llvm.inline_asm has_side_effects {{.*}}"mov.u32 $0, $1;"
    // CHECK: %[[SUM:.*]] = arith.addf
    // CHECK: llvm.inline_asm has_side_effects {{.*}}"", "=f,=f,=f,=f,0,1,2,3,~{memory}"
    scf.for %i = %c0 to %c2 step %c1 {
      %at = gdn_warp.view %c0 : !gdn_warp.view<8xf32>
      %c = gdn_warp.vector_load %at : !gdn_warp.view<8xf32> -> tensor<8xf32, #gdn_warp.columns>
      %none = tensor.empty() : tensor<64x8xf32, #gdn_warp.fragment>
      %b = linalg.broadcast ins(%c : tensor<8xf32, #gdn_warp.columns>) outs(%none : tensor<64x8xf32, #gdn_warp.fragment>) dimensions = [0]
      %s = arith.addf %t, %b {gdn_tile.made_here} : tensor<64x8xf32, #gdn_warp.fragment>
      gdn_warp.array_store %s, %x[%c0, %c0] axes [0, 1] : tensor<64x8xf32, #gdn_warp.fragment> -> memref<64x64xf32>
    }
  }
}
