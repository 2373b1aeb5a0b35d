// RUN: gdn-opt %s --gdn-warp-partition | FileCheck %s

// Whether an offset is of the V tile is asked of each op once: there are 2^40 ways from %w39 to %member.
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "move", warps = 4, registers = 96, steps = ["load"]>,
    <name = "state", warps = 4, registers = 160, steps = ["state"]>], channels = [
    <name = "in", depth = 2, from = ["load"], to = ["state"]>]>

// CHECK-LABEL: gdn_warp.kernel @deep(
// CHECK: gdn_warp.array_clear
gdn_tile.program @deep(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %own = arith.muli %v, %c32 : index
  %first = arith.addi %begin, %own : index
  %left = arith.subi %end, %first : index
  %chunks = arith.ceildivui %left, %c64 : index
  %upper = arith.muli %chunks, %c2 : index
  scf.for %number = %c0 to %upper step %c1 {
    %chunk = arith.divui %number, %c2 : index
    %member = arith.remui %number, %c2 : index
    %w0 = arith.addi %member, %member : index
    %w1 = arith.addi %w0, %w0 : index
    %w2 = arith.addi %w1, %w1 : index
    %w3 = arith.addi %w2, %w2 : index
    %w4 = arith.addi %w3, %w3 : index
    %w5 = arith.addi %w4, %w4 : index
    %w6 = arith.addi %w5, %w5 : index
    %w7 = arith.addi %w6, %w6 : index
    %w8 = arith.addi %w7, %w7 : index
    %w9 = arith.addi %w8, %w8 : index
    %w10 = arith.addi %w9, %w9 : index
    %w11 = arith.addi %w10, %w10 : index
    %w12 = arith.addi %w11, %w11 : index
    %w13 = arith.addi %w12, %w12 : index
    %w14 = arith.addi %w13, %w13 : index
    %w15 = arith.addi %w14, %w14 : index
    %w16 = arith.addi %w15, %w15 : index
    %w17 = arith.addi %w16, %w16 : index
    %w18 = arith.addi %w17, %w17 : index
    %w19 = arith.addi %w18, %w18 : index
    %w20 = arith.addi %w19, %w19 : index
    %w21 = arith.addi %w20, %w20 : index
    %w22 = arith.addi %w21, %w21 : index
    %w23 = arith.addi %w22, %w22 : index
    %w24 = arith.addi %w23, %w23 : index
    %w25 = arith.addi %w24, %w24 : index
    %w26 = arith.addi %w25, %w25 : index
    %w27 = arith.addi %w26, %w26 : index
    %w28 = arith.addi %w27, %w27 : index
    %w29 = arith.addi %w28, %w28 : index
    %w30 = arith.addi %w29, %w29 : index
    %w31 = arith.addi %w30, %w30 : index
    %w32 = arith.addi %w31, %w31 : index
    %w33 = arith.addi %w32, %w32 : index
    %w34 = arith.addi %w33, %w33 : index
    %w35 = arith.addi %w34, %w34 : index
    %w36 = arith.addi %w35, %w35 : index
    %w37 = arith.addi %w36, %w36 : index
    %w38 = arith.addi %w37, %w37 : index
    %w39 = arith.addi %w38, %w38 : index
    %since = arith.muli %chunk, %c64 : index
    %t = arith.addi %first, %since : index
    %a = gdn_tile.load %x[%batch, %t, %member] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    gdn_tile.store %a, %y[%batch, %t, %w39] axes [1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>, %cu: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @deep grid(%c2, %c2, %c2) tokens(%t) cu_seqlens(%cu : memref<?xi32>) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}
