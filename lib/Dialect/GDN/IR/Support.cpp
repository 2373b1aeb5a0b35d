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

#include <algorithm>
#include <cmath>

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
double support::maxExponent(Type operandType) {
  // 16 gates of -5, and rows up to 2^10 long, are in range of bf16 and f32.
  return operandType.isF16() ? 8.0 : 116.0;
}
double support::maxBlockExponent(Type operandType) {
  return std::min(maxExponent(operandType), 62.0);
}
bool support::isAlwaysInRange(double lowerBound, int64_t half, double most) {
  // Whole blocks, of whose gates the bound is one of the mean.
  return lowerBound < 0.0 && half % boundTokens == 0 &&
         -lowerBound * M_LOG2E * static_cast<double>(half) <= most;
}
bool support::areBlocksInRange(double lowerBound, Type operandType) {
  return isAlwaysInRange(lowerBound, referenceTokens / 2,
                         maxBlockExponent(operandType));
}
bool support::isParameterType(Type type) { return isDataType(type); }
bool support::isBoundaryType(Type type) {
  return isa<IntegerType>(type) && isElementType(type, ElementLevel::Layer);
}
bool support::isChunkSize(int64_t size) {
  return llvm::is_contained(chunkSizes, size);
}
