//===- WriteNext.cpp - What the next work item loads first ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleWriter.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Whether extents and strides of arrays decide what `value` is: it is the same
/// for all work items.
static bool isOfCall(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<memref::DimOp>(op))
    return true;
  return op && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(op->getOperands(), isOfCall);
}

static bool followsFromWorkItem(Operation *op) {
  return llvm::all_of(findSources(op), llvm::IsaPred<BlockArgument>);
}

/// The tiles that a work item loads before its loop, at places that follow from
/// the work item, in branches that `isKnown`.
static SmallVector<tile::LoadOp>
findFirstLoads(const Partition &partition,
               function_ref<bool(scf::IfOp)> isKnown) {
  SmallVector<tile::LoadOp> loads;
  tile::ProgramOp program = partition.program;
  auto add = [&](Block &block) {
    for (auto load : block.getOps<tile::LoadOp>())
      if (load.getType().getRank() == 2 && !load.getEnd() &&
          followsFromWorkItem(load))
        loads.push_back(load);
  };
  add(program.getBody().front());
  for (auto branch : program.getBody().getOps<scf::IfOp>())
    if (isKnown(branch))
      add(*branch.thenBlock());
  return loads;
}

/// The number of the work item that comes to this multiprocessor next, and
/// whether there is one: the one of this CTA's next turn, or what the hardware
/// hands out as many CTAs later as the chip runs at a time. Where that guess is
/// wrong another work item's tiles come near for nothing.
std::pair<Value, Value> RoleWriter::writeNextNumber() {
  Value ctas = toI32(b, loc, IdOp::create(b, loc, IdKind::CTACount));
  Value own =
      takesTurns() ? turn : toI32(b, loc, IdOp::create(b, loc, IdKind::CTA));
  Value next = arith::AddIOp::create(
      b, loc, own,
      takesTurns() ? ctas
                   : createI32(getArch(partition.program).multiprocessors *
                               partition.schedule.getMinCtas()));
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, next,
                            takesTurns() ? workItems.getCount() : ctas);
  return {next, isThere};
}

void RoleWriter::prefetch(tile::LoadOp load) {
  unsigned copies = unrollsVTiles() && partition.dependsOnVTile(load)
                        ? partition.schedule.getVTiles()
                        : 1;
  for (unsigned vTile = 0; vTile < copies; ++vTile) {
    SmallVector<Value> offsets = llvm::map_to_vector(
        load.getOffsets(), [&](Value offset) { return lookup(offset, vTile); });
    Value array = lookup(load.getSource(), vTile);
    OpBuilder::InsertionGuard insertion(b);
    if (auto branch = dyn_cast<scf::IfOp>(load->getParentOp()))
      b.setInsertionPointToStart(
          scf::IfOp::create(b, loc, lookup(branch.getCondition(), vTile))
              .thenBlock());
    PrefetchOp::create(b, load.getLoc(), array, offsets, load.getAxes(),
                       load.getType().getShape());
  }
}

/// Brings tiles of the next work item near, if there is one and `when`.
void RoleWriter::prefetchNext(ArrayRef<tile::LoadOp> loads,
                              function_ref<Value()> when) {
  auto [number, isThere] = writeNextNumber();
  auto branch =
      scf::IfOp::create(b, loc, arith::AndIOp::create(b, loc, when(), isThere));
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<IRMapping> outside = maps;
  maps = ofNoWorkItem;
  IRMapping next = workItems.write(b, number);
  for (Value name : names)
    maps[0].map(name, next.lookup(name));
  llvm::for_each(loads, [&](tile::LoadOp load) { prefetch(load); });
  maps = outside;
}

/// With the last iteration of a work item, whose chunks are still ahead of the
/// others, the role that loads brings the next work item's first tiles near:
/// CTAs change work items at about the same time, and wait for all these tiles
/// at once then.
void RoleWriter::writeNext(Value index, Value last) {
  SmallVector<tile::LoadOp> loads =
      findFirstLoads(partition, [](scf::IfOp branch) {
        return isOfCall(branch.getCondition());
      });
  if (loads.empty() || loop + 1 != partition.loops.size())
    return;
  prefetchNext(loads, [&]() -> Value {
    Value after = arith::AddIOp::create(b, loc, index, createI32(1));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, after, last);
  });
}

/// A role that loads a work item's first tiles itself waits for them. Where
/// multiprocessors have several CTAs, the ones that follow find them near: the
/// first warp asks for them behind its own loads, whose time it has anyway. Not
/// for tiles whose rows lie across memory: warps share those, and all would
/// wait for the first (docs/experiments/recurrent.md).
void RoleWriter::writeFollowing() {
  if (partition.schedule.getMinCtas() == 1 || takesTurns() || loop != 0)
    return;
  SmallVector<tile::LoadOp> loads =
      findFirstLoads(partition, followsFromWorkItem);
  llvm::erase_if(loads, [&](tile::LoadOp load) {
    Operation *branch = load->getParentOfType<scf::IfOp>();
    auto owner = partition.roles.find(branch ? branch : load);
    return owner == partition.roles.end() || owner->second != role ||
           load.getAxes()[1] + 1 != load.getSource().getType().getRank();
  });
  if (loads.empty())
    return;
  prefetchNext(loads, [&]() -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 IdOp::create(b, loc, IdKind::Warp),
                                 createIndex(partition.getFirstWarp(role)));
  });
}
