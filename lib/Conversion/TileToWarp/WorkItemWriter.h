//===- WorkItemWriter.h - What a work item's number is ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_WORKITEMWRITER_H
#define GDN_LIB_CONVERSION_TILETOWARP_WORKITEMWRITER_H

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::gdn {

/// An index of which 32 bits are enough, and back: it takes one register then,
/// and a GPU divides no wider ones.
Value toI32(OpBuilder &b, Location loc, Value index);
Value toIndex(OpBuilder &b, Location loc, Value number);

/// Whether `offset` goes over all tokens up to `end`, one after the other.
bool isEachToken(Value offset, Value end);

/// Writes which sequence, head and part a work item's number stands for: the
/// last arguments of a program.
class WorkItemWriter {
public:
  WorkItemWriter(tile::ProgramOp program, tile::LaunchOp launch,
                 warp::KernelOp kernel);

  /// Writes what all work items share; fails where the launch does not say it.
  LogicalResult prepare(OpBuilder &b, warp::ScheduleAttr schedule);
  /// Maps those arguments of the program that all work items share.
  const IRMapping &getShared() const { return shared; }
  /// The arguments that differ from work item to work item.
  ArrayRef<Value> getNames() const { return names; }
  /// Maps the program's arguments for a work item, an i32.
  IRMapping write(OpBuilder &b, Value number);
  /// Writes zeros where outputs have tokens that no sequence has: in front of
  /// the first one, and behind the last one. `workItem` has one of these two.
  void clearOutside(OpBuilder &b, const IRMapping &workItem);
  /// Ends all CTAs if nobody reads what the program makes.
  LogicalResult leaveUnread(OpBuilder &b, bool isBeside);
  /// Ends a CTA whose work item has nothing to do, clears what one does not
  /// compute (`gdn_tile.clear`), and lets others wait for the
  /// program that theirs says (`gdn_tile.leave`, `gdn_tile.await`,
  /// `gdn_tile.await_report`). If `early`, ends those alone that need not wait
  /// for the launch in front.
  LogicalResult enter(OpBuilder &b, const IRMapping &workItem, bool isBeside,
                      bool early = false);
  /// Whether CTAs of the program may end before they wait.
  bool mayLeaveEarly();
  /// Whether the program may hold back the one that runs beside it
  /// (`gdn_tile.hold_back`).
  bool mayHoldBack();
  /// Lets that one begin, unless it is held back.
  LogicalResult launchBeside(OpBuilder &b, const IRMapping &workItem);
  /// Whether work items report how far they are (`gdn_tile.report`).
  bool mayReport() { return static_cast<bool>(findReport()); }
  /// Sets what the work item reports to 0.
  LogicalResult beginReports(OpBuilder &b, const IRMapping &workItem);
  /// Tells the program that waits for this one, if there is one.
  void leave(OpBuilder &b);
  /// The number of work items, an i32, if the schedule is persistent.
  Value getCount() const { return count; }

private:
  /// Writes the zeros of `clear`.
  LogicalResult clearSkipped(OpBuilder &b, tile::ClearOp clear,
                             IRMapping workItem);
  /// Writes zeros to the work item's part of each of `arrays`.
  void clearOutputs(OpBuilder &b, ValueRange arrays, const IRMapping &workItem);
  /// One of the program's reports, which are all of one entry.
  tile::ReportOp findReport();
  /// Whether work items may run in turns, and wait, if they are to.
  LogicalResult checkTurns(warp::ScheduleAttr schedule);
  /// A size of the grid as the kernel knows it; null if it does not.
  Value writeExtent(OpBuilder &b, Value extent);
  /// The same of an array's dimension.
  Value writeDim(OpBuilder &b, tensor::DimOp dim);
  /// The kernel's argument for an input of the launch; null if there is none.
  Value findInput(Value input);
  /// The kernel's argument for a scalar as the program's `type`.
  Value writeScalar(OpBuilder &b, Value argument, Type type);
  void mapShared(OpBuilder &b);
  /// Writes zeros to tokens [from, to) of the work item's part of what `store`
  /// writes.
  void clear(OpBuilder &b, tile::StoreOp store, IRMapping workItem, Value from,
             Value to);
  /// Whether the work item is the one of several that clears the same part of
  /// what `store` writes; null where each has a part of its own.
  Value isFirstToClear(OpBuilder &b, tile::StoreOp store,
                       const IRMapping &workItem, bool allHeads);

  tile::ProgramOp program;
  tile::LaunchOp launch;
  warp::KernelOp kernel;
  Location loc;
  /// Arguments of the kernel; `bounds` only of packed sequences.
  Value tokens, bounds;
  Value heads, count, sequences;
  /// Sizes of the grid behind sequences, heads and V tiles.
  SmallVector<Value> more;
  IRMapping shared;
  SmallVector<Value> names;
  /// Parts of a head, and those that are work items of their own.
  int64_t allVTiles = 1, vTiles = 1;
  bool isFolded = false;
  /// Whether packed sequences are taken as they lie.
  bool isInOrder = false;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WORKITEMWRITER_H
