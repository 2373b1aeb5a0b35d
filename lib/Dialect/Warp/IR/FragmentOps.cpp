//===- FragmentOps.cpp - Checks of register tiles -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/TensorMap.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::gdn::warp;

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (int64_t dimension = getDimension();
      dimension < 0 || dimension >= type.getRank())
    return emitOpError("expected a dimension in [0, ")
           << type.getRank() << "), got " << dimension;
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
  if (element.isF32())
    return success();
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
  if (getRow() && (getTranspose() || getRows()))
    return emitOpError("expected a whole view that lies as the fragment, of "
                       "which to repeat a row");
  FailureOr<int64_t> count =
      countRows(*this, getType().getDimSize(0), getRows());
  if (failed(count))
    return failure();
  return verifyFragment(*this, getType(), getView().getType(), getTranspose(),
                        *count);
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
  return isEncoded<ColumnsAttr>(vector) ? format::kWgmmaColumnUnit : 0;
}

/// Checks a load of one row or one column of a matrix.
static LogicalResult verifyLine(VectorLoadOp op, RankedTensorType vector,
                                ViewType view) {
  if (view.getRank() != 2 || (op.getRow() && op.getColumn()))
    return op.emitOpError("expected a row or a column of a matrix, got ")
           << view;
  bool isRow = op.getRow().has_value();
  int64_t line = isRow ? *op.getRow() : *op.getColumn();
  if (line < 0 || line >= view.getShape()[isRow ? 0 : 1])
    return op.emitOpError("expected a ")
           << (isRow ? "row" : "column") << " of " << view << ", got " << line;
  return verifyVector(
      op, vector,
      ViewType::get(view.getShape()[isRow ? 1 : 0], view.getElementType()));
}

LogicalResult VectorLoadOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  ViewType view = getView().getType();
  if (getRow() || getColumn())
    return verifyLine(*this, type, view);
  int64_t unit = getRepeatUnit(type), size = view.getColumns();
  bool repeats = view.getRank() == 1 && size < type.getDimSize(0) && unit != 0;
  if (!repeats)
    return verifyVector(*this, type, view);
  // Each warp's rows lie in one of its blocks.
  bool fits = isEncoded<RowsAttr>(type) || type.getDimSize(0) % size == 0;
  if (size % unit != 0 || !fits)
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

//===----------------------------------------------------------------------===//
// What the warps of a warpgroup hand to each other
//===----------------------------------------------------------------------===//

LogicalResult RowOp::verify() {
  RankedTensorType source = getSource().getType(), type = getType();
  if (int64_t row = getRow(); row < 0 || row >= source.getDimSize(0))
    return emitOpError("expected a row in [0, ")
           << source.getDimSize(0) << "), got " << row;
  if (type.getElementType() != source.getElementType() ||
      type.getDimSize(0) != source.getDimSize(1))
    return emitOpError("expected a vector of ")
           << source.getDimSize(1) << " elements of " << source.getElementType()
           << ", got " << type;
  return success();
}

LogicalResult ColumnOp::verify() {
  RankedTensorType source = getSource().getType(), type = getType();
  if (int64_t column = getColumn();
      column < 0 || column >= source.getDimSize(1))
    return emitOpError("expected a column in [0, ")
           << source.getDimSize(1) << "), got " << column;
  if (type.getElementType() != source.getElementType() ||
      type.getDimSize(0) != source.getDimSize(0))
    return emitOpError("expected a vector of ")
           << source.getDimSize(0) << " elements of " << source.getElementType()
           << ", got " << type;
  return success();
}

LogicalResult JoinOp::verify() {
  RankedTensorType type = getType();
  int64_t columns = 0;
  for (Value source : getSources()) {
    auto tile = cast<RankedTensorType>(source.getType());
    if (tile.getDimSize(0) != type.getDimSize(0) ||
        tile.getElementType() != type.getElementType())
      return emitOpError("expected fragments of ")
             << type.getDimSize(0) << " rows of " << type.getElementType()
             << ", got " << tile;
    columns += tile.getDimSize(1);
  }
  if (columns != type.getDimSize(1))
    return emitOpError("expected a result of ")
           << columns << " columns, got " << type;
  return success();
}

