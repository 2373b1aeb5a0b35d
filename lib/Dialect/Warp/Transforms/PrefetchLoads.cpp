//===- PrefetchLoads.cpp - Load vectors some iterations ahead -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "gdn-warp-prefetch-loads"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_PREFETCHLOADSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Copies what computes `value` inside `loop` from the iteration number that
/// `copies` maps. Returns false if that is not all it takes.
static bool copyAddress(OpBuilder &b, scf::ForOp loop, Value value,
                        IRMapping &copies) {
  if (copies.contains(value) ||
      !loop.getRegion().isAncestor(value.getParentRegion()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isMemoryEffectFree(op))
    return false;
  for (Value operand : op->getOperands())
    if (!copyAddress(b, loop, operand, copies))
      return false;
  b.clone(*op, copies);
  return true;
}

/// The load of iteration `iteration`; null if its place depends on more than
/// the iteration. Iterations past the last one read nothing: the load's end
/// cuts them, or it ends where it begins.
static Value copyLoad(OpBuilder &b, scf::ForOp loop, ArrayLoadOp load,
                      Value iteration, bool isCut) {
  IRMapping copies;
  copies.map(loop.getInductionVar(), iteration);
  for (Value operand : load->getOperands())
    if (!copyAddress(b, loop, operand, copies))
      return {};
  auto copy = cast<ArrayLoadOp>(b.clone(*load, copies));
  if (isCut)
    return copy;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(copy);
  Location loc = load.getLoc();
  Value isThere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                        iteration, loop.getUpperBound());
  copy.getEndMutable().assign(arith::SelectOp::create(
      b, loc, isThere, copy.getEnd(), copy.getOffsets()[*copy.getDim()]));
  return copy;
}

/// The last iteration of a loop by ones that has some, whatever its call; no
/// value if nobody knows it.
static std::optional<int64_t> findLast(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound());
  if (!lower || !upper || *lower >= *upper)
    return std::nullopt;
  return *upper - 1;
}

/// Carries the values of `load` for the next `ahead` iterations around `loop`,
/// which counts by ones. Past the `last` one that is loaded again.
static scf::ForOp prefetch(scf::ForOp loop, ArrayLoadOp load, int64_t ahead,
                           bool isCut, std::optional<int64_t> last) {
  IRRewriter b(loop);
  Location loc = load.getLoc();
  auto constant = [&](OpBuilder &at, int64_t value) -> Value {
    Type type = loop.getInductionVar().getType();
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, value));
  };
  auto numberOf = [&](OpBuilder &at, Value from, int64_t distance) -> Value {
    Value number = arith::AddIOp::create(at, loc, from, constant(at, distance));
    if (last)
      number = arith::MinSIOp::create(at, loc, number, constant(at, *last));
    return number;
  };
  SmallVector<Value> first;
  for (int64_t iteration = 0; iteration < ahead; ++iteration) {
    Value number = numberOf(b, loop.getLowerBound(), iteration);
    first.push_back(copyLoad(b, loop, load, number, isCut));
    if (!first.back())
      return loop;
  }
  unsigned carried = loop.getNumRegionIterArgs();
  auto yields = [&](OpBuilder &inner, Location loc,
                    ArrayRef<BlockArgument> values) {
    SmallVector<Value> next(values.drop_front());
    OpBuilder::InsertionGuard guard(inner);
    // The body moves to the longer loop afterwards.
    inner.setInsertionPointToStart(loop.getBody());
    Value number = numberOf(inner, loop.getInductionVar(), ahead);
    next.push_back(copyLoad(inner, loop, load, number, isCut));
    return next;
  };
  auto longer = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, first, /*replaceInitOperandUsesInLoop=*/false, yields));
  b.replaceOp(load, longer.getRegionIterArg(carried));
  return longer;
}

namespace {
struct PrefetchLoads : gdn::warp::impl::PrefetchLoadsPassBase<PrefetchLoads> {
  void runOnOperation() override {
    auto schedule =
        getOperation()->getAttrOfType<ScheduleAttr>(ScheduleAttr::kName);
    if (!schedule)
      return;
    for (auto role : getOperation().getBody().getOps<RoleOp>())
      for (RoleSpecAttr spec : schedule.getRoles())
        if (spec.getName() == role.getName() && spec.getPrefetchDistance() > 0)
          prefetchIn(role, spec.getPrefetchDistance());
  }

  void prefetchIn(RoleOp role, int64_t ahead) {
    SetVector<scf::ForOp> loops;
    role.walk([&](ArrayLoadOp load) {
      if (auto loop = load->getParentOfType<scf::ForOp>())
        loops.insert(loop);
    });
    for (scf::ForOp loop : loops) {
      if (!isConstantIntValue(loop.getStep(), 1))
        continue;
      // Without an end nothing can cut a load of an iteration that never comes.
      std::optional<int64_t> last = findLast(loop);
      SmallVector<ArrayLoadOp> loads;
      loop.walk([&](ArrayLoadOp load) {
        if (load->getParentOfType<scf::ForOp>() == loop &&
            (last ? cast<RankedTensorType>(load.getType()).getRank() == 1
                  : isEncoded<LanesAttr>(load.getType()) && load.getEnd()))
          loads.push_back(load);
      });
      scf::ForOp current = loop;
      bool carries = false, isCut = last || loop->hasAttr(kCutPastEndAttrName);
      for (ArrayLoadOp load : loads) {
        scf::ForOp longer = prefetch(current, load, ahead, isCut, last);
        carries |= longer != current;
        current = longer;
      }
      // With a body for each iteration that a value is carried through, none
      // moves: a move would wait for its load.
      if (carries && ahead > 1)
        current->setAttr(WarpDialect::getUnrollAttrName(),
                         Builder(&getContext()).getI64IntegerAttr(ahead));
    }
  }
};
} // namespace
