// Where pieces of `length` tokens begin, in units: a call brings the number of tokens and of those in a piece, which a host
// makes sizes of, and two factors, of which a kernel alone knows.
gdn_tile.program @pieces_program(%length: index, %units: i32, %scale: f32) outs(%starts: memref<?xf32, strided<[1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_tile.stage = "segment_boundaries"} {
  %token = arith.muli %n, %length : index
  %number = arith.index_cast %token : index to i32
  %units_before = arith.muli %number, %units : i32
  %before = arith.sitofp %units_before : i32 to f32
  %start = arith.mulf %before, %scale : f32
  %value = tensor.splat %start {gdn_tile.step = "store"} : tensor<1xf32>
  gdn_tile.store %value, %starts[%n] axes [0] {gdn_tile.step = "store"} : tensor<1xf32> -> memref<?xf32, strided<[1], offset: ?>>
}

func.func @pieces(%tokens: index {gdn.name = "tokens"}, %length: index {gdn.name = "length"},
    %units: i32 {gdn.name = "units"}, %scale: f32 {gdn.name = "scale"}) -> (tensor<?xf32> {gdn.name = "starts"}) {
  %c1 = arith.constant 1 : index
  %pieces = arith.ceildivui %tokens, %length : index
  %empty = tensor.empty(%pieces) : tensor<?xf32>
  %starts = gdn_tile.launch @pieces_program grid(%pieces, %c1, %c1) tokens(%c1)
      ins(%length, %units, %scale : index, i32, f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %starts : tensor<?xf32>
}
