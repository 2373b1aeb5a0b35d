//===- LoopPieces.cpp - A loop over the pieces of tiles -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stores of the pieces of a tile are where their code begins to be alike:
// from there operands are compared piece by piece, backwards, up to values that
// the pieces share and to parts of one view that lie equally far apart.
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OperationSupport.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_LOOPPIECESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {
/// Ops of the pieces that do the same, a piece each.
using Alike = SmallVector<Operation *>;

/// What a block makes of pieces, as far as it is alike.
class Pieces {
public:
  explicit Pieces(Block &block) : block(block) {}

  /// Adds stores, and what they are made of; false if that differs.
  bool match(ArrayRef<Operation *> ops);
  bool areApart();
  /// Whether nothing else needs what the pieces make before the last of them
  /// is stored.
  bool mayStandLast();
  /// Writes the loop, and erases what it replaces.
  void write();

private:
  bool match(ArrayRef<Value> values);
  Value select(ImplicitLocOpBuilder &b, Value number, ArrayRef<Value> values);
  void sinkSlots(scf::ForOp loop);

  Block &block;
  /// What the loop has of each piece, by the op of the first one.
  llvm::MapVector<Operation *, Alike> members;
  DenseSet<Operation *> all;
  /// Values from outside of the block that differ, by that of the first piece.
  llvm::MapVector<Value, SmallVector<Value>> chosen;
};
} // namespace

/// Writes a publish of several fragments as stores to its place.
static void open(PublishOp publish) {
  if (publish.getFragments().size() < 2 || publish.getRows() ||
      publish.getInTurn())
    return;
  ImplicitLocOpBuilder b(publish.getLoc(), publish);
  Value place = PublishOp::create(b, publish.getType(), ValueRange(),
                                  DenseI64ArrayAttr(), /*transpose=*/false,
                                  /*in_turn=*/false);
  publish.storeTo(b, place);
  publish.replaceAllUsesWith(Value(ShareOp::create(b, place)));
  publish.erase();
}

//===----------------------------------------------------------------------===//
// Parts of views
//===----------------------------------------------------------------------===//

/// The part of a view that `op` stores to; null if it does not.
static SliceOp getStoredPart(Operation *op) {
  Value view;
  if (auto store = dyn_cast<FragmentStoreOp>(op))
    view = store.getView();
  else if (auto store = dyn_cast<VectorStoreOp>(op))
    view = store.getView();
  auto part = view ? view.getDefiningOp<SliceOp>() : SliceOp();
  return part && !part.getNumber() ? part : SliceOp();
}

/// Rows and columns between two parts of a view.
static std::array<int64_t, 2> getStep(SliceOp from, SliceOp to) {
  return {static_cast<int64_t>(to.getRow()) -
              static_cast<int64_t>(from.getRow()),
          static_cast<int64_t>(to.getColumn()) -
              static_cast<int64_t>(from.getColumn())};
}

/// Whether `ops` are parts of one view, of one type, in order and equally far
/// apart.
static bool areParts(ArrayRef<Operation *> ops) {
  SmallVector<SliceOp> parts;
  for (Operation *op : ops)
    parts.push_back(cast<SliceOp>(op));
  std::array<int64_t, 2> step = getStep(parts[0], parts[1]);
  if (step[0] < 0 || step[1] < 0 || step[0] + step[1] == 0)
    return false;
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].getSource() != parts[0].getSource() ||
        parts[i].getType() != parts[0].getType() || parts[i].getNumber() ||
        getStep(parts[i - 1], parts[i]) != step)
      return false;
  return !parts[0].getNumber();
}

/// Stores to the parts of each view, in the order of the parts. There are as
/// many of each view as the one with the fewest has, or a multiple, in runs.
static SmallVector<Alike> collectStores(Block &block) {
  llvm::MapVector<Value, Alike> views;
  for (Operation &op : block)
    if (SliceOp part = getStoredPart(&op))
      views[part.getSource()].push_back(&op);
  size_t fewest = 0;
  for (auto &[view, ops] : views)
    if (ops.size() > 1 && (!fewest || ops.size() < fewest))
      fewest = ops.size();
  SmallVector<Alike> stores;
  for (auto &[view, ops] : views) {
    if (ops.size() < 2 || ops.size() % fewest != 0)
      continue;
    llvm::sort(ops, [](Operation *one, Operation *other) {
      SliceOp first = getStoredPart(one), second = getStoredPart(other);
      return std::pair(first.getRow(), first.getColumn()) <
             std::pair(second.getRow(), second.getColumn());
    });
    for (ArrayRef<Operation *> left = ops; !left.empty();
         left = left.drop_front(fewest))
      stores.emplace_back(left.take_front(fewest));
  }
  return stores;
}

