//===- Ops.cpp - Checks of views, accesses to shared memory, and reports --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateText.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn::warp;

/// Types, of which there may be none, up to an arrow.
static ParseResult parseTypesToArrow(OpAsmParser &parser,
                                     SmallVectorImpl<Type> &types) {
  if (succeeded(parser.parseOptionalArrow()))
    return success();
  return failure(parser.parseTypeList(types) || parser.parseArrow());
}

static void printTypesToArrow(OpAsmPrinter &printer, Operation *,
                              TypeRange types) {
  llvm::interleaveComma(types, printer);
  printer << (types.empty() ? "->" : " ->");
}

#define GET_OP_CLASSES
#include "gdn/Dialect/Warp/IR/Ops.cpp.inc"

LogicalResult ViewOp::verify() {
  APInt offset;
  if (!matchPattern(getOffset(), m_ConstantInt(&offset)))
    return success();
  // 16: what copies, vector accesses and matrix loads ask of every view.
  int64_t alignment = getType().isSwizzled() ? format::kSwizzleAlignment : 16;
  if (offset.getSExtValue() < 0 || offset.getSExtValue() % alignment != 0)
    return emitOpError("expected an offset that is a multiple of ")
           << alignment << ", got " << offset.getSExtValue();
  return success();
}

/// The byte inside the panel is in the type; the rest moves the address.
int64_t SliceOp::getDistance(int64_t row, int64_t column) {
  ViewType view = getSource().getType();
  int64_t bytes = column * view.getElementBytes();
  if (!view.isSwizzled())
    return row * view.getStride() + bytes;
  return row * format::kPanelBytes +
         (view.getColumn() + bytes) / format::kPanelBytes * view.getStride();
}

/// Each step moves the address by as much, and leaves the type as it is.
static LogicalResult verifyStep(SliceOp slice) {
  if (!slice.getStep() && !slice.getNumber())
    return success();
  if (!slice.getStep() || !slice.getNumber() || slice.getStep()->size() != 2)
    return slice.emitOpError(
        "expected a number and a step of rows and columns");
  ViewType source = slice.getSource().getType();
  int64_t rows = (*slice.getStep())[0], columns = (*slice.getStep())[1];
  int64_t bytes = columns * source.getElementBytes();
  if (rows < 0 || columns < 0 || (source.getRank() == 1 && rows != 0))
    return slice.emitOpError("expected a step inside the view, got [")
           << rows << ", " << columns << "]";
  bool fits = source.isSwizzled()
                  ? rows % 8 == 0 && bytes % format::kPanelBytes == 0
                  : bytes % 16 == 0;
  if (!fits)
    return slice.emitOpError("expected a step of a multiple of 8 rows and of "
                             "whole panels of a swizzled view, or of 16 bytes "
                             "of another, got [")
           << rows << ", " << columns << "]";
  return success();
}

LogicalResult SliceOp::verify() {
  ViewType source = getSource().getType(), result = getType();
  if (source.getRank() != result.getRank())
    return emitOpError("expected views of one rank, got ")
           << source << " and " << result;
  int64_t row = getRow(), column = getColumn();
  if (row < 0 || column < 0 || row > source.getRows() - result.getRows() ||
      column > source.getColumns() - result.getColumns())
    return emitOpError("expected a rectangle inside ")
           << source << ", got offset [" << row << ", " << column << "] of "
           << result;
  if (source.isSwizzled() && row % 8 != 0)
    return emitOpError("expected a row that is a multiple of 8, got ") << row;
  if (failed(verifyStep(*this)))
    return failure();
  int64_t byte = source.getColumn() + column * source.getElementBytes();
  int64_t inPanel = source.isSwizzled() ? byte % format::kPanelBytes : 0;
  // The stride of a vector says nothing.
  int64_t stride =
      source.getRank() == 1 ? result.getStride() : source.getStride();
  auto expected = ViewType::getChecked(
      [&] { return emitOpError(); }, getContext(), result.getShape(),
      source.getElementType(), source.getSwizzle(), stride, inPanel);
  if (!expected)
    return failure();
  if (expected != result)
    return emitOpError("expected a result of type ")
           << expected << ", got " << result;
  return success();
}

/// Checks one access of a thread: a value of the view's element type, or an
/// aligned run of at most 16 bytes, and one index a dimension.
static LogicalResult verifyAccess(Operation *op, ViewType view, Type value,
                                  size_t indices) {
  if (static_cast<int64_t>(indices) != view.getRank())
    return op->emitOpError("expected ")
           << view.getRank() << " indices, got " << indices;
  auto vector = dyn_cast<VectorType>(value);
  Type element = vector ? vector.getElementType() : value;
  if (element != view.getElementType())
    return op->emitOpError("expected elements of type ")
           << view.getElementType() << ", got " << element;
  if (!vector)
    return success();
  int64_t bytes = vector.getNumElements() * view.getElementBytes();
  if (vector.getRank() != 1 || vector.isScalable() || bytes > 16 ||
      16 % bytes != 0)
    return op->emitOpError("expected a vector of 2, 4, 8 or 16 bytes, got ")
           << vector;
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getView().getType(), getType(),
                      getIndices().size());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getView().getType(), getValue().getType(),
                      getIndices().size());
}

/// As many offsets as the array has dimensions, less `left`.
static LogicalResult verifyOffsets(Operation *op, MemRefType array,
                                   size_t offsets, int64_t left = 0) {
  int64_t count = array.getRank() - left;
  if (count > 0 && static_cast<int64_t>(offsets) == count)
    return success();
  return op->emitOpError("expected ")
         << std::max<int64_t>(count, 1) << " offsets into " << array << ", got "
         << offsets;
}

LogicalResult BeginReportsOp::verify() {
  return verifyOffsets(*this, getArray().getType(), getOffsets().size());
}

LogicalResult ReportOp::verify() {
  return verifyOffsets(*this, getArray().getType(), getOffsets().size());
}

LogicalResult AwaitReportOp::verify() {
  return verifyOffsets(*this, getArray().getType(), getOffsets().size(),
                       /*left=*/1);
}
