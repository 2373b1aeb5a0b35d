//===- ChannelVisits.cpp - Who waits for a slot and arrives ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChannelVisits.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn::warp;

/// How often warps visit the slot of `iteration` in `op`: all of the role, or
/// those whose turn it is; for each chunk if the chunks of the slot are a loop.
static int64_t countRuns(Operation *op, Value iteration) {
  auto role = op->getParentOfType<RoleOp>();
  int64_t runs = role.countTogether();
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (auto chunks =
            loop->getAttrOfType<IntegerAttr>(WarpDialect::getChunksAttrName());
        chunks && loop.isDefinedOutsideOfLoop(iteration))
      runs *= chunks.getInt();
  return runs;
}

/// The op of `op`'s block behind which nothing that `op` began reads any more:
/// for a product the wait for its group.
static Operation *getEnd(Operation *op) {
  auto product = dyn_cast<WgmmaOp>(op);
  if (!product || product.getAlone())
    return op;
  int64_t open = 0;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (isa<WgmmaCommitOp>(next))
      ++open;
    auto await = dyn_cast<WgmmaWaitOp>(next);
    if (await && static_cast<int64_t>(await.getPending()) < open)
      return await;
  }
  return op->getBlock()->mightHaveTerminator()
             ? op->getBlock()->getTerminator()->getPrevNode()
             : &op->getBlock()->back();
}

/// Whether a slot goes to its takers before the products of the warps that fill
/// it are over. These warps fill it the next time, too, so nobody writes to it
/// before.
static bool isHandedOnEarly(SlotOp slot) {
  auto role = slot->getParentOfType<RoleOp>();
  auto channel = slot.getChannel().getDefiningOp<ChannelOp>();
  int64_t turns = static_cast<int64_t>(role.getCount()) / role.countTogether();
  return slot.getDirection() == SlotDirection::Put &&
         role->hasAttr(WarpDialect::getHandOnEarlyAttrName()) &&
         static_cast<int64_t>(channel.getDepth()) % turns == 0;
}

static void findLast(Visit &visit) {
  Block *block = visit.first->getBlock();
  for (SlotOp slot : visit.slots) {
    SmallVector<Operation *> users = getViewUsers(slot);
    users.push_back(slot);
    if (isHandedOnEarly(slot))
      llvm::erase_if(users, llvm::IsaPred<WgmmaOp>);
    for (Operation *user : users) {
      Operation *end = user->getBlock() == block ? getEnd(user) : user;
      Operation *outer = block->findAncestorOpInBlock(*end);
      if (!visit.last || visit.last->isBeforeInBlock(outer))
        visit.last = outer;
    }
  }
  // A fence stands directly behind the stores that it is for.
  while (isa_and_present<FenceOp>(visit.last->getNextNode()))
    visit.last = visit.last->getNextNode();
}

scf::ForOp gdn::warp::findPieceLoop(Block *block) {
  auto loop = dyn_cast<scf::ForOp>(block->getParentOp());
  return loop && loop->hasAttr(WarpDialect::getPiecesAttrName()) ? loop
                                                                 : scf::ForOp();
}

Block *gdn::warp::findWholeBlock(Block *block) {
  scf::ForOp loop = findPieceLoop(block);
  return loop ? loop->getBlock() : block;
}

/// The block of the loop or role around `block`.
static Block *findIterationBlock(Block *block) {
  while (isa<scf::IfOp>(block->getParentOp()) || findPieceLoop(block))
    block = block->getParentOp()->getBlock();
  return block;
}

/// Whether each iteration makes the visit, or its twin on the other side of a
/// branch.
bool ChannelVisits::isAlwaysMade(const Key &key) {
  auto [block, direction, slot] = key;
  auto branch = dyn_cast<scf::IfOp>(block->getParentOp());
  if (!branch)
    return true;
  return branch.elseBlock() &&
         branch->getBlock() == findIterationBlock(block) &&
         visits.contains({branch.thenBlock(), direction, slot}) &&
         visits.contains({branch.elseBlock(), direction, slot});
}

/// Of the visits of one iteration, the first waits and the last arrives.
void ChannelVisits::orderVisits() {
  for (auto &[key, visit] : visits)
    for (auto &[otherKey, other] : visits) {
      auto [block, direction, slot] = key;
      auto [otherBlock, otherDirection, otherSlot] = otherKey;
      Block *iteration = findIterationBlock(block);
      if (direction != otherDirection || slot != otherSlot ||
          iteration != findIterationBlock(otherBlock) || visit.fetched ||
          other.fetched)
        continue;
      if (findWholeBlock(block) == findWholeBlock(otherBlock))
        iteration = findWholeBlock(block);
      else if (!isAlwaysMade(key) || !isAlwaysMade(otherKey))
        continue;
      Operation *own = iteration->findAncestorOpInBlock(*visit.first),
                *others = iteration->findAncestorOpInBlock(*other.first);
      visit.opens &= own == others || own->isBeforeInBlock(others);
      visit.closes &= own == others || others->isBeforeInBlock(own);
    }
}

