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

/// Checks the name of a value, or those of its dimensions.
static LogicalResult verifyNames(Operation *op, const Twine &value,
                                 NamedAttribute note) {
  StringRef name = note.getName();
  bool isOne = name == GDNDialect::getNameAttrName();
  auto list = dyn_cast<ArrayAttr>(note.getValue());
  bool fits = isOne ? isa<StringAttr>(note.getValue())
                    : list && llvm::all_of(list, llvm::IsaPred<StringAttr>);
  if (!fits)
    return op->emitOpError("expected ")
           << name << " of " << value << " to be "
           << (isOne ? "a string" : "an array of strings") << ", got "
           << note.getValue();
  return success();
}

/// How many arguments of a function have `word` as gdn.cut.
static int64_t countCuts(FunctionOpInterface function, StringRef word) {
  return llvm::count_if(llvm::seq(function.getNumArguments()),
                        [&](unsigned argument) {
                          auto cut = function.getArgAttrOfType<StringAttr>(
                              argument, GDNDialect::getCutAttrName());
                          return cut && cut.getValue() == word;
                        });
}

/// Checks the notes by which a call cuts sequences against each other.
static LogicalResult verifyCutsTogether(FunctionOpInterface function,
                                        StringRef word) {
  if (int64_t count = countCuts(function, word); count > 1)
    return function->emitOpError("expected one argument with ")
           << GDNDialect::getCutAttrName() << " = \"" << word << "\", got "
           << count;
  StringRef other = word == GDNDialect::kSegmentParts
                        ? GDNDialect::kSegmentLength
                        : GDNDialect::kSegmentParts;
  if (word == GDNDialect::kSegmentLength || countCuts(function, other))
    return success();
  return function->emitOpError("expected an argument with ")
         << GDNDialect::getCutAttrName() << " = \"" << other << "\" beside "
         << word << ", got none";
}

/// Checks a note by which a call cuts sequences.
static LogicalResult verifyCut(Operation *op, const Twine &value, Type type,
                               NamedAttribute note) {
  auto word = dyn_cast<StringAttr>(note.getValue());
  if (!word || (word != GDNDialect::kSegmentLength &&
                word != GDNDialect::kSegmentParts &&
                word != GDNDialect::kLongerSegmentLength))
    return op->emitOpError("expected ")
           << GDNDialect::getCutAttrName() << " of " << value << " to be \""
           << GDNDialect::kSegmentLength << "\", \""
           << GDNDialect::kSegmentParts << "\" or \""
           << GDNDialect::kLongerSegmentLength << "\", got " << note.getValue();
  if (!type.isIndex())
    return op->emitOpError("expected ")
           << value << ", which has " << GDNDialect::getCutAttrName()
           << ", to be an index, got " << type;
  return verifyCutsTogether(cast<FunctionOpInterface>(op), word.getValue());
}

/// Checks a note on `value`, an argument or a result of a function, of type
/// `type`.
static LogicalResult verifyNote(Operation *op, const Twine &value, Type type,
                                NamedAttribute note) {
  StringRef name = note.getName();
  if (name == GDNDialect::getNameAttrName() ||
      name == GDNDialect::getDimsAttrName())
    return verifyNames(op, value, note);
  if (name == GDNDialect::getCutAttrName())
    return verifyCut(op, value, type, note);
  if (name != GDNDialect::getOptionalAttrName() &&
      name != GDNDialect::getStridedAttrName())
    return op->emitOpError("expected gdn.optional, gdn.strided, gdn.cut, "
                           "gdn.name or gdn.dims on ")
           << value << ", got " << name;
  if (!isa<UnitAttr>(note.getValue()))
    return op->emitOpError("expected ") << name << " without a value on "
                                        << value << ", got " << note.getValue();
  if (!isa<RankedTensorType, MemRefType>(type))
    return op->emitOpError("expected ")
           << value << ", which has " << name
           << ", to be a tensor or a memref, got " << type;
  auto array = cast<ShapedType>(type);
  // By it a program sees whether the array is there.
  if (name == GDNDialect::getOptionalAttrName() &&
      (array.getRank() == 0 || !array.isDynamicDim(0)))
    return op->emitOpError("expected ")
           << value << ", which has " << name
           << ", to have a dynamic first extent, got " << type;
  return success();
}

LogicalResult GDNDialect::verifyRegionArgAttribute(Operation *op,
                                                   unsigned region,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyNote(op, "argument " + Twine(argument),
                    function.getArgumentTypes()[argument], attribute);
}

LogicalResult GDNDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyNote(op, "result " + Twine(result),
                    function.getResultTypes()[result], attribute);
}

LogicalResult GDNDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() == getGateBoundAttrName()) {
    auto bound = dyn_cast<FloatAttr>(attribute.getValue());
    if (isa<FunctionOpInterface>(op) && bound && bound.getValueAsDouble() < 0 &&
        bound.getValue().isFinite())
      return success();
    return op->emitOpError("expected ")
           << attribute.getName().getValue()
           << " on a function, a finite negative number, got "
           << attribute.getValue();
  }
  if (attribute.getName() != getLateForwardAttrName())
    return success();
  if (isa<FunctionOpInterface>(op) && isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitOpError("expected ")
         << attribute.getName().getValue()
         << " on a function, without a value, got " << attribute.getValue();
}
