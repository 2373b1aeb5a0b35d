//===- ApproximateMath.cpp - Exponentials and logarithms as polynomials ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "gdn-tile-approximate-math"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_APPROXIMATEMATHPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;

namespace {
/// How base^x is computed: x = n step + r with an integer n and a small r, then
/// 2^n p(r). Polynomials: relative minimax fits of degree 6 with p(0) = 1, so
/// that integer powers are exact; error 2e-9 before rounding, 1 ulp after.
struct Exponential {
  /// 1 / step.
  float inverseStep;
  /// The step in two parts, the first with few enough bits for n times it to be
  /// exact.
  float stepHigh, stepLow;
  /// Beyond these the result is zero or infinity in any case.
  float lowest, highest;
  /// Coefficients of r, r^2, ...
  float coefficients[6];
};

constexpr Exponential kExp2 = {1.0f,
                               1.0f,
                               0.0f,
                               -151.0f,
                               129.0f,
                               {6.931472029e-01f, 2.402264791e-01f,
                                5.550332439e-02f, 9.618437491e-03f,
                                1.339888776e-03f, 1.535335022e-04f}};

constexpr Exponential kExp = {1.44269504f,
                              0.693359375f,
                              -2.12194440e-4f,
                              -104.7f,
                              89.5f,
                              {1.000000032e+00f, 4.999999421e-01f,
                               1.666643117e-01f, 4.166800261e-02f,
                               8.374163655e-03f, 1.384364297e-03f}};

/// 1.5 2^23: added to a float, it leaves the nearest integer in the low bits.
constexpr float kRoundingShift = 12582912.0f;

/// Builds arithmetic on f32 and i32 values of one shape, scalar or vector.
class Math {
public:
  Math(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(float value) { return splat(builder.getF32FloatAttr(value)); }
  Value constant(int32_t value) {
    return splat(builder.getI32IntegerAttr(value));
  }
  template <typename OpTy> Value apply(Value left, Value right) {
    return OpTy::create(builder, loc, left, right);
  }
  Value fma(Value left, Value right, Value sum) {
    return math::FmaOp::create(builder, loc, left, right, sum);
  }
  Value select(arith::CmpFPredicate predicate, Value left, Value right) {
    Value condition =
        arith::CmpFOp::create(builder, loc, predicate, left, right);
    return arith::SelectOp::create(builder, loc, condition, right, left);
  }
  Value toBits(Value value) { return cast(value, builder.getI32Type()); }
  Value fromBits(Value value) { return cast(value, builder.getF32Type()); }

private:
  Value splat(TypedAttr value) {
    auto vector = dyn_cast<VectorType>(type);
    TypedAttr attribute =
        vector ? TypedAttr(DenseElementsAttr::get(vector.clone(value.getType()),
                                                  Attribute(value)))
               : value;
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value cast(Value value, Type element) {
    auto vector = dyn_cast<VectorType>(type);
    Type target = vector ? Type(vector.clone(element)) : element;
    return arith::BitcastOp::create(builder, loc, target, value);
  }

  OpBuilder &builder;
  Location loc;
  Type type;
};
} // namespace

static Value buildExponential(OpBuilder &builder, Location loc, Value x,
                              const Exponential &exponential) {
  Math math(builder, loc, x.getType());
  // Comparisons that are false for NaN keep it; it ends up in the polynomial.
  x = math.select(arith::CmpFPredicate::OLT, x,
                  math.constant(exponential.lowest));
  x = math.select(arith::CmpFPredicate::OGT, x,
                  math.constant(exponential.highest));
  Value shift = math.constant(kRoundingShift);
  Value shifted = math.fma(x, math.constant(exponential.inverseStep), shift);
  Value n = math.apply<arith::SubFOp>(shifted, shift);
  Value r = math.fma(n, math.constant(-exponential.stepHigh), x);
  if (exponential.stepLow != 0.0f)
    r = math.fma(n, math.constant(-exponential.stepLow), r);
  ArrayRef<float> coefficients(exponential.coefficients);
  Value power = math.constant(coefficients.back());
  for (float coefficient : llvm::reverse(coefficients.drop_back()))
    power = math.fma(power, r, math.constant(coefficient));
  power = math.fma(power, r, math.constant(1.0f));
  // 2^n in two factors: one alone does not reach the denormals.
  Value integer =
      math.apply<arith::SubIOp>(math.toBits(shifted), math.toBits(shift));
  Value half = math.apply<arith::ShRSIOp>(integer, math.constant(int32_t(1)));
  Value rest = math.apply<arith::SubIOp>(integer, half);
  for (Value exponent : {half, rest}) {
    Value biased =
        math.apply<arith::AddIOp>(exponent, math.constant(int32_t(127)));
    Value bits = math.apply<arith::ShLIOp>(biased, math.constant(int32_t(23)));
    power = math.apply<arith::MulFOp>(power, math.fromBits(bits));
  }
  return power;
}

namespace {
template <typename OpTy>
struct ApproximateExponential : OpRewritePattern<OpTy> {
  ApproximateExponential(MLIRContext *context, const Exponential &exponential)
      : OpRewritePattern<OpTy>(context), exponential(exponential) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    auto vector = dyn_cast<VectorType>(type);
    if (!getElementTypeOrSelf(type).isF32() || (!vector && !type.isF32()) ||
        (vector && vector.isScalable()))
      return rewriter.notifyMatchFailure(op, "not f32 or a vector of it");
    rewriter.replaceOp(op, buildExponential(rewriter, op.getLoc(),
                                            op.getOperand(), exponential));
    return success();
  }

  const Exponential &exponential;
};

struct ApproximateMath
    : gdn::tile::impl::ApproximateMathPassBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ApproximateExponential<math::Exp2Op>>(&getContext(), kExp2);
    patterns.add<ApproximateExponential<math::ExpOp>>(&getContext(), kExp);
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::LogOp::getOperationName() ||
             name == math::Log2Op::getOperationName() ||
             name == math::Log1pOp::getOperationName();
    });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation()->emitError("expected the rewriting to come to an end");
      signalPassFailure();
    }
  }
};
} // namespace
