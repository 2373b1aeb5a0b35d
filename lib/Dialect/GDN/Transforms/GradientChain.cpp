//===- GradientChain.cpp - Chain rules around the backward stage ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientChain.h"
#include "RawGate.h"
#include "WholeTensors.h"

#include "gdn/Dialect/GDN/IR/RuleDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// eps of the l2 norm (spec 1).
static constexpr double kNormEps = 1e-6;

static Type elementOf(Value value) { return getElementTypeOrSelf(value); }

static Value mul(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return arith::MulFOp::create(b, lhs, rhs);
}

static Value constant(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

//===----------------------------------------------------------------------===//
// q, k and beta
//===----------------------------------------------------------------------===//

/// The sum over the value heads of a group of a gradient [B, T, H, K], in f32,
/// or the gradient if it is of q/k heads.
static Value sumGroups(WholeTensors &w, Value x, Value perHead) {
  auto type = cast<RankedTensorType>(x.getType());
  auto heads = cast<RankedTensorType>(perHead.getType());
  if (heads.getDimSize(2) == type.getDimSize(2))
    return perHead;
  SmallVector<int64_t> shape = {
      heads.getDimSize(0), heads.getDimSize(1), type.getDimSize(2),
      heads.getDimSize(2) / type.getDimSize(2), heads.getDimSize(3)};
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}, {4}};
  Value grouped = tensor::ExpandShapeOp::create(
      w, RankedTensorType::get(shape, w.getF32Type()), perHead, groups);
  return w.sum("bthk", "bthkg", {{grouped, "bthgk"}},
               [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; });
}

/// The gradient of q or k [B, T, Hq, K] from that of every value head: the sum
/// over a group, then dx = r (dy - y (y . dy)) if y = r x was normalised,
/// unless they are those of x.
static Value keyGradient(WholeTensors &w, ChunkGatedDeltaRuleBwdOp op, Value x,
                         Value perHead, bool ofRows) {
  auto same = [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; };
  Value dy = sumGroups(w, x, perHead);
  if (ofRows || !op.getQkL2norm())
    return dy.getType() == x.getType()
               ? dy
               : w.map("bthk", {{dy, "bthk"}}, elementOf(x), same);
  auto square = [](ImplicitLocOpBuilder &b, ValueRange args) {
    return mul(b, args[0], args[1]);
  };
  auto dot = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return w.guard(b, args[1], mul(b, args[0], args[1]));
  };
  Value squares = w.sum("bth", "bthk", {{x, "bthk"}, {x, "bthk"}}, square);
  Value along = w.sum("bth", "bthk", {{x, "bthk"}, {dy, "bthk"}}, dot);
  return w.map(
      "bthk", {{x, "bthk"}, {dy, "bthk"}, {squares, "bth"}, {along, "bth"}},
      elementOf(x), [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        Value sum = arith::AddFOp::create(b, args[2], constant(b, kNormEps));
        Value r = math::RsqrtOp::create(b, sum);
        Value part = mul(b, mul(b, args[0], args[3]), mul(b, r, r));
        part = w.guard(b, args[3], part);
        Value rest = arith::SubFOp::create(b, args[1], part);
        return w.guard(b, rest, mul(b, r, rest));
      });
}

Value gdn::makeNeutralGate(OpBuilder &b, DeltaRuleOpInterface op) {
  Location loc = op->getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getBeta());
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  return linalg::FillOp::create(b, loc, zero, empty)->getResult(0);
}

bool gdn::hasBlocksInRange(ChunkGatedDeltaRuleBwdOp op) {
  FloatAttr bound = op.getLowerBoundAttr();
  return isChannelGate(op) && bound &&
         support::areBlocksInRange(bound.getValueAsDouble(),
                                   elementOf(op.getK()));
}

