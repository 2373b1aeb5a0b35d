//===- GroupProducts.cpp - Groups of products, and where to wait ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "gdn-warp-group-products"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_GROUPPRODUCTSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Operands from shared memory alone: nothing in registers to wait for.
static bool readsViewsOnly(WgmmaOp product) {
  return isa<ViewType>(product.getA().getType()) && !product.getAccumulator();
}

/// Whether the wait for `slot` may stand behind `place` already: over a store,
/// or a load, it would move over the arrival behind it, for which the other
/// side of the channel may have to wait first.
static bool mayWaitBehind(Operation *place, SlotOp slot) {
  bool isOpen =
      llvm::any_of(slot.getChannel().getUsers(), [&](Operation *user) {
        auto other = dyn_cast<SlotOp>(user);
        return other && other->getBlock() == place->getBlock() &&
               other.getDirection() == slot.getDirection() &&
               isSameSlot(other, slot) && !place->isBeforeInBlock(other);
      });
  auto between = llvm::make_range(std::next(Block::iterator(place)),
                                  Block::iterator(slot));
  return isOpen || llvm::all_of(between, [](Operation &op) {
           return isMemoryEffectFree(&op);
         });
}

/// Moves what `value` needs, if it is only addresses, behind `place`. Returns
/// false if it needs more.
static bool hoistAddress(Value value, Operation *&place) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != place->getBlock() ||
      op->isBeforeInBlock(place) || op == place)
    return true;
  if (!isMemoryEffectFree(op) || op->getNumRegions() || isa<WgmmaOp>(op))
    return false;
  if (auto slot = dyn_cast<SlotOp>(op); slot && !mayWaitBehind(place, slot))
    return false;
  for (Value operand : op->getOperands())
    if (!hoistAddress(operand, place))
      return false;
  op->moveAfter(place);
  place = op;
  return true;
}

/// Registers of a thread that hold `value`, if it is a fragment of f32.
static int64_t countRegisters(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !isEncoded<FragmentAttr>(type))
    return 0;
  constexpr int64_t kThreads = 128;
  return type.getNumElements() / kThreads;
}

/// Products that wait for no register follow the product before them, so that
/// their work hides that of the other's readers. They do so while the results
/// on their way, and what the loop carries, leave two thirds of the role's
/// registers.
static void hoistProducts(Block &block) {
  int64_t carried = 0;
  for (BlockArgument argument : block.getArguments())
    carried += countRegisters(argument);
  auto role = dyn_cast<RoleOp>(block.getParentOp());
  if (!role)
    role = block.getParentOp()->getParentOfType<RoleOp>();
  std::optional<int64_t> most;
  if (role && role.getRegisters())
    most = *role.getRegisters() / 3;
  int64_t held = 0;
  Operation *last = nullptr;
  for (auto product : llvm::make_early_inc_range(block.getOps<WgmmaOp>())) {
    Operation *place = last;
    int64_t own = countRegisters(product.getResult());
    bool hasRoom = !most || carried + held + own <= *most;
    bool adds = static_cast<bool>(product.getAccumulator());
    if (last && hasRoom && readsViewsOnly(product) &&
        llvm::all_of(product->getOperands(), [&](Value operand) {
          return hoistAddress(operand, place);
        })) {
      product->moveAfter(place);
      held += own;
    } else if (!adds) {
      held = own;
    }
    last = product;
  }
}

/// Whether `op` stands behind `product` in the innermost block around both; the
/// branches of a choice do not.
static bool isBehind(Operation *op, WgmmaOp product) {
  Block *block = product->getBlock();
  while (!block->findAncestorOpInBlock(*op))
    block = block->getParentOp()->getBlock();
  return block->findAncestorOpInBlock(*product)->isBeforeInBlock(
      block->findAncestorOpInBlock(*op));
}

/// Whether something reads the sum that `product` adds to once the product has
/// begun: an op behind it, or the product itself in a later iteration.
static bool isReadLater(WgmmaOp product) {
  Value sum = product.getAccumulator();
  if (!sum)
    return false;
  for (Block *block = product->getBlock(); block != sum.getParentBlock();
       block = block->getParentOp()->getBlock())
    if (isa<LoopLikeOpInterface>(block->getParentOp()))
      return true;
  return llvm::any_of(sum.getUsers(),
                      [&](Operation *user) { return isBehind(user, product); });
}

/// Whether `op` reads registers that products of the iteration before wrote.
static bool readsCarried(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isEncoded<FragmentAttr>(value.getType()) &&
           isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
  });
}