//===----------------------------------------------------------------------===//
// What is alike
//===----------------------------------------------------------------------===//

/// Whether each iteration of a loop may run `op`.
static bool mayRepeat(Operation *op) {
  if (isa<FragmentStoreOp, VectorStoreOp, FragmentLoadOp, VectorLoadOp>(op))
    return true;
  return getScratchBytes(op) == 0 && isMemoryEffectFree(op) &&
         op->getNumResults() == 1 && !isa<SlotOp, WgmmaOp>(op) &&
         (op->getNumRegions() == 0 || isa<linalg::BroadcastOp>(op));
}

bool Pieces::match(ArrayRef<Value> values) {
  if (llvm::all_equal(values))
    return true;
  Alike ops;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp(); op && op->getBlock() == &block)
      ops.push_back(op);
  if (ops.size() == values.size())
    return match(ops);
  Type type = values[0].getType();
  bool isSmall = type.isIntOrIndexOrFloat() || isEncoded<RowsAttr>(type);
  auto hasType = [&](Value value) { return value.getType() == type; };
  if (!ops.empty() || !isSmall || !llvm::all_of(values, hasType))
    return false;
  auto [known, isNew] = chosen.insert({values[0], llvm::to_vector(values)});
  return isNew || ArrayRef<Value>(known->second) == values;
}

bool Pieces::match(ArrayRef<Operation *> ops) {
  Operation *first = ops.front();
  if (auto known = members.find(first); known != members.end())
    return ArrayRef<Operation *>(known->second) == ops;
  for (Operation *op : ops)
    if (!mayRepeat(op) || op->getName() != first->getName() ||
        !all.insert(op).second)
      return false;
  members[first] = llvm::to_vector(ops);
  if (isa<SliceOp>(first))
    return areParts(ops);
  auto ignore = [](Value, Value) { return success(); };
  for (Operation *op : ops.drop_front())
    if (!OperationEquivalence::isEquivalentTo(
            first, op, ignore, /*markEquivalent=*/nullptr,
            OperationEquivalence::Flags::IgnoreLocations))
      return false;
  for (unsigned number = 0; number < first->getNumOperands(); ++number)
    if (!match(llvm::map_to_vector(
            ops, [&](Operation *op) { return op->getOperand(number); })))
      return false;
  return true;
}

/// The slot, place or array of shared memory that `op` stores to or loads from;
/// null for other ops.
static Value findMemory(Operation *op) {
  if (!isa<FragmentStoreOp, VectorStoreOp, FragmentLoadOp, VectorLoadOp>(op))
    return {};
  Value view = op->getOperand(op->getNumResults() == 0 ? 1 : 0);
  while (auto part = view.getDefiningOp<SliceOp>())
    view = part.getSource();
  return view;
}

/// Whether no piece takes what another one makes.
bool Pieces::areApart() {
  for (auto &[first, ops] : members)
    for (auto [number, value] : llvm::enumerate(first->getOperands()))
      if (all.contains(value.getDefiningOp()) &&
          ops[1]->getOperand(number) == value)
        return false;
  return true;
}

