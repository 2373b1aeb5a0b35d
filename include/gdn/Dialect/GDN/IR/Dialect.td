//===- Dialect.td - The gdn dialect ------------------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_DIALECT_TD
#define GDN_DIALECT_GDN_IR_DIALECT_TD

include "mlir/IR/DialectBase.td"

def GDN_Dialect : Dialect {
  let name = "gdn";
  let cppNamespace = "::mlir::gdn";
  let summary = "Gated delta rule layers: what is computed";
  let description = [{
    The layers of the gated delta rule family on whole tensors: Gated DeltaNet
    (one gate a token and head), Kimi Delta Attention (one gate a token, head
    and channel) and DeltaNet (no gate). An op says *what* is computed; the
    stage ops of the same dialect say which kernels compute it. No chunk loop,
    tile or thread appears here.

    Shapes are named as in the specification: batch `B`, tokens `T`, query/key
    heads `Hq`, value heads `H` (a multiple of `Hq`), key channels `K`, value
    channels `V`, sequences `N`, chunk length `C`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasCanonicalizer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

#endif // GDN_DIALECT_GDN_IR_DIALECT_TD
