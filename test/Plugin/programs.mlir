// A program needs a module as its symbol table: a launch finds it by name from there. Stock mlir-opt
// knows other symbol tables, as gpu.module.
// RUN: mlir-opt %s --load-dialect-plugin=%gdn_lib/GDNPlugin.so --load-pass-plugin=%gdn_lib/GDNPlugin.so \
// RUN:   --pass-pipeline="builtin.module(convert-gdn-to-tile)" -verify-diagnostics
// The host is not instrumented, so it cannot load an instrumented plugin.
// UNSUPPORTED: sanitizers

gpu.module @kernels {
  func.func @f(%x: tensor<1x32x1x16xf32>) -> tensor<1x32x1x16xf32> {
    // expected-error @below {{expected a module as the nearest symbol table, to put the program in, got gpu.module}}
    %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
        v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
    return %y : tensor<1x32x1x16xf32>
  }
}
