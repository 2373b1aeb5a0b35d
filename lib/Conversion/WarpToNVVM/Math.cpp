//===- Math.cpp - Functions that NVPTX has no instruction for -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

// NVPTX aborts on exp and log and has no library of ours to call, so they
// become the approximate instructions of base 2 (PTX ISA, "ex2.approx",
// "lg2.approx": about 2 ulp).

static Value createConstant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

static Value createIntrinsic(ImplicitLocOpBuilder &b, StringRef name, Value x) {
  return LLVM::CallIntrinsicOp::create(b, b.getF32Type(), b.getStringAttr(name),
                                       x)
      .getResult(0);
}

static Value createExp2(ImplicitLocOpBuilder &b, Value x) {
  return createIntrinsic(b, "llvm.nvvm.ex2.approx.ftz.f32", x);
}

static Value createLog2(ImplicitLocOpBuilder &b, Value x) {
  return createIntrinsic(b, "llvm.nvvm.lg2.approx.ftz.f", x);
}

static Value createExp(ImplicitLocOpBuilder &b, Value x) {
  return createExp2(
      b, arith::MulFOp::create(b, x, createConstant(b, llvm::numbers::log2e)));
}

static Value createLog(ImplicitLocOpBuilder &b, Value x) {
  return arith::MulFOp::create(b, createLog2(b, x),
                               createConstant(b, llvm::numbers::ln2));
}

/// log(1 + x) loses the low bits of a small x; below 2^-10 two terms of the
/// series are exact to 2^-20.
static Value createLog1p(ImplicitLocOpBuilder &b, Value x) {
  Value one = createConstant(b, 1.0);
  Value large = createLog(b, arith::AddFOp::create(b, x, one));
  Value half = arith::MulFOp::create(b, x, createConstant(b, 0.5));
  Value small =
      arith::MulFOp::create(b, x, arith::SubFOp::create(b, one, half));
  Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                        math::AbsFOp::create(b, x),
                                        createConstant(b, 1.0 / 1024));
  return arith::SelectOp::create(b, isSmall, small, large);
}

static Value createRsqrt(ImplicitLocOpBuilder &b, Value x) {
  return createIntrinsic(b, "llvm.nvvm.rsqrt.approx.ftz.f", x);
}

static Value createReciprocal(ImplicitLocOpBuilder &b, Value x) {
  return createIntrinsic(b, "llvm.nvvm.rcp.approx.ftz.f", x);
}

/// What a function becomes for one element.
using Expand = Value (*)(ImplicitLocOpBuilder &, Value);

/// Replaces `op` by `expand` of each element of `operand`.
static void replaceByElement(Operation *op, Value operand, Expand expand,
                             ConversionPatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  auto vector = dyn_cast<VectorType>(operand.getType());
  if (!vector)
    return rewriter.replaceOp(op, expand(b, operand));
  SmallVector<Value> results;
  for (Value element : unpack(b, operand))
    results.push_back(expand(b, element));
  rewriter.replaceOp(op, pack(b, vector, results));
}

namespace {
/// A function of f32 or of vectors of it, by its expansion for one element.
template <typename Op> struct ExpandMath : OpConversionPattern<Op> {
  ExpandMath(const TypeConverter &converter, MLIRContext *context,
             Expand expand)
      : OpConversionPattern<Op>(converter, context), expand(expand) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value operand = adaptor.getOperand();
    if (!getElementTypeOrSelf(operand.getType()).isF32())
      return op.emitOpError("expected f32, got ")
             << getElementTypeOrSelf(operand.getType());
    replaceByElement(op, operand, expand, rewriter);
    return success();
  }

  Expand expand;
};

/// 1 / x in one instruction (PTX ISA, "rcp.approx": 1 ulp, subnormals are
/// zero): a division is a dozen and a branch.
struct LowerReciprocal : OpConversionPattern<arith::DivFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::DivFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!matchPattern(op.getLhs(), m_OneFloat()) ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    replaceByElement(op, adaptor.getRhs(), createReciprocal, rewriter);
    return success();
  }
};
} // namespace

void warp::populateMathPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ExpandMath<math::Exp2Op>>(converter, context, createExp2);
  patterns.add<ExpandMath<math::ExpOp>>(converter, context, createExp);
  patterns.add<ExpandMath<math::Log2Op>>(converter, context, createLog2);
  patterns.add<ExpandMath<math::LogOp>>(converter, context, createLog);
  patterns.add<ExpandMath<math::Log1pOp>>(converter, context, createLog1p);
  patterns.add<ExpandMath<math::RsqrtOp>>(converter, context, createRsqrt);
  // Before the division of any two.
  patterns.add<LowerReciprocal>(converter, context, /*benefit=*/2);
}
