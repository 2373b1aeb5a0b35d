//===- SpreadTiles.cpp - Rows and columns of tiles over lanes -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Warpgroups.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

Value warp::createSpreadFirst(ImplicitLocOpBuilder &b, SpreadAttr spread,
                              int64_t dim, Value thread) {
  Value lane = createLane(b, thread), lanes = createI32(b, spread.getLanes());
  Value warp = arith::RemUIOp::create(
      b, arith::DivUIOp::create(b, thread, createI32(b, format::kWarpThreads)),
      createI32(b, spread.getWarps()));
  Value columnWarps = createI32(b, spread.getColumnWarps());
  Value inWarp, ofWarp;
  int64_t perWarp;
  if (dim == 1) {
    inWarp = arith::RemUIOp::create(b, lane, lanes);
    ofWarp = arith::RemUIOp::create(b, warp, columnWarps);
    perWarp = spread.getLanes();
  } else {
    inWarp = arith::DivUIOp::create(b, lane, lanes);
    ofWarp = arith::DivUIOp::create(b, warp, columnWarps);
    perWarp = format::kWarpThreads / spread.getLanes();
  }
  Value place = arith::AddIOp::create(
      b, arith::MulIOp::create(b, ofWarp, createI32(b, perWarp)), inWarp);
  return arith::MulIOp::create(b, place, createI32(b, spread.getRunAlong(dim)));
}

/// Of element `i` of a thread's part of a tile the number of its row or column
/// among those that the thread holds.
static int64_t getLine(SpreadAttr spread, RankedTensorType tile, int64_t dim,
                       int64_t i) {
  auto [patch, inside] = spread.locate(tile.getDimSize(1), dim, i);
  return patch * spread.getRunAlong(dim) + inside;
}

namespace {
/// Scratch memory in which the warps along dimension `dim` of a tile leave
/// their sums along it: a vector of the `size` results for each of them.
class SumScratch {
public:
  SumScratch(ImplicitLocOpBuilder &b, Operation *op, SpreadAttr spread,
             int64_t dim, int64_t size)
      : b(b), spread(spread), dim(dim), size(size) {
    ArrayRef<int64_t> place =
        cast<DenseI64ArrayAttr>(op->getAttr(WarpDialect::getScratchAttrName()))
            .asArrayRef();
    int64_t groups = spread.getWarps() / format::kWarpgroupWarps;
    group = arith::DivUIOp::create(
        b, createThread(b),
        createI32(b, spread.getWarps() * format::kWarpThreads));
    Value offset =
        arith::MulIOp::create(b, group, createI32(b, groups * place[1]));
    base = createAddress(b, createSharedAddress(b, createIndex(b, 0)), offset,
                         place[0]);
  }

  /// The sums of all warps, which wait for each other, of what each has.
  void add(linalg::ReduceOp op, MutableArrayRef<Value> sums);

private:
  void sync() {
    createGroupSync(b, arith::AddIOp::create(b, group, createI32(b, 1)),
                    spread.getWarps() * format::kWarpThreads);
  }
  /// Where warp `warp` (i32) along `dim` leaves result `i` of this thread.
  Value getAddress(Value warp, int64_t i);
  Value createIsFirst();

  ImplicitLocOpBuilder &b;
  SpreadAttr spread;
  int64_t dim, size;
  Value group, base;
};
} // namespace

Value SumScratch::getAddress(Value warp, int64_t i) {
  constexpr int64_t kBytes = 4;
  Value offset = arith::MulIOp::create(b, warp, createI32(b, size * kBytes));
  // A scalar is the same in all rows.
  int64_t kept = 1 - dim;
  if (size > 1)
    offset = arith::AddIOp::create(
        b, offset,
        arith::MulIOp::create(
            b, createSpreadFirst(b, spread, kept, createThread(b)),
            createI32(b, kBytes)));
  int64_t run = spread.getRunAlong(kept);
  int64_t distance = size > 1 ? i / run * spread.getBlock(kept) + i % run : 0;
  return createAddress(b, base, offset, distance * kBytes);
}

/// The first of the lanes along `dim`; for a scalar, one of the warp.
Value SumScratch::createIsFirst() {
  Value lane = createLane(b), lanes = createI32(b, spread.getLanes());
  if (size > 1 && dim == 0)
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, lanes);
  if (size > 1)
    lane = arith::RemUIOp::create(b, lane, lanes);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                               createI32(b, 0));
}

