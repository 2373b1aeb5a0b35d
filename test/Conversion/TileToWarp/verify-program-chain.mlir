// A chain of two products normalises rows as they are loaded, and no kernel does that to what products read from shared
// memory.
// RUN: gdn-opt %s --verify-diagnostics --pass-pipeline='builtin.module(convert-gdn-to-tile{two-product-chain=true},canonicalize,cse,gdn_tile.program(gdn-tile-stack-products,gdn-warp-verify-program))'

func.func @norms(%q: tensor<1x?x2x64xf16>, %v: tensor<1x?x4x64xf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x64xf16> {
  // expected-error @below {{expected an unnormalised right operand (norms scale the result), got a normalised one; use no --two-product-chain with qk_l2norm}}
  %o = gdn.stage.fused q(%q : tensor<1x?x2x64xf16>) k(%q : tensor<1x?x2x64xf16>) v(%v : tensor<1x?x4x64xf16>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32, qk_l2norm} -> tensor<1x?x4x64xf16>
  return %o : tensor<1x?x4x64xf16>
}
