//===- Products.cpp - Checks of products ----------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::gdn::warp;

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
             << format::kPanelBytes << " bytes, got " << view;
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
  if (depthA % format::kWgmmaDepth != 0)
    return emitOpError("expected a depth that is a multiple of ")
           << format::kWgmmaDepth << ", got " << depthA;
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
  constexpr int64_t kWarpRows = format::kWarpRows;
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
  constexpr int64_t kWarpRows = format::kWarpRows;
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
  if ((rows != kRun && (rows == 0 || rows % format::kWarpThreads != 0)) ||
      a.getColumns() % kColumns != 0 || a.getStride() % kRun != 0 ||
      !isa<Float16Type, BFloat16Type>(a.getElementType()))
    return emitOpError("expected f16 or bf16, 16 rows or a multiple of ")
           << format::kWarpThreads << ", a multiple of " << kColumns
           << " columns, and rows a multiple of " << kRun
           << " bytes apart, got " << a;
  if (b.getShape() != a.getShape() ||
      b.getElementType() != a.getElementType() || b.getStride() % kRun != 0)
    return emitOpError("expected tiles of one shape and type, got ")
           << a << " and " << b;
  auto type = cast<RankedTensorType>(getType());
  bool isOfGroup = isEncoded<RowsAttr>(type);
  if (!type.getElementType().isF32() || type.getDimSize(0) != a.getRows() ||
      (isOfGroup && a.getRows() != format::kWgmmaRows))
    return emitOpError("expected a vector of ")
           << (isOfGroup ? format::kWgmmaRows : a.getRows())
           << " elements of f32, got " << type << " of " << a;
  return success();
}
