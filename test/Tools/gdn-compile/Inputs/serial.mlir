#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, persistent = true, roles = [
  <name = "move", warps = 1, registers = 96, steps = ["load"]>,
  <name = "idle", warps = 3, registers = 96, steps = []>,
  <name = "state", warps = 4, registers = 240, steps = ["gates", "scores", "state"]>],
  channels = [<name = "from_load", depth = 3, from = ["load"], to = ["state"]>]>
gdn_tile.program @twice_tile(%in0: memref<?x1x2x64x32xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>) outs(%out2: memref<?x1x2x64x64xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>, %out3: memref<?x1x2x64x64xf32, strided<[?, ?, ?, ?, 1], offset: ?>>) work_item(%n, %h, %p) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
%number16 = arith.constant 16 : index
%number0 = arith.constant 0 : index
%length = arith.subi %end, %begin : index
%chunks = arith.ceildivui %length, %number16 : index
%upper = arith.muli %chunks, %number16 : index
%v0 = arith.constant 0 : index
scf.for %i0 = %number0 to %upper step %number16 {
%last0 = arith.subi %upper, %number16 : index
%from0 = arith.subi %last0, %i0 : index
%t0 = arith.addi %begin, %from0 : index
%chunk0 = arith.divui %from0, %number16 : index
%l1 = gdn_tile.load %in0[%n, %chunk0, %h, %v0, %number0] axes [3, 4] {gdn_tile.step = "load"} : memref<?x1x2x64x32xbf16, strided<[?, ?, ?, ?, 1], offset: ?>> -> tensor<64x32xbf16>
%e3 = arith.extf %l1 {gdn_tile.step = "scores"} : tensor<64x32xbf16> to tensor<64x32xf32>
%c4 = arith.constant {gdn_tile.step = "scores"} dense<1.25000000e-01> : tensor<64x32xf32>
%m5 = arith.mulf %e3, %c4 {gdn_tile.step = "scores"} : tensor<64x32xf32>
%t6 = arith.truncf %m5 {gdn_tile.step = "scores"} : tensor<64x32xf32> to tensor<64x32xbf16>
%t7 = arith.truncf %m5 {gdn_tile.step = "state"} : tensor<64x32xf32> to tensor<64x32xbf16>
%c8 = arith.constant {gdn_tile.step = "state"} dense<0.00000000e+00> : tensor<64x64xf32>
%c9 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] {gdn_tile.step = "state"} ins(%t7, %l1 : tensor<64x32xbf16>, tensor<64x32xbf16>) outs(%c8 : tensor<64x64xf32>) -> tensor<64x64xf32>
%c10 = arith.constant {gdn_tile.step = "state"} dense<0.00000000e+00> : tensor<64x64xf32>
%c11 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] {gdn_tile.step = "state"} ins(%t6, %l1 : tensor<64x32xbf16>, tensor<64x32xbf16>) outs(%c10 : tensor<64x64xf32>) -> tensor<64x64xf32>
%t12 = arith.truncf %c9 {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
gdn_tile.store %t12, %out2[%n, %chunk0, %h, %v0, %number0] axes [3, 4] {gdn_tile.step = "state"} : tensor<64x64xbf16> -> memref<?x1x2x64x64xbf16, strided<[?, ?, ?, ?, 1], offset: ?>>
gdn_tile.store %c11, %out3[%n, %chunk0, %h, %v0, %number0] axes [3, 4] {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<?x1x2x64x64xf32, strided<[?, ?, ?, ?, 1], offset: ?>>
}
}
func.func @twice(%in0: tensor<?x1x2x64x32xbf16>, %cu: tensor<?xi32>) -> (tensor<?x1x2x64x64xbf16>, tensor<?x1x2x64x64xf32>) {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%T = arith.constant 86 : index
%bounds = tensor.dim %cu, %c0 : tensor<?xi32>
%N = arith.subi %bounds, %c1 : index
%out2 = tensor.empty(%N) : tensor<?x1x2x64x64xbf16>
%out3 = tensor.empty(%N) : tensor<?x1x2x64x64xf32>
%r:2 = gdn_tile.launch @twice_tile grid(%N, %c2, %c1) tokens(%T) cu_seqlens(%cu : tensor<?xi32>) ins(%in0 : tensor<?x1x2x64x32xbf16>) outs(%out2, %out3 : tensor<?x1x2x64x64xbf16>, tensor<?x1x2x64x64xf32>) -> tensor<?x1x2x64x64xbf16>, tensor<?x1x2x64x64xf32>
return %r#0, %r#1 : tensor<?x1x2x64x64xbf16>, tensor<?x1x2x64x64xf32>
}

