//===- Entry.cpp - What a caller calls ------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::gdn;

LogicalResult EntryOp::verify() {
  for (Operation &op : getVariants().front())
    if (!isa<VariantOp>(op))
      return emitOpError("expected gdn.variant, got ") << op.getName();
  if (getVariants().front().empty())
    return emitOpError("expected at least one gdn.variant, got none");
  return success();
}

/// The arrays among types, in order: what callers of all variants bring.
static SmallVector<ShapedType> arraysOf(ArrayRef<Type> types) {
  SmallVector<ShapedType> arrays;
  for (Type type : types)
    if (auto array = dyn_cast<ShapedType>(type))
      arrays.push_back(array);
  return arrays;
}

static bool areAlike(ArrayRef<Type> some, ArrayRef<Type> others) {
  return llvm::equal(
      arraysOf(some), arraysOf(others), [](ShapedType one, ShapedType other) {
        return one.getElementType() == other.getElementType() &&
               one.hasRank() == other.hasRank() &&
               (!one.hasRank() || one.getRank() == other.getRank());
      });
}

LogicalResult VariantOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto module = (*this)->getParentOp()->getParentOfType<ModuleOp>();
  auto find = [&](FlatSymbolRefAttr name) {
    return symbolTable.lookupSymbolIn<FunctionOpInterface>(module, name);
  };
  FunctionOpInterface function = find(getFunctionAttr());
  if (!function)
    return emitOpError("expected a function of the module, got ")
           << getFunctionAttr();
  auto entry = cast<EntryOp>((*this)->getParentOp());
  auto firstVariant = cast<VariantOp>(entry.getVariants().front().front());
  FunctionOpInterface first = find(firstVariant.getFunctionAttr());
  // It says itself what is wrong with it.
  if (!first ||
      (areAlike(function.getArgumentTypes(), first.getArgumentTypes()) &&
       areAlike(function.getResultTypes(), first.getResultTypes())))
    return success();
  return emitOpError("expected arrays and results as ")
         << firstVariant.getFunctionAttr() << " has them ("
         << first.getFunctionType() << "), got " << function.getFunctionType();
}
