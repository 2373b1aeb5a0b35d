// x times 3, where a segment of 128 tokens is a work item of its own, and each half of a row one more: a grid of five sizes.
#s = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1,
    roles = [<name = "all", warps = 4, registers = 168, steps = ["state"]>], channels = []>
gdn_tile.program @triple(%x: memref<?x?x2x128xf32>) outs(%y: memref<?x?x2x128xf32>)
    work_item(%n, %h, %vt, %segment, %half) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #s} {
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %three = arith.constant {gdn_tile.step = "state"} dense<3.0> : tensor<64x64xf32>
  %first = arith.muli %segment, %c128 : index
  %column = arith.muli %half, %c64 : index
  %from = arith.addi %begin, %first : index
  %behind = arith.addi %from, %c128 : index
  %to = arith.minui %behind, %end : index
  scf.for %t = %from to %to step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h, %column] axes [1, 3] until(%to, dim = 1) {gdn_tile.step = "state"}
        : memref<?x?x2x128xf32> -> tensor<64x64xf32>
    %b = arith.mulf %a, %three {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %b, %y[%batch, %t, %h, %column] axes [1, 3] until(%to, dim = 1) {gdn_tile.step = "state"}
        : tensor<64x64xf32> -> memref<?x?x2x128xf32>
  }
}
func.func @segments(%x: tensor<?x?x2x128xf32> {gdn.name = "x", gdn.dims = ["B", "T"]}) -> tensor<?x?x2x128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x2x128xf32>
  %t = tensor.dim %x, %c1 : tensor<?x?x2x128xf32>
  %segments = arith.ceildivui %t, %c128 : index
  %e = tensor.empty(%n, %t) : tensor<?x?x2x128xf32>
  %y = gdn_tile.launch @triple grid(%n, %c2, %c1, %segments, %c2) tokens(%t)
      ins(%x : tensor<?x?x2x128xf32>) outs(%e : tensor<?x?x2x128xf32>) -> tensor<?x?x2x128xf32>
  return %y : tensor<?x?x2x128xf32>
}
