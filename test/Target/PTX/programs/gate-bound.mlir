// Looks at gates a channel: a warp has the channels of a token, four a lane, and begins the loads of 8 tokens before it sums any.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local
// RUN: gdn-opt %s --gdn-to-warp --remarks-filter=gdn-warp-choose-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHOSEN

// CHOSEN: Function=look_gate_bound | Template=gate_bound.channels
// WARP: gdn_warp.kernel @look_gate_bound({{.*}}) threads(128) shared(0) min_ctas(8)
// WARP: gdn_warp.role "look" warps(0, 4) registers(64) attributes {gdn_warp.round_robin}

// CHECK: .entry look_gate_bound(
// CHECK: .minnctapersm 8
// What others have found meanwhile is not in the multiprocessor's own copy.
// CHECK: ld.volatile.global.b32
// CHECK: exit;
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK: shfl.sync.bfly
// Only what nobody has found is stored, by the first lane of each warp.
// CHECK: ld.volatile.global.b32
// CHECK: st.global.b32
// CHECK: .entry raw_gate_bound(
// CHECK: ld.volatile.global.b32
// CHECK-COUNT-8: ld.global.v2.b32
// CHECK-COUNT-32: ex2.approx
// CHECK: lg2.approx
func.func @look(%k: tensor<1x?x2x128xbf16>, %g: tensor<1x?x?x128xf32>, %cu: tensor<?xi32>, %none: tensor<1x1x1xf32>) -> tensor<1x1x1xf32> {
  %r = gdn.stage.gate_bound k(%k : tensor<1x?x2x128xbf16>) gate(%g : tensor<1x?x?x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      none(%none : tensor<1x1x1xf32>) {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}

func.func @raw(%k: tensor<2x64x2x128xbf16>, %g: tensor<2x64x4x128xbf16>, %a: tensor<4xf32>, %b: tensor<4x128xf32>, %none: tensor<1x1x1xf32>)
    -> tensor<1x1x1xf32> {
  %r = gdn.stage.gate_bound k(%k : tensor<2x64x2x128xbf16>) gate(%g : tensor<2x64x4x128xbf16>) a_log(%a : tensor<4xf32>)
      dt_bias(%b : tensor<4x128xf32>) none(%none : tensor<1x1x1xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}
