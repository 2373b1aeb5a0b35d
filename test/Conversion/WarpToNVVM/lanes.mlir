// Vectors over lanes: sums by shuffles, elements by index, short views that repeat.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// Five steps a part; the sum of a part comes from its last lane.
// CHECK-LABEL: llvm.func @scan(
gdn_warp.kernel @scan(%x : memref<64xf32>, %n : i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %i = arith.index_cast %n : i32 to index
  // CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> vector<1xf32>
  // CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> vector<1xf32>
  %v = gdn_warp.array_load %x[%c0] axes [0] : memref<64xf32> -> tensor<64xf32, #gdn_warp.lanes>
  // CHECK-COUNT-10: nvvm.shfl.sync up
  // CHECK: %[[LAST:.*]] = nvvm.shfl.sync idx
  // CHECK: arith.addf %{{.*}}, %[[LAST]]
  %s = gdn_tile.scan %v axis 0 : tensor<64xf32, #gdn_warp.lanes>
  // CHECK: %[[PART:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
  // CHECK: %[[VALUE:.*]] = arith.select %[[PART]]
  // CHECK: %[[E:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[VALUE]], %arg{{[0-9]+}}
  %e = tensor.extract %s[%i] : tensor<64xf32, #gdn_warp.lanes>
  // CHECK: llvm.store %[[E]]
  memref.store %e, %x[%c0] : memref<64xf32>
}

// Elements at or beyond the end are not touched.
// CHECK-LABEL: llvm.func @ragged(
gdn_warp.kernel @ragged(%x : memref<?xf32>, %n : i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %n : i32 to index
  // CHECK: %[[IN:.*]] = arith.cmpi slt
  // CHECK: scf.if %[[IN]] -> (vector<1xf32>)
  %v = gdn_warp.array_load %x[%c0] axes [0] until(%end, dim = 0)
      : memref<?xf32> -> tensor<32xf32, #gdn_warp.lanes>
  // Going down, a lane adds one that is further on.
  // CHECK-COUNT-5: nvvm.shfl.sync down
  %s = gdn_tile.scan %v axis 0 reverse : tensor<32xf32, #gdn_warp.lanes>
  // CHECK: scf.if %[[IN]] {
  // CHECK: llvm.store
  gdn_warp.array_store %s, %x[%c0] axes [0] until(%end, dim = 0)
      : tensor<32xf32, #gdn_warp.lanes> -> memref<?xf32>
}

