//===- Copies.cpp - Checks of copies and accesses to arrays ---------------===//
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

/// Checks what all accesses to a tile of an array share: the array is an
/// argument of the kernel, one offset a dimension, `rank` distinct axes, one
/// element type.
static LogicalResult verifyTile(Operation *op, Value array, size_t offsets,
                                ArrayRef<int64_t> axes, size_t rank,
                                Type element) {
  auto type = cast<MemRefType>(array.getType());
  auto argument = dyn_cast<BlockArgument>(array);
  if (!argument || !isa<KernelOp>(argument.getOwner()->getParentOp()))
    return op->emitOpError("expected an array that is an argument of the "
                           "kernel, got another value");
  if (static_cast<int64_t>(offsets) != type.getRank())
    return op->emitOpError("expected ")
           << type.getRank() << " offsets, one a dimension of the array, got "
           << offsets;
  if (axes.size() != rank || (rank == 2 && axes[0] == axes[1]))
    return op->emitOpError("expected ")
           << (rank == 2 ? "two distinct axes" : "one axis") << ", got ["
           << axes << "]";
  for (int64_t axis : axes)
    if (axis < 0 || axis >= type.getRank())
      return op->emitOpError("expected axes in [0, ")
             << type.getRank() << "), got " << axis;
  if (element != type.getElementType())
    return op->emitOpError("expected elements of the array's type ")
           << type.getElementType() << ", got " << element;
  return success();
}

/// `end` and `dim` stand together, and `dim` is one of the axes.
static LogicalResult verifyEnd(Operation *op, ArrayRef<int64_t> axes,
                               bool hasEnd, std::optional<uint64_t> dim) {
  if (hasEnd != dim.has_value())
    return op->emitOpError("expected `end` and `dim` together, got only one");
  if (dim && !llvm::is_contained(axes, static_cast<int64_t>(*dim)))
    return op->emitOpError("expected `dim` to be one of the axes, got ")
           << static_cast<int64_t>(*dim);
  return success();
}

CutDims gdn::warp::getCutDims(MemRefType array, ArrayRef<int64_t> axes) {
  CutDims dims;
  for (int64_t dim = 0; dim < array.getRank(); ++dim)
    if (!llvm::is_contained(axes, dim) && array.getDimSize(dim) != 1)
      dims.mapped.push_back(dim);
  int64_t room = format::kMaxTensorMapRank - 4;
  while (static_cast<int64_t>(dims.mapped.size()) > room &&
         array.getLayout().isIdentity() && dims.mapped.front() < axes[0]) {
    dims.rows.push_back(dims.mapped.front());
    dims.mapped.erase(dims.mapped.begin());
  }
  return dims;
}

/// Checks the end of a copy. Its map has two dimensions more, but none for
/// dimensions of the array that have one element, and no one for panels.
static LogicalResult verifyCopyEnd(Operation *op, MemRefType array,
                                   ArrayRef<int64_t> axes, bool hasEnd,
                                   std::optional<uint64_t> dim) {
  if (failed(verifyEnd(op, axes, hasEnd, dim)))
    return failure();
  if (!dim)
    return success();
  if (static_cast<int64_t>(*dim) != axes[0])
    return op->emitOpError("expected the end of a copy along axis ")
           << axes[0] << ", got " << *dim;
  if (getCutDims(array, axes).mapped.size() > 1)
    return op->emitOpError("expected at most ")
           << format::kMaxTensorMapRank - 4
           << " dimensions beside the axes that are not 1, or a dense array, "
              "for a copy with an end, got "
           << array;
  return success();
}

/// Checks a tensor-map copy: the map's rank, its box, the unit stride.
static LogicalResult verifyCopy(Operation *op, Value array, size_t offsets,
                                ArrayRef<int64_t> axes, ViewType view) {
  if (failed(verifyTile(op, array, offsets, axes, 2, view.getElementType())))
    return failure();
  auto type = cast<MemRefType>(array.getType());
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      strides[axes[1]] != 1)
    return op->emitOpError("expected stride 1 along axis ")
           << axes[1] << " of the array, got " << type;
  if (view.getRank() != 2 || view.getColumn() != 0)
    return op->emitOpError("expected a view of rank 2 from column 0, got ")
           << view;
  int64_t rowBytes = view.getColumns() * view.getElementBytes();
  if (!view.isSwizzled() && view.getStride() != rowBytes)
    return op->emitOpError("expected a dense view, got ") << view;
  if (rowBytes % 16 != 0)
    return op->emitOpError("expected rows of a multiple of 16 bytes, got ")
           << rowBytes;
  if (view.isSwizzled() && view.getPanels() > 1 &&
      rowBytes % format::kPanelBytes != 0)
    return op->emitOpError("expected whole panels of ")
           << format::kPanelBytes << " bytes, got rows of " << rowBytes;
  if (view.getRows() > format::kMaxBox ||
      (!view.isSwizzled() && view.getColumns() > format::kMaxBox))
    return op->emitOpError("expected a box of at most ")
           << format::kMaxBox << " elements a dimension, got " << view;
  int64_t rank = type.getRank() + (view.getPanels() > 1 ? 1 : 0);
  if (rank > format::kMaxTensorMapRank)
    return op->emitOpError("expected a tensor map of rank at most ")
           << format::kMaxTensorMapRank << ", got " << rank;
  return success();
}

