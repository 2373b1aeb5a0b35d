//===- Warpgroups.cpp - What the warps of a warpgroup do apart, together --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp holds 16 rows of a fragment. What goes over rows, then, goes
// through scratch memory that the four warps share.
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Some warps, some threads
//===----------------------------------------------------------------------===//

Value warp::createIsWriter(ImplicitLocOpBuilder &b, RankedTensorType tensor) {
  auto isBelow = [&](Value value, int64_t bound) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, value,
                                 createI32(b, bound));
  };
  if (isEncoded<LanesAttr>(tensor))
    return tensor.getDimSize(0) < format::kWarpThreads
               ? isBelow(createLane(b), tensor.getDimSize(0))
               : Value();
  return isBelow(isEncoded<ColumnsAttr>(tensor) ? createFragmentRow(b)
                                                : createFragmentColumn(b),
                 1);
}

/// Whether this warp holds rows [rows[0], rows[1]) of a fragment.
static Value createIsIn(ImplicitLocOpBuilder &b, ArrayRef<int64_t> rows) {
  constexpr int64_t kWarpRows = format::kWarpRows;
  Value difference = arith::SubIOp::create(b, createGroupWarp(b),
                                           createI32(b, rows[0] / kWarpRows));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, difference,
                               createI32(b, (rows[1] - rows[0]) / kWarpRows));
}

void warp::enterWarpsOf(ImplicitLocOpBuilder &b, ArrayRef<int64_t> rows) {
  auto branch = scf::IfOp::create(b, createIsIn(b, rows));
  b.setInsertionPointToStart(branch.thenBlock());
}

Value warp::createInWarpsOf(
    ImplicitLocOpBuilder &b, ArrayRef<int64_t> rows, VectorType type,
    function_ref<Value(ImplicitLocOpBuilder &)> create) {
  auto branch = scf::IfOp::create(b, TypeRange(type), createIsIn(b, rows),
                                  /*withElseRegion=*/true);
  auto then =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.thenBlock());
  scf::YieldOp::create(then, create(then));
  auto otherwise =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.elseBlock());
  Value zero = arith::ConstantOp::create(otherwise, b.getZeroAttr(type));
  scf::YieldOp::create(otherwise, zero);
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// Scratch memory
//===----------------------------------------------------------------------===//

Scratch::Scratch(ImplicitLocOpBuilder &b, Operation *op, RankedTensorType tile,
                 bool isLate)
    : b(b), tile(tile),
      place(cast<DenseI64ArrayAttr>(
                op->getAttr(WarpDialect::getScratchAttrName()))
                .asArrayRef()),
      elementBytes(tile.getElementTypeBitWidth() / 8),
      pair(VectorType::get(2, tile.getElementType())),
      thread(isLate ? Value() : createThread(b)) {}

Value Scratch::getThread() { return thread ? thread : createThreadHere(b); }

Value Scratch::getBase(Value thread) {
  Value group = arith::DivUIOp::create(
      b, thread, createI32(b, format::kWarpThreads * format::kWarpgroupWarps));
  Value offset = arith::MulIOp::create(b, group, createI32(b, place[1]));
  return createAddress(b, createSharedAddress(b, createIndex(b, 0)), offset,
                       place[0]);
}

/// All warps of this warpgroup, by a named barrier of its own.
void Scratch::sync() {
  int64_t threads = format::kWarpThreads * format::kWarpgroupWarps;
  Value group = arith::DivUIOp::create(b, getThread(), createI32(b, threads));
  Value id = arith::AddIOp::create(b, group, createI32(b, 1));
  createGroupSync(b, id, threads);
}

Value Scratch::getAddress(Value number) {
  int64_t bytes = tile.getDimSize(1) * elementBytes;
  Value here = getThread();
  Value column = arith::MulIOp::create(b, createFragmentColumn(b, here),
                                       createI32(b, elementBytes));
  Value offset = arith::AddIOp::create(
      b, column, arith::MulIOp::create(b, number, createI32(b, bytes)));
  return createAddress(b, getBase(here), offset, 0);
}

void Scratch::store(Value isWriter, Value number, ArrayRef<Value> columns,
                    Value first, int64_t distance) {
  // Who read the last ones is done.
  sync();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(scf::IfOp::create(b, isWriter).thenBlock());
    Value address = createAddress(b, getAddress(number), first, 0);
    for (size_t i = 0; i < columns.size(); i += 2)
      LLVM::StoreOp::create(
          b, pack(b, pair, columns.slice(i, 2)),
          createAddress(b, address, Value(), i / 2 * distance * elementBytes),
          2 * elementBytes);
  }
  sync();
}

