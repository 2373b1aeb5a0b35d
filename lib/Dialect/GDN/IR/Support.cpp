//===- Support.cpp - What the compiler supports ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/Support.h"

#include "gdn/Dialect/ElementTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::gdn;

bool support::isDataType(Type type) {
  return isa<FloatType>(type) && isElementType(type, ElementLevel::Layer);
}
FloatType support::cumulatedGateType(Type dataType) {
  MLIRContext *context = dataType.getContext();
  if (dataType.isF32())
    return Float64Type::get(context);
  return Float32Type::get(context);
}
bool support::isParameterType(Type type) { return isDataType(type); }
bool support::isBoundaryType(Type type) {
  return isa<IntegerType>(type) && isElementType(type, ElementLevel::Layer);
}
bool support::isChunkSize(int64_t size) {
  return llvm::is_contained(chunkSizes, size);
}
