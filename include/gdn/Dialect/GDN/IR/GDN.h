//===- GDN.h - The gdn dialect, its ops and attributes ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDN_H
#define GDN_DIALECT_GDN_IR_GDN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "gdn/Dialect/GDN/IR/GateForms.h"
#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/KnownAttributes.h"

#include "gdn/Dialect/GDN/IR/Dialect.h.inc"
#include "gdn/Dialect/GDN/IR/Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GDN/IR/Attributes.h.inc"

#include "gdn/Dialect/GDN/IR/Interfaces.h.inc"

namespace mlir::gdn::detail {
/// What every op of the dialect must satisfy (docs/Spec.md).
LogicalResult verifyRule(Operation *op);
} // namespace mlir::gdn::detail

#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/Ops.h.inc"

#endif // GDN_DIALECT_GDN_IR_GDN_H