namespace {
/// The groups of products of one block that are not awaited yet.
class OpenGroups {
public:
  explicit OpenGroups(Block &block) : block(block) {}
  void run();

private:
  /// Number of the group that `value` is of, if it is open.
  std::optional<int64_t> groupOf(Value value) const;
  /// The youngest open group that `op` must wait for.
  std::optional<int64_t> neededBy(Operation *op) const;
  /// Moves `op` to before the open groups; false if it takes what they make.
  bool hoist(Operation *op);
  void await(Operation *before, int64_t group);
  void begin(WgmmaOp product);

  Block &block;
  /// Results of the open groups, oldest first, a product a group.
  SmallVector<std::pair<int64_t, Value>> open;
  int64_t committed = 0;
  /// Where the oldest of the groups on their way begins.
  Operation *first = nullptr;
};
} // namespace

std::optional<int64_t> OpenGroups::groupOf(Value value) const {
  for (auto [group, result] : open)
    if (result == value)
      return group;
  return std::nullopt;
}

std::optional<int64_t> OpenGroups::neededBy(Operation *op) const {
  std::optional<int64_t> needed;
  auto need = [&](Value value) {
    if (std::optional<int64_t> group = groupOf(value))
      needed = std::max(needed.value_or(0), *group);
  };
  if (auto product = dyn_cast<WgmmaOp>(op)) {
    // An accumulator may be on its way still if nobody else wants it; the left
    // operand may not.
    need(product.getA());
    if (isReadLater(product))
      need(product.getAccumulator());
    return needed;
  }
  // It may write what products before it read.
  if (auto publish = dyn_cast<PublishOp>(op);
      publish && !open.empty() &&
      (publish.getInTurn() || isUnlikely(op, WarpDialect::getLikelyAttrName())))
    return open.back().first;
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  for (Value value : values)
    need(value);
  // Inside a region groups are counted from none.
  bool hasProducts = op->walk([](WgmmaOp) {
                         return WalkResult::interrupt();
                       }).wasInterrupted();
  bool ends = op->hasTrait<OpTrait::IsTerminator>();
  // ptxas does not see that the groups of the iteration before have ended.
  if ((hasProducts || ends || readsCarried(op)) && !open.empty())
    needed = open.back().first;
  return needed;
}

bool OpenGroups::hoist(Operation *op) {
  if (open.empty() || !readsCarried(op) || op->getNumRegions() ||
      !isMemoryEffectFree(op) || isa<WgmmaOp>(op) ||
      llvm::any_of(op->getOperands(), [&](Value value) {
        Operation *maker = value.getDefiningOp();
        return maker && maker->getBlock() == &block &&
               !maker->isBeforeInBlock(first);
      }))
    return false;
  op->moveBefore(first);
  return true;
}

/// A wait that leaves `pending` groups unfinished, or as many as one can.
static WgmmaWaitOp createWait(OpBuilder &b, Location loc, int64_t pending,
                              ValueRange accumulators) {
  return WgmmaWaitOp::create(b, loc, std::min(pending, WgmmaWaitOp::maxPending),
                             accumulators);
}

void OpenGroups::await(Operation *before, int64_t group) {
  OpBuilder b(before);
  SmallVector<Value> results;
  while (!open.empty() && open.front().first <= group) {
    // What an accumulating product has taken on is that product's to wait for.
    Value result = open.front().second;
    bool read = llvm::any_of(result.getUsers(), [&](Operation *user) {
      auto product = dyn_cast<WgmmaOp>(user);
      return !product || product.getA() == result ||
             !product->isBeforeInBlock(before);
    });
    if (read)
      results.push_back(result);
    open.erase(open.begin());
  }
  auto wait = createWait(b, before->getLoc(), committed - group - 1, results);
  for (auto [from, to] : llvm::zip(results, wait.getResults()))
    from.replaceUsesWithIf(to, [&](OpOperand &use) {
      Operation *user = block.findAncestorOpInBlock(*use.getOwner());
      return user && user != wait && wait->isBeforeInBlock(user);
    });
}

void OpenGroups::begin(WgmmaOp product) {
  OpBuilder b(product);
  if (isReadLater(product)) {
    // A wait for nothing: its results are other registers than its operands.
    auto copy =
        createWait(b, product.getLoc(), committed, product.getAccumulator());
    product.getAccumulatorMutable().assign(copy.getResult(0));
  }
  if (!isa_and_present<WgmmaCommitOp>(product->getPrevNode()))
    WgmmaFenceOp::create(b, product.getLoc());
  if (open.empty())
    first = isa<WgmmaFenceOp>(product->getPrevNode()) ? product->getPrevNode()
                                                      : product;
  b.setInsertionPointAfter(product);
  WgmmaCommitOp::create(b, product.getLoc());
  // The accumulator's group is waited for with this one.
  if (Value accumulator = product.getAccumulator())
    llvm::erase_if(open, [&](auto &entry) {
      return entry.second == accumulator && accumulator.hasOneUse();
    });
  open.emplace_back(committed++, product.getResult());
}