/// Checks either copy.
template <typename Op> static LogicalResult verifyCopyOp(Op op) {
  if (failed(verifyCopy(op, op.getArray(), op.getOffsets().size(), op.getAxes(),
                        op.getView().getType())))
    return failure();
  return verifyCopyEnd(op, cast<MemRefType>(op.getArray().getType()),
                       op.getAxes(), bool(op.getEnd()), op.getDim());
}

LogicalResult BulkTensorLoadOp::verify() { return verifyCopyOp(*this); }

LogicalResult BulkTensorStoreOp::verify() { return verifyCopyOp(*this); }

bool StridedLoadOp::isByRows() {
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(getArray().getType());
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[getAxes()[0]] == 1 && strides[getAxes()[1]] != 1;
}

LogicalResult StridedLoadOp::verify() {
  ViewType view = getView().getType();
  if (failed(verifyTile(*this, getArray(), getOffsets().size(), getAxes(),
                        /*rank=*/2, view.getElementType())) ||
      failed(verifyEnd(*this, getAxes(), bool(getEnd()), getDim())))
    return failure();
  // A panel has a column for each lane of a warp, or more.
  if (view.getElementBytes() != 2 && view.getElementBytes() != 4)
    return emitOpError("expected elements of 16 or 32 bits, got ") << view;
  if (view.getRank() != 2 || !view.isSwizzled() || view.getColumn() != 0 ||
      view.getColumns() * view.getElementBytes() % format::kPanelBytes != 0)
    return emitOpError("expected a swizzled view of whole panels, got ")
           << view;
  if (view.getRows() % format::kWarpThreads != 0)
    return emitOpError("expected a multiple of ")
           << format::kWarpThreads << " rows, got " << view.getRows();
  return success();
}

LogicalResult BulkCopyToCtaOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 1 || view.getSpan() % format::kBulkCopyUnit != 0)
    return emitOpError("expected a vector of a multiple of ")
           << format::kBulkCopyUnit << " bytes, got " << view;
  return success();
}

/// Checks an access to an array by the threads that hold `tile`.
template <typename Op>
static LogicalResult verifyArrayAccess(Op op, RankedTensorType tile) {
  if (failed(verifyTile(op, op.getArray(), op.getOffsets().size(), op.getAxes(),
                        tile.getRank(), tile.getElementType())) ||
      failed(verifyEnd(op, op.getAxes(), bool(op.getEnd()), op.getDim())))
    return failure();
  if (op.getRows() && !isEncoded<FragmentAttr>(tile) &&
      !isEncoded<RowsAttr>(tile))
    return op.emitOpError("expected a fragment or a vector of rows, of which "
                          "`rows` are accessed, got ")
           << tile;
  return countRows(op, tile.getDimSize(0), op.getRows());
}

LogicalResult ArrayLoadOp::verify() {
  return verifyArrayAccess(*this, cast<RankedTensorType>(getType()));
}

LogicalResult PrefetchOp::verify() {
  auto type = cast<MemRefType>(getArray().getType());
  if (failed(verifyTile(*this, getArray(), getOffsets().size(), getAxes(),
                        /*rank=*/2, type.getElementType())))
    return failure();
  if (getSizes().size() != 2 || getSizes()[0] < 1 || getSizes()[1] < 1)
    return emitOpError("expected two sizes of at least 1, got [")
           << getSizes() << "]";
  if (!llvm::is_contained(getAxes(), type.getRank() - 1))
    return emitOpError("expected an axis along the array's last dimension, ")
           << type.getRank() - 1 << ", got [" << getAxes() << "]";
  return success();
}

LogicalResult ArrayStoreOp::verify() {
  auto tile = cast<RankedTensorType>(getTile().getType());
  if (getSumEnd() && (!getEnd() || !isEncoded<FragmentAttr>(tile) ||
                      !tile.getElementType().isF32()))
    return emitOpError("expected a fragment of f32 with an end to add to an "
                       "array, got ")
           << tile << (getEnd() ? " with an end" : " without an end");
  return verifyArrayAccess(*this, tile);
}

LogicalResult ArrayClearOp::verify() {
  int64_t rank = cast<MemRefType>(getArray().getType()).getRank();
  auto dim = static_cast<int64_t>(getDim()),
       columns = static_cast<int64_t>(getColumns());
  if (static_cast<int64_t>(getOffsets().size()) != rank)
    return emitOpError("expected ")
           << rank << " offsets, one per dimension of the array, got "
           << getOffsets().size();
  if (dim < 0 || dim >= rank - 1)
    return emitOpError("expected a dimension of rows, from 0 to ")
           << rank - 2 << ", got " << dim;
  if (columns < 1)
    return emitOpError("expected at least 1 column, got ") << columns;
  return success();
}
