// RUN: gdn-compile %s --target=sm_90a --emit=tile | FileCheck %s
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP

// A part of a sequence, of whole intervals, begins with its kept state: number floor(b / 256) + n + (first - b) / 256. Of the
// 32 work items of a sequence and head two have the same tokens, and a tile of V each. Others end at once.
// CHECK-LABEL: gdn_tile.program @layer_expand(
// CHECK-SAME: %kept: memref<?x4x128x128xbf16
// CHECK: %[[TILE:.*]] = arith.remui %vt, %c2
// CHECK: %[[V:.*]] = arith.muli %[[TILE]], %c64
// CHECK: %[[PART:.*]] = arith.divui %vt, %c2
// CHECK: %[[COUNT:.*]] = arith.ceildivui %{{.*}}, %c4096
// CHECK: %[[LENGTH:.*]] = arith.muli %[[COUNT]], %c256
// CHECK: arith.muli %[[PART]], %[[LENGTH]]
// CHECK: gdn_tile.leave {{.*}}early
// CHECK: gdn_tile.load %kept[%{{.*}}, %{{.*}}, %[[V]], %c0] axes [2, 3]
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %c64 iter_args(%[[STATE:.*]] = %{{.*}}) -> (tensor<64x128xf32>)
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[STATE]] {gdn_tile.step = "keep"}
// CHECK: gdn_tile.store %[[ROUNDED]], %states[{{.*}} {gdn_tile.step = "store_state"}
// CHECK: gdn_tile.load %v[%batch, %[[T]], %{{.*}}, %[[V]]] axes [3, 1]
// CHECK: linalg.contract {{.*}}gdn_tile.step = "state"
// CHECK: gdn_tile.launch @layer_expand grid(%{{.*}}, %{{.*}}, %c32)

// Two CTAs on a multiprocessor.
// WARP-LABEL: gdn_warp.kernel @layer_expand
// WARP-SAME: min_ctas(2)
// WARP: gdn_warp.role "state" warps(0, 4)
func.func @layer(%q: tensor<1x?x2x128xbf16>, %r: tensor<1x?x4x128xbf16>, %beta: tensor<1x?x4xf32>, %gate: tensor<1x?x4xf32>,
                 %cu: tensor<?xi32>, %s: tensor<?x4x128x128xbf16>) -> tensor<?x4x128x128xbf16> {
  %all = gdn.stage.expand q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>) v(%r : tensor<1x?x4x128xbf16>)
      beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xf32>) cu_seqlens(%cu : tensor<?xi32>)
      states(%s : tensor<?x4x128x128xbf16>) {chunk_size = 64, segment_length = 64, state_interval = 256}
      -> tensor<?x4x128x128xbf16>
  return %all : tensor<?x4x128x128xbf16>
}
