//===- RawGate.cpp - The chain rule of a raw gate -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp(A_log) may be infinite in f32 where softplus(x) or x is 0, or 0 where
// they are infinite, and their product may still be an ordinary gate. So
// exp(A_log) is two finite factors, none of them 0, and where the other factor
// is an exponential, the exponents are added.
//
//===----------------------------------------------------------------------===//

#include "RawGate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// The largest |A_log| that is taken in one factor.
static constexpr double kMostLogRate = 87.0;
/// From here on 1 + exp(-x) is 1 to half an ulp of f32, and exp(-x) is both
/// softplus(-x) and sigmoid(-x).
static constexpr double kSaturated = 16.0;
/// exp(-x) and x exp(-x) are 0 from here on.
static constexpr double kVanished = 128.0;
/// Programs raise log gates to minus this (StageFacts::leastLog2Gate): a gate
/// below has no gradient. What rounding leaves of it may meet a huge rate.
static const double kMostGate = 128.0 * std::log(2.0);

static Value constant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

static Value mul(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return arith::MulFOp::create(b, lhs, rhs);
}

static Value scaled(ImplicitLocOpBuilder &b, Value x, double factor) {
  return mul(b, x, constant(b, factor));
}

/// `yes` where x > bound, else `no`.
static Value selectAbove(ImplicitLocOpBuilder &b, Value x, double bound,
                         Value yes, Value no) {
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x,
                                        constant(b, bound));
  return arith::SelectOp::create(b, isAbove, yes, no);
}

static Value clamp(ImplicitLocOpBuilder &b, Value x, double bound) {
  x = arith::MinimumFOp::create(b, x, constant(b, bound));
  return arith::MaximumFOp::create(b, x, constant(b, -bound));
}

/// exp(-|x|).
static Value createTail(ImplicitLocOpBuilder &b, Value x) {
  return math::ExpOp::create(
      b, arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
}

Value gdn::createSigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = constant(b, 1.0);
  Value decayed = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, decayed));
}

/// log(1 + exp(x)) without overflow.
static Value createSoftplus(ImplicitLocOpBuilder &b, Value x) {
  return arith::AddFOp::create(
      b, arith::MaximumFOp::create(b, x, constant(b, 0.0)),
      math::Log1pOp::create(b, createTail(b, x)));
}

/// exp(A_log) y.
static Value timesRate(ImplicitLocOpBuilder &b, const RawGateElement &e,
                       Value y) {
  if (!e.logRate)
    return y;
  Value most = clamp(b, e.logRate, kMostLogRate);
  Value rest =
      clamp(b, arith::SubFOp::create(b, e.logRate, most), kMostLogRate);
  y = mul(b, math::ExpOp::create(b, rest), y);
  return mul(b, math::ExpOp::create(b, most), y);
}

/// exp(A_log + y).
static Value shiftedExp(ImplicitLocOpBuilder &b, const RawGateElement &e,
                        Value y) {
  if (e.logRate)
    y = arith::AddFOp::create(b, e.logRate, y);
  return math::ExpOp::create(b, y);
}

/// exp(A_log) y for y = softplus(x) or sigmoid(x).
static Value ratedForm(ImplicitLocOpBuilder &b, const RawGateElement &e,
                       Value y) {
  Value rated = timesRate(b, e, y);
  Value shifted = shiftedExp(b, e, e.x);
  return selectAbove(b, arith::NegFOp::create(b, e.x), kSaturated, shifted,
                     rated);
}

RawGateOperands::RawGateOperands(DeltaRuleOpInterface op, StringRef all,
                                 Value dg)
    : inputs({{op.getGate(), all}}), hasGradient(static_cast<bool>(dg)),
      domain(op.getGateDomain()) {
  if (formOf(domain).needsBound())
    lowerBound = op.getLowerBoundAttr().getValueAsDouble();
  if (dg)
    inputs.emplace_back(dg, all);
  if (Value rate = op.getALog()) {
    hasRate = true;
    inputs.emplace_back(rate, "n");
  }
  if (Value bias = op.getDtBias()) {
    hasBias = true;
    bool perChannel = cast<RankedTensorType>(bias.getType()).getRank() == 2;
    inputs.emplace_back(bias, perChannel ? "nk" : "n");
  }
}

