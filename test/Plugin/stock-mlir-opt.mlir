// Debian's own mlir-opt takes the plugin: it parses the dialect and knows our passes by name.
// RUN: mlir-opt %s --load-dialect-plugin=%gdn_lib/GDNPlugin.so --load-pass-plugin=%gdn_lib/GDNPlugin.so \
// RUN:   --pass-pipeline="builtin.module(gdn-verify-stages-form)" --verify-diagnostics
// The host is not instrumented, so it cannot load an instrumented plugin.
// UNSUPPORTED: sanitizers

func.func @layer(%q: tensor<1x64x1x16xf32>, %v: tensor<1x64x2x16xf32>,
                 %beta: tensor<1x64x2xf32>) -> tensor<1x64x2x16xf32> {
  // expected-error @below {{expected only stage ops of gdn at the stages level, got a layer op}}
  %o = gdn.chunk_gated_delta_rule
      q(%q : tensor<1x64x1x16xf32>) k(%q : tensor<1x64x1x16xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>)
      -> tensor<1x64x2x16xf32>
  return %o : tensor<1x64x2x16xf32>
}
