//===- FragmentOps.cpp - Checks of register tiles -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::gdn::warp;

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (static_cast<int64_t>(getDimension()) >= type.getRank())
    return emitOpError("expected a dimension below ")
           << type.getRank() << ", got " << getDimension();
  if (!type.getElementType().isSignlessInteger(32))
    return emitOpError("expected elements of type i32, got ")
           << type.getElementType();
  return success();
}

/// Checks a fragment against the view that it is read from or written to.
static LogicalResult verifyFragment(Operation *op, RankedTensorType fragment,
                                    ViewType view, bool transpose,
                                    int64_t rows) {
  Type element = fragment.getElementType();
  if (element != view.getElementType())
    return op->emitOpError("expected elements of the view's type ")
           << view.getElementType() << ", got " << element;
  SmallVector<int64_t, 2> shape{rows, fragment.getDimSize(1)};
  if (transpose)
    std::swap(shape[0], shape[1]);
  if (view.getShape() != ArrayRef(shape))
    return op->emitOpError("expected a view of shape [")
           << shape << "], got [" << view.getShape() << "]";
  if (element.isF32()) {
    if (transpose && isa<FragmentLoadOp>(op))
      return op->emitOpError("expected 16-bit elements to transpose, got f32");
    return success();
  }
  if (!element.isF16() && !element.isBF16())
    return op->emitOpError("expected elements of f16, bf16 or f32, got ")
           << element;
  // One matrix instruction moves 16 columns.
  if (fragment.getDimSize(1) % 16 != 0)
    return op->emitOpError("expected a multiple of 16 columns, got ")
           << fragment.getDimSize(1);
  if (view.getStride() % 16 != 0)
    return op->emitOpError("expected a row stride that is a multiple of 16 "
                           "bytes, got ")
           << view.getStride();
  if (transpose && view.getColumn() != 0)
    return op->emitOpError("expected a view from column 0, got ") << view;
  return success();
}

LogicalResult FragmentLoadOp::verify() {
  return verifyFragment(*this, getType(), getView().getType(), getTranspose(),
                        getType().getDimSize(0));
}

/// The number of rows that a store of `count` rows writes: those of `rows`,
/// whole warps', if it has them.
static FailureOr<int64_t> countRows(Operation *op, int64_t count,
                                    std::optional<ArrayRef<int64_t>> rows) {
  constexpr int64_t kWarpRows = kSm90a.warpRows();
  if (!rows)
    return count;
  if (rows->size() != 2 || (*rows)[0] % kWarpRows != 0 ||
      (*rows)[1] % kWarpRows != 0 || (*rows)[0] < 0 ||
      (*rows)[1] <= (*rows)[0] || (*rows)[1] > count)
    return op->emitOpError("expected rows [a, b] in multiples of ")
           << kWarpRows << " up to " << count << ", got [" << *rows << "]";
  return (*rows)[1] - (*rows)[0];
}

LogicalResult FragmentStoreOp::verify() {
  RankedTensorType fragment = getFragment().getType();
  FailureOr<int64_t> count =
      countRows(*this, fragment.getDimSize(0), getRows());
  if (failed(count))
    return failure();
  return verifyFragment(*this, fragment, getView().getType(), getTranspose(),
                        *count);
}

/// Checks a vector against the view that it is read from or written to.
static LogicalResult verifyVector(Operation *op, RankedTensorType vector,
                                  ViewType view) {
  if (view.getRank() != 1 || view.getShape() != vector.getShape() ||
      view.getElementType() != vector.getElementType())
    return op->emitOpError("expected a view of ")
           << vector.getDimSize(0) << " elements of " << vector.getElementType()
           << ", got " << view;
  return success();
}

/// What the length of a view is a multiple of, if it repeats along a vector:
/// then all elements of a thread keep their distance.
static int64_t getRepeatUnit(RankedTensorType vector) {
  if (isEncoded<RowsAttr>(vector))
    return 16;
  return isEncoded<ColumnsAttr>(vector) ? kSm90a.productColumnUnit : 0;
}

LogicalResult VectorLoadOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  ViewType view = getView().getType();
  int64_t unit = getRepeatUnit(type), size = view.getColumns();
  bool repeats = view.getRank() == 1 && size < type.getDimSize(0) && unit != 0;
  if (!repeats)
    return verifyVector(*this, type, view);
  if (size % unit != 0 || type.getDimSize(0) % size != 0)
    return emitOpError("expected a view that repeats to ")
           << type.getDimSize(0) << " elements and has a multiple of " << unit
           << ", got " << view;
  return verifyVector(
      *this, RankedTensorType::get(view.getShape(), type.getElementType()),
      view);
}

LogicalResult VectorStoreOp::verify() {
  auto type = cast<RankedTensorType>(getVector().getType());
  if (getRows() && !isEncoded<RowsAttr>(type))
    return emitOpError("expected a vector of rows, of which `rows` are "
                       "written, got ")
           << type;
  FailureOr<int64_t> count = countRows(*this, type.getDimSize(0), getRows());
  if (failed(count))
    return failure();
  return verifyVector(*this,
                      RankedTensorType::get(*count, type.getElementType()),
                      getView().getType());
}