Value gdn::normalizeRows(OpBuilder &b, DeltaRuleOpInterface op, Value x,
                         Value *rstd) {
  WholeTensors w(b, op);
  auto reciprocal = [](ImplicitLocOpBuilder &b, Value squares) -> Value {
    Value sum = arith::AddFOp::create(b, squares, constant(b, kNormEps));
    return math::RsqrtOp::create(b, sum);
  };
  Value squares = w.sum("bth", "bthk", {{x, "bthk"}, {x, "bthk"}},
                        [](ImplicitLocOpBuilder &b, ValueRange args) {
                          return mul(b, args[0], args[1]);
                        });
  if (rstd)
    *rstd = w.map("bth", {{squares, "bth"}}, w.getF32Type(),
                  [&](ImplicitLocOpBuilder &b, ValueRange args) {
                    return reciprocal(b, args[0]);
                  });
  return w.map("bthk", {{x, "bthk"}, {squares, "bth"}}, elementOf(x),
               [&](ImplicitLocOpBuilder &b, ValueRange args) {
                 return mul(b, args[0], reciprocal(b, args[1]));
               });
}

/// db = beta (1 - beta) dbeta; for the doubled form, twice that of sigmoid.
static Value betaGradient(WholeTensors &w, ChunkGatedDeltaRuleBwdOp op,
                          Value dbeta) {
  Value beta = op.getBeta();
  BetaDomain domain = op.getBetaDomain();
  if (domain == BetaDomain::Value && elementOf(beta) == elementOf(dbeta))
    return dbeta;
  return w.map("btn", {{beta, "btn"}, {dbeta, "btn"}}, elementOf(beta),
               [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                 if (domain == BetaDomain::Value)
                   return args[1];
                 Value s = createSigmoid(b, args[0]);
                 Value slope =
                     mul(b, s, arith::SubFOp::create(b, constant(b, 1.0), s));
                 if (domain == BetaDomain::DoubledLogit)
                   slope = mul(b, slope, constant(b, 2.0));
                 return w.guard(b, args[1], mul(b, slope, args[1]));
               });
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

/// Gradients of the gate operand, and of A_log and dt_bias where present.
static void appendGateGradients(WholeTensors &w, ChunkGatedDeltaRuleBwdOp op,
                                Value dg, SmallVectorImpl<Value> &gate,
                                SmallVectorImpl<Value> &parameters) {
  Value a = op.getGate();
  bool channel = cast<RankedTensorType>(a.getType()).getRank() == 4;
  StringRef all = channel ? "btnk" : "btn";
  auto same = [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; };
  // Of the decay or its logarithm, which the stage gives in the gate's domain.
  if (!formOf(op.getGateDomain()).hasParameters()) {
    bool isSame = elementOf(a) == elementOf(dg);
    gate.push_back(isSame ? dg : w.map(all, {{dg, all}}, elementOf(a), same));
    return;
  }
  RawGateOperands raw(op, all, dg);
  auto da = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return w.guard(b, args[1], differentiateRawGate(b, raw.read(b, args)));
  };
  auto dRate = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    return w.guard(b, args[1], differentiateRate(b, raw.read(b, args)));
  };
  auto appendSum = [&](Value parameter, StringRef letters,
                       WholeTensors::Body body) {
    Value sum = w.longSum(letters, all, raw.inputs, body);
    parameters.push_back(
        w.map(letters, {{sum, letters}}, elementOf(parameter), same));
  };
  gate.push_back(w.map(all, raw.inputs, elementOf(a), da));
  if (Value rate = op.getALog())
    appendSum(rate, "n", dRate);
  if (Value bias = op.getDtBias())
    appendSum(bias, raw.inputs.back().second, da);
}

SmallVector<Value> gdn::applyGradientChain(OpBuilder &b,
                                           ChunkGatedDeltaRuleBwdOp op,
                                           ValueRange stage, bool ofRows) {
  WholeTensors w(b, op);
  unsigned next = 4;
  SmallVector<Value> results = {keyGradient(w, op, op.getQ(), stage[0], ofRows),
                                keyGradient(w, op, op.getK(), stage[1], ofRows),
                                stage[2], betaGradient(w, op, stage[3])};
  SmallVector<Value> parameters;
  if (op.getGate())
    appendGateGradients(w, op, stage[next++], results, parameters);
  if (op.getInitialState())
    results.push_back(stage[next]);
  results.append(parameters);
  return results;
}
