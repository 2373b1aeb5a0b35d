// Sums over four tokens, and over two from the end: vectors over lanes of which each repeats in a warp.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "gates", warps = 1, registers = 96, steps = ["gates"]>], channels = []>
gdn_tile.program @sums(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>, %z: memref<1x?x4xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %begin to %end step %c4 {
    %v = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<4xf32>
    %s = gdn_tile.scan %v axis 0 {gdn_tile.step = "gates"} : tensor<4xf32>
    gdn_tile.store %s, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : tensor<4xf32> -> memref<1x?x4xf32>
  }
  scf.for %t = %begin to %end step %c2 {
    %v = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : memref<1x?x4xf32> -> tensor<2xf32>
    %s = gdn_tile.scan %v axis 0 reverse {gdn_tile.step = "gates"} : tensor<2xf32>
    gdn_tile.store %s, %z[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
        : tensor<2xf32> -> memref<1x?x4xf32>
  }
}
func.func @layer(%x: tensor<1x?x4xf32> {gdn.name = "x"})
    -> (tensor<1x?x4xf32> {gdn.name = "y"}, tensor<1x?x4xf32> {gdn.name = "z"}) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x4xf32>
  %empty = tensor.empty(%t) : tensor<1x?x4xf32>
  %y, %z = gdn_tile.launch @sums grid(%c1, %c4, %c1) tokens(%t) ins(%x : tensor<1x?x4xf32>)
      outs(%empty, %empty : tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>, tensor<1x?x4xf32>
  return %y, %z : tensor<1x?x4xf32>, tensor<1x?x4xf32>
}
