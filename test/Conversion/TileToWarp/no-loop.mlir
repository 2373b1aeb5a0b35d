// What has no iterations, or nobody launches.
// RUN: gdn-opt %s --gdn-warp-choose-schedule=schedule=cta_per_head --gdn-warp-partition | FileCheck %s

// A CTA takes work items in turn and stores late: where there are no iterations nothing is late either.
// CHECK-LABEL: gdn_warp.kernel @empty(
// CHECK: gdn_warp.role "move"
gdn_tile.program @empty(%x: memref<67x64x2x128xbf16>) work_item(%n, %h, %i) tokens(%batch, %begin, %end) {
}

// A layer whose results nobody uses has lost its launch: no kernel.
// CHECK-NOT: @dead
gdn_tile.program @dead(%x: memref<67x64x2x128xbf16>) work_item(%n, %h, %i) tokens(%batch, %begin, %end) {
}
func.func @host(%x: memref<67x64x2x128xbf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c67 = arith.constant 67 : index
  gdn_tile.launch @empty grid(%c67, %c2, %c2) tokens(%c64) ins(%x : memref<67x64x2x128xbf16>)
  return
}
