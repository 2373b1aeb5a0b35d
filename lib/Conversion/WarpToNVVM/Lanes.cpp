//===- Lanes.cpp - Vectors over the lanes of a warp -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Shuffles move words.
static bool isWord(Type type) { return type.isF32() || type.isInteger(32); }

/// Inclusive sum over the `width` lanes among which a lane's place is `place`:
/// log2(width) steps, each of which adds the sum of twice the distance.
static Value createLaneScan(ImplicitLocOpBuilder &b, Value value, Value place,
                            int64_t width, bool reverse) {
  ShuffleKind kind = reverse ? ShuffleKind::Down : ShuffleKind::Up;
  for (int64_t distance = 1; distance < width; distance *= 2) {
    Value other = createShuffle(b, kind, value, createI32(b, distance));
    Value sum = arith::AddFOp::create(b, value, other);
    int64_t bound = reverse ? width - distance : distance;
    Value exists = arith::CmpIOp::create(
        b, reverse ? arith::CmpIPredicate::ult : arith::CmpIPredicate::uge,
        place, createI32(b, bound));
    value = arith::SelectOp::create(b, exists, sum, value);
  }
  return value;
}

namespace {
struct LowerScan : OpConversionPattern<tile::ScanOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ScanOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto tensor = cast<RankedTensorType>(op.getType());
    if (!isEncoded<LanesAttr>(tensor) || !tensor.getElementType().isF32())
      return op.emitOpError("expected a vector of f32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t width = std::min(tensor.getDimSize(0), kSm90a.warpThreads);
    Value place = createLanePlace(b, width);
    SmallVector<Value> parts = unpack(b, adaptor.getSource());
    for (Value &part : parts)
      part = createLaneScan(b, part, place, width, op.getReverse());
    // The sum of a part, which its last lane holds, goes into the next one.
    if (op.getReverse())
      std::reverse(parts.begin(), parts.end());
    Value last = createI32(b, op.getReverse() ? 0 : width - 1);
    for (size_t i = 1; i < parts.size(); ++i)
      parts[i] = arith::AddFOp::create(
          b, parts[i],
          createShuffle(b, ShuffleKind::Index, parts[i - 1], last));
    if (op.getReverse())
      std::reverse(parts.begin(), parts.end());
    rewriter.replaceOp(
        op, pack(b, cast<VectorType>(adaptor.getSource().getType()), parts));
    return success();
  }
};

/// The inner products of the rows that a lane holds, of two views: a loop, for
/// all roles together must fit the instruction cache.
class RowProduct {
public:
  RowProduct(ImplicitLocOpBuilder &b, RowDotsOp op, Value a, Value c)
      : b(b), left{op.getA().getType(), a}, right{op.getB().getType(), c},
        squares(op.getA() == op.getB() && left.view.getElementType().isBF16()),
        isOne(op.getA() == op.getB()),
        place(createLanePlace(b, left.view.getRows())) {}

  /// That of row `first` plus the lane's place.
  Value create(int64_t first);

private:
  struct Side {
    ViewType view;
    Value base;
  };
  /// The words of a load of 16 bytes.
  using Words = SmallVector<Value>;

  int64_t getRowBytes() const {
    return left.view.getColumns() * left.view.getElementBytes();
  }
  /// Bytes of a row that one iteration takes.
  int64_t getIterationBytes() const;
  /// Adds the products of iteration `number` (i32) to `sums`.
  void addIteration(Value number, int64_t first, MutableArrayRef<Value> sums);
  SmallVector<Words> load(const Side &side, Value number, int64_t first);
  /// The address of row 0 from where iteration `number` reads it.
  ViewAddress getAddress(const Side &side, Value number);
  SmallVector<Value> widen(ArrayRef<Value> words);
  void addProducts(const Words &a, const Words &c, MutableArrayRef<Value> sums);
  void addSquares(const Words &words, MutableArrayRef<Value> sums);

  ImplicitLocOpBuilder &b;
  Side left, right;
  /// Whether both sides are one view, of bf16 or of any type.
  bool squares, isOne;
  Value place;
  static constexpr int64_t kRun = 16, kWord = 4;
  /// Loads of an iteration, and those whose squares are summed in bf16.
  static constexpr int64_t kLoads = 8, kNarrowLoads = 2;
};

int64_t RowProduct::getIterationBytes() const {
  int64_t bytes = kLoads * kRun;
  while (getRowBytes() % bytes != 0)
    bytes /= 2;
  return bytes;
}

ViewAddress RowProduct::getAddress(const Side &side, Value number) {
  Value byte =
      arith::MulIOp::create(b, number, createI32(b, getIterationBytes()));
  if (!side.view.isSwizzled())
    return ViewAddress(b, side.view, side.base, place, byte);
  // An iteration stays in one panel.
  Value panelBytes = createI32(b, kSm90a.panelBytes);
  Value panel = arith::DivUIOp::create(b, byte, panelBytes);
  Value offset =
      arith::MulIOp::create(b, panel, createI32(b, side.view.getStride()));
  return ViewAddress(b, side.view, createAddress(b, side.base, offset, 0),
                     place, arith::RemUIOp::create(b, byte, panelBytes));
}

SmallVector<RowProduct::Words> RowProduct::load(const Side &side, Value number,
                                                int64_t first) {
  auto type = VectorType::get(kRun / kWord, b.getI32Type());
  ViewAddress address = getAddress(side, number);
  SmallVector<Words> loads;
  for (int64_t byte = 0; byte < getIterationBytes(); byte += kRun)
    loads.push_back(unpack(
        b, LLVM::LoadOp::create(b, type, address.get(first, byte), kRun)));
  return loads;
}

