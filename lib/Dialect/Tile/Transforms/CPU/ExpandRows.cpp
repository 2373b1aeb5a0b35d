//===- ExpandRows.cpp - Open sizes of tensor.expand_shape -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

/// The first dimension that becomes several of open size, and how many of its
/// members belong to the first part of it: they end with the first open one.
static std::optional<std::pair<int64_t, int64_t>>
findSplit(tensor::ExpandShapeOp op) {
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    auto isOpen = [&](int64_t member) {
      return op.getResultType().isDynamicDim(member);
    };
    if (llvm::count_if(group, isOpen) > 1)
      return std::pair<int64_t, int64_t>(dim, llvm::find_if(group, isOpen) -
                                                  group.begin() + 1);
  }
  return std::nullopt;
}

static Value multiply(ImplicitLocOpBuilder &b, ArrayRef<OpFoldResult> sizes) {
  Value product = arith::ConstantIndexOp::create(b, 1);
  for (OpFoldResult size : sizes)
    product = b.createOrFold<arith::MulIOp>(
        product, getValueOrCreateConstantIndexOp(b, b.getLoc(), size));
  return product;
}

/// The source with dimension `split` as `parts` of `rows` each.
static Value copyRows(ImplicitLocOpBuilder &b, Value source, int64_t split,
                      Value parts, Value rows) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), source);
  sizes[split] = rows;
  sizes.insert(sizes.begin() + split, parts);
  Value empty = tensor::EmptyOp::create(b, sizes, getElementTypeOrSelf(source));
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, zero, parts, one, empty);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  SmallVector<OpFoldResult> to(sizes.size(), b.getIndexAttr(0)), shape(sizes);
  to[split] = part;
  shape[split] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> from(to), taken(shape);
  from.erase(from.begin() + split);
  taken.erase(taken.begin() + split);
  from[split] = arith::MulIOp::create(b, part, rows).getResult();
  SmallVector<OpFoldResult> strides(from.size(), b.getIndexAttr(1));
  Value slice = tensor::ExtractSliceOp::create(b, source, from, taken, strides);
  strides.push_back(b.getIndexAttr(1));
  Value next = tensor::InsertSliceOp::create(b, slice, loop.getRegionIterArg(0),
                                             to, shape, strides);
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

/// Splits one dimension by a copy. What remains to be expanded is returned, if
/// anything does.
static tensor::ExpandShapeOp splitByCopy(tensor::ExpandShapeOp op,
                                         int64_t split, int64_t members) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  auto first = ReassociationIndices(
      ArrayRef<int64_t>(groups[split]).take_front(members));
  auto others = ReassociationIndices(
      ArrayRef<int64_t>(groups[split]).drop_front(members));
  auto count = [&](const ReassociationIndices &group) {
    return multiply(b, ArrayRef(sizes).slice(group.front(), group.size()));
  };
  Value copied = copyRows(b, op.getSrc(), split, count(first), count(others));
  groups[split] = others;
  groups.insert(groups.begin() + split, first);
  tensor::ExpandShapeOp rest;
  if (groups.size() < sizes.size()) {
    rest = tensor::ExpandShapeOp::create(b, op.getResultType(), copied, groups,
                                         sizes);
    copied = rest;
  }
  op.replaceAllUsesWith(copied);
  op.erase();
  return rest;
}

void gdn::tile::copyExpandedRows(func::FuncOp function) {
  SmallVector<tensor::ExpandShapeOp> ops;
  function.walk([&](tensor::ExpandShapeOp op) { ops.push_back(op); });
  for (tensor::ExpandShapeOp op : ops)
    while (op) {
      auto split = findSplit(op);
      op = split ? splitByCopy(op, split->first, split->second) : nullptr;
    }
}
