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
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn {

/// Ops that every role copies where it uses them.
bool isFree(Operation *op);
/// Values that `op` and its regions take from outside.
SetVector<Value> getTakenValues(Operation *op);
/// What `op` takes, through ops that are copied: what other ops make, what
/// loops carry, and arguments.
SetVector<Value> findSources(Operation *op);
/// The step of an op, or of the ops inside it.
StringAttr getStep(Operation *op);
/// The chunk of its iteration that an op belongs to.
int64_t getChunk(Operation *op);

/// A value's place: number of the channel and of the field, or of the field of
/// V tile 0, for the roles that take it there.
struct Field {
  unsigned channel = 0, index = 0;
  SetVector<unsigned> takers;
};

/// A channel of the kernel. What crosses in a loop has the slots that the
/// schedule says, and loops that hand over the same values use them in turn.
/// What is made outside of loops has a slot of its own, for a work item.
struct KernelChannel {
  /// Number of the schedule's channel.
  unsigned spec = 0;
  /// Numbers of the loops whose values it carries.
  SmallVector<unsigned> loops;
  SmallVector<Type> fields;
  /// For how many chunks the same types cross.
  int64_t alike = 1;
  /// Number of the clock that counts its iterations.
  unsigned clock = 0;
  std::string name;
};

/// A program and its schedule: who runs which op and what crosses.
struct Partition {
  /// What a role needs of a loop besides its own ops.
  struct Needs {
    /// Numbers of the loop's carried values.
    SetVector<unsigned> carried;
    /// Whether it runs the loop.
    bool runs = false;
  };

  tile::ProgramOp getProgram() const { return program; }
  const warp::RoleSpecAttr &getRole(unsigned role) const {
    return schedule.getRoles()[role];
  }
  unsigned countRoles() const { return schedule.getRoles().size(); }
  /// The number of the loop whose body `op` stands in; none outside of loops.
  std::optional<unsigned> findLoop(Operation *op) const;
  /// The op that makes a value, in a loop for what the loop carries, through
  /// ops that are copied; null where every role can make it.
  Operation *findMaker(Value value) const;
  /// The role that makes a value that crosses, and the step.
  unsigned getMakingRole(Value value) const {
    return roles.lookup(findMaker(value));
  }
  StringAttr getMakingStep(Value value) const {
    return getStep(findMaker(value));
  }
  /// Whether a value that crosses is made outside of loops, or is what one of
  /// them carried.
  bool isOutside(Value value) const { return !findLoop(value.getDefiningOp()); }
  bool dependsOnVTile(Operation *op) const;
  /// Whether `op` runs some iterations late.
  bool isLate(Operation *op) const;
  /// Whether a role's late steps end with each loop. Otherwise those of a
  /// loop's last iterations run in the next work item.
  bool endsLateWithLoop(unsigned role) const;

  /// The field of a value in `channel`, or that role `taker` takes; null if
  /// there is none.
  const Field *getField(Value value, unsigned channel) const;
  const Field *getFieldOf(Value value, unsigned taker) const;
  warp::ChannelSpecAttr getSpec(unsigned channel) const {
    return schedule.getChannels()[channels[channel].spec];
  }
  /// Whether a slot is for one chunk.
  bool isByChunk(unsigned channel) const {
    return !channels[channel].loops.empty() &&
           getSpec(channel).getSlotPerChunk();
  }
  int64_t getDepth(unsigned channel) const {
    return channels[channel].loops.empty() ? 1 : getSpec(channel).getDepth();
  }
  /// For how many chunks a slot has fields of the same types.
  int64_t getChunksOfSlot(unsigned channel) const {
    return isByChunk(channel) ? 1 : channels[channel].alike;
  }
  /// The clock that numbers the iterations of a loop in all roles.
  unsigned getClock(unsigned loop) const;
  /// Whether the chunks of an iteration are a loop in this role.
  bool isRolled(unsigned role) const;
  /// What the first chunk of an iteration makes in a role, for the second, of
  /// an argument of the loop; null if the chunks do not do alike with it.
  Value findNext(unsigned role, unsigned loop, Value argument) const;
  /// The first warp of a role.
  int64_t getFirstWarp(unsigned role) const;
  /// Whether a role takes what goes through a channel.
  bool takes(unsigned role, unsigned channel) const;
  /// Roles that fill a channel.
  SmallVector<unsigned> getFillers(unsigned channel) const;
  /// Where roles that the CTAs of a cluster share fill a channel, the last of
  /// them, which copies its slots; none else, or where they alone take from it.
  std::optional<unsigned> getSharer(unsigned channel) const;
  /// Whether a value is a tile that a loop loads, and that the role which loads
  /// it does not take itself.
  bool isLoadedForOthers(Value value) const;
  /// Whether a CTA has a slot of a channel for its own iterations alone: roles
  /// that CTAs share take all that goes through it, and fill it, or tiles are
  /// loaded into it.
  bool isShared(unsigned channel) const;
  /// Whether a role that CTAs do not share loads a tile for such roles alone,
  /// and so in the iterations of its CTA.
  bool isLoadedInTurn(Operation *op) const;
  /// Slots that a CTA fills before it is the next one's turn; null where each
  /// fills its own.
  IntegerAttr getTurn(unsigned channel) const;

  tile::ProgramOp program;
  warp::ScheduleAttr schedule;
  /// The program's loops, one after the other.
  SmallVector<scf::ForOp> loops;
  llvm::MapVector<Operation *, unsigned> roles;
  /// Values that depend on the V tile.
  DenseSet<Value> perVTile;
  /// For each role, what it needs of each loop.
  SmallVector<SmallVector<Needs>> needs;
  /// Values that cross, with the roles that take them.
  llvm::MapVector<Value, SetVector<unsigned>> crossing;
  /// Several where no channel goes to all that take the value.
  DenseMap<Value, SmallVector<Field, 1>> fields;
  SmallVector<KernelChannel> channels;
  /// Loops whose iterations are counted together, since the same channels are
  /// used in them: the numbers of a channel's slots follow each other.
  SmallVector<SmallVector<unsigned>> clocks;
};

/// Whether a kernel can have the program's arrays and tiles
/// (VerifyProgram.cpp).
LogicalResult verifyTypes(tile::ProgramOp program);
/// Finds who runs which op and what crosses (AssignRoles.cpp).
LogicalResult assignRoles(Partition &partition);
/// Gives each value that crosses a channel and a field (AssignChannels.cpp).
LogicalResult assignChannels(Partition &partition);
/// Whether the roles can run the program so (CheckSchedule.cpp).
LogicalResult checkChunks(const Partition &partition);
LogicalResult checkSchedule(const Partition &partition);
/// Whether a role's late steps can run late (CheckDelay.cpp).
LogicalResult checkDelay(const Partition &partition, unsigned role);
/// Writes the kernel at `b`'s place; `launch` runs the program
/// (WriteKernel.cpp).
LogicalResult writeKernel(const Partition &partition, OpBuilder &b,
                          tile::LaunchOp launch);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_PARTITION_H