void SumScratch::add(linalg::ReduceOp op, MutableArrayRef<Value> sums) {
  Value warp = arith::DivUIOp::create(b, createThread(b),
                                      createI32(b, format::kWarpThreads));
  Value columnWarps = createI32(b, spread.getColumnWarps());
  if (dim == 0)
    warp = arith::DivUIOp::create(
        b, arith::RemUIOp::create(b, warp, createI32(b, spread.getWarps())),
        columnWarps);
  else
    warp = arith::RemUIOp::create(b, warp, columnWarps);
  // Who read the last ones is done.
  if (!op->hasAttr(WarpDialect::getScratchApartAttrName()))
    sync();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(
        scf::IfOp::create(b, createIsFirst()).thenBlock());
    for (auto [i, sum] : llvm::enumerate(sums))
      LLVM::StoreOp::create(b, sum, getAddress(warp, i), /*alignment=*/4);
  }
  sync();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value total;
    for (int64_t from = 0; from < spread.getWarpsAlong(dim); ++from) {
      Value part = LLVM::LoadOp::create(b, sum.getType(),
                                        getAddress(createI32(b, from), i), 4);
      total = total ? combine(b, op, total, part) : part;
    }
    sum = total;
  }
}

/// Of several values what the lanes at `distance` hold together: of the first
/// half in one of two lanes, of the second half in the other one.
static SmallVector<Value> halve(ImplicitLocOpBuilder &b, linalg::ReduceOp op,
                                ArrayRef<Value> values, int64_t distance) {
  Value bit = arith::AndIOp::create(b, createLane(b), createI32(b, distance));
  Value isSecond =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, createI32(b, 0));
  size_t half = values.size() / 2;
  SmallVector<Value> kept;
  for (size_t i = 0; i < half; ++i) {
    Value first = values[i], second = values[i + half];
    Value mine = arith::SelectOp::create(b, isSecond, second, first),
          other = arith::SelectOp::create(b, isSecond, first, second);
    kept.push_back(combine(
        b, op, mine,
        createShuffle(b, ShuffleKind::Xor, other, createI32(b, distance))));
  }
  return kept;
}

/// Replaces `values` by what the lanes along dimension `dim` hold together, in
/// all of them. Each lane adds up a part of many values, and hands its totals
/// to the others: fewer shuffles, and the same order of sums.
static void reduceLanes(ImplicitLocOpBuilder &b, linalg::ReduceOp op,
                        MutableArrayRef<Value> values, SpreadAttr spread,
                        int64_t dim) {
  // With fewer lanes this takes as many instructions as it saves.
  constexpr int64_t kManyLanes = 8;
  int64_t lanes = spread.getLanes(), distance = dim == 0 ? lanes : 1,
          end = dim == 0 ? format::kWarpThreads : lanes, parts = 1;
  SmallVector<Value> totals(values);
  if (dim == 1 && lanes >= kManyLanes)
    for (; distance < end && totals.size() % 2 == 0; distance *= 2, parts *= 2)
      totals = halve(b, op, totals, distance);
  for (; distance < end; distance *= 2)
    for (Value &total : totals)
      total = combine(
          b, op, total,
          createShuffle(b, ShuffleKind::Xor, total, createI32(b, distance)));
  for (auto [i, value] : llvm::enumerate(values)) {
    value = totals[i % totals.size()];
    // The first halving has the highest digit of a value's number.
    int64_t part = i / totals.size(), lane = 0;
    for (int64_t bit = 1; bit < parts; bit *= 2)
      lane |= (part / bit % 2) * (parts / 2 / bit);
    if (parts > 1)
      value = createShuffle(b, ShuffleKind::Index, value, createI32(b, lane),
                            parts);
  }
}

/// Whether adding to `value` changes nothing.
static bool isNeutral(linalg::ReduceOp op, Value value) {
  Block &combiner = op.getCombiner().front();
  DenseElementsAttr init;
  return isa<arith::AddFOp>(combiner.front()) &&
         matchPattern(value, m_Constant(&init)) && init.isSplat() &&
         init.getSplatValue<APFloat>().isZero();
}

