// Warps that share the rows of a tile add up through scratch memory. Two reductions of a block have places of their own:
// who writes one again has waited in the other one, behind its readers.
// RUN: gdn-opt %s --split-input-file --gdn-warp-allocate-shared | FileCheck %s --check-prefix=PLACE
// RUN: gdn-opt %s --split-input-file --gdn-warp-allocate-shared --convert-gdn-warp-to-nvvm | FileCheck %s --check-prefix=WAIT

!tile = tensor<32x128xf32, #gdn_warp.spread<rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>>
!column = tensor<32xf32, #gdn_warp.slice<of = <rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>, axis = 0>>

// PLACE-LABEL: gdn_warp.kernel @two
// PLACE-SAME: shared(1024)
// PLACE: linalg.reduce {{.*}}gdn_warp.scratch = array<i64: 0, 512>, gdn_warp.scratch_apart
// PLACE: linalg.reduce {{.*}}gdn_warp.scratch = array<i64: 512, 512>, gdn_warp.scratch_apart
// WAIT-LABEL: llvm.func @two(
// WAIT-COUNT-2: nvvm.barrier
// WAIT-NOT: nvvm.barrier
// WAIT: llvm.return
gdn_warp.kernel @two(%x: memref<128x32xf32>, %o: memref<32xf32>, %p: memref<32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !column
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [1, 0] : memref<128x32xf32> -> !tile
  %twice = arith.addf %tile, %tile : !tile
  %one = linalg.reduce { arith.addf } ins(%tile : !tile) outs(%zero : !column) dimensions = [1] {gdn_warp.scratch_bytes = 512 : i64}
  %two = linalg.reduce { arith.addf } ins(%twice : !tile) outs(%zero : !column) dimensions = [1] {gdn_warp.scratch_bytes = 512 : i64}
  gdn_warp.array_store %one, %o[%c0] axes [0] : !column -> memref<32xf32>
  gdn_warp.array_store %two, %p[%c0] axes [0] : !column -> memref<32xf32>
}

// -----

!tile = tensor<32x128xf32, #gdn_warp.spread<rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>>
!column = tensor<32xf32, #gdn_warp.slice<of = <rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>, axis = 0>>

// PLACE-LABEL: gdn_warp.kernel @one
// PLACE-SAME: shared(512)
// PLACE: linalg.reduce
// PLACE-NOT: gdn_warp.scratch_apart
// WAIT-LABEL: llvm.func @one(
// WAIT-COUNT-2: nvvm.barrier
gdn_warp.kernel @one(%x: memref<128x32xf32>, %o: memref<32xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !column
  %tile = gdn_warp.array_load %x[%c0, %c0] axes [1, 0] : memref<128x32xf32> -> !tile
  %one = linalg.reduce { arith.addf } ins(%tile : !tile) outs(%zero : !column) dimensions = [1] {gdn_warp.scratch_bytes = 512 : i64}
  gdn_warp.array_store %one, %o[%c0] axes [0] : !column -> memref<32xf32>
}
