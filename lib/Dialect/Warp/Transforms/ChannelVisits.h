//===- ChannelVisits.h - Who waits for a slot and arrives -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_CHANNELVISITS_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_CHANNELVISITS_H

#include "Slots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::gdn::warp {

/// What one block does with a channel in one direction.
struct Visit {
  SmallVector<SlotOp> slots;
  Operation *first = nullptr, *last = nullptr;
  /// Bytes that copies bring, and whether there are copies out.
  int64_t fetched = 0;
  bool stores = false;
  SmallVector<TmaLoadOp> loads;
  /// Whether no visit of the same iteration is before it, and none behind.
  bool opens = true, closes = true;
  /// Whether each lane arrives, for what it wrote: one warp fills vectors.
  bool byLane = false;
};

/// The loop over pieces of tiles whose body `block` is; null if it is none. It
/// waits for a slot at each piece, and arrives behind the last one.
scf::ForOp findPieceLoop(Block *block);
/// The block around such a loop, which has the last store of all pieces; any
/// other `block` itself.
Block *findWholeBlock(Block *block);

/// Moves a branch, and what its condition needs that stands behind `place`, to
/// before `place`; not at all if that is null.
void hoistGuard(Operation *guard, Operation *place);

/// Who visits the slots of a channel, and how often they arrive.
class ChannelVisits {
public:
  /// Block, direction and iteration.
  using Key = std::tuple<Block *, SlotDirection, Value>;

  ChannelVisits(ChannelOp channel, bool lanesArrive)
      : channel(channel), lanesArrive(lanesArrive),
        cluster(channel->getParentOfType<KernelOp>().getCluster()) {}

  /// Fails where values have no layouts yet, or where a role arrives more or
  /// less often for slots that it lets pass than for those that it takes.
  LogicalResult collect();
  /// The op before which the guard of `copy` may stand: behind what fills the
  /// slot, and behind products that are begun there. Null if it stays.
  Operation *findCopyPlace(CopyToClusterOp copy);
  /// Arrivals of all roles that complete a phase of the barriers of `direction`
  /// in one CTA.
  int64_t sumArrivals(SlotDirection direction);

  ChannelOp channel;
  bool lanesArrive;
  /// CTAs of a cluster.
  int64_t cluster;
  SmallVector<ReleaseUnusedOp> releases;
  SmallVector<CopyToClusterOp> shares;
  llvm::MapVector<Key, Visit> visits;

private:
  void addSlot(SlotOp slot);
  bool isAlwaysMade(const Key &key);
  void orderVisits();
  LogicalResult checkReleases();
  /// Arrivals of each role in a phase of the barriers of `direction`.
  llvm::MapVector<Operation *, int64_t> countArrivals(SlotDirection direction);
};

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_CHANNELVISITS_H