namespace {
struct LowerSliceIota : OpConversionPattern<IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(IotaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto vector = cast<RankedTensorType>(op.getType());
    auto slice = dyn_cast<SliceAttr>(vector.getEncoding());
    if (!slice)
      return rewriter.notifyMatchFailure(op, "not along a spread tile");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(vector));
    SpreadAttr spread = slice.getOf();
    int64_t dim = slice.getAxis(), run = spread.getRunAlong(dim);
    SmallVector<int32_t> distances;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      distances.push_back(i / run * spread.getBlock(dim) + i % run);
    Value first = vector::BroadcastOp::create(
        b, type, createSpreadFirst(b, spread, dim, createThread(b)));
    Value constant = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, ArrayRef(distances)));
    rewriter.replaceOpWithNewOp<arith::AddIOp>(op, first, constant);
    return success();
  }
};

/// Each thread holds the rows and columns of its elements already.
struct LowerSpreadBroadcast : OpConversionPattern<linalg::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto result = cast<RankedTensorType>(op.getInit().getType());
    auto spread = dyn_cast_or_null<SpreadAttr>(result.getEncoding());
    if (!spread)
      return rewriter.notifyMatchFailure(op, "not to a spread tile");
    auto slice = dyn_cast_or_null<SliceAttr>(
        cast<RankedTensorType>(op.getInput().getType()).getEncoding());
    if (!slice || slice.getOf() != spread ||
        op.getDimensions() != ArrayRef<int64_t>(1 - slice.getAxis()))
      return op.emitOpError("expected a vector along the rows or columns of "
                            "the tile, got ")
             << op.getInput().getType();
    SmallVector<int64_t> selection;
    for (int64_t i = 0; i < getThreadElements(result); ++i)
      selection.push_back(getLine(spread, result, slice.getAxis(), i));
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(
        op, adaptor.getInput(), adaptor.getInput(), selection);
    return success();
  }
};

/// A thread reduces what it holds of a row or column, then the lanes of it,
/// then the warps. A vector along the columns is one row.
struct LowerSpreadReduce : OpConversionPattern<linalg::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto source = cast<RankedTensorType>(op.getInputs().front().getType());
    auto spread = dyn_cast_or_null<SpreadAttr>(source.getEncoding());
    auto slice = dyn_cast_or_null<SliceAttr>(source.getEncoding());
    if (!spread && !slice)
      return rewriter.notifyMatchFailure(op, "not of a spread tile");
    if (op.getDimensions().size() != 1 || (slice && slice.getAxis() != 1))
      return op.emitOpError("expected a reduction along one dimension of a "
                            "spread tile or of a vector along its columns, "
                            "got ")
             << source;
    int64_t dim = spread ? op.getDimensions()[0] : 1;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getInputs().front()),
                       results = unpack(b, adaptor.getInits().front());
    SmallVector<Value> sums(results.size());
    for (auto [i, element] : llvm::enumerate(elements)) {
      Value &sum = sums[spread ? getLine(spread, source, 1 - dim, i) : 0];
      sum = sum ? combine(b, op, sum, element) : element;
    }
    SpreadAttr of = spread ? spread : slice.getOf();
    reduceLanes(b, op, sums, of, dim);
    if (of.getWarpsAlong(dim) > 1) {
      if (failed(verifyScratch(op)))
        return failure();
      SumScratch(b, op, of, dim, spread ? source.getDimSize(1 - dim) : 1)
          .add(op, sums);
    }
    bool isWhole = isNeutral(op, op.getInits().front());
    for (auto [sum, result] : llvm::zip(sums, results))
      result = isWhole ? sum : combine(b, op, result, sum);
    auto type = cast<VectorType>(
        getTypeConverter()->convertType(op.getInits().front().getType()));
    rewriter.replaceOp(op, pack(b, type, results));
    return success();
  }
};

struct LowerUniformExtract : OpConversionPattern<tensor::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isEncoded<UniformAttr>(op.getTensor().getType()))
      return rewriter.notifyMatchFailure(op, "not what every thread holds");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getTensor());
    Value selected = elements.front();
    for (size_t i = 1; i < elements.size(); ++i)
      selected = arith::SelectOp::create(
          b,
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                adaptor.getIndices().front(),
                                createIndex(b, i)),
          elements[i], selected);
    rewriter.replaceOp(op, selected);
    return success();
  }
};
} // namespace

void warp::populateSpreadTilePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerSpreadBroadcast, LowerSpreadReduce, LowerSliceIota,
               LowerUniformExtract>(converter, patterns.getContext(),
                                    /*benefit=*/2);
}
