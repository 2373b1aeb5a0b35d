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

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::gdn {

/// Writes the body of one role: what it does for an iteration (WriteRole.cpp),
/// and its iterations and work items (WriteTurns.cpp, WriteNext.cpp).
class RoleWriter {
public:
  RoleWriter(Partition &partition, unsigned role, OpBuilder &b,
             WorkItemWriter &workItems)
      : partition(partition), role(role),
        spec(partition.schedule.getRoles()[role]), b(b),
        loc(partition.program.getLoc()), workItems(workItems),
        names(workItems.getNames()),
        maps(1 + partition.schedule.getVTiles(), IRMapping()) {}

  /// `workItem` is what the kernel works on, unless the role takes work items
  /// in turn; `vTile` is the part of this warpgroup in a role that splits them.
  void write(const IRMapping &workItem, Value vTile);

private:
  /// Whether this role handles the parts one after the other.
  bool unrollsVTiles() const {
    return !spec.getWarpgroupPerVTile() && maps.size() > 2;
  }
  IRMapping &mapFor(Value value, unsigned vTile) {
    return maps[unrollsVTiles() && partition.perVTile.contains(value)
                    ? 1 + vTile
                    : 0];
  }
  /// The operands of a put or get: which slot, which part, which chunk.
  Value slotOperand(Value value, unsigned channel);
  Value vTileOperand(Value value, unsigned vTile);
  Value chunkOperand(unsigned channel);
  Value lookup(Value value, unsigned vTile);
  Value copyFree(Value value, unsigned vTile);
  Value take(Value value, unsigned vTile);
  void copy(Operation *op, unsigned vTile);
  void copyOnce(Operation *op, function_ref<bool(Operation *)> wanted);
  SmallVector<Operation *> orderOps(Block &block, Attribute step);
  void copyOps(Block &block, function_ref<bool(Operation *)> wanted);
  void copyIteration(Value index, Value begin, bool late);
  void copyRolled(Value begin, function_ref<bool(Operation *)> wanted);
  void copyInTurn(Value number, function_ref<bool(Operation *)> wanted);
  void copyOwn(function_ref<bool(Operation *)> wanted);
  void skipSlots();
  void shareSlots();
  Value getSlot(unsigned channel, Value chunkOfIteration);
  /// What goes from iteration to iteration and from work item to work item: the
  /// number of iterations so far and, where steps are delayed into the next
  /// work item, the work items and beginnings of the last iterations, the
  /// oldest first.
  using Progress = SmallVector<Value>;
  Progress begin();
  Progress writeWorkItems();
  void writeWorkItem(Progress &progress);
  void writeLoop(Progress &progress);
  SmallVector<Value> writeNow(Value index, Value begin);
  SmallVector<Value> writeIfLeft(Value index, Value begin, Value last,
                                 ValueRange carried);
  SmallVector<Value> writeRound(Value index, Value begin, Value last,
                                ValueRange carried, ValueRange pending);
  /// Values of an iteration that is to be remembered.
  unsigned getPlaceSize() const { return names.size() + 1; }
  SmallVector<Value> remember(ValueRange pending, ValueRange place);
  Value writeBegin(Value index);
  void writeLate(Value index, ValueRange pending);
  void writeRest(const Progress &progress);
  std::pair<Value, Value> writeNextNumber();
  void prefetch(tile::LoadOp load);
  void writeNext(Value index, Value last);
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

  Partition &partition;
  unsigned role;
  warp::RoleSpecAttr spec;
  OpBuilder &b;
  Location loc;
  WorkItemWriter &workItems;
  /// The program's arguments that differ from work item to work item.
  ArrayRef<Value> names;
  /// The work item of a CTA that takes no turns.
  const IRMapping *only = nullptr;
  /// What stands for a value of the program here: values that are the same for
  /// all parts, then those of each part. `ofNoWorkItem` has what all work items
  /// share.
  SmallVector<IRMapping> maps, ofNoWorkItem;
  Value warpgroupVTile, iteration, step;
  /// The number of the work item, where the CTA takes several.
  Value turn;
  /// The number of the iteration among those of this CTA, where CTAs share the
  /// role.
  Value ownIteration;
  /// The chunk of the iteration, where the chunks are a loop.
  Value chunk;
  /// What stands already.
  DenseSet<Operation *> copied;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_ROLEWRITER_H
