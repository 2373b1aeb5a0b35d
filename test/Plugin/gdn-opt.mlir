// A tool that has the dialects already takes the plugin: its dialects are registered once.
// RUN: gdn-opt %s --load-dialect-plugin=%gdn_lib/GDNPlugin.so --gdn-to-stages | FileCheck %s
// UNSUPPORTED: sanitizers

// CHECK: gdn.stage.fused
func.func @layer(%q: tensor<1x64x1x16xf32>, %v: tensor<1x64x2x16xf32>,
                 %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x1x16xf32>) k(%q : tensor<1x64x1x16xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32>
  return %o : tensor<1x64x2x16xf32>
}