void Scratch::storeSums(Value number, SmallVector<Value> columns,
                        function_ref<Value(Value, Value)> combine) {
  Value quad = arith::DivUIOp::create(b, createLane(b, getThread()),
                                      createI32(b, kQuad));
  auto other = [&](Value sent, int64_t distance) {
    return createShuffle(b, ShuffleKind::Xor, sent,
                         createI32(b, kQuad * distance));
  };
  // Of two pairs of columns the quad whose number has the bit keeps the second.
  int64_t kept = 1;
  for (int64_t bit = 1; bit < kQuads; bit *= 2) {
    if (columns.size() % 4 != 0) {
      for (Value &sum : columns)
        sum = combine(sum, other(sum, bit));
      continue;
    }
    Value isSecond = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, quad, createI32(b, bit)), createI32(b, 0));
    SmallVector<Value> sums;
    for (size_t i = 0; i < columns.size(); i += 4)
      for (size_t k : {i, i + 1}) {
        Value first = columns[k], second = columns[k + 2];
        Value own = arith::SelectOp::create(b, isSecond, second, first),
              sent = arith::SelectOp::create(b, isSecond, first, second);
        sums.push_back(combine(own, other(sent, bit)));
      }
    columns = std::move(sums);
    kept = 2 * bit;
  }
  Value first = arith::AndIOp::create(b, quad, createI32(b, kept - 1));
  Value isWriter =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, quad);
  // Columns of a pair are those of the quad, eight further on for each pair.
  Value place =
      arith::MulIOp::create(b, first, createI32(b, 2 * kQuad * elementBytes));
  store(isWriter, number, columns, place, 2 * kQuad * kept);
}

SmallVector<Value> Scratch::load(int64_t number) {
  Value address = getAddress(createI32(b, number));
  SmallVector<Value> columns;
  for (int64_t i = 0; i < tile.getDimSize(1) / kQuad; i += 2)
    llvm::append_range(
        columns,
        unpack(b, LLVM::LoadOp::create(b, pair,
                                       createAddress(b, address, Value(),
                                                     i * kQuad * elementBytes),
                                       2 * elementBytes)));
  return columns;
}

SmallVector<Value>
Scratch::loadSums(std::pair<int64_t, int64_t> numbers,
                  function_ref<Value(Value, Value)> combine) {
  constexpr int64_t kPair = 2;
  int64_t pairs = tile.getDimSize(1) / kPair, pairBytes = kPair * elementBytes,
          lanes = std::min<int64_t>(pairs, format::kWarpThreads);
  Value here = getThread(), lane = createLane(b, here);
  Value own = arith::MulIOp::create(
      b, arith::RemUIOp::create(b, lane, createI32(b, lanes)),
      createI32(b, pairBytes));
  Value start = createAddress(b, getBase(here), own, 0);
  SmallVector<Value> sums;
  for (int64_t first = 0; first < pairs; first += lanes) {
    SmallVector<Value> sum;
    for (int64_t number = numbers.first; number < numbers.second; ++number) {
      Value address = createAddress(b, start, Value(),
                                    (number * pairs + first) * pairBytes);
      SmallVector<Value> more =
          unpack(b, LLVM::LoadOp::create(b, pair, address, pairBytes));
      if (sum.empty())
        sum = more;
      else
        for (auto [value, other] : llvm::zip(sum, more))
          value = combine(value, other);
    }
    sums.append(sum);
  }
  // Pair 4 j + l of a row is pair j of lane l of its quad.
  Value inQuad = arith::RemUIOp::create(b, lane, createI32(b, kQuad));
  SmallVector<Value> columns;
  for (int64_t first = 0; first < pairs; first += kQuad) {
    Value from = arith::AddIOp::create(b, inQuad, createI32(b, first % lanes));
    for (int64_t i : {0, 1})
      columns.push_back(createShuffle(b, ShuffleKind::Index,
                                      sums[first / lanes * kPair + i], from));
  }
  return columns;
}

std::pair<int64_t, int64_t> warp::getWarps(Operation *op) {
  auto rows =
      op->getAttrOfType<DenseI64ArrayAttr>(WarpDialect::getRowsAttrName());
  if (!rows)
    return {0, format::kWarpgroupWarps};
  return {rows[0] / format::kWarpRows, rows[1] / format::kWarpRows};
}

SmallVector<Value> warp::getHalf(ArrayRef<Value> elements, int64_t half) {
  SmallVector<Value> columns;
  for (size_t i = 0; i < elements.size(); ++i)
    if (static_cast<int64_t>(i / 2 % 2) == half)
      columns.push_back(elements[i]);
  return columns;
}

Value warp::createIsEqual(ImplicitLocOpBuilder &b, Value value,
                          int64_t number) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                               createI32(b, number));
}

