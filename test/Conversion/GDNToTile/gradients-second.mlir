// RUN: gdn-compile %s --target=sm_90a --state-interval=128 --emit=tile | FileCheck %s
// RUN: gdn-compile %s --state-interval=128 --backward=three --emit=tile | FileCheck %s
// RUN: gdn-compile %s --target=sm_90a --state-interval=128 --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --state-interval=128 --emit=ptx | FileCheck %s --check-prefix=PTX

// A state is kept before every second chunk of 64 tokens, for any number of heads. A chunk takes the one before it, or the one
// before the chunk before it: `between` is 0 or 1 chunk. Tokens between are loaded up to the chunk, so there may be none.
// CHECK-LABEL: gdn_tile.program @layer_gradients(
// CHECK: %[[BETWEEN:.*]] = arith.remui %{{.*}}, %c2
// CHECK: %[[TOKENS:.*]] = arith.muli %[[BETWEEN]], %c64
// CHECK: %[[FIRST:.*]] = arith.subi %[[T:.*]], %[[TOKENS]]
// CHECK: gdn_tile.load %writes[%batch, %[[FIRST]], {{.*}} axes [3, 1] until(%[[T]], dim = 1) {gdn_tile.step = "load_between"}
// CHECK: gdn_tile.load %k[%batch, %[[FIRST]], {{.*}} until(%[[T]], dim = 1) {gdn_tile.step = "load_between"}
// CHECK: gdn_tile.load %dv[%batch, %[[T]],
// CHECK: gdn_tile.load %writes[%batch, %[[T]],{{.*}}"load_write"
// CHECK: gdn_tile.load %d_o[%batch, %[[T]],{{.*}}"load_output"
// CHECK: gdn_tile.load %states[{{.*}}gdn_tile.step = "load_kept"
// CHECK: gdn_tile.load %states[{{.*}}gdn_tile.step = "low_state", gdn_tile.words

// The decayed state and what the tokens between write; then what needs no state, for it may not be there yet.
// CHECK: %[[MADE:.*]] = linalg.contract {{.*}}gdn_tile.step = "low_state"
// CHECK: %[[STATE:.*]] = arith.truncf %[[MADE]] {gdn_tile.step = "low_state"}
// CHECK: linalg.contract {{.*}}gdn_tile.step = "low_keys"{{.*}}
// CHECK: linalg.contract {{.*}}gdn_tile.step = "low_keys"{{.*}} ins(%{{.*}}, %[[STATE]] :

// Words of a state where the array allows it, and elements elsewhere.
// WARP-LABEL: gdn_warp.kernel @layer_gradients
// WARP: gdn_warp.role "pairs"
// WARP: gdn_warp.array_load %states[{{.*}}gdn_tile.words
// PTX-LABEL: .entry layer_gradients
// PTX: ld.global.b32
// PTX: ld.global.b16
func.func @layer(%q: tensor<1x?x?x128xbf16>, %k: tensor<1x?x?x128xbf16>, %v: tensor<1x?x?x128xbf16>, %beta: tensor<1x?x?xf32>,
    %gate: tensor<1x?x?xf32>, %cu: tensor<?xi32>, %do: tensor<1x?x?x128xbf16>)
    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>) {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x?x128xbf16>) k(%k : tensor<1x?x?x128xbf16>) v(%v : tensor<1x?x?x128xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%do : tensor<1x?x?x128xbf16>)
      -> tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?xf32>, tensor<1x?x?xf32>
}