int64_t ClusterSendOp::getItems() {
  return getSource().getType().getDimSize(1) / getType().getDimSize(1);
}

int64_t ClusterSendOp::getSliceBytes() {
  return getType().getNumElements() * getType().getElementTypeBitWidth() / 8;
}

/// What both halves of a sum over a cluster have.
static LogicalResult verifyHalf(Operation *op, RankedTensorType source,
                                RankedTensorType slice,
                                std::optional<ArrayRef<int64_t>> place) {
  if (!source.getElementType().isF32() || !slice.getElementType().isF32())
    return op->emitOpError("expected tiles of f32, got ")
           << source << " and " << slice;
  if (place && place->size() != 4)
    return op->emitOpError("expected four integers in place, got ")
           << place->size();
  return success();
}

LogicalResult ClusterSendOp::verify() {
  RankedTensorType source = getSource().getType(), slice = getType();
  if (failed(verifyHalf(*this, source, slice, getPlace())))
    return failure();
  int64_t columns = source.getDimSize(1), own = slice.getDimSize(1);
  int64_t items = columns / own;
  constexpr int64_t kMostItems = 8;
  if (columns % own != 0 || items < 2 || items > kMostItems ||
      !llvm::isPowerOf2_64(items))
    return emitOpError("expected a half, a quarter or an eighth of ")
           << columns << " columns, got " << own;
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel || static_cast<int64_t>(kernel.getCluster()) == items)
    return success();
  InFlightDiagnostic error = emitOpError("expected a cluster of ")
                             << items << " CTAs, got " << kernel.getCluster();
  error.attachNote(kernel.getLoc()) << "the kernel";
  return error;
}

LogicalResult ClusterAddOp::verify() {
  RankedTensorType source = getSource().getType();
  if (failed(verifyHalf(*this, source, getType(), getPlace())))
    return failure();
  if (source == getType())
    return success();
  return emitOpError("expected a result of type ")
         << source << ", got " << getType();
}

LogicalResult PublishOp::verify() {
  if (!getType().isSwizzled())
    return emitOpError("expected a swizzled view, which products read, got ")
           << getType();
  if (getFragments().empty() && (getRows() || getTranspose()))
    return emitOpError("expected no rows and no transpose without fragments");
  if (getFragments().empty())
    return success();
  auto last = cast<RankedTensorType>(getFragments().back().getType());
  FailureOr<int64_t> rows = countRows(*this, last.getDimSize(0), getRows());
  if (failed(rows))
    return failure();
  for (Type type : getFragments().drop_back().getTypes()) {
    if (type != last)
      return emitOpError("expected fragments of one type, got ")
             << type << " and " << last;
    *rows += last.getDimSize(0);
  }
  return verifyFragment(*this, last, getType(), getTranspose(), *rows);
}

/// Below each other, or side by side where they are transposed.
void PublishOp::storeTo(OpBuilder &b, Value view) {
  Location loc = getLoc();
  auto type = cast<ViewType>(view.getType());
  bool isTransposed = getTranspose();
  int64_t all = isTransposed ? type.getColumns() : type.getRows();
  int64_t first = 0;
  for (auto [number, fragment] : llvm::enumerate(getFragments())) {
    bool isLast = number + 1 == getFragments().size();
    DenseI64ArrayAttr rows = isLast ? getRowsAttr() : nullptr;
    int64_t count = isLast ? all - first : format::kWgmmaRows;
    SmallVector<int64_t> shape{count, type.getColumns()};
    if (isTransposed)
      shape = {type.getRows(), count};
    int64_t byte = isTransposed ? first * type.getElementBytes() : 0;
    Value place = view;
    if (count != all)
      place = SliceOp::create(
          b, loc,
          ViewType::get(b.getContext(), shape, type.getElementType(),
                        type.getSwizzle(), type.getStride(),
                        type.getColumn() + byte % format::kPanelBytes),
          view, isTransposed ? 0 : first, isTransposed ? first : 0);
    FragmentStoreOp::create(b, loc, fragment, place, isTransposed, rows,
                            /*guarded=*/false);
    first += count;
  }
}

LogicalResult ShareOp::verify() {
  if (getType().isSwizzled())
    return success();
  return emitOpError("expected a swizzled view, which products read, got ")
         << getType();
}