/// True in the threads of the first quad of each warp.
static Value createIsFirstQuad(ImplicitLocOpBuilder &b) {
  return createIsEqual(
      b, arith::DivUIOp::create(b, createLane(b), createI32(b, kQuad)), 0);
}

LogicalResult warp::verifyScratch(Operation *op) {
  if (op->hasAttr(WarpDialect::getScratchAttrName()))
    return success();
  return op->emitOpError("expected a place in shared memory in ")
         << WarpDialect::getScratchAttrName() << " (gdn-warp-allocate-shared)";
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

struct LowerRow : OpConversionPattern<RowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyScratch(op)))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t row = op.getRow(), warpRows = format::kWarpRows;
    SmallVector<Value> columns =
        getHalf(unpack(b, adaptor.getSource()), row % warpRows / kQuads);
    Value quad = arith::DivUIOp::create(b, createLane(b), createI32(b, kQuad));
    Value isWriter = arith::AndIOp::create(
        b, createIsEqual(b, createGroupWarp(b), row / warpRows),
        createIsEqual(b, quad, row % kQuads));
    Scratch scratch(b, op, op.getSource().getType());
    scratch.store(isWriter, createI32(b, 0), columns);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, scratch.load(0)));
    return success();
  }
};

/// Over rows: a thread reduces what it holds of a column, then the quads of a
/// warp, then the warps, the first one first.
struct LowerReduceRows : OpConversionPattern<linalg::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getDimensions() != ArrayRef<int64_t>(0))
      return rewriter.notifyMatchFailure(op, "not over rows");
    Type source = op.getInputs().front().getType(),
         result = op.getInits().front().getType();
    if (op.getInputs().size() != 1 || !isEncoded<FragmentAttr>(source) ||
        !isEncoded<ColumnsAttr>(result) ||
        !getElementTypeOrSelf(result).isF32())
      return op.emitOpError("expected a reduction of a fragment of f32 along "
                            "dimension 0 to a vector of columns");
    if (failed(verifyScratch(op)))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getInputs().front()),
                       sums = getHalf(elements, 0);
    for (auto [sum, other] : llvm::zip(sums, getHalf(elements, 1)))
      sum = combine(b, op, sum, other);
    Scratch scratch(b, op, cast<RankedTensorType>(source), /*isLate=*/true);
    scratch.storeSums(
        createGroupWarp(b, createThreadHere(b)), sums,
        [&](Value lhs, Value rhs) { return combine(b, op, lhs, rhs); });
    sums = scratch.loadSums(getWarps(op), [&](Value lhs, Value rhs) {
      return combine(b, op, lhs, rhs);
    });
    SmallVector<Value> all = unpack(b, adaptor.getInits().front());
    for (auto [init, sum] : llvm::zip(all, sums))
      init = combine(b, op, init, sum);
    auto type = cast<VectorType>(getTypeConverter()->convertType(result));
    rewriter.replaceOp(op, pack(b, type, all));
    return success();
  }
};

/// A vector of rows: a thread reduces its two, then the quads of a warp, then
/// the warps, the first one first.
struct LowerReduceVector : OpConversionPattern<linalg::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type source = op.getInputs().front().getType(),
         result = op.getInits().front().getType();
    if (op.getInputs().size() != 1 || !isEncoded<RowsAttr>(source) ||
        !isEncoded<UniformAttr>(result))
      return rewriter.notifyMatchFailure(op, "not of a vector of rows");
    if (failed(verifyScratch(op)))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> rows = unpack(b, adaptor.getInputs().front());
    Value sum = combine(b, op, rows[0], rows[1]);
    for (int64_t distance = kQuad; distance < format::kWarpThreads;
         distance *= 2)
      sum = combine(
          b, op, sum,
          createShuffle(b, ShuffleKind::Xor, sum, createI32(b, distance)));
    auto columns = RankedTensorType::get(
        {format::kWgmmaRows, format::kWgmmaColumnUnit}, b.getF32Type());
    Scratch scratch(b, op, columns);
    scratch.store(createIsFirstQuad(b), createGroupWarp(b), {sum, sum});
    Value all = unpack(b, adaptor.getInits().front())[0];
    for (int64_t warp = 0; warp < format::kWarpgroupWarps; ++warp)
      all = combine(b, op, all, scratch.load(warp)[0]);
    auto type = cast<VectorType>(getTypeConverter()->convertType(result));
    rewriter.replaceOp(op, pack(b, type, {all}));
    return success();
  }
};
} // namespace

void warp::populateWarpgroupPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerReduceVector>(converter, patterns.getContext(),
                                  /*benefit=*/3);
  patterns.add<LowerReduceRows>(converter, patterns.getContext(),
                                /*benefit=*/2);
  patterns.add<LowerRow>(converter, patterns.getContext());
}
