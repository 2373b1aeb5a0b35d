//===- BoundGates.cpp - Kernels for bounded gates where gates are ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RawGate.h"
#include "WholeTensors.h"

#include "gdn/Dialect/GDN/IR/RuleDims.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <cmath>

#define DEBUG_TYPE "gdn-bound-gates"

namespace mlir::gdn {
#define GEN_PASS_DEF_BOUNDGATESPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// The number of gates of each value head that are below `bound`, [H] in f32: a
/// sum that stops growing is still above 0.
static Value countBelow(WholeTensors &w, DeltaRuleOpInterface op,
                        double bound) {
  RawGateOperands gates(op, "btnk");
  auto isBelow = [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    Value size = op.getGateDomain() == GateDomain::Softplus
                     ? sizeOfRawGate(b, gates.read(b, args))
                     : Value(arith::NegFOp::create(b, args[0]));
    // What is no number is for kernels of any gates, too.
    Value below = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, size,
                                        number(-bound));
    return arith::SelectOp::create(b, below, number(1.0), number(0.0));
  };
  return w.sum("n", "btnk", gates.inputs, isBelow);
}

/// Whether an entry of `count` is above 0. Sixteen are looked at together: each
/// work item on a GPU asks before it begins, and waits for memory.
static Value isAny(ImplicitLocOpBuilder &b, Value count) {
  constexpr int64_t kTogether = 16;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value zero = index(0), size = tensor::DimOp::create(b, count, 0);
  Value last = arith::SubIOp::create(b, size, index(1));
  Value none = arith::ConstantOp::create(b, b.getBoolAttr(false));
  Value nothing = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
  auto loop = scf::ForOp::create(b, zero, size, index(kTogether), none);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value found = loop.getRegionIterArg(0);
  for (int64_t number = 0; number < kTogether; ++number) {
    Value at = arith::MinUIOp::create(
        b, arith::AddIOp::create(b, loop.getInductionVar(), index(number)),
        last);
    Value isAbove =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                              tensor::ExtractOp::create(b, count, at), nothing);
    found = arith::OrIOp::create(b, found, isAbove);
  }
  scf::YieldOp::create(b, found);
  return loop.getResult(0);
}

/// Whether there are faster kernels for the op if its gates are bounded. f16
/// has range for so few gates that a bound spares its kernels nothing.
static bool isFasterBounded(DeltaRuleOpInterface op) {
  return isa<ChunkGatedDeltaRuleOp, ChunkGatedDeltaRuleBwdOp>(*op) &&
         isa<RankedTensorType>(op.getK().getType()) && isChannelGate(op) &&
         (op.getGateDomain() == GateDomain::Log ||
          op.getGateDomain() == GateDomain::Softplus) &&
         !op.getLowerBoundAttr() &&
         getElementTypeOrSelf(op.getK().getType()).isBF16();
}

/// `op` where a gate is below the bound, and else the same op with the bound.
static void branch(DeltaRuleOpInterface op, double bound) {
  OpBuilder builder(op);
  WholeTensors b(builder, op);
  Value isStrong = isAny(b, countBelow(b, op, bound));
  auto choice =
      scf::IfOp::create(b, op->getResultTypes(), isStrong, /*withElse=*/true);
  op->replaceAllUsesWith(choice.getResults());
  for (Block *block : {choice.thenBlock(), choice.elseBlock()}) {
    b.setInsertionPointToStart(block);
    Operation *copy = b.clone(*op);
    scf::YieldOp::create(b, copy->getResults());
    if (block == choice.thenBlock())
      continue;
    copy->setAttr("lower_bound", b.getF64FloatAttr(bound));
    // A wish for gates of any strength, which need short chunks.
    copy->removeAttr("chunk_size");
  }
  op->erase();
}

namespace {
struct BoundGates : gdn::impl::BoundGatesPassBase<BoundGates> {
  using BoundGatesPassBase::BoundGatesPassBase;
  void runOnOperation() override {
    if (!(std::isfinite(bound) && bound <= 0)) {
      getOperation().emitError("expected a finite bound of at most 0, got ")
          << bound.getValue();
      return signalPassFailure();
    }
    SmallVector<DeltaRuleOpInterface> ops;
    getOperation()->walk([&](DeltaRuleOpInterface op) {
      if (isFasterBounded(op))
        ops.push_back(op);
    });
    for (DeltaRuleOpInterface op : ops) {
      auto function = op->getParentOfType<FunctionOpInterface>();
      auto own = function ? function->getAttrOfType<FloatAttr>(
                                GDNDialect::getGateBoundAttrName())
                          : FloatAttr();
      if (double most = own ? own.getValueAsDouble() : bound; most < 0)
        branch(op, most);
    }
  }
};
} // namespace
