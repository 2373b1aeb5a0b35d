// A pool that every call doubles in place, in three forms.
gdn_warp.kernel @double(%x : memref<?x64xf32, strided<[?, 1]>>, %y : memref<?x64xf32, strided<[?, 1]>>, %tokens : i64)
    threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %cta = gdn_warp.id cta
  %i = arith.muli %cta, %c64 : index
  %end = arith.index_cast %tokens : i64 to index
  gdn_warp.role "all" warps(0, 4) {
    %f = gdn_warp.array_load %x[%i, %c0] axes [0, 1] until(%end, dim = 0)
        : memref<?x64xf32, strided<[?, 1]>> -> tensor<64x64xf32, #gdn_warp.fragment>
    %g = arith.addf %f, %f : tensor<64x64xf32, #gdn_warp.fragment>
    gdn_warp.array_store %g, %y[%i, %c0] axes [0, 1] until(%end, dim = 0)
        : tensor<64x64xf32, #gdn_warp.fragment> -> memref<?x64xf32, strided<[?, 1]>>
  }
}
// The first launch reads the pool and updates it, the second one goes on.
func.func @twice(%pool: tensor<?x64xf32> {gdn.name = "pool", gdn.dims = ["N"], bufferization.writable = true})
    -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = tensor.dim %pool, %c0 : tensor<?x64xf32>
  %ctas = arith.ceildivui %n, %c64 : index
  %a = gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%pool : tensor<?x64xf32>) outs(%pool : tensor<?x64xf32>) -> tensor<?x64xf32>
  %b = gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%a : tensor<?x64xf32>) outs(%a : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %b : tensor<?x64xf32>
}
// In memrefs, as layers with `outs` become: through a temporary, and back.
func.func @buffers(%pool: memref<?x64xf32> {gdn.name = "pool", gdn.dims = ["N"]},
                   %o: memref<?x64xf32> {gdn.name = "o", gdn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %x = bufferization.to_tensor %pool restrict : memref<?x64xf32> to tensor<?x64xf32>
  %n = memref.dim %pool, %c0 : memref<?x64xf32>
  %ctas = arith.ceildivui %n, %c64 : index
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %a = gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %b = gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%a : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %c = gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%b : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  bufferization.materialize_in_destination %b in restrict writable %o : (tensor<?x64xf32>, memref<?x64xf32>) -> ()
  bufferization.materialize_in_destination %c in restrict writable %pool : (tensor<?x64xf32>, memref<?x64xf32>) -> ()
  return
}
// A launch may take memrefs as they are.
func.func @direct(%pool: memref<?x64xf32> {gdn.name = "pool", gdn.dims = ["N"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %pool, %c0 : memref<?x64xf32>
  %ctas = arith.ceildivui %n, %c64 : index
  gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%pool : memref<?x64xf32>) outs(%pool : memref<?x64xf32>)
  gdn_tile.launch @double grid(%ctas, %c1, %c1) tokens(%n)
      ins(%pool : memref<?x64xf32>) outs(%pool : memref<?x64xf32>)
  return
}
