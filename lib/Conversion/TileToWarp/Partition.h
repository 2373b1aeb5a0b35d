//===- Partition.h - Which role runs an op, which values cross --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_PARTITION_H
#define GDN_LIB_CONVERSION_TILETOWARP_PARTITION_H

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn {

/// An index of which 32 bits are enough, and back: it takes one register then,
/// and a GPU divides no wider ones.
Value toI32(OpBuilder &b, Location loc, Value index);
Value toIndex(OpBuilder &b, Location loc, Value number);

/// The launch that a program's kernel is made for: its only one.
FailureOr<tile::LaunchOp> findLaunch(ModuleOp module, tile::ProgramOp program);

/// Fails where sequences that are not packed end elsewhere than their arrays:
/// copies end with the arrays.
LogicalResult checkTokens(tile::ProgramOp program, tile::LaunchOp launch);

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
  /// The number of work items, an i32, if the schedule is persistent.
  Value getCount() const { return count; }

private:
  /// A size of the grid as the kernel knows it; null if it does not.
  Value writeExtent(OpBuilder &b, Value extent);
  /// The kernel's argument for an input of the launch; null if there is none.
  Value findArray(Value input);
  void mapShared(OpBuilder &b);

  tile::ProgramOp program;
  tile::LaunchOp launch;
  warp::KernelOp kernel;
  Location loc;
  /// Arguments of the kernel; `bounds` only of packed sequences.
  Value tokens, bounds;
  Value heads, count;
  IRMapping shared;
  SmallVector<Value> names;
  /// Parts that are work items of their own.
  int64_t vTiles = 1;
  bool isFolded = false;
};

/// A program and its schedule: who runs which op and what crosses.
struct Partition {
  Partition(tile::ProgramOp program, warp::ScheduleAttr schedule)
      : program(program), schedule(schedule) {}

  /// A value's place: number of the channel and of the field, or of the field
  /// of part 0, for the roles that take it there.
  struct Field {
    unsigned channel = 0, index = 0;
    SetVector<unsigned> takers;
  };
  /// What a role needs besides its own ops.
  struct Needs {
    /// Numbers of the loop's carried values.
    SetVector<unsigned> carried;
    /// Whether it has ops in the loop.
    bool inLoop = false;
  };

  /// Ops that every role copies where it uses them.
  static bool isFree(Operation *op);
  /// Values that `op` and its regions take from outside.
  static SetVector<Value> getTakenValues(Operation *op);
  /// The step of an op, or of the ops inside it.
  static StringAttr getStep(Operation *op);
  /// The chunk of its iteration that an op belongs to.
  static int64_t getChunk(Operation *op);

  LogicalResult analyse();
  /// Writes the kernel at `b`'s place. `launch` runs the program.
  LogicalResult write(OpBuilder &b, tile::LaunchOp launch);

  bool dependsOnVTile(Operation *op) const;
  /// The field of a value in `channel`, or that role `taker` takes; null if
  /// there is none.
  const Field *getField(Value value, unsigned channel) const;
  const Field *getFieldOf(Value value, unsigned taker) const;
  /// For how many chunks a slot has fields of the same types.
  int64_t getChunksOfSlot(unsigned channel) const;
  /// Whether the chunks of an iteration are a loop in this role.
  bool isRolled(unsigned role) const;
  /// The first warp of a role.
  int64_t getFirstWarp(unsigned role) const;
  /// Whether a role takes what goes through a channel.
  bool takes(unsigned role, unsigned channel) const;
  /// Where roles that the CTAs of a cluster share fill a channel, the last of
  /// them, which copies its slots; none else, or where they alone take from it.
  std::optional<unsigned> getSharer(unsigned channel) const;
  /// Whether what goes through a channel stays between roles that CTAs share.
  bool isShared(unsigned channel) const;

  tile::ProgramOp program;
  warp::ScheduleAttr schedule;
  /// The loop over the work item's chunks, if there is one.
  scf::ForOp loop;
  llvm::MapVector<Operation *, unsigned> roles;
  /// Values that depend on the V tile.
  DenseSet<Value> perVTile;
  SmallVector<Needs> needs;
  /// Values that cross, with the roles that take them.
  llvm::MapVector<Value, SetVector<unsigned>> crossing;
  /// Several where no channel goes to all that take the value.
  DenseMap<Value, SmallVector<Field, 1>> fields;
  SmallVector<SmallVector<Type>> fieldTypes;
  /// For each channel, for how many chunks the same types cross.
  SmallVector<int64_t> alike;
  /// The kernel's channels, null where nothing crosses.
  SmallVector<Value> channels;

private:
  FailureOr<unsigned> assignRole(Operation *op);
  LogicalResult assignRoles(Block &block);
  void findPerVTile();
  void collectNeeds(Value value, unsigned role, DenseSet<Value> &seen);
  LogicalResult checkChunksPerIteration();
  LogicalResult findCrossing();
  /// Whether `channel` may carry `value` to a role.
  bool carries(warp::ChannelSpecAttr channel, Value value,
               unsigned taker) const;
  FailureOr<SmallVector<Field, 1>>
  findCarriers(Value value, const SetVector<unsigned> &takers);
  /// Values of each channel and chunk.
  using ChannelValues = SmallVector<SmallVector<SmallVector<Value>>>;
  LogicalResult sortCrossing(ChannelValues &values);
  LogicalResult assignFields();
  LogicalResult checkRolled(unsigned role);
  LogicalResult checkShared(unsigned channel);
  /// Whether `op` runs some iterations late.
  bool isLate(Operation *op) const;
  LogicalResult checkLateValues(unsigned role);
  /// A channel and what is done with it.
  using ChannelUse = std::pair<unsigned, warp::SlotDirection>;
  /// What steps of a role that are late, or those that are not, do.
  SetVector<ChannelUse> findUses(unsigned role, bool late) const;
  LogicalResult checkLateUses(unsigned role);
  /// Chunks that the slots of these channels hold together.
  int64_t countSlotChunks(ArrayRef<unsigned> channels) const;
  SmallVector<SmallVector<unsigned>> findNarrowestWays(unsigned role) const;
  LogicalResult checkDelay(unsigned role);
  /// Slots that a CTA fills before it is the next one's turn; null where each
  /// fills its own.
  IntegerAttr getTurn(unsigned channel) const;
  /// Roles that fill a channel.
  SmallVector<unsigned> getFillers(unsigned channel) const;
  /// Writes the body of a role at `b`'s place. `workItem` maps the program's
  /// work item, or what all share where the role takes work items in turn;
  /// `vTile` is the part or warp of what runs, where the role divides by it.
  void writeRole(unsigned role, OpBuilder &b, WorkItemWriter &workItems,
                 const IRMapping &workItem, Value vTile);
  warp::KernelOp createKernel(OpBuilder &b, tile::LaunchOp launch);
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_PARTITION_H
