// Roles that would wait for each other for ever: what `b` makes of a value of `a` is what `a` needs for another value
// of the same slot.
// RUN: not gdn-opt %s --gdn-tile-to-warp 2>&1 | FileCheck %s
// RUN: sed -e 's/"there", depth = 2, from = \["load", "state"\]/"there", depth = 2, from = ["load"]/' \
// RUN:   -e 's/channels = \[/channels = [<name = "again", depth = 2, from = ["state"], to = ["b"]>, /' %s | gdn-opt --gdn-tile-to-warp | FileCheck %s --check-prefix=TWO
// CHECK: error: 'gdn_warp.kernel' op expected roles of which one can always go on, got roles that wait for each other: a until a slot of "back" is full, b until a slot of "there" is full
// CHECK: note: a waits here
// CHECK: note: b waits here
// TWO: gdn_warp.kernel @crossed
#schedule = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [
    <name = "a", warps = 4, registers = 160, steps = ["load", "state"]>,
    <name = "b", warps = 4, registers = 160, steps = ["scores", "store"]>], channels = [
    <name = "there", depth = 2, from = ["load", "state"], to = ["b"]>,
    <name = "back", depth = 2, from = ["scores"], to = ["a"]>]>
gdn_tile.program @crossed(%x: memref<1x?x4xf32>) outs(%y: memref<1x?x4xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) attributes {gdn_warp.schedule = #schedule} {
  %c32 = arith.constant 32 : index
  scf.for %t = %begin to %end step %c32 {
    %a = gdn_tile.load %x[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "load"} : memref<1x?x4xf32> -> tensor<32xf32>
    %b = arith.negf %a {gdn_tile.step = "scores"} : tensor<32xf32>
    %c = arith.mulf %b, %b {gdn_tile.step = "state"} : tensor<32xf32>
    %d = arith.negf %c {gdn_tile.step = "store"} : tensor<32xf32>
    gdn_tile.store %d, %y[%batch, %t, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "store"} : tensor<32xf32> -> memref<1x?x4xf32>
  }
}
func.func @host(%x: memref<1x?x4xf32>, %y: memref<1x?x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.dim %x, %c1 : memref<1x?x4xf32>
  gdn_tile.launch @crossed grid(%c1, %c4, %c1) tokens(%t) ins(%x : memref<1x?x4xf32>) outs(%y : memref<1x?x4xf32>)
  return
}
