//===- PackBatch.cpp - Batch rows as packed sequences ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackBatch.h"

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
  SmallVector<ReassociationIndices> groups = joinTokens(type.getRank());
  Value joined = tensor::CollapseShapeOp::create(b, packed, groups);
  return tensor::ExpandShapeOp::create(b, type, joined, groups, sizes);
}
