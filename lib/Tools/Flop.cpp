//===- Flop.cpp - Floating-point operations of a layer function -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Flop.h"
#include "gdn/CostModel/CostModel.h"
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

/// The products of one token and value head. They are counted for chunks of 64
/// whatever the program's chunk size is: a rate must mean the same for all.
double tools::flopPerToken(Operation *op, double k, double v) {
  constexpr double chunk = 64;
  if (isa<RecurrentGatedDeltaRuleOp, RecurrentStageOp>(op))
    return 8 * k * v;
  if (isa<ChunkGatedDeltaRuleBwdOp>(op))
    return 11 * chunk * (k + v) + 8 * 2 * k * v;
  StringRef stage = "fused";
  if (isa<StatePassStageOp, LinearAttentionStageOp>(op))
    stage = op->getName().stripDialect().split('.').second;
  return ::gdn::cost::flopPerToken(k, v, stage);
}

double tools::countFlop(func::FuncOp func, llvm::ArrayRef<HostArray> inputs) {
  if (func.isExternal())
    return 0;
  DenseMap<Value, llvm::SmallVector<int64_t>> shapes;
  for (auto [argument, input] : llvm::zip(func.getArguments(), inputs))
    shapes[argument].assign(input.getShape().begin(), input.getShape().end());
  auto shapeOf = [&](Value value) -> llvm::SmallVector<int64_t> {
    auto known = shapes.find(value);
    if (known != shapes.end())
      return known->second;
    return llvm::to_vector(cast<ShapedType>(value.getType()).getShape());
  };
  double flop = 0;
  func.walk([&](Operation *op) {
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      if (shapes.count(cast.getSource()))
        shapes[cast.getResult()] = shapeOf(cast.getSource());
      return;
    }
    auto rule = dyn_cast<DeltaRuleOpInterface>(op);
    auto attention = dyn_cast<LinearAttentionStageOp>(op);
    // What nobody uses is not computed.
    if ((!rule && !attention) || (op->getNumResults() > 0 && op->use_empty()))
      return;
    llvm::SmallVector<int64_t> keys =
        shapeOf(rule ? rule.getK() : attention.getK());
    llvm::SmallVector<int64_t> values =
        shapeOf(rule ? rule.getV() : attention.getV());
    // The outputs have the shape of v, which the next layer may need.
    if (!isa<ChunkGatedDeltaRuleBwdOp, StatePassStageOp>(op) &&
        op->getNumResults() > 0)
      shapes[op->getResult(0)] = values;
    if (!llvm::is_contained(values, ShapedType::kDynamic))
      flop += flopPerToken(op, keys[3], values[3]) * values[0] * values[1] *
              values[2];
  });
  return flop;
}
