//===- Passes.td - Passes of the gdn_warp dialect ----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyExplicitFormPass : Pass<"gdn-warp-verify-explicit-form", "::mlir::ModuleOp"> {
  let summary = "Check that kernels fit the chip";
  let description = [{
    Fails where a kernel asks for more shared memory than a CTA can have or a
    view or barrier lies outside what it asks for, where roles overlap, leave
    the CTA, share a warpgroup with different register numbers, or where their
    registers exceed those of the launch. Changes nothing.
  }];
}

#endif // GDN_DIALECT_WARP_TRANSFORMS_PASSES_TD
