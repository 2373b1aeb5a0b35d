//===- Gates.cpp - Gates and beta of a chunk or token ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::gdn;

/// The largest |A_log| that is taken in one factor. Two such factors take any
/// finite gate to where its decay is 0, or 1, if it is not 0 itself.
static constexpr double kMostLogRate = 87.0;
/// The largest A_log that is a factor of softplus(x). exp(30) softplus(-16) is
/// a decay of 0, and below -16 softplus(x) is exp(x), so that the rest of a
/// larger A_log can be a term of x.
static constexpr double kMostFactorOfSoftplus = 30.0;
/// Below the first softplus(x) is exp(x) to half an ulp of f32; above the
/// second an error of its logarithm is none of a decay's.
static constexpr double kSmallSoftplus = -16.0, kHugeSoftplus = 0x1p60;

/// A gate parameter spread over `shape`, one number or one a channel.
static Value spread(Program &p, Value parameter, ArrayRef<int64_t> shape) {
  if (!isa<RankedTensorType>(parameter.getType()))
    return p.b.splat(parameter, shape);
  return shape.size() == 1 ? parameter : p.b.broadcast(parameter, shape, 1);
}

/// A number as what `parameter` is: a number or a vector.
static Value asParameter(Program &p, Value number, Value parameter) {
  auto type = dyn_cast<RankedTensorType>(parameter.getType());
  return type ? p.b.splat(number, type.getShape()) : number;
}

void Program::fetchGateParameters() {
  bool hasChannels = facts.decay == DecayKind::Channel;
  b.step(hasChannels && facts.C > 1 ? "decay" : "gates");
  bias = loadGateParameter("dt_bias");
  logRate = loadGateParameter("a_log");
}

void Program::loadGateParameters() {
  fetchGateParameters();
  prepareGateParameters();
}

void Program::prepareGateParameters() {
  bool hasChannels = facts.decay == DecayKind::Channel;
  bool isSoftplus = facts.gateDomain == GateDomain::Softplus;
  if (!logRate || (isSoftplus && !hasChannels))
    return;
  auto bounded = [&](Value x, double most) {
    return b.max(b.min(x, most), -kMostLogRate);
  };
  Value most =
      bounded(logRate, isSoftplus ? kMostFactorOfSoftplus : kMostLogRate);
  rate = b.scaled(b.exp(most), -M_LOG2E);
  Value rest = b.sub(logRate, most);
  restOfRate = b.exp(bounded(rest, isSoftplus ? 0.0 : kMostLogRate));
  if (bias)
    bias = b.mul(bias, asParameter(*this, restOfRate, bias));
  if (!isSoftplus)
    return;
  Value term = b.max(rest, 0.0);
  bias = bias ? b.add(bias, asParameter(*this, term, bias)) : term;
}

/// A gate parameter at the work item's head: of an array [H] a scalar, of [H,
/// K] a vector; null without.
Value Program::loadGateParameter(StringRef name) {
  Value array = (*this)[name];
  if (!array)
    return {};
  if (cast<MemRefType>(array.getType()).getRank() == 2)
    return b.f32(b.load(array, {head, firstK}, {1}, {facts.K}));
  return b.extract(b.f32(b.load(array, {head}, {0}, {1})), {0});
}

/// Where accesses to chunks are cut: a chunk of one token is inside.
static Value getCut(Program &p) { return p.facts.C > 1 ? p.end : Value(); }

Value gdn::loadBeta(Program &p, Value t) {
  p.b.step("gates");
  return activateBeta(
      p, p.b.load(p["beta"], {p.batch, t, p.head}, {1}, {p.facts.C}, getCut(p)),
      t);
}

Value gdn::activateBeta(Program &p, Value beta, Value t) {
  TileBuilder &b = p.b;
  b.step("gates");
  beta = b.f32(beta);
  auto raised = [&](Value beta) {
    return p.facts.leastBeta > 0.0 ? b.max(beta, p.facts.leastBeta) : beta;
  };
  if (p.facts.betaDomain == BetaDomain::Value)
    return raised(beta);
  beta = b.sigmoid(beta);
  if (p.facts.C > 1)
    beta = b.mul(beta, tokenMask(p, t));
  return raised(p.facts.betaDomain == BetaDomain::Logit ? beta
                                                        : b.scaled(beta, 2.0));
}

/// -exp(A_log) softplus(x) in log2 units. f32 may have no room for a factor,
/// but for the product: where softplus(x) is small or huge, the logarithms of
/// the factors are added. A loop keeps A_log alone in a register: exp(A_log) is
/// made for each gate, as exp(A_log + 0).
static Value softplusGate(Program &p, Value x) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(x);
  auto compare = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(b, predicate, x, b.fill(bound, shape));
  };
  Value softplus = b.softplus(x);
  Value isSmall = compare(arith::CmpFPredicate::OLT, kSmallSoftplus);
  Value isHuge = compare(arith::CmpFPredicate::OGT, kHugeSoftplus);
  Value log = b.scaled(math::Log2Op::create(b, softplus), M_LN2);
  log = arith::SelectOp::create(b, isSmall, x, b.select(isHuge, log, 0.0));
  Value isEither = arith::OrIOp::create(b, isSmall, isHuge);
  Value factor =
      arith::SelectOp::create(b, isEither, b.fill(1.0, shape), softplus);
  Value rate = b.exp(b.add(log, spread(p, p.logRate, shape)));
  return b.mul(b.scaled(rate, -M_LOG2E), factor);
}