/// What stands between the first and the last of the ops, which the loop leaves
/// in front of it, neither takes what they make nor waits for it.
bool Pieces::mayStandLast() {
  Operation *first = nullptr, *last = nullptr;
  DenseSet<Value> stored;
  for (Operation *op : all)
    if (op->getNumResults() == 0)
      stored.insert(findMemory(op));
  for (Operation *op : all) {
    if (op->getNumResults() != 0 && stored.contains(findMemory(op)))
      return false;
    if (!first || op->isBeforeInBlock(first))
      first = op;
    if (!last || last->isBeforeInBlock(op))
      last = op;
    for (Operation *user : op->getUsers())
      if (!all.contains(user))
        return false;
  }
  for (Operation &op :
       llvm::make_range(Block::iterator(first), Block::iterator(last))) {
    bool isPlace = isa<PublishOp>(op) && op.getNumOperands() == 0,
         isLoad = isa<FragmentLoadOp, VectorLoadOp>(op) &&
                  !stored.contains(findMemory(&op));
    if (!all.contains(&op) && !isMemoryEffectFree(&op) && !isPlace && !isLoad)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// The one of `values` that the piece `number` takes.
Value Pieces::select(ImplicitLocOpBuilder &b, Value number,
                     ArrayRef<Value> values) {
  Value taken = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                                         arith::ConstantIndexOp::create(b, i));
    taken = arith::SelectOp::create(b, isHere, values[i], taken);
  }
  return taken;
}

/// Slots that the loop uses are waited for at their first use there, but for
/// those that are used in front of it and behind it.
void Pieces::sinkSlots(scf::ForOp loop) {
  SmallVector<SlotOp> slots(block.getOps<SlotOp>());
  for (SlotOp slot : slots) {
    Operation *first = nullptr;
    bool isBefore = false, isBehind = false;
    for (Operation *user : slot->getUsers()) {
      Operation *outer = block.findAncestorOpInBlock(*user);
      isBefore |= outer->isBeforeInBlock(loop);
      isBehind |= loop->isBeforeInBlock(outer);
      if (outer == loop && (!first || user->isBeforeInBlock(first)))
        first = user;
    }
    if (!first || (isBefore && isBehind))
      continue;
    Operation *copy = OpBuilder(first).clone(*slot);
    slot->replaceUsesWithIf(
        copy, [&](OpOperand &use) { return loop->isAncestor(use.getOwner()); });
    if (isBehind)
      slot->moveAfter(loop);
    else if (!isBefore)
      slot.erase();
  }
}

void Pieces::write() {
  SmallVector<Operation *> order =
      llvm::map_to_vector(members, [](auto &entry) { return entry.first; });
  auto isBefore = [](Operation *one, Operation *other) {
    return one->isBeforeInBlock(other);
  };
  llvm::sort(order, isBefore);
  auto count = static_cast<int64_t>(members.front().second.size());
  Operation *last = *llvm::max_element(all, isBefore);
  ImplicitLocOpBuilder b(last->getLoc(), last);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto loop = scf::ForOp::create(b, constant(0), constant(count), constant(1));
  loop->setAttr(WarpDialect::getPiecesAttrName(), b.getI64IntegerAttr(count));
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  IRMapping map;
  for (auto &[value, values] : chosen)
    map.map(value, select(b, number, values));
  for (Operation *op : order) {
    auto part = dyn_cast<SliceOp>(op);
    if (!part) {
      b.clone(*op, map);
      continue;
    }
    auto next = cast<SliceOp>(members[op][1]);
    map.map(
        part.getResult(),
        Value(SliceOp::create(b, part.getType(), part.getSource(),
                              part.getRowAttr(), part.getColumnAttr(), number,
                              b.getDenseI64ArrayAttr(getStep(part, next)))));
  }
  SmallVector<Operation *> old(all.begin(), all.end());
  llvm::sort(old, isBefore);
  for (Operation *op : llvm::reverse(old))
    op->erase();
  sinkSlots(loop);
}

static void loopPieces(Block &block) {
  for (auto publish : llvm::make_early_inc_range(block.getOps<PublishOp>()))
    open(publish);
  Pieces pieces(block);
  SmallVector<Alike> stores = collectStores(block);
  for (ArrayRef<Operation *> ops : stores)
    if (!pieces.match(ops))
      return;
  if (!stores.empty() && pieces.areApart() && pieces.mayStandLast())
    pieces.write();
}

namespace {
struct LoopPieces : gdn::warp::impl::LoopPiecesPassBase<LoopPieces> {
  void runOnOperation() override {
    for (auto role : getOperation().getBody().getOps<RoleOp>()) {
      if (!role->hasAttr(WarpDialect::getLoopPiecesAttrName()))
        continue;
      SmallVector<Block *> blocks;
      role.walk([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks)
        loopPieces(*block);
    }
  }
};
} // namespace
