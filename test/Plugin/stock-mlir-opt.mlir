// Debian's own mlir-opt takes the plugin and runs our way down to the LLVM dialect with it.
// RUN: mlir-opt %s --load-dialect-plugin=%gdn_lib/GDNPlugin.so --load-pass-plugin=%gdn_lib/GDNPlugin.so \
// RUN:   --pass-pipeline="builtin.module(gdn-to-llvm{plan=separate})" | FileCheck %s
// The host is not instrumented, so it cannot load an instrumented plugin.
// UNSUPPORTED: sanitizers

// CHECK-NOT: gdn.
// CHECK: llvm.func @layer(
// CHECK-NOT: gdn.
func.func @layer(%q: tensor<1x64x1x16xf32>, %v: tensor<1x64x2x16xf32>,
                 %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  %o = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x64x1x16xf32>) k(%q : tensor<1x64x1x16xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>)
      -> tensor<1x64x2x16xf32>
  return %o : tensor<1x64x2x16xf32>
}
