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

using namespace mlir;

/// The one dimension that becomes two of open size.
static std::optional<int64_t> findSplit(tensor::ExpandShapeOp op) {
  std::optional<int64_t> split;
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t open = llvm::count_if(group, [&](int64_t member) {
      return op.getResultType().isDynamicDim(member);
    });
    if (open <= 1)
      continue;
    if (split || group.size() != 2)
      return std::nullopt;
    split = dim;
  }
  return split;
}

/// Makes all dimensions but the one at `split` what `op` makes of them, which
/// is then at the place that is returned.
static int64_t expandOthers(ImplicitLocOpBuilder &b, tensor::ExpandShapeOp op,
                            int64_t split, Value &source) {
  SmallVector<ReassociationIndices> groups;
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape(), kept;
  SmallVector<int64_t> shape;
  int64_t place = 0, next = 0;
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    ReassociationIndices &own = groups.emplace_back();
    if (static_cast<int64_t>(dim) == split) {
      place = next;
      own.push_back(next++);
      shape.push_back(op.getSrcType().getDimSize(dim));
      kept.push_back(b.createOrFold<tensor::DimOp>(op.getSrc(), dim));
      continue;
    }
    for (int64_t member : group) {
      own.push_back(next++);
      shape.push_back(op.getResultType().getDimSize(member));
      kept.push_back(sizes[member]);
    }
  }
  source = op.getSrc();
  if (next != op.getSrcType().getRank())
    source = tensor::ExpandShapeOp::create(b, op.getSrcType().clone(shape),
                                           source, groups, kept);
  return place;
}

static void copyRows(tensor::ExpandShapeOp op, int64_t group) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto index = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
  };
  Value source;
  int64_t split = expandOthers(b, op, group, source);
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  Value zero = index(b.getIndexAttr(0)), one = index(b.getIndexAttr(1));
  Value tokens = index(sizes[split + 1]);
  Value empty =
      tensor::EmptyOp::create(b, sizes, op.getResultType().getElementType());
  auto loop = scf::ForOp::create(b, zero, index(sizes[split]), one, empty);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    SmallVector<OpFoldResult> to(sizes.size(), b.getIndexAttr(0)), shape(sizes);
    to[split] = row;
    shape[split] = b.getIndexAttr(1);
    SmallVector<OpFoldResult> from(to), part(shape);
    from.erase(from.begin() + split);
    part.erase(part.begin() + split);
    from[split] = arith::MulIOp::create(b, row, tokens).getResult();
    SmallVector<OpFoldResult> strides(from.size(), b.getIndexAttr(1));
    Value slice =
        tensor::ExtractSliceOp::create(b, source, from, part, strides);
    strides.push_back(b.getIndexAttr(1));
    Value next = tensor::InsertSliceOp::create(
        b, slice, loop.getRegionIterArg(0), to, shape, strides);
    scf::YieldOp::create(b, next);
  }
  op.replaceAllUsesWith(loop.getResult(0));
  op.erase();
}

void gdn::tile::copyExpandedRows(func::FuncOp function) {
  function.walk([](tensor::ExpandShapeOp op) {
    if (std::optional<int64_t> split = findSplit(op))
      copyRows(op, *split);
  });
}
