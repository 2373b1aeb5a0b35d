//===- ExpandF64Math.cpp - Exponentials and logarithms of f64 -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

#define DEBUG_TYPE "gdn-tile-expand-f64-math"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_EXPANDF64MATHPASS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
static constexpr int64_t kFractionBits = 52;

/// 1.5 2^52: added to an f64, it leaves the nearest integer in the low bits.
static constexpr double kRoundingShift = 0x1.8p52;

/// Of x^i in e^x, for |x| up to log(2) / 2.
static constexpr double kExpTerms[] = {
    1.0,         1.0,         1.0 / 2.0,    1.0 / 6.0,    1.0 / 24.0,
    1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40320.0};

/// Of s^2i in log((1 + s) / (1 - s)) / s, for |s| up to (sqrt(2) - 1)^2.
static constexpr double kLogTerms[] = {2.0,       2.0 / 3.0, 2.0 / 5.0,
                                       2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0};

namespace {
/// Builds arithmetic on values of the type of one, in its step.
class Expansion {
public:
  explicit Expansion(Operation *op)
      : b(op->getLoc(), op), type(op->getResult(0).getType()),
        attributes(op->getDiscardableAttrDictionary()) {}

  Value exp(Value x);
  Value log(Value x) { return logOf(x, /*aboveOne=*/{}); }
  Value log1p(Value x) {
    return logOf(make<arith::AddFOp>(x, constant(1.0)), x);
  }

private:
  template <typename Op, typename... Args> Value make(Args &&...args) {
    auto op = Op::create(b, std::forward<Args>(args)...);
    op->setDiscardableAttrs(attributes);
    return op->getResult(0);
  }
  Type withElement(Type element) {
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped ? Type(shaped.clone(element)) : element;
  }
  Value splat(TypedAttr value) {
    if (auto shaped = dyn_cast<ShapedType>(withElement(value.getType())))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    return arith::ConstantOp::create(b, value);
  }
  Value constant(double value) { return splat(b.getF64FloatAttr(value)); }
  Value constant(int64_t value) { return splat(b.getI64IntegerAttr(value)); }
  Value toBits(Value x) {
    return make<arith::BitcastOp>(withElement(b.getI64Type()), x);
  }
  Value fromBits(Value bits) { return make<arith::BitcastOp>(type, bits); }
  /// `yes` if x compares so to `limit`, else `no`.
  Value select(Value x, arith::CmpFPredicate predicate, double limit, Value yes,
               Value no) {
    Value holds = make<arith::CmpFOp>(predicate, x, constant(limit));
    return make<arith::SelectOp>(holds, yes, no);
  }
  Value polynomial(Value x, ArrayRef<double> terms) {
    Value sum = constant(terms.back());
    for (double term : llvm::reverse(terms.drop_back()))
      sum = make<math::FmaOp>(sum, x, constant(term));
    return sum;
  }
  Value logOf(Value u, Value aboveOne);

  ImplicitLocOpBuilder b;
  Type type;
  DictionaryAttr attributes;
};
} // namespace

/// e^x = 2^n e^r with an integer n and a small r.
Value Expansion::exp(Value x) {
  Value shift = constant(kRoundingShift);
  Value shifted = make<math::FmaOp>(x, constant(llvm::numbers::log2e), shift);
  Value n = make<arith::SubFOp>(shifted, shift);
  Value r = make<math::FmaOp>(n, constant(-llvm::numbers::ln2), x);
  Value exponent =
      make<arith::ShLIOp>(toBits(shifted), constant(kFractionBits));
  Value power = polynomial(r, kExpTerms);
  Value found = fromBits(make<arith::AddIOp>(toBits(power), exponent));
  found = select(x, arith::CmpFPredicate::OLT, -708.0, constant(0.0), found);
  // Infinity, and NaN of NaN.
  Value beyond = make<arith::AddFOp>(x, constant(kInfinity));
  return select(x, arith::CmpFPredicate::UGT, 709.0, beyond, found);
}

/// log(u) = n log(2) + log(part), with `part` from sqrt(1/2) to sqrt(2).
/// `aboveOne`, if there is one, is u - 1 before u was rounded.
Value Expansion::logOf(Value u, Value aboveOne) {
  Value bits = toBits(u), fractionBits = constant(kFractionBits);
  Value root = toBits(constant(llvm::numbers::sqrt2 / 2));
  Value exponent =
      make<arith::ShRSIOp>(make<arith::SubIOp>(bits, root), fractionBits);
  Value part = fromBits(
      make<arith::SubIOp>(bits, make<arith::ShLIOp>(exponent, fractionBits)));
  Value n = make<arith::SIToFPOp>(type, exponent);
  Value above = make<arith::SubFOp>(part, constant(1.0));
  if (aboveOne)
    above = select(n, arith::CmpFPredicate::OEQ, 0.0, aboveOne, above);
  Value s =
      make<arith::DivFOp>(above, make<arith::AddFOp>(above, constant(2.0)));
  Value terms = polynomial(make<arith::MulFOp>(s, s), kLogTerms);
  Value found = make<math::FmaOp>(n, constant(llvm::numbers::ln2),
                                  make<arith::MulFOp>(s, terms));
  found =
      select(u, arith::CmpFPredicate::OEQ, 0.0, constant(-kInfinity), found);
  // Infinity of infinity, NaN of NaN.
  found = select(u, arith::CmpFPredicate::UEQ, kInfinity, u, found);
  return select(u, arith::CmpFPredicate::OLT, 0.0, constant(kNaN), found);
}

static void expand(Operation *op) {
  if (op->getNumResults() != 1 ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isF64())
    return;
  Value found = llvm::TypeSwitch<Operation *, Value>(op)
                    .Case([](math::ExpOp exp) {
                      return Expansion(exp).exp(exp.getOperand());
                    })
                    .Case([](math::LogOp log) {
                      return Expansion(log).log(log.getOperand());
                    })
                    .Case([](math::Log1pOp log) {
                      return Expansion(log).log1p(log.getOperand());
                    })
                    .Default(Value());
  if (!found)
    return;
  op->getResult(0).replaceAllUsesWith(found);
  op->erase();
}

namespace {
struct ExpandF64Math : gdn::tile::impl::ExpandF64MathPassBase<ExpandF64Math> {
  void runOnOperation() override { getOperation()->walk(expand); }
};
} // namespace
