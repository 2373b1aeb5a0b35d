//===- Copies.cpp - Checks of copies and accesses to arrays ---------------===//
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
  if (!type.getElementType().isIntOrFloat())
    return op->emitOpError("expected an array of integers or floats, got ")
           << type;
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
           << *dim;
  return success();
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
  int64_t rank = 4;
  for (int64_t i = 0; i < array.getRank(); ++i)
    rank += !llvm::is_contained(axes, i) && array.getDimSize(i) != 1;
  if (rank > kSm90a.maxTensorMapRank)
    return op->emitOpError("expected at most ")
           << kSm90a.maxTensorMapRank - 4
           << " dimensions beside the axes that are not 1, for a copy with an "
              "end, got "
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
      rowBytes % kSm90a.panelBytes != 0)
    return op->emitOpError("expected whole panels of ")
           << kSm90a.panelBytes << " bytes, got rows of " << rowBytes;
  if (view.getRows() > kSm90a.maxBox ||
      (!view.isSwizzled() && view.getColumns() > kSm90a.maxBox))
    return op->emitOpError("expected a box of at most ")
           << kSm90a.maxBox << " elements a dimension, got " << view;
  int64_t rank = type.getRank() + (view.getPanels() > 1 ? 1 : 0);
  if (rank > kSm90a.maxTensorMapRank)
    return op->emitOpError("expected a tensor map of rank at most ")
           << kSm90a.maxTensorMapRank << ", got " << rank;
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

LogicalResult BulkCopyToCtaOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 1 || view.getSpan() % kSm90a.copyUnit != 0)
    return emitOpError("expected a vector of a multiple of ")
           << kSm90a.copyUnit << " bytes, got " << view;
  return success();
}

LogicalResult ArrayLoadOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (failed(verifyTile(*this, getArray(), getOffsets().size(), getAxes(),
                        type.getRank(), type.getElementType())))
    return failure();
  return verifyEnd(*this, getAxes(), bool(getEnd()), getDim());
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
  auto type = cast<RankedTensorType>(getTile().getType());
  if (failed(verifyTile(*this, getArray(), getOffsets().size(), getAxes(),
                        type.getRank(), type.getElementType())))
    return failure();
  return verifyEnd(*this, getAxes(), bool(getEnd()), getDim());
}
