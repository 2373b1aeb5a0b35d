//===- PackBatch.cpp - Batch rows as packed sequences ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackBatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// The first two of `rank` dimensions together, the others by themselves.
static SmallVector<ReassociationIndices> joinTokens(int64_t rank) {
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  for (int64_t dim = 2; dim < rank; ++dim)
    groups.push_back({dim});
  return groups;
}

RankedTensorType gdn::getPackedType(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  bool isDynamic =
      ShapedType::isDynamic(shape[0]) || ShapedType::isDynamic(shape[1]);
  shape[1] = isDynamic ? ShapedType::kDynamic : shape[0] * shape[1];
  shape[0] = 1;
  return type.clone(shape);
}

Value gdn::packBatch(ImplicitLocOpBuilder &b, Value array) {
  if (!array)
    return array;
  auto type = cast<RankedTensorType>(array.getType());
  SmallVector<ReassociationIndices> groups = joinTokens(type.getRank());
  Value joined = tensor::CollapseShapeOp::create(b, array, groups);
  return tensor::ExpandShapeOp::create(b, getPackedType(type), joined, groups);
}

/// Rows of T tokens of [1, B T, ...], one after the other, as an array of
/// `type`. The lowering of tensor.expand_shape to memrefs takes one open size a
/// group, and here both are open.
static Value copyRows(ImplicitLocOpBuilder &b, Value packed,
                      ArrayRef<OpFoldResult> sizes, RankedTensorType type) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value tokens = cast<Value>(sizes[1]);
  Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
  auto loop = scf::ForOp::create(b, constant(0), cast<Value>(sizes[0]),
                                 constant(1), empty);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  SmallVector<OpFoldResult> from(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> to = from, shape(sizes);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  shape[0] = b.getIndexAttr(1);
  from[1] = arith::MulIOp::create(b, row, tokens).getResult();
  to[0] = row;
  Value slice = tensor::ExtractSliceOp::create(b, packed, from, shape, strides);
  Value next = tensor::InsertSliceOp::create(b, slice, loop.getRegionIterArg(0),
                                             to, shape, strides);
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

Value gdn::unpackBatch(ImplicitLocOpBuilder &b, Value packed,
                       RankedTensorType type, Value like) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      sizes.push_back(b.getIndexAttr(size));
    else
      sizes.push_back(
          b.createOrFold<tensor::DimOp>(dim < 2 ? like : packed, dim));
  }
  if (type.isDynamicDim(0) && type.isDynamicDim(1))
    return copyRows(b, packed, sizes, type);
  SmallVector<ReassociationIndices> groups = joinTokens(type.getRank());
  Value joined = tensor::CollapseShapeOp::create(b, packed, groups);
  return tensor::ExpandShapeOp::create(b, type, joined, groups, sizes);
}
