//===- FragmentOps.cpp - Checks of products, copies and register tiles ----===//
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

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

LogicalResult WgmmaWaitOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &results) {
  llvm::append_range(results, operands.getTypes());
  return success();
}

/// Shape and element type of an operand of a product.
static std::pair<ArrayRef<int64_t>, Type> getTile(Type type) {
  if (auto view = dyn_cast<ViewType>(type))
    return {view.getShape(), view.getElementType()};
  auto tensor = cast<RankedTensorType>(type);
  return {tensor.getShape(), tensor.getElementType()};
}

LogicalResult WgmmaOp::verify() {
  auto [shapeA, elementA] = getTile(getA().getType());
  auto [shapeB, elementB] = getTile(getB().getType());
  for (Type type : TypeRange(getOperandTypes()).take_front(2))
    if (auto view = dyn_cast<ViewType>(type); view && !view.isSwizzled())
      return emitOpError("expected views with a swizzle of ")
             << kSm90a.panelBytes << " bytes, got " << view;
  if (!elementA.isF16() && !elementA.isBF16())
    return emitOpError("expected operands of type f16 or bf16, got ")
           << elementA;
  if (elementA != elementB)
    return emitOpError("expected operands of one element type, got ")
           << elementA << " and " << elementB;
  if (getTransposeA() && !isa<ViewType>(getA().getType()))
    return emitOpError("expected a view to transpose, got ")
           << getA().getType();
  ArrayRef<int64_t> shape = getType().getShape();
  auto [rows, depthA] = getTransposeA() ? std::pair(shapeA[1], shapeA[0])
                                        : std::pair(shapeA[0], shapeA[1]);
  auto [columns, depthB] = getTransposeB() ? std::pair(shapeB[0], shapeB[1])
                                           : std::pair(shapeB[1], shapeB[0]);
  if (rows != shape[0] || columns != shape[1] || depthA != depthB)
    return emitOpError("expected operands [")
           << shape[0] << ", K] and [K, " << shape[1] << "], got [" << rows
           << ", " << depthA << "] and [" << depthB << ", " << columns << "]";
  if (depthA % kSm90a.productDepth != 0)
    return emitOpError("expected a depth that is a multiple of ")
           << kSm90a.productDepth << ", got " << depthA;
  if (!getType().getElementType().isF32())
    return emitOpError("expected a result of f32, got ")
           << getType().getElementType();
  if (getAccumulator() && getAccumulator().getType() != getType())
    return emitOpError("expected an accumulator of type ")
           << getType() << ", got " << getAccumulator().getType();
  return success();
}

LogicalResult TriInverseOp::verify() {
  ViewType m = getM().getType(), x = getX().getType();
  if (m.getRank() != 2 || m.getRows() != m.getColumns() ||
      !llvm::is_contained({16, 32, 64}, m.getRows()))
    return emitOpError("expected a matrix of 16, 32 or 64 rows and columns, "
                       "got ")
           << m;
  // Runs of a row are 16-byte accesses.
  bool isElement =
      getScale() ? m.getElementType().isF32() : m.getElementType().isF16();
  if (!isElement || m.isSwizzled() || m.getStride() % 16 != 0)
    return emitOpError("expected M in ")
           << (getScale() ? "f32" : "f16")
           << " without a swizzle, its rows a multiple of 16 bytes apart, got "
           << m;
  if (x.getShape() != m.getShape() ||
      !isa<Float16Type, BFloat16Type>(x.getElementType()))
    return emitOpError("expected a result of ")
           << m.getRows() << "x" << m.getColumns()
           << " elements of f16 or bf16, got " << x;
  if (x.getStride() % 16 != 0)
    return emitOpError("expected rows of the result a multiple of 16 bytes "
                       "apart, got ")
           << x;
  if (!getRows() != !getColumns())
    return emitOpError("expected factors of rows and of columns, or neither");
  for (Value factors : {getScale(), getRows(), getColumns()}) {
    auto view = factors ? cast<ViewType>(factors.getType()) : ViewType();
    if (view && (view.getRank() != 1 || !view.getElementType().isF32() ||
                 view.getShape().front() != m.getRows()))
      return emitOpError("expected factors of ")
             << m.getRows() << " elements of f32, got " << view;
  }
  return success();
}

LogicalResult DiagonalOp::verify() {
  RankedTensorType source = getSource().getType();
  int64_t rows = source.getDimSize(0), columns = source.getDimSize(1),
          first = getFirst();
  constexpr int64_t kWarpRows = kSm90a.warpRows();
  if (first < 0 || first % kWarpRows != 0 || columns % kWarpRows != 0 ||
      first + columns > rows)
    return emitOpError("expected a square of rows of the fragment, from a "
                       "multiple of ")
           << kWarpRows << " on, got " << columns << " rows from " << first
           << " on of " << source;
  auto type = cast<RankedTensorType>(getType());
  if (type.getElementType() != source.getElementType() ||
      type.getDimSize(0) != rows)
    return emitOpError("expected a vector of ")
           << rows << " elements of " << source.getElementType() << ", got "
           << type;
  return success();
}

LogicalResult CausalOp::verify() {
  RankedTensorType type = getSource().getType();
  constexpr int64_t kWarpRows = kSm90a.warpRows();
  int64_t columns = type.getDimSize(1);
  if (columns % kWarpRows == 0 && type.getDimSize(0) % columns == 0 &&
      llvm::isPowerOf2_64(columns) && isa<FloatType>(type.getElementType()))
    return success();
  return emitOpError("expected squares of floats, of 16, 32 or 64 rows each, "
                     "got ")
         << type;
}

LogicalResult RowDotsOp::verify() {
  ViewType a = getA().getType(), b = getB().getType();
  // Four lanes of a warp read 16 bytes of a row each; it holds 16 or 32 rows.
  constexpr int64_t kRun = 16, kColumns = 32;
  int64_t rows = a.getRank() == 2 ? a.getRows() : 0;
  if ((rows != kRun && (rows == 0 || rows % kSm90a.warpThreads != 0)) ||
      a.getColumns() % kColumns != 0 || a.getStride() % kRun != 0 ||
      !isa<Float16Type, BFloat16Type>(a.getElementType()))
    return emitOpError("expected f16 or bf16, 16 rows or a multiple of ")
           << kSm90a.warpThreads << ", a multiple of " << kColumns
           << " columns, and rows a multiple of " << kRun
           << " bytes apart, got " << a;
  if (b.getShape() != a.getShape() ||
      b.getElementType() != a.getElementType() || b.getStride() % kRun != 0)
    return emitOpError("expected tiles of one shape and type, got ")
           << a << " and " << b;
  auto type = cast<RankedTensorType>(getType());
  bool isOfGroup = isEncoded<RowsAttr>(type);
  if (!type.getElementType().isF32() || type.getDimSize(0) != a.getRows() ||
      (isOfGroup && a.getRows() != kSm90a.productRows))
    return emitOpError("expected a vector of ")
           << (isOfGroup ? kSm90a.productRows : a.getRows())
           << " elements of f32, got " << type << " of " << a;
  return success();
}

//===----------------------------------------------------------------------===//
// Copies and accesses to arrays
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Register tiles and shared memory
//===----------------------------------------------------------------------===//

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
