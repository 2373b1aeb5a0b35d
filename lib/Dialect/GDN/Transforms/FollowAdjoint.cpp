//===- FollowAdjoint.cpp - Gradients that begin while an adjoint runs -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_FOLLOWADJOINTPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

/// Whether a stage makes `value` that may run at the same time as the next one:
/// what is launched behind that one must not read it yet.
static bool isOfStageBeside(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasAttr("beside");
}

/// The adjoint in front of `gradients`, if they read its results and may follow
/// it. Sequences that are cut fill a GPU without that.
static AdjointStageOp findFollowed(GradientsStageOp gradients) {
  auto adjoint = gradients.getDv().getDefiningOp<AdjointStageOp>();
  if (!adjoint || adjoint->getNextNode() != gradients ||
      gradients.getDStates() != adjoint.getResult(1))
    return {};
  Value boundaries = gradients.getCuSeqlens();
  if (!boundaries || boundaries != adjoint.getCuSeqlens() ||
      boundaries.getDefiningOp())
    return {};
  // An adjoint that runs beside the stage in front could launch the gradients
  // before it has set its reports to 0.
  Operation *previous = adjoint->getPrevNode();
  if (adjoint.getBeside() || (previous && previous->hasAttr("beside")))
    return {};
  std::optional<uint64_t> interval = gradients.getStateInterval();
  if (adjoint.getReportingTiles() || isOfStageBeside(gradients.getWrites()) ||
      isOfStageBeside(gradients.getStates()) ||
      interval.value_or(0) > 2 * gradients.getSegmentLength())
    return {};
  return adjoint;
}

/// The same adjoint, whose V tiles report.
static AdjointStageOp addReports(AdjointStageOp adjoint) {
  // A V tile has as many channels as a product of a warpgroup has rows.
  constexpr int64_t kTileChannels = 64;
  OpBuilder b(adjoint);
  RuleDims dims = getRuleDims(adjoint);
  int64_t tiles = std::max<int64_t>(dims.V / kTileChannels, 1);
  if (dims.V % tiles != 0)
    tiles = 1;
  SmallVector<Type> types(adjoint.getResultTypes());
  types.push_back(
      RankedTensorType::get({dims.N, dims.H, tiles}, b.getI32Type()));
  OperationState state(adjoint.getLoc(), AdjointStageOp::getOperationName(),
                       adjoint->getOperands(), types,
                       adjoint->getAttrDictionary().getValue());
  auto reporting = cast<AdjointStageOp>(b.create(state));
  reporting.setReportingTiles(tiles);
  adjoint->replaceAllUsesWith(
      reporting.getResults().take_front(adjoint->getNumResults()));
  adjoint.erase();
  return reporting;
}

namespace {
struct FollowAdjoint : gdn::impl::FollowAdjointPassBase<FollowAdjoint> {
  using FollowAdjointPassBase::FollowAdjointPassBase;

  void runOnOperation() override {
    SmallVector<GradientsStageOp> stages;
    getOperation()->walk([&](GradientsStageOp op) { stages.push_back(op); });
    for (GradientsStageOp gradients : stages)
      if (AdjointStageOp adjoint = findFollowed(gradients))
        gradients.getProgressMutable().assign(
            addReports(adjoint).getResults().back());
  }
};
} // namespace
