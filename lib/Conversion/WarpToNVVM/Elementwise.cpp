//===- Elementwise.cpp - Upstream ops on register tiles -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

Value warp::combine(ImplicitLocOpBuilder &b, linalg::ReduceOp op, Value lhs,
                    Value rhs) {
  Block &combiner = op.getCombiner().front();
  IRMapping map;
  map.map(combiner.getArguments(), ValueRange{lhs, rhs});
  for (Operation &inner : combiner.without_terminator())
    b.clone(inner, map);
  return map.lookupOrDefault(combiner.getTerminator()->getOperand(0));
}

namespace {
/// An elementwise op on tiles is the same op on the vectors of a thread.
struct LowerElementwise : ConversionPattern {
  LowerElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        !op->hasTrait<OpTrait::Elementwise>())
      return rewriter.notifyMatchFailure(op, "not an elementwise op");
    if (typeConverter->isLegal(op))
      return rewriter.notifyMatchFailure(op, "not on register tiles");
    SmallVector<Type> types;
    if (failed(typeConverter->convertTypes(op->getResultTypes(), types)))
      return rewriter.notifyMatchFailure(op, "a tensor without encoding");
    OperationState state(op->getLoc(), op->getName(), operands, types,
                         op->getAttrDictionary().getValue());
    bool isMadeHere =
        static_cast<bool>(state.attributes.erase(tile::kMadeHereAttrName));
    Operation *made = rewriter.create(state);
    auto type = dyn_cast<VectorType>(types.front());
    if (!isMadeHere || !type) {
      rewriter.replaceOp(op, made);
      return success();
    }
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    SmallVector<Value> elements =
        createTied(b, /*text=*/"", unpack(b, made->getResult(0)), {}, "");
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

/// The row that a mask compares the numbers of rows with, if it is the first
/// one of a warp's: all rows of a warp have one answer then.
static std::optional<int64_t> findFirstRow(arith::CmpIOp mask) {
  auto numbers = mask ? mask.getLhs().getDefiningOp<IotaOp>() : IotaOp();
  auto bound =
      mask ? mask.getRhs().getDefiningOp<arith::ConstantOp>() : nullptr;
  auto dense = bound ? dyn_cast<DenseElementsAttr>(bound.getValue()) : nullptr;
  if (!numbers || numbers.getDimension() != 0 ||
      !isEncoded<FragmentAttr>(numbers.getType()) || !dense || !dense.isSplat())
    return std::nullopt;
  int64_t row = dense.getSplatValue<APInt>().getSExtValue();
  bool splits = mask.getPredicate() == arith::CmpIPredicate::slt ||
                mask.getPredicate() == arith::CmpIPredicate::sge;
  if (!splits || row % format::kWarpRows != 0)
    return std::nullopt;
  return row;
}

/// Whether a select whose mask compares with row `row`, the first one of a
/// warp's, takes the first value in the rows of this warp.
static Value createIsOfWarp(ImplicitLocOpBuilder &b, arith::SelectOp select,
                            int64_t row) {
  auto mask = select.getCondition().getDefiningOp<arith::CmpIOp>();
  return arith::CmpIOp::create(b, mask.getPredicate(),
                               createGroupWarp(b, createThreadHere(b)),
                               createI32(b, row / format::kWarpRows));
}

/// A select of rows of whole warps that is made anew has one condition, which
/// is made here: a loop would hold a predicate for each.
struct LowerSelectOfWarps : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> row =
        findFirstRow(op.getCondition().getDefiningOp<arith::CmpIOp>());
    if (!row || !op->hasAttr(tile::kRereadAttrName))
      return rewriter.notifyMatchFailure(op, "not anew of whole warps");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, createIsOfWarp(b, op, *row), adaptor.getTrueValue(),
        adaptor.getFalseValue());
    return success();
  }
};

/// The row that the mask of `factor` compares with, if that is a select of
/// whole warps, made anew, of 1 and something else.
static std::optional<int64_t> findUnitRows(arith::SelectOp factor) {
  if (!factor || !factor->hasAttr(tile::kRereadAttrName))
    return std::nullopt;
  auto one = factor.getTrueValue().getDefiningOp<arith::ConstantOp>();
  auto dense = one ? dyn_cast<SplatElementsAttr>(one.getValue()) : nullptr;
  if (!dense || !dense.getElementType().isF32() ||
      !dense.getSplatValue<APFloat>().isExactlyValue(1.0))
    return std::nullopt;
  return findFirstRow(factor.getCondition().getDefiningOp<arith::CmpIOp>());
}

