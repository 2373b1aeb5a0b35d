// Functions whose views leave it to the caller that extents agree.
gdn_warp.kernel @rows(%x : memref<?x?xf32, strided<[?, 1]>>, %y : memref<?x?xf32, strided<[?, 1]>>, %tokens : i64) threads(128) shared(0) {}
gdn_warp.kernel @flat(%x : memref<?xf32, strided<[1]>>, %y : memref<?xf32, strided<[1]>>, %tokens : i64) threads(128) shared(0) {}

// What has been joined is divided by other numbers.
func.func @divide(%x: tensor<?x?xf32> {gdn.name = "x"}, %p: index {gdn.name = "p"}, %q: index {gdn.name = "q"})
    -> (tensor<?x?xf32> {gdn.name = "o"}) {
  %c1 = arith.constant 1 : index
  %j = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %d = tensor.expand_shape %j [[0, 1]] output_shape [%p, %q] : tensor<?xf32> into tensor<?x?xf32>
  %e = tensor.empty(%p, %q) : tensor<?x?xf32>
  %o = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%c1) ins(%d : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}

// A kernel writes rows that are joined in the caller's array.
func.func @join(%x: tensor<?x?xf32> {gdn.name = "x"}) -> (tensor<?x?xf32> {gdn.name = "o"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.dim %x, %c0 : tensor<?x?xf32>
  %q = tensor.dim %x, %c1 : tensor<?x?xf32>
  %j = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %n = arith.muli %p, %q : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %o = gdn_tile.launch @flat grid(%c1, %c1, %c1) tokens(%c1) ins(%j : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %d = tensor.expand_shape %o [[0, 1]] output_shape [%p, %q] : tensor<?xf32> into tensor<?x?xf32>
  return %d : tensor<?x?xf32>
}

// The same into an array that is no result.
func.func @write(%x: tensor<?x?xf32> {gdn.name = "x"}, %o: memref<?x?xf32> {gdn.name = "o"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.dim %x, %c0 : tensor<?x?xf32>
  %q = tensor.dim %x, %c1 : tensor<?x?xf32>
  %j = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %n = arith.muli %p, %q : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = gdn_tile.launch @flat grid(%c1, %c1, %c1) tokens(%c1) ins(%j : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %d = tensor.expand_shape %y [[0, 1]] output_shape [%p, %q] : tensor<?xf32> into tensor<?x?xf32>
  bufferization.materialize_in_destination %d in restrict writable %o : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}
