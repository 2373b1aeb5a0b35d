//===- Dialect.cpp - The gdn dialect --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

#include "gdn/Dialect/GDN/IR/Dialect.cpp.inc"
#include "gdn/Dialect/GDN/IR/Enums.cpp.inc"
#include "gdn/Dialect/GDN/IR/Interfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GDN/IR/Attributes.cpp.inc"

void GDNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/GDN/IR/Attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GDN/IR/Ops.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Notes on arguments and results
//===----------------------------------------------------------------------===//

/// Checks a note on a value of a function, of type `type`.
static LogicalResult verifyNote(Operation *op, Type type, NamedAttribute note) {
  StringRef name = note.getName();
  if (name == GDNDialect::getNameAttrName() ||
      name == GDNDialect::getDimsAttrName())
    return success();
  if (name != GDNDialect::getOptionalAttrName() &&
      name != GDNDialect::getStridedAttrName())
    return op->emitOpError("expected gdn.optional, gdn.strided, gdn.name or "
                           "gdn.dims on an argument or a result, got ")
           << name;
  if (!isa<UnitAttr>(note.getValue()))
    return op->emitOpError("expected ")
           << name << " without a value, got " << note.getValue();
  if (!isa<RankedTensorType, MemRefType>(type))
    return op->emitOpError("expected ")
           << name << " on a tensor or a memref, got " << type;
  auto array = cast<ShapedType>(type);
  // By it a program sees whether the array is there.
  if (name == GDNDialect::getOptionalAttrName() &&
      (array.getRank() == 0 || !array.isDynamicDim(0)))
    return op->emitOpError("expected ")
           << name << " on an array whose first extent is dynamic, got "
           << type;
  return success();
}

LogicalResult GDNDialect::verifyRegionArgAttribute(Operation *op,
                                                   unsigned region,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyNote(op, function.getArgumentTypes()[argument], attribute);
}

LogicalResult GDNDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyNote(op, function.getResultTypes()[result], attribute);
}