/// A product with a factor that is 1 in all rows of some warps: these leave it
/// out. The vote says that a warp goes one way, so that ptxas keeps uniform
/// registers behind the branch.
struct LowerProductOfWarps : OpConversionPattern<arith::MulFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::MulFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto factor = op.getRhs().getDefiningOp<arith::SelectOp>();
    std::optional<int64_t> row = findUnitRows(factor);
    if (!row)
      return rewriter.notifyMatchFailure(op, "not a factor of some warps");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value isUnit = createIsOfWarp(b, factor, *row);
    isUnit = NVVM::VoteSyncOp::create(b, b.getI1Type(), createI32(b, -1),
                                      isUnit, NVVM::VoteSyncKind::any);
    auto branch = scf::IfOp::create(b, TypeRange(adaptor.getLhs().getType()),
                                    isUnit, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, adaptor.getLhs());
    b.setInsertionPointToStart(branch.elseBlock());
    // Element by element: LLVM would take a product of vectors for one cheap
    // instruction, run it in all warps, and select.
    SmallVector<Value> products = unpack(b, adaptor.getLhs());
    Value other = rewriter.getRemappedValue(factor.getFalseValue());
    for (auto [product, by] : llvm::zip(products, unpack(b, other)))
      product = arith::MulFOp::create(b, product, by, op.getFastmathAttr());
    scf::YieldOp::create(
        b, pack(b, cast<VectorType>(adaptor.getLhs().getType()), products));
    rewriter.replaceOp(op, branch);
    return success();
  }
};

/// Rounds pairs by an instruction that LLVM does not know: it would move a
/// select behind a truncation, where it takes an instruction for each half.
struct LowerTruncF : OpConversionPattern<arith::TruncFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::TruncFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast_or_null<VectorType>(
        getTypeConverter()->convertType(op.getType()));
    if (!type || getTypeConverter()->isLegal(op.getOperation()) ||
        type.getNumElements() % 2 != 0 ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32() ||
        !isa<BFloat16Type, Float16Type>(type.getElementType()))
      return rewriter.notifyMatchFailure(op, "not pairs of f32 to 16 bits");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type element = type.getElementType(), i32 = b.getI32Type();
    StringAttr name = b.getStringAttr(
        element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn");
    SmallVector<Value> elements = unpack(b, adaptor.getIn()), words;
    for (size_t i = 0; i < elements.size(); i += 2) {
      // The first operand goes to the upper half.
      Value pair = LLVM::CallIntrinsicOp::create(
                       b, VectorType::get(2, element), name,
                       ValueRange{elements[i + 1], elements[i]})
                       .getResult(0);
      words.push_back(LLVM::BitcastOp::create(b, i32, pair));
    }
    Value packed =
        pack(b, VectorType::get(type.getNumElements() / 2, i32), words);
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, type, packed);
    return success();
  }
};

/// Widens pairs of bf16 word by word, an instruction an element: of a vector of
/// halves LLVM extracts the upper one first and shifts it then.
struct LowerExtF : OpConversionPattern<arith::ExtFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ExtFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast_or_null<VectorType>(
        getTypeConverter()->convertType(op.getType()));
    if (!type || getTypeConverter()->isLegal(op.getOperation()) ||
        type.getNumElements() % 2 != 0 || !type.getElementType().isF32() ||
        !getElementTypeOrSelf(op.getIn().getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not pairs of bf16 to f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value words = vector::BitCastOp::create(
        b, VectorType::get(type.getNumElements() / 2, b.getI32Type()),
        adaptor.getIn());
    SmallVector<Value> elements;
    for (Value word : unpack(b, words))
      llvm::append_range(elements, widenPair(b, word));
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

struct LowerConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast_or_null<VectorType>(
        getTypeConverter()->convertType(op.getType()));
    auto value = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!type || !value)
      return rewriter.notifyMatchFailure(op, "not a splat of a register tile");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseElementsAttr::get(type, value.getSplatValue<Attribute>()));
    return success();
  }
};

/// A tile that nobody takes as it is.
struct LowerPoison : OpConversionPattern<ub::PoisonOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ub::PoisonOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<ub::PoisonOp>(
        op, getTypeConverter()->convertType(op.getType()));
    return success();
  }
};

struct LowerSplat : OpConversionPattern<tensor::SplatOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::SplatOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    if (!isa_and_nonnull<VectorType>(type))
      return rewriter.notifyMatchFailure(op, "not a register tile");
    rewriter.replaceOpWithNewOp<vector::BroadcastOp>(op, type,
                                                     adaptor.getInput());
    return success();
  }
};

