// What no pass lowered is named before LLVM would choke on it.
// RUN: not gdn-translate --gdn-to-ptx %s 2>&1 | FileCheck %s
// CHECK: not-lowered.mlir:[[#@LINE+1]]:1: error: expected a kernel in the llvm and nvvm dialects, got 'gdn_tile.program'
gdn_tile.program @p() outs(%x: memref<4xf32>) work_item(%n, %h, %i) tokens(%b, %f, %l) {}
