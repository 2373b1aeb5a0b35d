//===- Triangles.cpp - Diagonals and lower triangles of register tiles ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Diagonals
//===----------------------------------------------------------------------===//

/// Of a warp's 16 rows the lanes 4 r .. hold r and r + 8, and of 8 columns the
/// lane l two from 2 (l mod 4) on: so lane 4 r + r / 2 has the diagonal of both
/// rows, in the block of 16 columns that lies as far from the first as the
/// warp's rows from `first`.
static Value createDiagonal(ImplicitLocOpBuilder &b, Value fragment,
                            VectorType type, int64_t columns, int64_t first) {
  SmallVector<Value> elements = unpack(b, fragment);
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  Value row = createQuad(b);
  Value isOdd = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ne,
      arith::AndIOp::create(b, row, createI32(b, 1)), createI32(b, 0));
  Value source =
      arith::AddIOp::create(b, arith::MulIOp::create(b, row, createI32(b, 4)),
                            arith::DivUIOp::create(b, row, createI32(b, 2)));
  Value block = arith::SubIOp::create(b, createGroupWarp(b),
                                      createI32(b, first / format::kWarpRows));
  // Elements of a block of 16 columns: two rows of each 8.
  constexpr int64_t kOfBlock = 8, kOfColumns = 4, kOfRow = 2;
  SmallVector<Value> result;
  for (int64_t half = 0; half < 2; ++half) {
    Value one;
    for (int64_t i = 0; i < columns / format::kWarpRows; ++i) {
      int64_t at = i * kOfBlock + half * (kOfColumns + kOfRow);
      Value here = choose(isOdd, elements[at + 1], elements[at]);
      Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block,
                                           createI32(b, i));
      one = one ? choose(isHere, here, one) : here;
    }
    Value word = LLVM::BitcastOp::create(b, b.getI32Type(), one);
    result.push_back(LLVM::BitcastOp::create(
        b, type.getElementType(),
        createShuffle(b, ShuffleKind::Index, word, source)));
  }
  return pack(b, type, result);
}

//===----------------------------------------------------------------------===//
// Triangles
//===----------------------------------------------------------------------===//

namespace {
/// Masks of the triangles of a fragment of `columns` columns. A thread holds
/// rows of both halves h of 8 of its warp's 16, so elements of blocks of 8 x 8:
/// of rows 16 w + 8 h on in the warp's square and of columns 8 j on. What is
/// kept of a block depends on 2 w + h - j alone: nothing below 0, all above,
/// and at 0 what is the same in all blocks. So few masks, of h - j, cut them
/// all.
class CausalMasks {
public:
  CausalMasks(ImplicitLocOpBuilder &b, CausalOp op, int64_t columns,
              bool isPacked)
      : b(b), warps(columns / format::kWarpRows), isStrict(op.getStrict()),
        isPacked(isPacked),
        thread(op->hasAttr(tile::kRereadAttrName) ? createThreadHere(b)
                                                  : createThread(b)) {}

  /// The mask of element `parity` of a row of blocks at h - j = `distance`, or
  /// of both if packed.
  Value get(int64_t distance, int64_t parity) {
    Value mask;
    for (int64_t warp = 0; warp < warps; ++warp) {
      int64_t row = 2 * warp + distance;
      Value here = row == 0 ? getDiagonal(parity) : createI32(b, -(row > 0));
      mask = mask ? select(isBelow(warp), mask, here) : here;
    }
    return mask;
  }

private:
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  /// Whether the number of this thread's warp in its square is below `warp`.
  Value isBelow(int64_t warp) {
    Value number = arith::AndIOp::create(b, createGroupWarp(b, thread),
                                         createI32(b, warps - 1));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number,
                                 createI32(b, warp));
  }
  /// Whether a block on the diagonal keeps the thread's element `parity`.
  Value keeps(int64_t parity) {
    Value row = createQuad(b, thread),
          column = arith::AddIOp::create(b, createFragmentColumn(b, thread),
                                         createI32(b, parity));
    return arith::CmpIOp::create(
        b, isStrict ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::uge,
        row, column);
  }
  Value getDiagonal(int64_t parity) {
    Value zero = createI32(b, 0);
    if (!isPacked)
      return select(keeps(parity), createI32(b, -1), zero);
    return arith::OrIOp::create(b, select(keeps(0), createI32(b, 0xffff), zero),
                                select(keeps(1), createI32(b, -0x10000), zero));
  }

  ImplicitLocOpBuilder &b;
  /// Warps of a square.
  int64_t warps;
  bool isStrict, isPacked;
  Value thread;
};
} // namespace

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
struct LowerDiagonal : OpConversionPattern<DiagonalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DiagonalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op,
                       createDiagonal(b, adaptor.getSource(), type,
                                      op.getSource().getType().getDimSize(1),
                                      op.getFirst()));
    return success();
  }
};

struct LowerCausal : OpConversionPattern<CausalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CausalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(adaptor.getSource().getType());
    int64_t bits = type.getElementTypeBitWidth(), perWord = 32 / bits;
    CausalMasks masks(b, op, op.getType().getDimSize(1),
                      /*isPacked=*/perWord == 2);
    auto words =
        VectorType::get(type.getNumElements() / perWord, b.getI32Type());
    SmallVector<Value> cut =
        unpack(b, vector::BitCastOp::create(b, words, adaptor.getSource()));
    for (auto [index, word] : llvm::enumerate(cut)) {
      int64_t element = index * perWord, half = element / 2 % 2;
      word = arith::AndIOp::create(b, word,
                                   masks.get(half - element / 4, element % 2));
    }
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, type,
                                                   pack(b, words, cut));
    return success();
  }
};
} // namespace

void warp::populateTrianglePatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LowerDiagonal, LowerCausal>(converter, patterns.getContext());
}