/// gate + dt_bias, as it is multiplied by `rate`.
static Value biasedGate(Program &p, Value gate) {
  TileBuilder &b = p.b;
  ArrayRef<int64_t> shape = shapeOf(gate);
  if (p.restOfRate)
    gate = b.mul(gate, spread(p, p.restOfRate, shape));
  if (p.bias)
    gate = b.add(gate, spread(p, p.bias, shape));
  return gate;
}

/// Of a bounded gate, the part of the bound: 1 / (1 + exp(-exp(A_log) x)), with
/// x = gate + dt_bias, which may be 0 where exp(A_log) is infinite, and the
/// other way round.
static Value boundedPart(Program &p, Value gate) {
  TileBuilder &b = p.b;
  gate = biasedGate(p, gate);
  ArrayRef<int64_t> shape = shapeOf(gate);
  Value exponent =
      p.rate ? b.mul(gate, spread(p, p.rate, shape)) : b.scaled(gate, -M_LOG2E);
  Value one = b.fill(1.0, shape);
  return b.div(one, b.add(one, b.exp2(exponent)));
}

/// log2 of the decay of a gate (spec 1) of any shape; f64 where spec 4.1 says.
static Value activateGate(Program &p, Value gate) {
  TileBuilder &b = p.b;
  switch (p.facts.gateDomain) {
  case GateDomain::Log:
    if (b.getOperandType().isF32() && p.facts.C > 1)
      gate = b.to(gate, b.getF64Type());
    return b.scaled(gate, M_LOG2E);
  case GateDomain::Linear:
    return math::Log2Op::create(b, gate);
  case GateDomain::Softplus:
    gate = biasedGate(p, gate);
    if (!p.rate)
      return softplusGate(p, gate);
    return b.mul(b.softplus(gate), spread(p, p.rate, shapeOf(gate)));
  case GateDomain::Bounded:
    return b.scaled(boundedPart(p, gate), p.facts.lowerBound * M_LOG2E);
  }
  llvm_unreachable("covered switch");
}

Value gdn::loadGate(Program &p, Value t) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  bool isScalar = p.facts.decay == DecayKind::Scalar;
  b.step(isScalar ? StringRef("gates") : p.loadStep);
  if (isScalar)
    return b.load(p["gate"], {p.batch, t, p.head}, {1}, {C}, getCut(p));
  return b.load(p["gate"], tokenOffsets(p, t, p.head, p.firstK), {1, 3},
                {C, p.facts.K}, p.end);
}

Value gdn::toLog2Gate(Program &p, Value t, Value gate) {
  TileBuilder &b = p.b;
  int64_t C = p.facts.C;
  b.step(p.facts.decay == DecayKind::Scalar ? "gates" : "decay");
  // What all channels have in common is a factor of the mask, one number a
  // token.
  double bound = p.facts.lowerBound * M_LOG2E;
  bool isBounded = p.facts.gateDomain == GateDomain::Bounded &&
                   bound >= p.facts.leastLog2Gate;
  bool isSoftplus = p.facts.gateDomain == GateDomain::Softplus;
  if (p.facts.decay == DecayKind::Channel && C > 1 &&
      (isBounded || isSoftplus)) {
    b.step("gates");
    Value mask = tokenMask(p, t);
    b.step("decay");
    if (isBounded)
      return b.mulAxis(boundedPart(p, b.f32(gate)), b.scaled(mask, bound), 0);
    Value softplus = b.softplus(biasedGate(p, b.f32(gate)));
    return b.max(b.mulAxis(softplus, b.mul(mask, b.splat(p.rate, C)), 0),
                 p.facts.leastLog2Gate);
  }
  Value log2 = b.max(activateGate(p, b.f32(gate)), p.facts.leastLog2Gate);
  // A padded gate is read as 0. A chunk of one token has no padding.
  if (formOf(p.facts.gateDomain).neutral == 0.0 || C == 1)
    return log2;
  if (p.facts.decay == DecayKind::Scalar)
    return b.mul(log2, tokenMask(p, t));
  b.step("gates");
  Value mask = tokenMask(p, t);
  b.step("decay");
  return b.mulAxis(log2, mask, 0);
}

Value gdn::activateChannelGate(Program &p, Value gate) {
  TileBuilder &b = p.b;
  b.step("gates");
  return b.max(activateGate(p, b.f32(gate)), p.facts.leastLog2Gate);
}