/// The destination of a broadcast holds nothing.
struct LowerEmpty : OpConversionPattern<tensor::EmptyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::EmptyOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    if (!isa_and_nonnull<VectorType>(type))
      return rewriter.notifyMatchFailure(op, "not a register tile");
    rewriter.replaceOpWithNewOp<LLVM::PoisonOp>(op, type);
    return success();
  }
};

/// Each thread holds the rows and columns of its elements already.
struct LowerBroadcast : OpConversionPattern<linalg::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type source = op.getInput().getType(), result = op.getInit().getType();
    bool columns = isEncoded<ColumnsAttr>(source);
    if (!isEncoded<FragmentAttr>(result) ||
        (!columns && !isEncoded<RowsAttr>(source)))
      return rewriter.notifyMatchFailure(
          op, "not from rows or columns to a fragment");
    if (op.getDimensions() != ArrayRef<int64_t>(columns ? 0 : 1))
      return op.emitOpError("expected a broadcast along dimension ")
             << (columns ? 0 : 1) << ", got [" << op.getDimensions() << "]";
    int64_t count = getThreadElements(cast<RankedTensorType>(result));
    SmallVector<int64_t> selection;
    for (int64_t i = 0; i < count; ++i)
      selection.push_back(columns ? i / 4 * 2 + i % 2 : i / 2 % 2);
    rewriter.replaceOpWithNewOp<vector::ShuffleOp>(
        op, adaptor.getInput(), adaptor.getInput(), selection);
    return success();
  }
};

/// A thread reduces what it holds of its two rows, then the lanes of a quad,
/// which hold the rest of them.
struct LowerReduce : OpConversionPattern<linalg::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(linalg::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type source = op.getInputs().front().getType(),
         result = op.getInits().front().getType();
    if (op.getDimensions() == ArrayRef<int64_t>(0))
      return rewriter.notifyMatchFailure(op, "not along rows");
    if (op.getInputs().size() != 1 || !isEncoded<FragmentAttr>(source) ||
        !isEncoded<RowsAttr>(result) ||
        op.getDimensions() != ArrayRef<int64_t>(1) ||
        !getElementTypeOrSelf(result).isF32())
      return op.emitOpError("expected a reduction of a fragment of f32 along "
                            "dimension 1 to a vector of rows");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getInputs().front()),
                       rows = unpack(b, adaptor.getInits().front());
    for (auto [index, row] : llvm::enumerate(rows)) {
      Value sum;
      for (auto [number, element] : llvm::enumerate(elements))
        if (number / 2 % 2 == index)
          sum = sum ? combine(b, op, sum, element) : element;
      for (int64_t distance : {1, 2})
        sum = combine(
            b, op, sum,
            createShuffle(b, ShuffleKind::Xor, sum, createI32(b, distance)));
      row = combine(b, op, row, sum);
    }
    auto type = cast<VectorType>(getTypeConverter()->convertType(result));
    rewriter.replaceOp(op, pack(b, type, rows));
    return success();
  }
};

struct LowerIota : OpConversionPattern<IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(IotaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    auto tile = cast<RankedTensorType>(op.getType());
    bool lanes = isEncoded<LanesAttr>(tile), rows = op.getDimension() == 0;
    SmallVector<int32_t> offsets;
    for (int32_t i = 0; i < type.getNumElements(); ++i)
      offsets.push_back(lanes  ? i * static_cast<int32_t>(format::kWarpThreads)
                        : rows ? i / 2 % 2 * 8
                               : i / 4 * 8 + i % 2);
    Value thread =
        op->hasAttr(tile::kRereadAttrName) ? createThreadHere(b) : Value();
    Value first = lanes  ? createLanePlace(b, tile.getDimSize(0))
                  : rows ? createFragmentRow(b, thread)
                         : createFragmentColumn(b, thread);
    Value splat = vector::BroadcastOp::create(b, type, first);
    Value constant = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, ArrayRef(offsets)));
    rewriter.replaceOp(op, arith::AddIOp::create(b, splat, constant));
    return success();
  }
};
} // namespace

void warp::populateElementwisePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerTruncF, LowerExtF, LowerSelectOfWarps, LowerProductOfWarps>(
      converter, patterns.getContext(),
      /*benefit=*/2);
  patterns.add<LowerElementwise, LowerConstant, LowerPoison, LowerSplat,
               LowerEmpty, LowerBroadcast, LowerReduce, LowerIota>(
      converter, patterns.getContext());
}
