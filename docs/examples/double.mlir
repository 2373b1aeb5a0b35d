// A tile program with three roles, the example of docs/Dialects/Warp.md: y = 2 x for every token and head, 64 tokens a
// chunk. The warps of `load` take the chunks in turn, and so do those of `store`.
//
//   gdn-opt docs/examples/double.mlir --gdn-warp-partition --canonicalize --cse
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "double", warps = 4, registers = 160, steps = ["state"]>,
    <name = "load", warps = 2, registers = 96, steps = ["load"], round_robin = true>,
    <name = "store", warps = 2, registers = 96, steps = ["store"], round_robin = true>], channels = [
    <name = "in", depth = 3, from = ["load"], to = ["double"]>,
    <name = "out", depth = 3, from = ["state"], to = ["store"]>]>

gdn_tile.program @double(%x: memref<1x?x4x64xbf16>) outs(%y: memref<1x?x4x64xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %tile = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x64xbf16> -> tensor<64x64xbf16>
    %wide = arith.extf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %sum = arith.addf %wide, %wide {gdn_tile.step = "state"} : tensor<64x64xf32>
    %rounded = arith.truncf %sum {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    gdn_tile.store %rounded, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<64x64xbf16> -> memref<1x?x4x64xbf16>
  }
}
func.func @host(%t: index, %x: memref<1x?x4x64xbf16>, %y: memref<1x?x4x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_tile.launch @double grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4x64xbf16>)
      outs(%y : memref<1x?x4x64xbf16>)
  return
}
