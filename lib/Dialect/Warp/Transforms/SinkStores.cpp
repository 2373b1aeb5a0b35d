//===- SinkStores.cpp - Stores to slots where their values are made -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"

#define DEBUG_TYPE "gdn-warp-sink-stores"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_SINKSTORESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Stores the result of a branch in both branches, right behind what makes it:
/// so other work of the branch need not be over first.
static void sinkIntoBranches(FragmentStoreOp store) {
  auto branch = store.getFragment().getDefiningOp<scf::IfOp>();
  auto slot = store.getView().getDefiningOp<SlotOp>();
  if (!branch || !slot || branch->getBlock() != store->getBlock() ||
      !store.getFragment().hasOneUse())
    return;
  // The slot must be free before the branch begins.
  DominanceInfo dominance;
  if (!llvm::all_of(slot->getOperands(), [&](Value operand) {
        return dominance.properlyDominates(operand, branch);
      }))
    return;
  slot->moveBefore(branch);
  unsigned number = cast<OpResult>(store.getFragment()).getResultNumber();
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Value value = block->getTerminator()->getOperand(number);
    OpBuilder b = OpBuilder::atBlockBegin(block);
    if (Operation *made = value.getDefiningOp();
        made && made->getBlock() == block)
      b.setInsertionPointAfter(made);
    IRMapping map;
    map.map(store.getFragment(), value);
    b.clone(*store, map);
  }
  store.erase();
}

/// Numbers of rows and columns and what compares them are the same in every
/// iteration: they leave the loop (loop-invariant-code-motion).
static bool isMask(Operation *op) {
  auto tile = dyn_cast<RankedTensorType>(op->getResultTypes().front());
  return tile && tile.getElementType().isInteger();
}

/// Whether `op` may run in some warps only: it changes nothing and is no
/// collective of the warpgroup.
static bool mayRunInSomeWarps(Operation *op) {
  if (op->getNumResults() == 1 && isMask(op))
    return false;
  if (getScratchBytes(op) != 0 || isa<PublishOp, ShareOp>(op))
    return false;
  bool reads = isa<VectorLoadOp, FragmentLoadOp, RowDotsOp, LoadOp>(op);
  if (isa<SlotOp, SliceOp, WgmmaOp, WgmmaWaitOp>(op))
    return false;
  if (op->getNumRegions() == 0 || isa<linalg::BroadcastOp>(op))
    return reads || isMemoryEffectFree(op);
  if (!isa<scf::IfOp>(op))
    return false;
  return !op->walk([&](Operation *nested) {
              return nested == op ||
                             nested->hasTrait<OpTrait::IsTerminator>() ||
                             mayRunInSomeWarps(nested)
                         ? WalkResult::advance()
                         : WalkResult::interrupt();
            }).wasInterrupted();
}

/// A branch that makes several values is copied for the one that `store` takes.
static void splitBranch(FragmentStoreOp store) {
  auto branch = store.getFragment().getDefiningOp<scf::IfOp>();
  if (!branch || branch.getNumResults() == 1)
    return;
  unsigned number = cast<OpResult>(store.getFragment()).getResultNumber();
  OpBuilder b(branch);
  auto one =
      scf::IfOp::create(b, branch.getLoc(), branch.getResultTypes()[number],
                        branch.getCondition(), /*withElseRegion=*/true);
  one->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip(branch->getRegions(), one->getRegions())) {
    b.setInsertionPointToStart(&to.front());
    IRMapping map;
    for (Operation &op : from.front().without_terminator())
      b.clone(op, map);
    Value value = from.front().getTerminator()->getOperand(number);
    scf::YieldOp::create(b, branch.getLoc(), map.lookupOrDefault(value));
    // What the other values need would keep its operands from sinking.
    auto cloned = llvm::to_vector(
        llvm::make_pointer_range(to.front().without_terminator()));
    for (Operation *op : llvm::reverse(cloned))
      if (isOpTriviallyDead(op))
        op->erase();
  }
  store.getFragmentMutable().assign(one.getResult(0));
  if (branch->use_empty() && mayRunInSomeWarps(branch))
    branch.erase();
}

