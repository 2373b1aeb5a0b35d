// What keeps states in between is one kernel, of sequences as a whole.
// RUN: not gdn-opt %s --gdn-plan-stages=plan=separate 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not gdn-opt %s --gdn-plan-stages --gdn-cp-split=segment-length=128 2>&1 | FileCheck %s --check-prefix=SPLIT
// PLAN: error: {{.*}} expected plan 'fused' with step_intervals, got 'separate'
// SPLIT: error: {{.*}} expected a forward that keeps no states to split, got step_intervals
func.func @layer(%q: tensor<2x256x2x64xbf16>, %b: tensor<2x256x2xf32>, %kept: tensor<5x2x64x64xf32>, %starts: tensor<3xi32>,
                 %every: tensor<2xi32>) -> (tensor<2x256x2x64xbf16>, tensor<5x2x64x64xf32>) {
  %o, %k = gdn.chunk_gated_delta_rule q(%q : tensor<2x256x2x64xbf16>) k(%q : tensor<2x256x2x64xbf16>) v(%q : tensor<2x256x2x64xbf16>)
      beta(%b : tensor<2x256x2xf32>) step_states(%kept : tensor<5x2x64x64xf32>) step_starts(%starts : tensor<3xi32>)
      step_intervals(%every : tensor<2xi32>) -> tensor<2x256x2x64xbf16>, tensor<5x2x64x64xf32>
  return %o, %k : tensor<2x256x2x64xbf16>, tensor<5x2x64x64xf32>
}
