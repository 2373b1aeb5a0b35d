// A function of a layer becomes an entry: a function for each variant, with its schedule, cut and layout of states.
// RUN: gdn-opt %s --gdn-plan-calls | FileCheck %s

// CHECK-LABEL: func.func @layer_cta_per_head(
// CHECK-SAME: %{{.*}}: tensor<?x?x64x128xf32> {gdn.optional, gdn.strided}) ->
// CHECK-SAME: attributes {gdn_warp.schedules = {fused = "cta_per_head"}}
// CHECK: gdn.chunk_gated_delta_rule
// CHECK-NOT: state_layout
// CHECK: return

// Arguments by which a call cuts its sequences stand behind the others.
// CHECK-LABEL: func.func @layer_waiting(
// CHECK-SAME: %{{.*}}: tensor<?x?x64x128xf32> {gdn.optional, gdn.strided}, %{{.*}}: index {gdn.cut = "segment_length"})
// CHECK-NOT: gdn.variants

// CHECK-LABEL: func.func @layer_own(
// CHECK-SAME: tensor<?x?x128x64xf32> {gdn.optional, gdn.strided},
// CHECK-SAME: index {gdn.cut = "segment_length"}, %{{.*}}: index {gdn.cut = "segment_parts"})
// CHECK-SAME: -> (tensor<1x?x2x128xbf16>, tensor<?x?x128x64xf32>
// CHECK-SAME: gdn.late_forward
// CHECK: gdn.chunk_gated_delta_rule {{.*}} initial_state(%{{.*}} : tensor<?x?x128x64xf32>)
// CHECK-SAME: state_layout = #gdn.state_layout<vk>
// CHECK-SAME: tensor<?x?x128x64xf32>

// CHECK: gdn.entry @layer {
// CHECK-NEXT: gdn.variant @layer_cta_per_head schedule("cta_per_head")
// CHECK-NEXT: gdn.variant @layer_waiting schedule("cta_per_head")
// CHECK-NEXT: gdn.variant @layer_own schedule("cta_per_head")
// CHECK-NEXT: }
func.func @layer(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>, %gate: tensor<1x?x2xf32>,
    %initial: tensor<?x?x64x128xf32> {gdn.optional, gdn.strided})
    -> (tensor<1x?x2x128xbf16>, tensor<?x?x64x128xf32> {gdn.optional, gdn.strided}) attributes {gdn.variants = [
      {schedule = "cta_per_head", gdn_warp.schedules = {fused = "cta_per_head"}},
      {schedule = "cta_per_head", name = "waiting", cut = ["segment_length"]},
      {schedule = "cta_per_head", name = "own", cut = ["segment_length", "segment_parts"], state_layout = #gdn.state_layout<vk>,
       gdn.late_forward}]} {
  %o, %final = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%initial : tensor<?x?x64x128xf32>)
      {output_final_state} -> tensor<1x?x2x128xbf16>, tensor<?x?x64x128xf32>
  return %o, %final : tensor<1x?x2x128xbf16>, tensor<?x?x64x128xf32>
}

// Others stay as they are.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: gdn.entry
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
