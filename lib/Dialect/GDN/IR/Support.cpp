//===- Support.cpp - What the compiler supports, in one table -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// An element type: how to recognise it and what to call it in the table.
struct ElementType {
  bool (*matches)(Type);
  StringRef name;
};
} // namespace

static constexpr ElementType dataTypes[] = {
    {[](Type type) { return type.isBF16(); }, "bf16"},
    {[](Type type) { return type.isF16(); }, "f16"},
    {[](Type type) { return type.isF32(); }, "f32"}};
static constexpr ElementType parameterTypes[] = {
    {[](Type type) { return type.isF32(); }, "f32"},
    {[](Type type) { return type.isBF16(); }, "bf16"}};
static constexpr ElementType boundaryTypes[] = {
    {[](Type type) { return type.isSignlessInteger(32); }, "i32"},
    {[](Type type) { return type.isSignlessInteger(64); }, "i64"}};

static bool isOneOf(ArrayRef<ElementType> types, Type type) {
  return llvm::any_of(types, [&](auto &known) { return known.matches(type); });
}

bool support::isDataType(Type type) { return isOneOf(dataTypes, type); }
FloatType support::cumulatedGateType(Type dataType) {
  MLIRContext *context = dataType.getContext();
  if (dataType.isF32())
    return Float64Type::get(context);
  return Float32Type::get(context);
}
bool support::isParameterType(Type type) {
  return isOneOf(parameterTypes, type);
}
bool support::isBoundaryType(Type type) { return isOneOf(boundaryTypes, type); }
bool support::isChunkSize(int64_t size) {
  return llvm::is_contained(chunkSizes, size);
}

std::string support::supportTable() {
  std::string table;
  llvm::raw_string_ostream os(table);
  auto name = [&](const ElementType &type) { os << type.name; };
  os << "| what | supported |\n|---|---|\n| q, k, v, o | ";
  llvm::interleaveComma(dataTypes, os, name);
  os << " |\n| gate, beta, states, gate parameters | ";
  llvm::interleaveComma(parameterTypes, os, name);
  os << " |\n| sequence boundaries | ";
  llvm::interleaveComma(boundaryTypes, os, name);
  os << " |\n| key and value channels of a head (K, V) | multiples of "
     << headDimMultiple << " up to " << maxHeadDim
     << "; token by token any number up to " << maxHeadDim
     << " |\n| heads | H a multiple of Hq |\n| chunk length | ";
  llvm::interleaveComma(chunkSizes, os);
  os << " |\n| static | K, V; Hq and H in backward ops |\n| static or dynamic "
        "| B, T, N, Hq, H |\n| "
        "targets | "
     << cpuTarget << " (tested on x86-64) |\n";
  return table;
}
