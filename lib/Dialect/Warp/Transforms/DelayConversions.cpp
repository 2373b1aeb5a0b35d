//===- DelayConversions.cpp - Convert what a loop begins with later -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

#define DEBUG_TYPE "gdn-warp-delay-conversions"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_DELAYCONVERSIONSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// The conversion of a tile over lanes that makes what `loop` begins with for
/// its carried value `number`, and nothing else; null if there is none.
static arith::ExtFOp findConversion(scf::ForOp loop, unsigned number) {
  auto conversion = loop.getInits()[number].getDefiningOp<arith::ExtFOp>();
  if (!conversion || !conversion->hasOneUse() ||
      conversion->getBlock() != loop->getBlock() ||
      !isEncoded<SpreadAttr>(conversion.getType()) ||
      loop.getRegionIterArg(number).use_empty())
    return {};
  return conversion;
}

/// Makes `conversion` in the first iteration of `loop`, which has one, in front
/// of the first op that takes it. The unconverted tile is carried to there.
static void convertInLoop(IRRewriter &b, scf::ForOp loop, unsigned number,
                          arith::ExtFOp conversion) {
  Location loc = conversion.getLoc();
  Type stored = conversion.getIn().getType();
  b.setInsertionPoint(loop);
  unsigned last = loop.getNumRegionIterArgs();
  // Later iterations carry what they would store: LLVM moves the conversion of
  // a constant in its place out of the loop.
  auto yields = [&](OpBuilder &inner, Location,
                    ArrayRef<BlockArgument>) -> SmallVector<Value> {
    return {arith::TruncFOp::create(inner, loc, stored,
                                    loop.getYieldedValues()[number])};
  };
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, conversion.getIn(), /*replaceInitOperandUsesInLoop=*/false, yields));
  b.setInsertionPoint(loop);
  loop.getInitsMutable()[number].assign(
      ub::PoisonOp::create(b, loc, conversion.getType()));
  Value carried = loop.getRegionIterArg(number);
  Operation *first = nullptr;
  for (Operation *user : carried.getUsers()) {
    Operation *op = loop.getBody()->findAncestorOpInBlock(*user);
    if (!first || op->isBeforeInBlock(first))
      first = op;
  }
  b.setInsertionPoint(first);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            loop.getInductionVar(), loop.getLowerBound());
  auto now = scf::IfOp::create(
      b, loc, isFirst,
      [&](OpBuilder &inner, Location) {
        IRMapping map;
        map.map(conversion.getIn(), loop.getRegionIterArg(last));
        Operation *here = inner.clone(*conversion, map);
        scf::YieldOp::create(inner, loc, here->getResults());
      },
      [&](OpBuilder &inner, Location) {
        scf::YieldOp::create(inner, loc, carried);
      });
  // Of a call that decodes there is no other one.
  now->setAttr(WarpDialect::getLikelyAttrName(), b.getBoolAttr(true));
  b.replaceUsesWithIf(carried, now.getResult(0), [&](OpOperand &use) {
    return !now->isProperAncestor(use.getOwner());
  });
}

/// Delays the conversions that `loop` begins with. Who has no iteration makes
/// them beside it.
static void delayConversions(scf::ForOp loop) {
  SmallVector<std::pair<unsigned, arith::ExtFOp>> conversions;
  for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
    if (arith::ExtFOp conversion = findConversion(loop, number))
      conversions.emplace_back(number, conversion);
  if (conversions.empty())
    return;
  IRRewriter b(loop);
  Location loc = loop.getLoc();
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                    loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), any,
                                  /*withElseRegion=*/true);
  b.replaceAllUsesWith(loop.getResults(), branch.getResults());
  SmallVector<Value> begins(loop.getInits());
  OpBuilder otherwise = branch.getElseBodyBuilder();
  for (auto [number, conversion] : conversions)
    begins[number] = otherwise.clone(*conversion)->getResult(0);
  scf::YieldOp::create(otherwise, loc, begins);
  b.setInsertionPointToStart(branch.thenBlock());
  auto yield = scf::YieldOp::create(b, loc, loop.getResults());
  loop->moveBefore(yield);
  for (auto [number, conversion] : conversions) {
    convertInLoop(b, cast<scf::ForOp>(yield->getPrevNode()), number,
                  conversion);
    b.eraseOp(conversion);
  }
}

namespace {
struct DelayConversions
    : gdn::warp::impl::DelayConversionsPassBase<DelayConversions> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    llvm::for_each(loops, delayConversions);
  }
};
} // namespace
