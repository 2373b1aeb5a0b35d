//===- Spread.cpp - Tiles and vectors spread over lanes -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn::warp;

int64_t SpreadAttr::getWarpsAlong(int64_t dim) const {
  return dim == 0 ? getWarps() / getColumnWarps() : getColumnWarps();
}

int64_t SpreadAttr::getBlock(int64_t dim) const {
  int64_t lanes = dim == 0 ? format::kWarpThreads / getLanes() : getLanes();
  return lanes * getWarpsAlong(dim) * getRunAlong(dim);
}

std::pair<int64_t, int64_t> SpreadAttr::locate(int64_t size, int64_t dim,
                                               int64_t i) const {
  int64_t elements = getRows() * getColumns(), perRow = size / getBlock(1);
  int64_t patch = i / elements, inside = i % elements;
  int64_t fast = getRunAlong(getAxis());
  return {dim == 1 ? patch % perRow : patch / perRow,
          dim == getAxis() ? inside % fast : inside / fast};
}

int64_t gdn::warp::countAlong(SpreadAttr spread, int64_t dim, int64_t size) {
  return size / spread.getBlock(dim) * spread.getRunAlong(dim);
}

LogicalResult SpreadAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t rows, int64_t columns, int64_t axis,
                                 int64_t lanes, int64_t warps,
                                 int64_t columnWarps) {
  // Larger ones are no accesses of a thread, or more warps than a CTA has.
  constexpr int64_t kMaxRun = 16, kMaxWarps = 32;
  for (int64_t run : {rows, columns})
    if (run < 1 || run > kMaxRun || !llvm::isPowerOf2_64(run))
      return emitError() << "expected patches of a power of two up to "
                         << kMaxRun << " rows and columns, got " << rows
                         << " and " << columns;
  if (axis != 0 && axis != 1)
    return emitError() << "expected axis 0 or 1, got " << axis;
  if (lanes < 1 || format::kWarpThreads % lanes != 0)
    return emitError() << "expected lanes that divide " << format::kWarpThreads
                       << ", got " << lanes;
  if (warps < 1 || warps > kMaxWarps)
    return emitError() << "expected 1 to " << kMaxWarps << " warps, got "
                       << warps;
  if (columnWarps < 1 || warps % columnWarps != 0)
    return emitError() << "expected column_warps that divide " << warps
                       << ", got " << columnWarps;
  return success();
}

LogicalResult SliceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                SpreadAttr, int64_t axis) {
  if (axis != 0 && axis != 1)
    return emitError() << "expected axis 0 or 1, got " << axis;
  return success();
}

/// Whole blocks along a dimension: each thread holds as much.
static LogicalResult verifySize(function_ref<InFlightDiagnostic()> emitError,
                                SpreadAttr spread, int64_t dim, int64_t size) {
  int64_t block = spread.getBlock(dim);
  if (size > 0 && size % block == 0)
    return success();
  return emitError() << "expected a multiple of " << block
                     << (dim == 0 ? " rows" : " columns") << ", got " << size;
}

LogicalResult
SpreadAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2)
    return emitError() << "expected a tile of two dimensions, got shape ["
                       << shape << "]";
  if (failed(verifySize(emitError, *this, 0, shape[0])))
    return failure();
  return verifySize(emitError, *this, 1, shape[1]);
}

LogicalResult
SliceAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 1)
    return emitError() << "expected a vector, got shape [" << shape << "]";
  return verifySize(emitError, getOf(), getAxis(), shape[0]);
}

LogicalResult UniformAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  // Each element is a register of every thread.
  constexpr int64_t kMost = 8;
  if (shape.size() > 1 ||
      (shape.size() == 1 && (shape[0] < 1 || shape[0] > kMost)))
    return emitError() << "expected a scalar or a vector of at most " << kMost
                       << " elements, got shape [" << shape << "]";
  return success();
}
