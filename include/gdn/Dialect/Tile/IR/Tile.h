//===- Tile.h - The gdn_tile dialect and its ops ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_IR_TILE_H
#define GDN_DIALECT_TILE_IR_TILE_H

#include "gdn/Dialect/ElementTypes.h"
#include "gdn/Dialect/KnownAttributes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gdn/Dialect/Tile/IR/Dialect.h.inc"

#define GET_OP_CLASSES
#include "gdn/Dialect/Tile/IR/Ops.h.inc"

namespace mlir::gdn::tile {

/// The array that a program has in the place of a tensor of this type: of any
/// strides, but for a last one of 1 if `isContiguous`.
MemRefType getArrayType(Type tensor, bool isContiguous = true);

} // namespace mlir::gdn::tile

#endif // GDN_DIALECT_TILE_IR_TILE_H