void ChannelVisits::addSlot(SlotOp slot) {
  Visit &visit =
      visits[{slot->getBlock(), slot.getDirection(), slot.getIteration()}];
  visit.slots.push_back(slot);
  if (!visit.first || slot->isBeforeInBlock(visit.first))
    visit.first = slot;
  for (Operation *taker : getViewUsers(slot)) {
    // Many warps' lanes would be too many arrivals; one warp's cost nothing,
    // and tools that look for races follow them.
    visit.byLane |= isa<VectorStoreOp>(taker) &&
                    slot->getParentOfType<RoleOp>().getCount() == 1;
    visit.stores |= isa<TmaStoreOp>(taker);
    if (auto load = dyn_cast<TmaLoadOp>(taker)) {
      ViewType view = load.getView().getType();
      visit.fetched +=
          view.getRows() * view.getColumns() * view.getElementBytes();
      visit.loads.push_back(load);
    }
  }
}

LogicalResult ChannelVisits::collect() {
  for (Operation *user : channel->getUsers()) {
    if (auto release = dyn_cast<ReleaseUnusedOp>(user))
      releases.push_back(release);
    else if (auto share = dyn_cast<CopyToClusterOp>(user))
      shares.push_back(share);
    else if (auto slot = dyn_cast<SlotOp>(user))
      addSlot(slot);
    else
      return user->emitOpError("expected values with layouts");
  }
  for (auto &[key, visit] : visits) {
    // One lane arrives with the bytes of copies.
    visit.byLane = (visit.byLane || lanesArrive) && visit.fetched == 0;
    findLast(visit);
  }
  orderVisits();
  return checkReleases();
}

llvm::MapVector<Operation *, int64_t>
ChannelVisits::countArrivals(SlotDirection direction) {
  // Of the two sides of a branch one is run.
  auto isOtherSide = [&](Block *block, Value slot) {
    auto branch = dyn_cast<scf::IfOp>(block->getParentOp());
    return branch && block == branch.elseBlock() &&
           visits.contains({branch.thenBlock(), direction, slot});
  };
  // A role that names several slots in an iteration visits each of them as the
  // first.
  llvm::MapVector<Operation *, std::pair<Value, int64_t>> roles;
  for (auto &[key, visit] : visits) {
    auto [block, visited, slot] = key;
    if (visited != direction || !visit.closes || isOtherSide(block, slot))
      continue;
    auto &[first, count] = roles[visit.first->getParentOfType<RoleOp>()];
    if (!first)
      first = slot;
    if (first == slot)
      count += countRuns(visit.slots.front(), first) *
               (visit.byLane ? format::kWarpThreads : 1);
  }
  llvm::MapVector<Operation *, int64_t> counts;
  for (auto &[role, arrivals] : roles)
    counts[role] = arrivals.second;
  return counts;
}

/// A slot that one CTA fills for all has takers in all, but for those that take
/// it only where it is filled.
int64_t ChannelVisits::sumArrivals(SlotDirection direction) {
  int64_t sum = 0;
  for (auto &[role, count] : countArrivals(direction))
    sum += direction == SlotDirection::Get && channel.getTurn() &&
                   !role->hasAttr(WarpDialect::getAlternateCtasAttrName())
               ? count * cluster
               : count;
  return sum;
}

/// A role lets as many slots pass as it takes in an iteration of its own.
LogicalResult ChannelVisits::checkReleases() {
  llvm::MapVector<Operation *, int64_t> passed;
  for (ReleaseUnusedOp release : releases)
    passed[release->getParentOfType<RoleOp>()] +=
        countRuns(release, release.getIteration()) *
        (lanesArrive ? format::kWarpThreads : 1);
  llvm::MapVector<Operation *, int64_t> taken =
      countArrivals(SlotDirection::Get);
  for (auto &[role, count] : passed)
    if (taken.lookup(role) != count)
      return role->emitOpError("expected to arrive as often for slots of "
                               "channel ")
             << channel.getNameAttr() << " that it lets pass as for those that "
             << "it takes, got " << count << " and " << taken.lookup(role);
  return success();
}
