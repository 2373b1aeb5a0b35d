//===- KnownAttributes.td - Ops that refuse unknown attributes *- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_KNOWNATTRIBUTES_TD
#define GDN_DIALECT_KNOWNATTRIBUTES_TD

include "mlir/IR/OpBase.td"

/// The op has no attributes but those of its definition and those under a
/// dialect's name.
def OnlyKnownAttributes : NativeOpTrait<"OnlyKnownAttributes"> {
  let cppNamespace = "::mlir::gdn";
}

#endif // GDN_DIALECT_KNOWNATTRIBUTES_TD