/// What only `stores`, of one block and in its order, need; in that order.
static SmallVector<Operation *> collectMakers(ArrayRef<Operation *> stores) {
  Block *block = stores.front()->getBlock();
  llvm::SmallPtrSet<Operation *, 32> makers(stores.begin(), stores.end());
  SmallVector<Operation *> order;
  for (Operation *op = stores.back()->getPrevNode(); op;
       op = op->getPrevNode()) {
    if (makers.contains(op) || op->use_empty() || !mayRunInSomeWarps(op))
      continue;
    bool only = llvm::all_of(op->getUsers(), [&](Operation *user) {
      return makers.contains(block->findAncestorOpInBlock(*user));
    });
    if (!only)
      continue;
    makers.insert(op);
    order.push_back(op);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

/// The warps that hold the rows of `stores` alone make what these store.
static void sinkIntoWarps(ArrayRef<Operation *> stores,
                          ArrayRef<Operation *> makers,
                          ArrayRef<int64_t> rows) {
  OpBuilder b(stores.back());
  Location loc = stores.back()->getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  constexpr int64_t kRows = format::kWarpRows;
  Value warp =
      arith::RemUIOp::create(b, loc, IdOp::create(b, loc, IdKind::Warp),
                             constant(format::kWarpgroupWarps));
  Value inside = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ult,
      arith::SubIOp::create(b, loc, warp, constant(rows[0] / kRows)),
      constant((rows[1] - rows[0]) / kRows));
  auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  for (ArrayRef<Operation *> list : {makers, stores})
    for (Operation *op : list)
      op->moveBefore(guard.thenBlock()->getTerminator());
}

/// The rows that `op` stores of a fragment or a vector; null if it is no store
/// of some rows.
static DenseI64ArrayAttr getStoredRows(Operation *op) {
  if (auto store = dyn_cast<VectorStoreOp>(op))
    return store.getRowsAttr();
  auto store = dyn_cast<FragmentStoreOp>(op);
  return store ? store.getRowsAttr() : DenseI64ArrayAttr();
}

/// Stores of what `root` makes, in order: they are of one block and of the same
/// rows, or else there are none.
static SmallVector<Operation *> collectStores(Operation *root) {
  Block *block = root->getBlock();
  SetVector<Operation *> takers;
  takers.insert(root);
  SmallVector<Operation *> stores;
  for (size_t i = 0; i < takers.size(); ++i) {
    // What a branch takes, its results may be.
    for (Operation *user : takers[i]->getUsers()) {
      Operation *taker = block->findAncestorOpInBlock(*user);
      if (!taker ||
          (taker != user && isa<VectorStoreOp, FragmentStoreOp>(user)))
        return {};
      takers.insert(taker);
    }
    if (!isa<VectorStoreOp, FragmentStoreOp>(takers[i]))
      continue;
    DenseI64ArrayAttr rows = getStoredRows(takers[i]);
    if (!rows || (!stores.empty() && getStoredRows(stores.front()) != rows))
      return {};
    stores.push_back(takers[i]);
  }
  llvm::sort(stores, [](Operation *one, Operation *other) {
    return one->isBeforeInBlock(other);
  });
  return stores;
}

/// Stores of vectors whose rows are sums of shared memory, which take a while,
/// or a diagonal: the warps of other rows do not make them.
static void sinkVectors(Operation *root) {
  if (!isEncoded<RowsAttr>(root->getResult(0).getType()))
    return;
  SmallVector<Operation *> stores = collectStores(root);
  if (stores.empty())
    return;
  SmallVector<Operation *> makers = collectMakers(stores);
  if (!llvm::is_contained(makers, root))
    return;
  // A diagonal is of a product, which is waited for where these begin; what is
  // loaded is there by then.
  if (isa<DiagonalOp>(root))
    llvm::erase_if(makers, [](Operation *op) { return isa<VectorLoadOp>(op); });
  sinkIntoWarps(stores, makers, getStoredRows(stores[0]));
  for (Operation *op : stores)
    if (auto store = dyn_cast<FragmentStoreOp>(op))
      store.setGuarded(true);
}

/// The branch that has all uses of `slot`, and on which of its sides it has
/// some; null if others use it too.
static std::pair<scf::IfOp, std::array<bool, 2>> findBranch(SlotOp slot) {
  scf::IfOp branch;
  std::array<bool, 2> sides = {false, false};
  for (Operation *user : slot->getUsers()) {
    auto outer = dyn_cast_or_null<scf::IfOp>(
        slot->getBlock()->findAncestorOpInBlock(*user));
    if (!outer || (branch && outer != branch) || !outer.elseBlock())
      return {};
    branch = outer;
    sides[outer.getElseRegion().isAncestor(user->getParentRegion())] = true;
  }
  return {branch, sides};
}

/// Whether all uses of `slots` are in branches, on both sides of each.
static bool areOfBranches(ArrayRef<SlotOp> slots) {
  llvm::MapVector<Operation *, std::array<bool, 2>> used;
  for (SlotOp slot : slots) {
    auto [branch, sides] = findBranch(slot);
    if (!branch)
      return false;
    for (size_t side = 0; side < sides.size(); ++side)
      used[branch][side] |= sides[side];
  }
  return llvm::all_of(
      used, [](auto &entry) { return entry.second[0] && entry.second[1]; });
}

/// Clones `slot` to before its first use on one side of a branch, if it is used
/// there.
static void sinkSlot(SlotOp slot, Block *side) {
  Operation *first = nullptr;
  for (Operation *user : slot->getUsers())
    if (Operation *outer = side->findAncestorOpInBlock(*user))
      if (!first || outer->isBeforeInBlock(first))
        first = outer;
  if (!first)
    return;
  Operation *copy = OpBuilder(first).clone(*slot);
  slot->replaceUsesWithIf(copy, [&](OpOperand &use) {
    return side->findAncestorOpInBlock(*use.getOwner());
  });
}

/// Takes slots where they are first used, on both sides of a branch: the work
/// before it need not wait for them, nor who waits for them for the work behind
/// it. A role takes a channel's slots in one place, and on each side some.
static void sinkSlots(Block &block) {
  llvm::MapVector<Value, SmallVector<SlotOp>> channels;
  for (auto slot : block.getOps<SlotOp>())
    channels[slot.getChannel()].push_back(slot);
  for (auto &[channel, slots] : channels) {
    if (!areOfBranches(slots))
      continue;
    for (SlotOp slot : slots) {
      scf::IfOp branch = findBranch(slot).first;
      for (Block *side : {branch.thenBlock(), branch.elseBlock()})
        sinkSlot(slot, side);
      slot.erase();
    }
  }
}

/// The slot to fill that `view` is of, or null.
static SlotOp getFilledSlot(Value view) {
  while (auto slice = view.getDefiningOp<SliceOp>())
    view = slice.getSource();
  auto slot = view.getDefiningOp<SlotOp>();
  return slot && slot.getDirection() == SlotDirection::Put ? slot : SlotOp();
}

/// Moves what only `store` needs of the addresses of its view, and the store,
/// to before `place`.
static void moveStore(VectorStoreOp store, Operation *place) {
  SmallVector<Operation *> ops = {store};
  for (Operation *op = store.getView().getDefiningOp();
       op && isa<SliceOp, SlotOp>(op) && op->hasOneUse() &&
       op->getBlock() == store->getBlock();
       op = op->getOperand(0).getDefiningOp())
    ops.push_back(op);
  for (Operation *op : llvm::reverse(ops))
    op->moveBefore(place);
}

/// Vectors are made early and are small: they are stored where the first tile
/// of their slot is, so that the work on the tile need not wait for the slot.
static void delayVectors(Block &block) {
  for (VectorStoreOp store : llvm::to_vector(block.getOps<VectorStoreOp>())) {
    SlotOp slot = getFilledSlot(store.getView());
    if (!slot || slot->getBlock() != &block)
      continue;
    for (Operation *op = store->getNextNode(); op; op = op->getNextNode()) {
      auto tile = dyn_cast<FragmentStoreOp>(op);
      SlotOp other = tile ? getFilledSlot(tile.getView()) : SlotOp();
      if (!other || other->getBlock() != &block ||
          other.getChannel() != slot.getChannel() ||
          other.getIteration() != slot.getIteration())
        continue;
      // The tile's slot is waited for where it is named.
      Operation *place = other->isBeforeInBlock(store) ? op : other;
      moveStore(store, place);
      break;
    }
  }
}

namespace {
struct SinkStores : gdn::warp::impl::SinkStoresPassBase<SinkStores> {
  void runOnOperation() override {
    // Without a schedule a kernel is in the explicit form already.
    if (!getOperation()->hasAttr(ScheduleAttr::kName))
      return;
    SmallVector<FragmentStoreOp> stores;
    getOperation().walk(
        [&](FragmentStoreOp store) { stores.push_back(store); });
    SmallVector<FragmentStoreOp> ofRows;
    for (FragmentStoreOp store : stores) {
      if (!store.getRows()) {
        sinkIntoBranches(store);
        continue;
      }
      splitBranch(store);
      ofRows.push_back(store);
    }
    sinkAll<DiagonalOp>();
    for (FragmentStoreOp store : ofRows) {
      if (store.getGuarded())
        continue;
      Operation *alone = store;
      sinkIntoWarps(alone, collectMakers(alone), *store.getRows());
      store.setGuarded(true);
    }
    sinkAll<RowDotsOp>();
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      sinkSlots(*block);
    // Measured there alone (docs/experiments/kda.md): without it a role of 144
    // registers spills.
    for (auto role : getOperation().getBody().getOps<RoleOp>())
      if (role.countTogether() != static_cast<int64_t>(role.getCount()))
        role.walk([](Block *block) { delayVectors(*block); });
  }

  /// Sinks what is made of vectors that ops of type `Op` make.
  template <typename Op> void sinkAll() {
    SmallVector<Operation *> roots;
    getOperation().walk([&](Op op) { roots.push_back(op); });
    for (Operation *root : roots)
      sinkVectors(root);
  }
};
} // namespace