SmallVector<Value> RowProduct::widen(ArrayRef<Value> words) {
  Type type = left.view.getElementType();
  SmallVector<Value> elements;
  for (Value word : words) {
    if (type.isBF16()) {
      llvm::append_range(elements, widenPair(b, word));
      continue;
    }
    Value pair = LLVM::BitcastOp::create(b, VectorType::get(2, type), word);
    for (Value half : unpack(b, pair))
      elements.push_back(arith::ExtFOp::create(b, b.getF32Type(), half));
  }
  return elements;
}

void RowProduct::addProducts(const Words &a, const Words &c,
                             MutableArrayRef<Value> sums) {
  for (auto [x, y, sum] : llvm::zip_equal(widen(a), widen(c), sums))
    sum = math::FmaOp::create(b, x, y, sum);
}

/// The squares of columns of either parity are summed in bf16 first, which
/// takes half the instructions: none of them cancels another, and of all these
/// sums in a row the rounding averages out. By twos, then sums of equal ones,
/// which are exact: so also a row of equal entries, where nothing averages out,
/// has a norm that is right to 2^-9.
void RowProduct::addSquares(const Words &words, MutableArrayRef<Value> sums) {
  auto pairs = VectorType::get(2, left.view.getElementType());
  SmallVector<Value> narrow;
  for (auto [i, word] : llvm::enumerate(words)) {
    Value pair = LLVM::BitcastOp::create(b, pairs, word);
    if (i % 2 == 0)
      narrow.push_back(arith::MulFOp::create(b, pair, pair));
    else
      narrow.back() = math::FmaOp::create(b, pair, pair, narrow.back());
  }
  for (; narrow.size() > 1; narrow.truncate(narrow.size() / 2))
    for (size_t i = 0, half = narrow.size() / 2; i < half; ++i)
      narrow[i] = arith::AddFOp::create(b, narrow[i], narrow[i + half]);
  Value word = LLVM::BitcastOp::create(b, b.getI32Type(), narrow.front());
  for (auto [value, sum] : llvm::zip_equal(widenPair(b, word), sums))
    sum = arith::AddFOp::create(b, sum, value);
}

void RowProduct::addIteration(Value number, int64_t first,
                              MutableArrayRef<Value> sums) {
  SmallVector<Words> a = load(left, number, first);
  if (!squares) {
    SmallVector<Words> c = isOne ? a : load(right, number, first);
    for (auto [x, y] : llvm::zip_equal(a, c))
      addProducts(x, y, sums);
    return;
  }
  for (auto [i, words] : llvm::enumerate(a)) {
    if (i % kNarrowLoads != 0)
      continue;
    for (const Words &more :
         ArrayRef(a).slice(i + 1).take_front(kNarrowLoads - 1))
      llvm::append_range(words, more);
    // In turn, so that no sum waits for the one before it.
    addSquares(words, sums.slice(i / kNarrowLoads * 2 % sums.size(), 2));
  }
}

Value RowProduct::create(int64_t first) {
  // A sum for each element of a load, or two pairs of them.
  int64_t count = squares ? 4 : 2 * kRun / kWord;
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  SmallVector<Value> sums(count, zero);
  auto loop = scf::ForOp::create(
      b, createI32(b, 0), createI32(b, getRowBytes() / getIterationBytes()),
      createI32(b, 1), sums,
      [&](OpBuilder &, Location, Value number, ValueRange carried) {
        SmallVector<Value> next(carried);
        addIteration(number, first, next);
        scf::YieldOp::create(b, next);
      });
  keepLoop(loop);
  sums.assign(loop.result_begin(), loop.result_end());
  for (int64_t half = count / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      sums[i] = arith::AddFOp::create(b, sums[i], sums[i + half]);
  return sums.front();
}

struct LowerRowDots : OpConversionPattern<RowDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowDotsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RowProduct product(b, op, adaptor.getA(), adaptor.getB());
    SmallVector<Value> elements;
    for (int64_t row = 0; row < op.getA().getType().getRows();
         row += kSm90a.warpThreads)
      elements.push_back(product.create(row));
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, elements));
    return success();
  }
};

struct LowerExtract : OpConversionPattern<tensor::ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tensor::ExtractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType tensor = op.getTensor().getType();
    if (!isEncoded<LanesAttr>(tensor) || !isWord(tensor.getElementType()))
      return op.emitOpError("expected a vector of f32 or i32 over lanes, got ")
             << tensor;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value index = arith::IndexCastOp::create(b, b.getI32Type(),
                                             adaptor.getIndices().front());
    Value part =
        arith::DivUIOp::create(b, index, createI32(b, kSm90a.warpThreads));
    SmallVector<Value> parts = unpack(b, adaptor.getTensor());
    Value selected = parts.front();
    for (size_t i = 1; i < parts.size(); ++i) {
      Value isPart = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, part,
                                           createI32(b, i));
      selected = arith::SelectOp::create(b, isPart, parts[i], selected);
    }
    // The shuffle takes the index modulo the lanes.
    rewriter.replaceOp(op,
                       createShuffle(b, ShuffleKind::Index, selected, index));
    return success();
  }
};
} // namespace

void warp::populateLanePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<LowerExtract, LowerRowDots, LowerScan>(converter,
                                                      patterns.getContext());
}
