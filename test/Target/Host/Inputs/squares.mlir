// A function of two kernels as it stands when the tile level is behind it: the
// sequences of x, doubled, go through the workspace as bf16, and are squared.

gdn_warp.kernel @double(%x : memref<1x?x2x64xf32, strided<[?, ?, ?, 1]>>,
                        %t : memref<1x?x2x64xbf16, strided<[?, ?, ?, 1]>>,
                        %tokens : i64, %cu : memref<?xi32, strided<[?]>>)
    threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %cta = gdn_warp.id cta
  %n = arith.divui %cta, %c2 : index
  %h = arith.remui %cta, %c2 : index
  %next = arith.addi %n, %c1 : index
  %b32 = memref.load %cu[%n] : memref<?xi32, strided<[?]>>
  %e32 = memref.load %cu[%next] : memref<?xi32, strided<[?]>>
  %begin = arith.index_cast %b32 : i32 to index
  %end = arith.index_cast %e32 : i32 to index
  gdn_warp.role "all" warps(0, 4) {
    scf.for %i = %begin to %end step %c64 {
      %f = gdn_warp.array_load %x[%c0, %i, %h, %c0] axes [1, 3] until(%end, dim = 1)
          : memref<1x?x2x64xf32, strided<[?, ?, ?, 1]>> -> tensor<64x64xf32, #gdn_warp.fragment>
      %g = arith.addf %f, %f : tensor<64x64xf32, #gdn_warp.fragment>
      %r = arith.truncf %g : tensor<64x64xf32, #gdn_warp.fragment> to tensor<64x64xbf16, #gdn_warp.fragment>
      gdn_warp.array_store %r, %t[%c0, %i, %h, %c0] axes [1, 3] until(%end, dim = 1)
          : tensor<64x64xbf16, #gdn_warp.fragment> -> memref<1x?x2x64xbf16, strided<[?, ?, ?, 1]>>
    }
  }
}
gdn_warp.kernel @square(%t : memref<1x?x2x64xbf16, strided<[?, ?, ?, 1]>>,
                        %o : memref<1x?x2x64xf32, strided<[?, ?, ?, 1]>>, %tokens : i64)
    threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = gdn_warp.id cta
  %end = arith.index_cast %tokens : i64 to index
  gdn_warp.role "all" warps(0, 4) {
    scf.for %i = %c0 to %end step %c64 {
      %b = gdn_warp.array_load %t[%c0, %i, %h, %c0] axes [1, 3] until(%end, dim = 1)
          : memref<1x?x2x64xbf16, strided<[?, ?, ?, 1]>> -> tensor<64x64xbf16, #gdn_warp.fragment>
      %f = arith.extf %b : tensor<64x64xbf16, #gdn_warp.fragment> to tensor<64x64xf32, #gdn_warp.fragment>
      %g = arith.mulf %f, %f : tensor<64x64xf32, #gdn_warp.fragment>
      gdn_warp.array_store %g, %o[%c0, %i, %h, %c0] axes [1, 3] until(%end, dim = 1)
          : tensor<64x64xf32, #gdn_warp.fragment> -> memref<1x?x2x64xf32, strided<[?, ?, ?, 1]>>
    }
  }
}
func.func @squares(%x: tensor<1x?x2x64xf32> {gdn.name = "x", gdn.dims = ["B", "T", "H", "K"]},
                   %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N+1"]})
    -> (tensor<1x?x2x64xf32> {gdn.name = "o", gdn.dims = ["B", "T", "H", "K"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x2x64xf32>
  %n1 = tensor.dim %cu, %c0 : tensor<?xi32>
  %n = arith.subi %n1, %c1 : index
  %e = tensor.empty(%t) : tensor<1x?x2x64xbf16>
  %d = gdn_tile.launch @double grid(%n, %c2, %c1) tokens(%t) cu_seqlens(%cu : tensor<?xi32>)
      ins(%x : tensor<1x?x2x64xf32>) outs(%e : tensor<1x?x2x64xbf16>) -> tensor<1x?x2x64xbf16>
  %f = tensor.empty(%t) : tensor<1x?x2x64xf32>
  %o = gdn_tile.launch @square grid(%c1, %c2, %c1) tokens(%t)
      ins(%d : tensor<1x?x2x64xbf16>) outs(%f : tensor<1x?x2x64xf32>) -> tensor<1x?x2x64xf32>
  return %o : tensor<1x?x2x64xf32>
}