// One vector for two tiles that are stacked: row 16 w + l / 4 modulo 32, and 8 elements on.
// CHECK-LABEL: llvm.func @repeat(
gdn_warp.kernel @repeat(%x : memref<64x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  // CHECK: %[[C32:.*]] = arith.constant 32 : i32
  // CHECK: %[[ROW:.*]] = arith.remui %{{.*}}, %{{.*}} : i32
  // CHECK: %[[BYTE:.*]] = arith.muli %[[ROW]], %{{.*}} : i32
  // CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[BYTE]]]
  // CHECK: llvm.load %[[AT]]
  // CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[AT]][32]
  // CHECK: llvm.load %[[NEXT]]
  %r = gdn_warp.vector_load %v : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.rows>
  // Columns 32 .. 63 are columns 0 .. 31 again: four loads of two.
  // CHECK-COUNT-4: llvm.load {{.*}} -> vector<2xf32>
  // CHECK-NOT: llvm.load {{.*}} -> vector<2xf32>
  %c = gdn_warp.vector_load %v : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.columns>
  %none = tensor.empty() : tensor<64x64xf32, #gdn_warp.fragment>
  %br = linalg.broadcast ins(%r : tensor<64xf32, #gdn_warp.rows>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [1]
  %bc = linalg.broadcast ins(%c : tensor<64xf32, #gdn_warp.columns>)
      outs(%none : tensor<64x64xf32, #gdn_warp.fragment>) dimensions = [0]
  %p = arith.mulf %br, %bc : tensor<64x64xf32, #gdn_warp.fragment>
  gdn_warp.array_store %p, %x[%c0, %c0] axes [0, 1]
      : tensor<64x64xf32, #gdn_warp.fragment> -> memref<64x64xf32>
}

// An inverse of 16: 15 steps, of which those above the diagonal are left out; 2 runs each at first,
// then 1.
// CHECK-LABEL: llvm.func @solve(
gdn_warp.kernel @solve() threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<16x16xf16, stride = 48>
  %x = gdn_warp.view %c512 : !gdn_warp.view<16x16xf16>
  // CHECK-COUNT-22: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  gdn_warp.tri_inverse %m, %x : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xf16>
}

// With factors, a lane loads that of its column and those of the rows that it writes, and multiplies in f32.
// CHECK-LABEL: llvm.func @scaled(
gdn_warp.kernel @scaled() threads(128) shared(2048) {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<16x16xf16, stride = 48>
  %x = gdn_warp.view %c512 : !gdn_warp.view<16x16xbf16>
  %f = gdn_warp.view %c512 : !gdn_warp.view<16xf32>
  // CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: llvm.load {{.*}} -> f32
  // CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : vector<2xf16> to vector<2xf32>
  // CHECK: %[[COLUMN:.*]] = arith.mulf %[[WIDE]], %{{.*}} : vector<2xf32>
  // CHECK: %[[BOTH:.*]] = arith.mulf %[[COLUMN]], %{{.*}} : vector<2xf32>
  // CHECK: arith.truncf %[[BOTH]] : vector<2xf32> to vector<2xbf16>
  gdn_warp.tri_inverse %m, %x times %f, %f : !gdn_warp.view<16x16xf16, stride = 48>, !gdn_warp.view<16x16xbf16>,
      !gdn_warp.view<16xf32>, !gdn_warp.view<16xf32>
}

// M in f32 is loaded whole before its columns, times their factors, replace it in f16: of two blocks a lane has a column
// of one and half a column below.
// CHECK-LABEL: llvm.func @rounded(
gdn_warp.kernel @rounded() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %c4608 = arith.constant 4608 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<32x32xf32, stride = 144>
  %x = gdn_warp.view %c4608 : !gdn_warp.view<32x32xbf16>
  %f = gdn_warp.view %c4608 : !gdn_warp.view<32xf32>
  // CHECK: %[[FACTOR:.*]] = llvm.load {{.*}} -> f32
  // CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: %[[BELOW:.*]] = llvm.load {{.*}} -> f32
  // CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: nvvm.bar.warp.sync
  // CHECK: arith.mulf %{{.*}}, %[[FACTOR]] : f32
  // CHECK: arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK: arith.mulf %{{.*}}, %[[BELOW]] : f32
  // CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // CHECK: nvvm.bar.warp.sync
  // CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  gdn_warp.tri_inverse %m by(%f : !gdn_warp.view<32xf32>), %x : !gdn_warp.view<32x32xf32, stride = 144>, !gdn_warp.view<32x32xbf16>
}

// Rows of zeros: a warp a row, its lanes the columns; what is left of the last 32 columns in a branch.
// CHECK-LABEL: llvm.func @clear(
gdn_warp.kernel @clear(%o : memref<1x?x4x48xbf16>, %from : i32, %to : i32) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // CHECK: arith.divui %{{.*}}, %c32_i32
  // CHECK: nvvm.read.ptx.sreg.ntid.x
  // CHECK: scf.for
  // CHECK: llvm.store %{{.*}} : bf16
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} : bf16
  %begin = arith.index_cast %from : i32 to index
  %end = arith.index_cast %to : i32 to index
  gdn_warp.array_clear %o[%c0, %begin, %c0, %c0] until(%end, dim = 1) columns 48 : memref<1x?x4x48xbf16>
}

