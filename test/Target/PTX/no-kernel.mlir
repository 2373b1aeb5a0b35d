// A module without a lowered kernel has nothing to launch.
// RUN: not gdn-translate --gdn-to-launch-json %s 2>&1 | FileCheck %s
// CHECK: error: expected a module with kernels that went through convert-gdn-warp-to-nvvm, got none
module {}
