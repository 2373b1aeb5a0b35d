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

/// Writes the body of one role: what it does for a trip (WriteRole.cpp), and
/// its trips and items (WriteTurns.cpp, WriteNext.cpp).
class RoleWriter {
public:
  RoleWriter(Partition &partition, unsigned role, OpBuilder &b,
             ItemWriter &items)
      : partition(partition), role(role),
        plan(partition.schedule.getRoles()[role]), b(b),
        loc(partition.program.getLoc()), items(items), names(items.getNames()),
        maps(1 + partition.schedule.getParts(), IRMapping()) {}

  /// `item` is what the kernel works on, unless the role takes items in turn;
  /// `part` is the part of this warpgroup in a role that splits them.
  void write(const IRMapping &item, Value part);

private:
  /// Whether this role handles the parts one after the other.
  bool unrollsParts() const { return !plan.getSplit() && maps.size() > 2; }
  IRMapping &mapFor(Value value, unsigned part) {
    return maps[unrollsParts() && partition.partial.contains(value) ? 1 + part
                                                                    : 0];
  }
  /// The operands of a put or get: which slot, which part, which chunk.
  Value slotOperand(Value value, unsigned channel);
  Value partOperand(Value value, unsigned part);
  Value chunkOperand(unsigned channel);
  Value lookup(Value value, unsigned part);
  Value copyFree(Value value, unsigned part);
  Value take(Value value, unsigned part);
  void copy(Operation *op, unsigned part);
  void copyOnce(Operation *op, function_ref<bool(Operation *)> wanted);
  SmallVector<Operation *> orderOps(Block &block, Attribute step);
  void copyOps(Block &block, function_ref<bool(Operation *)> wanted);
  void copyTrip(Value index, Value begin, bool late);
  void copyRolled(Value begin, function_ref<bool(Operation *)> wanted);
  void copyInTurn(Value number, function_ref<bool(Operation *)> wanted);
  void copyOwn(function_ref<bool(Operation *)> wanted);
  void skipSlots();
  void shareSlots();
  Value getSlot(unsigned channel, Value chunkOfTrip);
  /// What goes from trip to trip and from item to item: the number of trips
  /// so far and, where steps are delayed into the next item, the items and
  /// beginnings of the last trips, the oldest first.
  using Progress = SmallVector<Value>;
  Progress begin();
  Progress writeItems();
  void writeItem(Progress &progress);
  void writeLoop(Progress &progress);
  SmallVector<Value> writeNow(Value index, Value begin);
  SmallVector<Value> writeIfLeft(Value index, Value begin, Value last,
                                 ValueRange carried);
  SmallVector<Value> writeRound(Value index, Value begin, Value last,
                                ValueRange carried, ValueRange pending);
  /// Values of a trip that is to be remembered.
  unsigned getPlaceSize() const { return names.size() + 1; }
  SmallVector<Value> remember(ValueRange pending, ValueRange place);
  Value writeBegin(Value index);
  void writeLate(Value index, ValueRange pending);
  void writeRest(const Progress &progress);
  std::pair<Value, Value> writeNextNumber();
  void prefetch(tile::LoadOp load);
  void writeNext(Value index, Value last);
  /// Whether the CTA takes items in turn, or has one.
  bool takesTurns() const { return items.getCount() != nullptr; }
  Value createIndex(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// Numbers of items and trips are i32, so that they take one register.
  Value createI32(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }

  Partition &partition;
  unsigned role;
  warp::RolePlanAttr plan;
  OpBuilder &b;
  Location loc;
  ItemWriter &items;
  /// The program's arguments that differ from item to item.
  ArrayRef<Value> names;
  /// The item of a CTA that takes no turns.
  const IRMapping *only = nullptr;
  /// What stands for a value of the program here: values that are the same for
  /// all parts, then those of each part. `ofNoItem` has what all items share.
  SmallVector<IRMapping> maps, ofNoItem;
  Value splitPart, trip, step;
  /// The number of the item, where the CTA takes several.
  Value turn;
  /// The number of the trip among those of this CTA, where CTAs share the role.
  Value ownTrip;
  /// The chunk of the trip, where the chunks are a loop.
  Value chunk;
  /// What stands already.
  DenseSet<Operation *> copied;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_ROLEWRITER_H
