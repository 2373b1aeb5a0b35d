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

/// The tiles that a work item loads before its loop, at places that follow from
/// the work item: in each call, or in calls that have the array.
static SmallVector<tile::LoadOp> findFirstLoads(const Partition &partition) {
  SmallVector<tile::LoadOp> loads;
  tile::ProgramOp program = partition.program;
  auto add = [&](Block &block) {
    for (auto load : block.getOps<tile::LoadOp>())
      if (load.getType().getRank() == 2 && !load.getEnd() &&
          llvm::all_of(findSources(load), llvm::IsaPred<BlockArgument>))
        loads.push_back(load);
  };
  add(program.getBody().front());
  for (auto branch : program.getBody().getOps<scf::IfOp>())
    if (isOfCall(branch.getCondition()))
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
                   : createI32(getArch(partition.program).multiprocessors));
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

/// With the last iteration of a work item, whose chunks are still ahead of the
/// others, the role that loads brings the next work item's first tiles near:
/// CTAs change work items at about the same time, and wait for all these tiles
/// at once then.
void RoleWriter::writeNext(Value index, Value last) {
  SmallVector<tile::LoadOp> loads = findFirstLoads(partition);
  if (loads.empty() || loop + 1 != partition.loops.size())
    return;
  auto [number, isThere] = writeNextNumber();
  Value after = arith::AddIOp::create(b, loc, index, createI32(1));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, after, last);
  auto branch =
      scf::IfOp::create(b, loc, arith::AndIOp::create(b, loc, isLast, isThere));
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
