//===- BoundGates.cpp - Kernels for bounded gates where gates are ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/RuleDims.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <cmath>

#define DEBUG_TYPE "gdn-bound-gates"

namespace mlir::gdn {
#define GEN_PASS_DEF_BOUNDGATESPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// Whether the gates of `op` break `bound`.
static Value breaksBound(ImplicitLocOpBuilder &b, DeltaRuleOpInterface op,
                         double bound) {
  SmallVector<int64_t> one = {1, 1, 1};
  Value empty = tensor::EmptyOp::create(b, one, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
  Value none = linalg::FillOp::create(b, zero, empty).getResult(0);
  Value found =
      GateBoundStageOp::create(b, none.getType(), op.getK(), op.getGate(),
                               op.getCuSeqlens(), op.getALog(), op.getDtBias(),
                               none, op.getGateDomain(), APFloat(bound))
          ->getResult(0);
  Value at = arith::ConstantIndexOp::create(b, 0);
  Value strong = tensor::ExtractOp::create(b, found, ValueRange{at, at, at});
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, strong, zero);
}

/// Whether there are faster kernels for the op if its gates are bounded. f16
/// has range for so few gates that a bound spares its kernels nothing.
static bool isFasterBounded(DeltaRuleOpInterface op) {
  return isa<ChunkGatedDeltaRuleOp, ChunkGatedDeltaRuleBwdOp>(*op) &&
         isa<RankedTensorType>(op.getK().getType()) && isChannelGate(op) &&
         formOf(op.getGateDomain()).bound == GateForm::Bound::Promise &&
         !op.getLowerBoundAttr() &&
         getElementTypeOrSelf(op.getK().getType()).isBF16();
}

/// `op` where its gates break the bound, and else the same op with the bound.
static void branch(DeltaRuleOpInterface op, double bound) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value isStrong = breaksBound(b, op, bound);
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