void OpenGroups::run() {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (hoist(&op))
      continue;
    if (std::optional<int64_t> group = neededBy(&op))
      await(&op, *group);
    if (auto product = dyn_cast<WgmmaOp>(op))
      begin(product);
  }
  // A role's body has no terminator.
  if (!open.empty()) {
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    createWait(b, block.getParentOp()->getLoc(), 0, {});
  }
}

/// Whether a load stays behind `op`, which waits or may store what it loads.
static bool holdsLoads(Operation *op) {
  return !isMemoryEffectFree(op) && !isa<WgmmaOp, WgmmaFenceOp, WgmmaCommitOp,
                                         FragmentLoadOp, VectorLoadOp>(op);
}

/// What makes the left operand of the first product under which `load` stands
/// and before which it may stand; null if there is none.
static Operation *findMaker(Operation *load, Value view) {
  SmallPtrSet<Operation *, 4> makers;
  Operation *first = nullptr;
  for (Operation *op = load->getPrevNode();
       op && !holdsLoads(op) && op != view.getDefiningOp();
       op = op->getPrevNode()) {
    if (makers.contains(op))
      first = op;
    if (auto product = dyn_cast<WgmmaOp>(op))
      makers.insert(product.getA().getDefiningOp());
  }
  return first;
}

/// Whether something reads what `load` gives before the next product is
/// awaited. It must be there early: ptxas leaves behind the wait what cannot be
/// done when it gets there.
static bool isReadUnderProduct(VectorLoadOp load) {
  Operation *wait = load->getNextNode();
  while (wait && !isa<WgmmaWaitOp>(wait))
    wait = wait->getNextNode();
  auto isBefore = [&](Operation *user) {
    return wait && user->getBlock() == wait->getBlock() &&
           user->isBeforeInBlock(wait);
  };
  return llvm::any_of(load->getUsers(), [&](Operation *user) {
    return isa<linalg::BroadcastOp>(user)
               ? llvm::any_of(user->getUsers(), isBefore)
               : isBefore(user);
  });
}

/// Whether the slot that `load` reads has been waited for at `place`: another
/// of its fields is read before it.
static bool isOpenAt(VectorLoadOp load, Operation *place) {
  auto slot = load.getView().getDefiningOp<SlotOp>();
  if (!slot)
    return false;
  return llvm::any_of(slot.getChannel().getUsers(), [&](Operation *user) {
    auto other = dyn_cast<SlotOp>(user);
    return other && isSameSlot(other, slot) &&
           llvm::any_of(getViewUsers(other), [&](Operation *access) {
             Operation *outer =
                 access->getBlock()->findAncestorOpInBlock(*place);
             return outer && outer != access && access->isBeforeInBlock(outer);
           });
  });
}

/// Where a load that would hide under a product is to stand instead; null if it
/// stays.
static Operation *findPlace(Operation *op) {
  if (auto load = dyn_cast<FragmentLoadOp>(op))
    return findMaker(load, load.getView());
  auto load = dyn_cast<VectorLoadOp>(op);
  if (!load || !isReadUnderProduct(load))
    return nullptr;
  Operation *maker = findMaker(load, load.getView());
  return maker && isOpenAt(load, maker) ? maker : nullptr;
}

/// Moves a load that would hide under a product to before what makes the
/// product's left operand. A warp issues in order: where it waits for the load,
/// it begins no further part of the product.
static void hoistLoads(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (Operation *place = findPlace(&op))
      op.moveBefore(place);
}

namespace {
struct GroupProducts : gdn::warp::impl::GroupProductsPassBase<GroupProducts> {
  using GroupProductsPassBase::GroupProductsPassBase;

  void runOnOperation() override {
    // Without a schedule a kernel is in the explicit form already.
    if (!getOperation()->hasAttr(ScheduleAttr::kName))
      return;
    if (serial) {
      getOperation()->walk([](WgmmaOp product) { product.setAlone(true); });
      return;
    }
    getOperation()->walk([](Block *block) {
      hoistProducts(*block);
      OpenGroups(*block).run();
      hoistLoads(*block);
    });
  }
};
} // namespace
