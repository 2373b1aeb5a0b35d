!rows = tensor<1x40x1x16xf32>
!scalars = tensor<1x40x1xf32>
func.func @nothing(%x: !rows, %beta: !scalars) {
  %o = gdn.chunk_gated_delta_rule q(%x : !rows) k(%x : !rows) v(%x : !rows) beta(%beta : !scalars) -> !rows
  return
}
func.func @dead(%x: !rows, %beta: !scalars) -> !rows {
  %o = gdn.chunk_gated_delta_rule q(%x : !rows) k(%x : !rows) v(%x : !rows) beta(%beta : !scalars) -> !rows
  return %x : !rows
}
