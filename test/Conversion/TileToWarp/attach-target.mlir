// RUN: gdn-opt %s --gdn-warp-attach-target | FileCheck %s
// RUN: not gdn-opt %s --gdn-warp-attach-target=chip=sm_80 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: expected a chip of sm_90a, got sm_80

// CHECK-LABEL: gdn_tile.program @program(
// CHECK-SAME: attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_90a">}
gdn_tile.program @program() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// CHECK-LABEL: gdn_warp.kernel @kernel(
// CHECK-SAME: attributes {gdn_warp.target = #gdn_warp.target<chip = "sm_90a">}
gdn_warp.kernel @kernel() threads(128) shared(0) {}

// What launches them is for the host.
// CHECK-LABEL: func.func @host()
// CHECK-NOT: gdn_warp.target
func.func @host() {
  return
}