RawGateElement RawGateOperands::read(ImplicitLocOpBuilder &b,
                                     ValueRange args) const {
  RawGateElement element = {args[0], Value(), hasGradient ? args[1] : Value(),
                            domain, lowerBound};
  if (hasRate)
    element.logRate = args[hasGradient ? 2 : 1];
  if (hasBias)
    element.x = arith::AddFOp::create(b, args[0], args.back());
  return element;
}

/// dg times the derivative of the softplus form: by x, whose `form` is the
/// sigmoid, or by A_log, whose form is softplus.
static Value softplusGradient(ImplicitLocOpBuilder &b, const RawGateElement &e,
                              Value (*form)(ImplicitLocOpBuilder &, Value)) {
  Value size = ratedForm(b, e, createSoftplus(b, e.x));
  Value slope = ratedForm(b, e, form(b, e.x));
  slope = selectAbove(b, size, kMostGate, constant(b, 0.0), slope);
  return mul(b, arith::NegFOp::create(b, slope), e.dg);
}

namespace {
/// What both gradients of the bounded form, lb s with s = sigmoid(z), have.
struct BoundedGate {
  /// exp(A_log) x.
  Value z;
  /// lb / (1 + exp(-|z|))^2 dg, which times exp(-|z|) is the gradient of z.
  Value part;
};
} // namespace

static BoundedGate readBounded(ImplicitLocOpBuilder &b,
                               const RawGateElement &e) {
  Value z = timesRate(b, e, e.x), one = constant(b, 1.0);
  Value s = arith::DivFOp::create(
      b, one, arith::AddFOp::create(b, one, createTail(b, z)));
  Value part = scaled(b, mul(b, s, s), e.lowerBound);
  if (-e.lowerBound > kMostGate)
    part = selectAbove(b, scaled(b, createSigmoid(b, z), -e.lowerBound),
                       kMostGate, constant(b, 0.0), part);
  return {z, mul(b, part, e.dg)};
}

/// The gradient of x of the bounded form.
static Value boundedGradient(ImplicitLocOpBuilder &b, const RawGateElement &e) {
  BoundedGate gate = readBounded(b, e);
  Value size = math::AbsFOp::create(b, gate.z);
  Value tail = createTail(b, gate.z);
  Value rated = timesRate(b, e, mul(b, tail, gate.part));
  Value shifted = shiftedExp(b, e, arith::NegFOp::create(b, size));
  return selectAbove(b, size, kSaturated, mul(b, shifted, gate.part), rated);
}

/// That of A_log.
static Value boundedRateGradient(ImplicitLocOpBuilder &b,
                                 const RawGateElement &e) {
  BoundedGate gate = readBounded(b, e);
  // An infinite z must not meet the zero that its exponential is.
  Value z = clamp(b, gate.z, kVanished);
  return mul(b, z, mul(b, createTail(b, gate.z), gate.part));
}

Value gdn::differentiateRawGate(ImplicitLocOpBuilder &b,
                                const RawGateElement &e) {
  switch (e.domain) {
  case GateDomain::Softplus:
    return softplusGradient(b, e, createSigmoid);
  case GateDomain::Bounded:
    return boundedGradient(b, e);
  case GateDomain::Log:
  case GateDomain::Linear:
    break;
  }
  llvm_unreachable("expected a gate with parameters");
}

Value gdn::differentiateRate(ImplicitLocOpBuilder &b, const RawGateElement &e) {
  switch (e.domain) {
  case GateDomain::Softplus:
    return softplusGradient(b, e, createSoftplus);
  case GateDomain::Bounded:
    return boundedRateGradient(b, e);
  case GateDomain::Log:
  case GateDomain::Linear:
    break;
  }
  llvm_unreachable("expected a gate with parameters");
}
