//===- UnrollChunks.cpp - Several chunks an iteration ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last iteration of an unrolled loop may have chunks past the loop's last
// one. They must touch no memory outside of the loop's walk and leave what the
// loop carries as it is. Ends that cut their accesses and a body that maps
// zeros to no change see to it in a forward; other loops get guards.
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

#define DEBUG_TYPE "gdn-tile-unroll-chunks"

namespace mlir::gdn {
#define GEN_PASS_DEF_UNROLLCHUNKSPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

//===----------------------------------------------------------------------===//
// Which guards a loop needs
//===----------------------------------------------------------------------===//

namespace {
/// How the chunks past a loop's last one are kept from doing harm.
struct Guards {
  /// Their accesses are moved to the first chunk, and their stores skipped.
  bool accesses = false;
  /// What the loop carries is kept.
  bool carried = false;
  /// Guards accesses of the first chunk of an iteration too, which a role with
  /// a loop over the chunks takes for all of them.
  bool first = false;
  /// The first iteration has chunks before the loop's first one instead.
  bool before = false;
};
} // namespace

/// n where `op` is done in every n-th chunk and no other, else 0.
static int64_t getEvery(Operation *op) {
  auto every = op->getAttrOfType<IntegerAttr>(kEveryAttrName);
  return isa<scf::IfOp>(op) && op->getNumResults() == 0 && every
             ? every.getInt()
             : 0;
}

/// Whether no chunk but the first of an iteration of `factor` has `op`, where
/// iterations are whole from the chunk on that `every` counts from.
static bool isFirstOnly(Operation *op, scf::ForOp loop, int64_t factor) {
  for (; op != loop; op = op->getParentOp())
    if (int64_t every = getEvery(op); every && every % factor == 0)
      return true;
  return false;
}

/// Whether chunks before the loop's first one, which complete an iteration, may
/// run as they are: they repeat what the loop's first chunk stores, or store
/// nothing because an end cuts it.
static bool mayBeginBefore(scf::ForOp loop, int64_t factor) {
  auto isHarmless = [&](Operation *op) {
    auto store = dyn_cast<StoreOp>(op);
    return getEvery(op) % factor == 0 &&
           (!store || store.getEnd() || isFirstOnly(op, loop, factor));
  };
  return loop->hasAttr(kNeutralBeforeFirstAttrName) &&
         !loop.getBody()
              ->walk([&](Operation *op) {
                return isHarmless(op) ? WalkResult::advance()
                                      : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Whether `value` is the loop's induction variable, or a constant of at least
/// zero behind it.
static bool isAtOrBehind(Value value, scf::ForOp loop) {
  while (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    std::optional<int64_t> distance = getConstantIntValue(sum.getRhs());
    if (!distance || *distance < 0)
      return false;
    value = sum.getLhs();
  }
  return value == loop.getInductionVar();
}

/// Whether the end of an access cuts all of it in chunks past the last one.
template <typename Op> static bool isCutPastEnd(Op access, scf::ForOp loop) {
  if (!access.getEnd() || loop->hasAttr(kCutPastEndAttrName))
    return static_cast<bool>(access.getEnd());
  return access.getEnd() == loop.getUpperBound() &&
         isAtOrBehind(access.getOffsets()[*access.getDim()], loop);
}

/// Whether `value` is the same in each iteration.
static bool isInvariant(Value value, scf::ForOp loop) {
  if (loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isInvariant(operand, loop);
         });
}

/// Whether all accesses of chunks past the last one are cut, or are what each
/// chunk loads.
static bool areAccessesCut(scf::ForOp loop, int64_t factor) {
  bool knowsPlaces = !loop->hasAttr(kNeutralBeforeFirstAttrName);
  auto isInside = [&](Operation *op) {
    if (auto store = dyn_cast<StoreOp>(op))
      return isCutPastEnd(store, loop) ||
             (knowsPlaces && isFirstOnly(store, loop, factor));
    auto load = dyn_cast<LoadOp>(op);
    return !load || isCutPastEnd(load, loop) ||
           llvm::all_of(load.getOffsets(), [&](Value offset) {
             return isInvariant(offset, loop);
           });
  };
  return !loop.getBody()
              ->walk([&](Operation *op) {
                return isInside(op) ? WalkResult::advance()
                                    : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Whether all loads with an end are cut past the last chunk: those that are
/// begun iterations ahead need no guard then.
static bool areLoadsCut(scf::ForOp loop) {
  return !loop.getBody()
              ->walk([&](LoadOp load) {
                return !load.getEnd() || isCutPastEnd(load, loop)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Whether the loop has a known number of whole iterations.
static bool isExact(scf::ForOp loop, int64_t factor) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (factor == 1)
    return true;
  if (!lower || !upper || !step || *step < 1)
    return false;
  return *upper <= *lower ||
         llvm::divideCeil(*upper - *lower, *step) % factor == 0;
}

static Guards findGuards(scf::ForOp loop, int64_t factor, bool isRolled) {
  Guards guards;
  if (isExact(loop, factor))
    return guards;
  guards.before = mayBeginBefore(loop, factor);
  if (guards.before)
    return guards;
  guards.accesses = !areAccessesCut(loop, factor);
  guards.carried = loop.getNumRegionIterArgs() != 0 &&
                   (guards.accesses || !loop->hasAttr(kNeutralPastEndAttrName));
  guards.first = isRolled;
  return guards;
}

//===----------------------------------------------------------------------===//
// Unrolling
//===----------------------------------------------------------------------===//

/// The step of what `op` contains; null for none.
static Attribute findStepIn(Operation *op) {
  Attribute step;
  op->walk([&](Operation *nested) {
    if (!step)
      step = nested->getAttr(TileDialect::getStepAttrName());
  });
  return step;
}

/// The step of what makes `value` in `block`; null for what has none.
static Attribute findStep(Value value, Block *block) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != block || !seen.insert(next).second)
      continue;
    if (Attribute step = findStepIn(op))
      return step;
    llvm::append_range(open, op->getOperands());
  }
  return {};
}

/// Puts the stores in `op` under `condition`. Returns what stands for `op`.
static Operation *guardStores(OpBuilder &b, Operation *op, Value condition) {
  SmallVector<StoreOp> stores;
  op->walk([&](StoreOp store) { stores.push_back(store); });
  for (StoreOp store : stores) {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPoint(store);
    auto branch = scf::IfOp::create(b, store.getLoc(), condition);
    store->moveBefore(branch.thenYield());
    if (store == op)
      op = branch;
  }
  return op;
}

namespace {
/// Writes the unrolled loop.
class Unroller {
public:
  Unroller(scf::ForOp loop, int64_t factor, Guards guards,
           ArrayRef<Attribute> rolledSteps)
      : loop(loop), factor(factor), guards(guards), rolledSteps(rolledSteps),
        knowsPlaces(guards.before || isExact(loop, factor) ||
                    !loop->hasAttr(kNeutralBeforeFirstAttrName)),
        b(loop), loc(loop.getLoc()) {}

  void run();

private:
  SmallVector<Value> copyChunk(Value t, ValueRange carried, int64_t chunk);
  Value firstOfWhole(Value longStep);
  Operation *copyOp(Operation &op, IRMapping &copies, int64_t chunk);
  Value keep(Value inside, Value next, Value now, Operation *maker);
  void label(Operation *op, int64_t chunk) {
    op->walk([&](Operation *copy) {
      copy->setAttr(TileDialect::getChunkAttrName(),
                    b.getI64IntegerAttr(chunk));
    });
  }
  Value constant(int64_t value) {
    Type type = loop.getInductionVar().getType();
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  scf::ForOp loop;
  int64_t factor;
  Guards guards;
  /// Steps of roles that have one code for all chunks.
  ArrayRef<Attribute> rolledSteps;
  /// Whether an iteration begins where `every` counts from.
  bool knowsPlaces;
  OpBuilder b;
  Location loc;
};
} // namespace

/// Where whole iterations of `longStep` begin that end where the loop does.
Value Unroller::firstOfWhole(Value longStep) {
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  Value count = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, upper, lower), longStep);
  return arith::SubIOp::create(b, loc, upper,
                               arith::MulIOp::create(b, loc, count, longStep));
}

/// Copies an op for a chunk of the iteration; null for one that it has not.
Operation *Unroller::copyOp(Operation &op, IRMapping &copies, int64_t chunk) {
  int64_t every = knowsPlaces ? getEvery(&op) : 0;
  if (every && llvm::is_contained(rolledSteps, findStepIn(&op)))
    return b.clone(op, copies);
  bool isKnown = every && factor % every == 0;
  if (every && (isKnown ? chunk % every : chunk && every % factor == 0))
    return nullptr;
  if (isKnown)
    copies.map(op.getOperand(0), arith::ConstantIntOp::create(b, loc, 1, 1));
  return b.clone(op, copies);
}

/// Copies the loop's body for the chunk at `t`. Returns what it yields.
SmallVector<Value> Unroller::copyChunk(Value t, ValueRange carried,
                                       int64_t chunk) {
  bool keepsCarried = guards.carried && chunk != 0,
       keepsInside = guards.accesses && (guards.first || chunk != 0);
  IRMapping copies;
  copies.map(loop.getRegionIterArgs(), carried);
  Value inside;
  if (keepsCarried || keepsInside)
    inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, t,
                                   loop.getUpperBound());
  // The first chunk of a loop that runs is always there.
  if (keepsInside)
    t = arith::SelectOp::create(b, loc, inside, t, loop.getLowerBound());
  copies.map(loop.getInductionVar(), t);
  for (Operation &op : loop.getBody()->without_terminator()) {
    Operation *copy = copyOp(op, copies, chunk);
    if (!copy)
      continue;
    if (keepsInside)
      copy = guardStores(b, copy, inside);
    label(copy, chunk);
  }
  SmallVector<Value> next;
  for (auto [yielded, now] : llvm::zip(loop.getYieldedValues(), carried)) {
    Value value = copies.lookupOrDefault(yielded);
    if (keepsCarried && value != now) {
      value = arith::SelectOp::create(b, loc, inside, value, now);
      if (Attribute step = findStep(yielded, loop.getBody());
          step && TileDialect::needsStep(value.getDefiningOp()))
        value.getDefiningOp()->setAttr(TileDialect::getStepAttrName(), step);
      label(value.getDefiningOp(), chunk);
    }
    next.push_back(value);
  }
  return next;
}

void Unroller::run() {
  Value step = loop.getStep();
  Value longStep = arith::MulIOp::create(b, loc, step, constant(factor));
  SmallVector<Value> offsets;
  for (int64_t chunk = 0; chunk < factor; ++chunk)
    offsets.push_back(arith::MulIOp::create(b, loc, step, constant(chunk)));
  Value lower = guards.before ? firstOfWhole(longStep) : loop.getLowerBound();
  auto iterations = scf::ForOp::create(b, loc, lower, loop.getUpperBound(),
                                       longStep, loop.getInits());
  if (areLoadsCut(loop))
    iterations->setAttr(kCutPastEndAttrName, b.getUnitAttr());
  b.setInsertionPointToStart(iterations.getBody());
  SmallVector<Value> values(iterations.getRegionIterArgs());
  for (auto [chunk, offset] : llvm::enumerate(offsets)) {
    Value start =
        arith::AddIOp::create(b, loc, iterations.getInductionVar(), offset);
    values = copyChunk(start, values, chunk);
  }
  if (!values.empty())
    scf::YieldOp::create(b, loc, values);
  loop.replaceAllUsesWith(iterations);
  loop.erase();
}

/// Whether the loop's ops have numbers of chunks already.
static bool isUnrolled(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [](Operation &op) {
    return op.hasAttr(TileDialect::getChunkAttrName());
  });
}

namespace {
struct UnrollChunks : mlir::gdn::impl::UnrollChunksPassBase<UnrollChunks> {
  using UnrollChunksPassBase::UnrollChunksPassBase;

  void runOnOperation() override {
    // Each chunk is a copy of the body.
    constexpr int64_t kMostChunks = 64;
    if (factor < 1 || factor > kMostChunks) {
      getOperation().emitOpError("expected factor to be 1 to ")
          << kMostChunks << ", got " << factor.getValue();
      return signalPassFailure();
    }
    int64_t chunks = factor;
    bool isRolled = false;
    SmallVector<Attribute> rolledSteps;
    if (auto schedule = getOperation()->getAttrOfType<warp::ScheduleAttr>(
            warp::ScheduleAttr::kName)) {
      chunks = schedule.getChunksPerIteration();
      isRolled = llvm::any_of(schedule.getRoles(), [](warp::RoleSpecAttr role) {
        return role.getLoopChunks() || role.getRoundRobin();
      });
      for (warp::RoleSpecAttr role : schedule.getRoles())
        if (role.getLoopChunks())
          llvm::append_range(rolledSteps, role.getSteps());
    }
    Block &body = getOperation().getBody().front();
    for (auto loop : llvm::make_early_inc_range(body.getOps<scf::ForOp>()))
      if (!isUnrolled(loop))
        Unroller(loop, chunks, findGuards(loop, chunks, isRolled), rolledSteps)
            .run();
  }
};
} // namespace
