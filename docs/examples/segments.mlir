// A layer that a host calls as it is fastest: sequences as a whole, or cut into
// segments that are computed side by side. gdn-plan-calls makes a function of
// each variant, and a table of them, of which a C program chooses by
// libgdn-calls (segments.c).
//
//   gdn-compile docs/examples/segments.mlir --target=sm_90a --side-by-side --emit=obj
func.func @long_layer(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>,
                      %beta: tensor<?x?x?xf32>, %gate: tensor<?x?x?xf32>,
                      %initial_state: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided})
    -> (tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32> {gdn.optional, gdn.strided})
    attributes {gdn.variants = [
      {schedule = "cta_per_head", gdn_warp.schedules = {fused = "cta_per_head"}},
      {schedule = "cta_per_v_tile", gdn_warp.schedules = {fused = "cta_per_v_tile"}},
      {schedule = "cta_per_head", name = "segments_cta_per_head", cut = ["segment_length"],
       gdn_warp.schedules = {fused = "cta_per_head"}},
      {schedule = "cta_per_v_tile", name = "segments_cta_per_v_tile", cut = ["segment_length"],
       gdn_warp.schedules = {fused = "cta_per_v_tile"}}]} {
  %o, %state = gdn.chunk_gated_delta_rule
      q(%q : tensor<?x?x?x128xbf16>) k(%k : tensor<?x?x?x128xbf16>) v(%v : tensor<?x?x?x128xbf16>)
      beta(%beta : tensor<?x?x?xf32>) gate(%gate : tensor<?x?x?xf32>)
      initial_state(%initial_state : tensor<?x?x128x128xf32>) {output_final_state}
      -> tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
  return %o, %state : tensor<?x?x?x128xbf16>, tensor<?x?x128x128xf32>
}
