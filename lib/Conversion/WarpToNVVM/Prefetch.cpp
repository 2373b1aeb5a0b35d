//===- Prefetch.cpp - Cache lines of tiles that are soon loaded -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// How many cache lines a row of the tile has whose elements run along
/// `axes[axis]` of the array.
static int64_t countLines(PrefetchOp op, size_t axis, int64_t elements) {
  return llvm::divideCeil(op.getSizes()[axis], elements);
}

/// Asks for the cache line of line `line` (index) of the tile. Its rows run
/// along the last dimension or, if `isTransposed` is there and true, along the
/// other one; a row has several lines.
static void createPrefetch(ImplicitLocOpBuilder &b, PrefetchOp op,
                           const Array &array, ValueRange offsets, Value line,
                           Value isTransposed, int64_t elements) {
  Type element = cast<MemRefType>(op.getArray().getType()).getElementType();
  size_t last = array.strides.size() - 1;
  ArrayRef<int64_t> axes = op.getAxes();
  size_t axis = axes[0] == static_cast<int64_t>(last) ? 0 : 1;
  int64_t along = axes[1 - axis];
  auto choose = [&](Value ifTransposed, Value otherwise) -> Value {
    return isTransposed ? arith::SelectOp::create(b, isTransposed, ifTransposed,
                                                  otherwise)
                        : otherwise;
  };
  auto linesOfRow = [&]() -> Value {
    Value lines = createIndex(b, countLines(op, axis, elements));
    return isTransposed
               ? choose(createIndex(b, countLines(op, 1 - axis, elements)),
                        lines)
               : lines;
  };
  Value row = arith::DivUIOp::create(b, line, linesOfRow());
  SmallVector<Value> place(offsets);
  if (!isTransposed)
    place[along] = arith::AddIOp::create(b, place[along], row);
  Value column =
      arith::MulIOp::create(b, arith::RemUIOp::create(b, line, linesOfRow()),
                            createIndex(b, elements));
  if (isTransposed)
    place[along] = arith::AddIOp::create(b, place[along], choose(column, row));
  place[last] = arith::AddIOp::create(b, place[last], choose(row, column));
  auto level = NVVM::PrefetchCacheLevelAttr::get(b.getContext(),
                                                 NVVM::PrefetchCacheLevel::L2);
  NVVM::PrefetchOp::create(b, level, NVVM::CacheEvictionPriorityAttr(),
                           warp::createElementAddress(b, array, element, place),
                           /*predicate=*/Value(), /*tensormap=*/UnitAttr(),
                           /*uniform=*/UnitAttr(),
                           /*in_param_space=*/UnitAttr());
}

/// Whether the tile's rows run along another dimension than the array's last,
/// which an array of any strides alone may have; null for others.
static Value createIsTransposed(ImplicitLocOpBuilder &b, PrefetchOp op,
                                const Array &array) {
  auto type = cast<MemRefType>(op.getArray().getType());
  if (!hasAnyStrides(type))
    return {};
  int64_t last = type.getRank() - 1;
  int64_t other = op.getAxes()[op.getAxes()[0] == last ? 1 : 0];
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               array.strides[other], createIndex(b, 1));
}

namespace {
/// A loop, since its instructions run once a work item.
struct LowerPrefetch : ArrayPattern<PrefetchOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(PrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array &array = *kernels.lookup(op.getArray());
    auto type = cast<MemRefType>(op.getArray().getType());
    int64_t elements =
        getArch(op).cacheLineBytes * 8 / type.getElementTypeBitWidth();
    Value isTransposed = createIsTransposed(b, op, array);
    size_t axis = op.getAxes()[0] == type.getRank() - 1 ? 0 : 1;
    auto countAll = [&](size_t axis) {
      return countLines(op, axis, elements) * op.getSizes()[1 - axis];
    };
    Value lane = arith::IndexCastUIOp::create(
        b, b.getIndexType(), createLane(b, createThreadHere(b)));
    Value lines = createIndex(b, countAll(axis));
    if (isTransposed && countAll(axis) != countAll(1 - axis))
      lines = arith::SelectOp::create(
          b, isTransposed, createIndex(b, countAll(1 - axis)), lines);
    auto loop = scf::ForOp::create(b, lane, lines,
                                   createIndex(b, format::kWarpThreads));
    keepLoop(loop);
    auto body = ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), loop.getBody());
    createPrefetch(body, op, array, adaptor.getOffsets(),
                   loop.getInductionVar(), isTransposed, elements);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populatePrefetchPattern(const TypeConverter &converter,
                                   const LoweredKernels &kernels,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerPrefetch>(converter, patterns.getContext(), kernels);
}
