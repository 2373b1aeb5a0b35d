// What functions say of the schedules of their stages.
// RUN: gdn-opt %s --split-input-file --gdn-warp-choose-schedule --verify-diagnostics

gdn_tile.program @sum(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_tile.stage = "sum"} {
}
// expected-error @below {{expected gdn_warp.schedules of stages that it launches (sum), got fused}}
func.func @stage(%n: index, %x: memref<1x?x4xf32>) attributes {gdn_warp.schedules = {fused = "cta_per_head"}} {
  gdn_tile.launch @sum grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>)
  return
}

// -----

gdn_tile.program @sum(%x: memref<1x?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) attributes {gdn_tile.stage = "sum"} {
}
// expected-error @below {{expected schedule auto, or one of:}}
func.func @schedule(%n: index, %x: memref<1x?x4xf32>) attributes {gdn_warp.schedules = {sum = "half"}} {
  gdn_tile.launch @sum grid(%n, %n, %n) tokens(%n) ins(%x : memref<1x?x4xf32>)
  return
}
