// The stages that look for segments that forget with them, and scan over segments with decays of channels.
// RUN: gdn-compile %s --target=sm_90a --emit=warp | FileCheck %s --check-prefix=WARP
// RUN: gdn-compile %s --target=sm_90a --emit=ptx | FileCheck %s --implicit-check-not=.local
// RUN: gdn-opt %s --gdn-to-warp --remarks-filter=gdn-warp-choose-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=CHOSEN

// The cost model knows that its gates have channels: chunks of a gate a head would take less than half of the time.
// CHOSEN: Function=starts_segment_starts | Template=segment_starts.channels
// CHOSEN: Function=starts_segment_starts | CTAs=4224, Microseconds=5{{[0-9][0-9][0-9]}}.

// A warp has the channels of a token, four a lane, and begins the loads of eight tokens before it sums any over its lanes.
// WARP: gdn_warp.kernel @starts_segment_starts({{.*}}) threads(128) shared(0) min_ctas(3)
// WARP: gdn_warp.role "walk" warps(0, 1)
// WARP: scf.for {{.*}} -> (tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 32, warps = 1>, axis = 1>>, tensor<1xf32, #gdn_warp.uniform>, tensor<1xi32, #gdn_warp.uniform>)

// CHECK: .entry starts_segment_starts(
// CHECK: .minnctapersm 3
// CHECK: shfl.sync.bfly
// CHECK: ex2.approx
// CHECK-COUNT-4: shfl.sync.bfly
// CHECK: .entry scan_segment_scan(
// Decays of channels are factors of the rows of the state.
// CHECK-DAG: ex2.approx
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16

// The gradient of the state before a segment: the roles of its backward's recurrence, two CTAs a head.
// CHOSEN: Function=pass_adjoint_pass | Template=adjoint_pass.channel_gates.pair
// CHECK: .entry pass_adjoint_pass(
// CHECK: wgmma.mma_async.sync.aligned
func.func @starts(%k: tensor<1x?x16x128xbf16>, %beta: tensor<1x?x32xbf16>, %gate: tensor<1x?x32x128xbf16>, %cu: tensor<?xi32>,
    %a: tensor<32xf32>, %d: tensor<32x128xf32>) -> tensor<?x32xi32> {
  %starts = gdn.stage.segment_starts k(%k : tensor<1x?x16x128xbf16>) beta(%beta : tensor<1x?x32xbf16>)
      gate(%gate : tensor<1x?x32x128xbf16>) cu_seqlens(%cu : tensor<?xi32>) a_log(%a : tensor<32xf32>) dt_bias(%d : tensor<32x128xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64, beta_domain = #gdn.beta_domain<logit>, qk_l2norm,
       chunk_size = 32 : i64, tolerance = 6.1442123533282e-06 : f64} -> tensor<?x32xi32>
  return %starts : tensor<?x32xi32>
}
func.func @scan(%map: tensor<?x32x128x128xf16>, %decay: tensor<?x32x128xf32>, %b: tensor<?x32x128x128xf32>, %s: tensor<?x32x128x128xf32>,
    %first: tensor<?xi32>, %starts: tensor<?x32xi32>, %boundaries: tensor<?xi32>) -> (tensor<?x32x128x128xf32>, tensor<?x32x128x128xf32>) {
  %entry, %last = gdn.stage.segment_scan map(%map : tensor<?x32x128x128xf16>) decay(%decay : tensor<?x32x128xf32>)
      states(%b : tensor<?x32x128x128xf32>) initial_state(%s : tensor<?x32x128x128xf32>) first_segments(%first : tensor<?xi32>)
      starts(%starts : tensor<?x32xi32>) boundaries(%boundaries : tensor<?xi32>) {segment_layout = #gdn.state_layout<vk>}
      -> tensor<?x32x128x128xf32>, tensor<?x32x128x128xf32>
  return %entry, %last : tensor<?x32x128x128xf32>, tensor<?x32x128x128xf32>
}
func.func @pass(%q: tensor<1x?x32x128xbf16>, %v: tensor<1x?x32x128xbf16>, %beta: tensor<1x?x32xf32>, %gate: tensor<1x?x32x128xf32>, %cu: tensor<?xi32>)
    -> tensor<?x32x128x128xf32> {
  %b = gdn.stage.adjoint_pass q(%q : tensor<1x?x32x128xbf16>) k(%q : tensor<1x?x32x128xbf16>) v(%v : tensor<1x?x32x128xbf16>)
      beta(%beta : tensor<1x?x32xf32>) gate(%gate : tensor<1x?x32x128xf32>) cu_seqlens(%cu : tensor<?xi32>) d_o(%v : tensor<1x?x32x128xbf16>)
      {chunk_size = 32 : i64, lower_bound = -5.0 : f64, state_layout = #gdn.state_layout<vk>} -> tensor<?x32x128x128xf32>
  return %b : tensor<?x32x128x128xf32>
}
