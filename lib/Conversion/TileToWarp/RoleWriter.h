//===- RoleWriter.h - The body of a role ------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_ROLEWRITER_H
#define GDN_LIB_CONVERSION_TILETOWARP_ROLEWRITER_H

#include "Partition.h"
#include "WorkItemWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::gdn {

/// Writes the body of one role: what it does for an iteration (WriteRole.cpp),
/// and its iterations and work items (WriteTurns.cpp, WriteNext.cpp).
class RoleWriter {
public:
  RoleWriter(const Partition &partition, unsigned role,
             ArrayRef<Value> channels, OpBuilder &b, WorkItemWriter &workItems)
      : partition(partition), role(role),
        spec(partition.schedule.getRoles()[role]), channels(channels), b(b),
        loc(partition.getProgram().getLoc()), workItems(workItems),
        names(workItems.getNames()),
        maps(1 + partition.schedule.getVTiles(), IRMapping()) {}

  /// `workItem` is what the kernel works on, unless the role takes work items
  /// in turn; `vTile` is that of this warpgroup in a role that has one for
  /// each.
  void write(const IRMapping &workItem, Value vTile);

private:
  /// Whether this role handles the V tiles one after the other.
  bool unrollsVTiles() const {
    return !spec.getWarpgroupPerVTile() && maps.size() > 2;
  }
  IRMapping &getMap(SmallVector<IRMapping> &of, Value value, unsigned vTile) {
    return of[unrollsVTiles() && partition.perVTile.contains(value) ? 1 + vTile
                                                                    : 0];
  }
  IRMapping &mapFor(Value value, unsigned vTile) {
    return getMap(maps, value, vTile);
  }
  /// The operands of a put or get: which slot, which V tile, which chunk.
  Value slotOperand(Value value, unsigned channel);
  Value vTileOperand(Value value, unsigned vTile);
  Value chunkOperand(unsigned channel);
  Value lookup(Value value, unsigned vTile);
  Value copyFree(Value value, unsigned vTile);
  Value take(Value value, unsigned vTile);
  void put(Value value, Value made, unsigned vTile);
  void copy(Operation *op, unsigned vTile);
  void copyOnce(Operation *op, function_ref<bool(Operation *)> wanted);
  SmallVector<Operation *> orderOps(Block &block, Attribute step);
  void copyOps(Block &block, function_ref<bool(Operation *)> wanted);
  void copyIteration(Value index, Value begin, bool late);
  bool leads(Operation *op);
  int64_t getLeadingEvery(Operation *op);
  void copyLeading(Value begin, function_ref<bool(Operation *)> wanted);
  void copyRolled(Value begin, function_ref<bool(Operation *)> wanted,
                  bool late);
  void copyInTurn(Value number, function_ref<bool(Operation *)> wanted);
  void copyOwn(function_ref<bool(Operation *)> wanted);
  scf::IfOp copyIfOwn(function_ref<void()> write);
  void releaseUnusedSlots();
  void copySlotsToCluster();
  Value getSlot(unsigned channel, Value chunkOfIteration);
  /// What goes from loop to loop and from work item to work item.
  struct Progress {
    /// The number of iterations so far, of each clock, and of work items.
    SmallVector<Value> clocks;
    /// Where steps are delayed into the next work item, the work items and
    /// beginnings of the last iterations, the oldest first.
    SmallVector<Value> pending;

    SmallVector<Value> flatten() const {
      SmallVector<Value> all(clocks);
      llvm::append_range(all, pending);
      return all;
    }
    /// The same of other values.
    Progress with(ValueRange values) const {
      return {SmallVector<Value>(values.take_front(clocks.size())),
              SmallVector<Value>(values.drop_front(clocks.size()))};
    }
  };
  Progress begin();
  Progress writeWorkItems();
  void writeWorkItem(Progress &progress);
  void takeOutside();
  void makeNumbers();
  void putResults();
  void advance(Progress &progress, Value count);
  Value writeCount();
  void writeLoop(Progress &progress);
  void writeRounds(Progress &progress, Value count);
  SmallVector<Value> writeNow(Value index, Value begin);
  SmallVector<Value> writeIfLeft(Value index, Value begin, Value last,
                                 ValueRange carried);
  SmallVector<Value> writeRound(Value index, Value first, Value last,
                                ValueRange carried, ValueRange pending);
  /// Values of an iteration that is to be remembered.
  unsigned getPlaceSize() const { return names.size() + 1; }
  SmallVector<Value> remember(ValueRange pending, ValueRange place);
  Value writeBegin(Value index);
  void writeLate(Value index, Value first, ValueRange pending);
  void writeRest(const Progress &progress);
  std::pair<Value, Value> writeNextNumber();
  void prefetch(tile::LoadOp load);
  void prefetchNext(ArrayRef<tile::LoadOp> loads, function_ref<Value()> when);
  void writeNext(Value index, Value last);
  void writeFollowing();
  /// The loop that is written, and what this role needs of it.
  scf::ForOp getLoop() const { return partition.loops[loop]; }
  /// What this role carries around the loop: numbers of values, and V tiles.
  SmallVector<std::pair<unsigned, unsigned>> getKept() const;
  unsigned countCopies(Value value) const {
    return unrollsVTiles() && partition.perVTile.contains(value)
               ? partition.schedule.getVTiles()
               : 1;
  }
  /// Whether late steps of the last iterations run in the next work item.
  bool carriesLate() const {
    return spec.getDelay() != 0 && !partition.endsLateWithLoop(role);
  }
  /// Whether the CTA takes work items in turn, or has one.
  bool takesTurns() const { return workItems.getCount() != nullptr; }
  Value createIndex(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// Numbers of work items and iterations are i32, so that they take one
  /// register.
  Value createI32(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }

  const Partition &partition;
  unsigned role;
  warp::RoleSpecAttr spec;
  /// The kernel's channels.
  ArrayRef<Value> channels;
  OpBuilder &b;
  Location loc;
  WorkItemWriter &workItems;
  /// The program's arguments that differ from work item to work item.
  ArrayRef<Value> names;
  /// The arguments of the work item that is written.
  IRMapping current;
  /// What stands for a value of the program here: values that are the same for
  /// all V tiles, then those of each. `ofNoWorkItem` has what all work items
  /// share.
  SmallVector<IRMapping> maps, ofNoWorkItem;
  /// Numbers that were made before loops, not in them.
  SetVector<Value> madeBefore;
  Value warpgroupVTile, iteration, step;
  /// The number of the work item, where the CTA takes several.
  Value turn;
  /// The number of the iteration among those of this CTA, in a cluster.
  Value ownIteration;
  /// The chunk of the iteration, where the chunks are a loop.
  Value chunk;
  /// Number of the loop that is written.
  unsigned loop = 0;
  /// Of each clock, how far the numbers of its iterations are ahead of those of
  /// the loop that is written (i32); null where they are the same.
  SmallVector<Value> shifts;
  /// The number of the work item among those of this CTA (i32).
  Value workItemNumber;
  /// The number of the iteration (i32).
  Value number;
  /// What stands already.
  DenseSet<Operation *> copied;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_ROLEWRITER_H
