// A state of zeros in the workspace, which a second program reads: o = x + zeros.
#s = #gdn_warp.schedule<chunks_per_iteration = 2, v_tiles = 1,
    roles = [<name = "all", warps = 4, registers = 168, steps = ["state"]>], channels = []>
gdn_tile.program @add(%x: memref<?x?x2x64xf32>, %z: memref<?x?x2x64xf32>) outs(%y: memref<?x?x2x64xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #s} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %begin to %end step %c64 {
    %a = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"}
        : memref<?x?x2x64xf32> -> tensor<64x64xf32>
    %b = gdn_tile.load %z[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"}
        : memref<?x?x2x64xf32> -> tensor<64x64xf32>
    %c = arith.addf %a, %b {gdn_tile.step = "state"} : tensor<64x64xf32>
    gdn_tile.store %c, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "state"}
        : tensor<64x64xf32> -> memref<?x?x2x64xf32>
  }
}
func.func @zeros(%x: tensor<?x?x2x64xf32> {gdn.name = "x"}) -> tensor<?x?x2x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?x2x64xf32>
  %t = tensor.dim %x, %c1 : tensor<?x?x2x64xf32>
  %e = tensor.empty(%n, %t) : tensor<?x?x2x64xf32>
  %f = tensor.empty(%n, %t) : tensor<?x?x2x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<?x?x2x64xf32>) -> tensor<?x?x2x64xf32>
  %y = gdn_tile.launch @add grid(%n, %c2, %c1) tokens(%t)
      ins(%x, %z : tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>) outs(%e : tensor<?x?x2x64xf32>) -> tensor<?x?x2x64xf32>
  return %y : tensor<?x?x2x64xf32>
}