// A lane has a sequence and counts those that come before it; the sum over lanes is the number of the one whose count is
// the rank, and its boundaries are what that lane loaded. Of more than 32 sequences the rank is the sequence.
// CHECK-LABEL: llvm.func @longest(
gdn_warp.kernel @longest(%cu : memref<?xi64>, %o : memref<?x?x?xf32>) threads(128) shared(0) {
  %c1 = arith.constant 1.0 : f32
  // CHECK: %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: %[[INDEX:.*]] = arith.index_castui %[[CTA]]
  // CHECK: %[[RANK:.*]] = arith.index_cast %[[INDEX]] : index to i32
  %rank = gdn_warp.id cta
  // CHECK: %[[FEW:.*]] = arith.cmpi ule, %[[COUNT:.*]], %c32_i32
  // CHECK: scf.if %[[FEW]] -> (i32, i32, i32) {
  // Read here, so that nothing of it leaves a loop over work items.
  // CHECK: llvm.inline_asm has_side_effects {{.*}} "mov.u32 $0, %tid.x;"
  // CHECK: %[[HAS:.*]] = arith.cmpi ult, %[[LANE:.*]], %[[COUNT]]
  // CHECK: %[[OWN:.*]]:2 = scf.if %[[HAS]] -> (i32, i32) {
  // CHECK-COUNT-2: llvm.load {{.*}} -> i64
  // CHECK: } else {
  // CHECK-NEXT: scf.yield %c0_i32, %c0_i32
  // Five levels above the lane's own boundaries, which other lanes have.
  // CHECK: %[[PAIR:.*]] = arith.andi %[[LANE]], %c-2_i32
  // CHECK: %[[INPAIR:.*]] = arith.ori %[[LANE]], %c1_i32
  // CHECK: %[[HIGH:.*]] = arith.minui %[[INPAIR]], %{{.*}}
  // CHECK: %[[LEFT:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[OWN]]#0, %[[PAIR]]
  // CHECK: arith.maxsi %[[OWN]]#0, %[[LEFT]]
  // CHECK: %[[RIGHT:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[OWN]]#1, %[[HIGH]]
  // CHECK: arith.minsi %[[OWN]]#1, %[[RIGHT]]
  // CHECK-COUNT-8: nvvm.shfl.sync idx
  // CHECK: arith.maxsi %{{.*}}, %c0_i32
  // CHECK: %[[BEGIN:.*]] = arith.minsi %{{.*}}, %[[RANK]]
  // CHECK: arith.maxsi %{{.*}}, %c0_i32
  // CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[RANK]]
  // CHECK: arith.subi %[[END]], %[[BEGIN]]
  // CHECK: %[[LENGTH:.*]] = arith.select %[[HAS]], %{{.*}}, %c-1_i32
  // CHECK: %[[BEFORE:.*]] = scf.for %[[N:.*]] = %c0_i32 to %[[COUNT]]
  // CHECK: %[[OTHER:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[LENGTH]], %[[N]]
  // CHECK-DAG: arith.cmpi eq, %[[OTHER]], %[[LENGTH]]
  // CHECK-DAG: arith.cmpi ult, %[[N]], %[[LANE]]
  // CHECK-DAG: arith.cmpi sgt, %[[OTHER]], %[[LENGTH]]
  // CHECK: arith.cmpi eq, %[[BEFORE]], %[[RANK]]
  // CHECK: %[[NUMBER:.*]] = nvvm.redux.sync add
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[BEGIN]], %[[NUMBER]]
  // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[END]], %[[NUMBER]]
  // CHECK: } else {
  // A lane has a level of the tree.
  // CHECK: %[[BLOCK:.*]] = arith.shrui %[[RANK]], %[[LEVEL:.*]] : i32
  // CHECK: arith.shli %[[BLOCK]], %[[LEVEL]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[BLOCK]], %c1_i32
  // CHECK: %[[BEHIND:.*]] = arith.shli %[[NEXT]], %[[LEVEL]]
  // CHECK: arith.minui %[[BEHIND]], %[[COUNT]]
  // CHECK: llvm.load {{.*}} -> i64
  // CHECK: nvvm.redux.sync max
  // CHECK: llvm.load {{.*}} -> i64
  // CHECK: nvvm.redux.sync min
  // CHECK: scf.yield %[[RANK]],
  %n, %begin, %end = gdn_warp.sequence_by_rank %cu, %rank tokens(%rank) : memref<?xi64>
  memref.store %c1, %o[%n, %begin, %end] : memref<?x?x?xf32>
}
