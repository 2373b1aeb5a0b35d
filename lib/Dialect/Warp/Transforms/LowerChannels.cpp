//===- LowerChannels.cpp - Slots become views and barriers ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChannelVisits.h"
#include "PrepareBarriers.h"

#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#define DEBUG_TYPE "gdn-warp-lower-channels"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_LOWERCHANNELSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {
/// Slot and phase of an iteration: the number of times that the slot was used
/// before.
struct SlotUse {
  Value slot, parity;
};

/// Lowers one channel.
class ChannelLowering {
public:
  ChannelLowering(ChannelOp channel, bool lanesArrive)
      : channel(channel), uses(channel, lanesArrive) {}

  /// Adds the channel's barriers to `barriers`.
  LogicalResult run(SmallVectorImpl<PreparedBarrier> &barriers);

private:
  SlotUse getSlotUse(OpBuilder &b, Location loc, Value iteration, bool fills);
  void lower(SlotDirection direction, Visit &visit);
  void lowerLoads(Visit &visit, Value number);
  void lowerSlot(OpBuilder &b, SlotOp slot, Value number);
  void lower(ReleaseUnusedOp release);
  void lower(CopyToClusterOp share, int64_t fills);
  /// Where the barriers of full or of empty slots begin in shared memory.
  int64_t getBarriersOffset(bool empty);
  Value getBarrier(OpBuilder &b, Location loc, Value number, bool empty);
  void arrive(OpBuilder &b, Location loc, bool byLane,
              function_ref<void()> write);
  /// The CTA that fills the slot of `iteration` for all; null if each fills its
  /// own.
  Value getOwner(OpBuilder &b, Location loc, Value iteration);

  ChannelOp channel;
  ChannelVisits uses;
};
} // namespace

SlotUse ChannelLowering::getSlotUse(OpBuilder &b, Location loc, Value iteration,
                                    bool fills) {
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i32, value);
  };
  iteration = arith::IndexCastOp::create(b, loc, i32, iteration);
  SlotUse use;
  use.slot = arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      arith::RemUIOp::create(b, loc, iteration, constant(channel.getDepth())));
  Value round =
      arith::DivUIOp::create(b, loc, iteration, constant(channel.getDepth()));
  // A filler waits for the empty barrier, whose phase before the first counts
  // as over.
  if (fills)
    round = arith::AddIOp::create(b, loc, round, constant(1));
  use.parity = arith::AndIOp::create(b, loc, round, constant(1));
  return use;
}

Value ChannelLowering::getOwner(OpBuilder &b, Location loc, Value iteration) {
  if (!channel.getTurn())
    return {};
  Type i32 = b.getI32Type();
  Value turns = arith::DivUIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i32, iteration),
      arith::ConstantIntOp::create(b, loc, i32, *channel.getTurn()));
  return arith::RemUIOp::create(
      b, loc, turns, arith::ConstantIntOp::create(b, loc, i32, uses.cluster));
}

int64_t ChannelLowering::getBarriersOffset(bool empty) {
  return *channel.getBarriers() +
         (empty ? channel.getDepth() * format::kBarrierBytes : 0);
}

Value ChannelLowering::getBarrier(OpBuilder &b, Location loc, Value number,
                                  bool empty) {
  Value offset = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(
          b, loc, number,
          arith::ConstantIndexOp::create(b, loc, format::kBarrierBytes)),
      arith::ConstantIndexOp::create(b, loc, getBarriersOffset(empty)));
  return BarrierOp::create(b, loc, offset);
}

void ChannelLowering::lowerSlot(OpBuilder &b, SlotOp slot, Value number) {
  Location loc = slot.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value offset = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(b, loc, number, constant(*channel.getSlotBytes())),
      constant(*channel.getOffset() + (*channel.getPlaces())[slot.getField()]));
  if (Value vTile = slot.getVTile()) {
    // The fields of the V tiles follow each other.
    int64_t bytes = (*channel.getPlaces())[slot.getField() + 1] -
                    (*channel.getPlaces())[slot.getField()];
    offset = arith::AddIOp::create(
        b, loc, offset, arith::MulIOp::create(b, loc, vTile, constant(bytes)));
  }
  if (Value chunk = slot.getChunk()) {
    int64_t ofChunk =
        channel.getType().getFields().size() / channel.getChunks();
    int64_t bytes = (*channel.getPlaces())[slot.getField() + ofChunk] -
                    (*channel.getPlaces())[slot.getField()];
    offset = arith::AddIOp::create(
        b, loc, offset, arith::MulIOp::create(b, loc, chunk, constant(bytes)));
  }
  Value view = ViewOp::create(b, loc, slot.getType(), offset);
  slot.replaceAllUsesWith(view);
  slot.erase();
}

/// Runs `write` where `condition` holds.
static void runIf(OpBuilder &b, Location loc, Value condition,
                  function_ref<void()> write) {
  auto guard = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard inside(b);
  b.setInsertionPointToStart(guard.thenBlock());
  write();
}

/// Runs `write` once: in a loop over pieces of tiles at the last one.
static void behindLastPiece(OpBuilder &b, Location loc,
                            function_ref<void()> write) {
  scf::ForOp loop = findPieceLoop(b.getInsertionBlock());
  if (!loop)
    return write();
  Value next =
      arith::AddIOp::create(b, loc, loop.getInductionVar(), loop.getStep());
  runIf(b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next,
                              loop.getUpperBound()),
        write);
}

/// Runs `write` in the first lane of each warp.
static void inFirstLane(OpBuilder &b, Location loc,
                        function_ref<void()> write) {
  Value lane = IdOp::create(b, loc, IdKind::Lane);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                            arith::ConstantIndexOp::create(b, loc, 0));
  runIf(b, loc, isFirst, write);
}

void ChannelLowering::lower(SlotDirection direction, Visit &visit) {
  bool fills = direction == SlotDirection::Put;
  Location loc = visit.first->getLoc();
  OpBuilder b(visit.first);
  Value iteration = visit.slots.front().getIteration();
  SlotUse use = getSlotUse(b, loc, iteration, fills);
  Value number = use.slot;
  if (visit.opens)
    BarrierWaitOp::create(b, loc, getBarrier(b, loc, number, fills), use.parity,
                          /*cluster=*/false);
  // Takers of all CTAs arrive at the empty barrier of the one that fills.
  bool isLocal = fills || visit.first->getParentOfType<RoleOp>()->hasAttr(
                              WarpDialect::getAlternateCtasAttrName());
  b.setInsertionPointAfter(visit.last);
  if (visit.stores)
    inFirstLane(b, loc, [&] {
      BulkCommitOp::create(b, loc);
      BulkWaitOp::create(b, loc, 0, /*read=*/true);
    });
  if (visit.fetched)
    lowerLoads(visit, number);
  else if (visit.closes)
    behindLastPiece(b, loc, [&] {
      arrive(b, loc, visit.byLane, [&] {
        BarrierArriveOp::create(b, loc, getBarrier(b, loc, number, !fills),
                                isLocal ? Value()
                                        : getOwner(b, loc, iteration));
      });
    });
  for (SlotOp slot : visit.slots) {
    b.setInsertionPoint(slot);
    lowerSlot(b, slot, number);
  }
}

/// Begins the copies that fill a slot and announces their bytes. Copies that
/// look for their end begin in one elected thread, which looks once
/// (gdn-warp-merge-branches): packed kernels are 1 to 12 % faster so. Others
/// begin where they stand; all at once would cost 2 % where a V tile is alone.
void ChannelLowering::lowerLoads(Visit &visit, Value number) {
  Location loc = visit.first->getLoc();
  OpBuilder b(visit.first->getContext());
  auto expect = [&] {
    BarrierExpectOp::create(b, loc, getBarrier(b, loc, number, /*empty=*/false),
                            visit.fetched, /*rank=*/Value());
  };
  auto copy = [&](TmaLoadOp load) {
    BulkTensorLoadOp::create(b, loc, load.getArray(), load.getOffsets(),
                             load.getAxesAttr(), load.getEnd(),
                             load.getDimAttr(), load.getView(),
                             getBarrier(b, loc, number, /*empty=*/false));
  };
  // ptxas knows that an elected thread is alone; of another one it asks for
  // each operand of a copy in a loop whether all threads agree on it.
  auto elected = [&](function_ref<void()> write) {
    runIf(b, loc, ElectOp::create(b, loc), write);
  };
  // In the order of the program: what is waited for first comes first.
  llvm::sort(visit.loads, [](TmaLoadOp one, TmaLoadOp other) {
    return one->isBeforeInBlock(other);
  });
  bool together = llvm::any_of(
      visit.loads, [](TmaLoadOp load) { return load.getEnd() != Value(); });
  if (!together)
    for (TmaLoadOp load : visit.loads) {
      b.setInsertionPoint(load);
      elected([&] { copy(load); });
    }
  b.setInsertionPointAfter(visit.last);
  if (together) {
    SyncOp::create(b, loc, SyncKind::Warp);
    elected([&] {
      expect();
      llvm::for_each(visit.loads, copy);
    });
  } else {
    arrive(b, loc, /*byLane=*/false, expect);
  }
  for (TmaLoadOp load : visit.loads)
    load.erase();
}

/// Runs `write`, which arrives, in each lane, or in one of a warp that has done
/// its work.
void ChannelLowering::arrive(OpBuilder &b, Location loc, bool byLane,
                             function_ref<void()> write) {
  if (byLane)
    return write();
  SyncOp::create(b, loc, SyncKind::Warp);
  inFirstLane(b, loc, write);
}

void ChannelLowering::lower(ReleaseUnusedOp release) {
  OpBuilder b(release);
  Location loc = release.getLoc();
  SlotUse use = getSlotUse(b, loc, release.getIteration(), /*fills=*/false);
  BarrierWaitOp::create(b, loc, getBarrier(b, loc, use.slot, /*empty=*/false),
                        use.parity, /*cluster=*/false);
  arrive(b, loc, uses.lanesArrive, [&] {
    BarrierArriveOp::create(b, loc,
                            getBarrier(b, loc, use.slot, /*empty=*/true),
                            /*rank=*/Value());
  });
  release.erase();
}

/// The takers of the other CTAs wait for as many arrivals as those of this one:
/// one of them announces the bytes, and they count when the bytes are there.
void ChannelLowering::lower(CopyToClusterOp share, int64_t fills) {
  OpBuilder b(share);
  Location loc = share.getLoc();
  SlotUse use = getSlotUse(b, loc, share.getIteration(), /*fills=*/false);
  Value full = getBarrier(b, loc, use.slot, /*empty=*/false);
  BarrierWaitOp::create(b, loc, full, use.parity, /*cluster=*/false);
  int64_t bytes = *channel.getSlotBytes();
  auto type = ViewType::get(bytes / static_cast<int64_t>(sizeof(float)),
                            b.getF32Type());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value place = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, use.slot, constant(bytes)),
      constant(*channel.getOffset()));
  Value view = ViewOp::create(b, loc, type, place);
  Value own = IdOp::create(b, loc, IdKind::ClusterRank);
  inFirstLane(b, loc, [&] {
    for (int64_t distance = 1; distance < uses.cluster; ++distance) {
      Value rank = arith::RemUIOp::create(
          b, loc, arith::AddIOp::create(b, loc, own, constant(distance)),
          constant(uses.cluster));
      rank = arith::IndexCastOp::create(b, loc, b.getI32Type(), rank);
      if (fills > 1)
        BarrierArriveOp::create(b, loc, full, rank, fills - 1);
      BarrierExpectOp::create(b, loc, full, bytes, rank);
      BulkCopyToCtaOp::create(b, loc, view, full, rank);
    }
  });
  share.erase();
}

LogicalResult ChannelLowering::run(SmallVectorImpl<PreparedBarrier> &barriers) {
  if (!channel.getOffset())
    return channel.emitOpError(
        "expected a place in shared memory: gdn-warp-allocate-shared");
  if (failed(uses.collect()))
    return failure();
  int64_t fills = uses.sumArrivals(SlotDirection::Put),
          takes = uses.sumArrivals(SlotDirection::Get);
  if (!fills || !takes)
    return channel.emitOpError("expected a role that fills the slots and one "
                               "that takes them, got ")
           << (fills ? "no taker" : "no filler");
  auto depth = static_cast<int64_t>(channel.getDepth());
  for (int64_t slot = 0; slot < depth; ++slot) {
    int64_t distance = slot * format::kBarrierBytes;
    barriers.push_back({getBarriersOffset(/*empty=*/false) + distance, fills});
    barriers.push_back({getBarriersOffset(/*empty=*/true) + distance, takes});
  }
  SmallVector<Operation *> places;
  for (CopyToClusterOp share : uses.shares)
    places.push_back(uses.findCopyPlace(share));
  for (auto &[key, visit] : uses.visits)
    lower(std::get<SlotDirection>(key), visit);
  for (auto [share, place] : llvm::zip(uses.shares, places))
    hoistGuard(share->getParentOp(), place);
  for (ReleaseUnusedOp release : uses.releases)
    lower(release);
  for (CopyToClusterOp share : uses.shares)
    lower(share, fills);
  channel.erase();
  return success();
}

namespace {
struct LowerChannels : gdn::warp::impl::LowerChannelsPassBase<LowerChannels> {
  using LowerChannelsPassBase::LowerChannelsPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // The schedule is carried out.
    kernel->removeAttr(ScheduleAttr::kName);
    SmallVector<ChannelOp> channels(kernel.getBody().getOps<ChannelOp>());
    // Slices of sums have barriers too.
    bool hasSums =
        kernel.walk([](ClusterSendOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (channels.empty() && !hasSums)
      return;
    if (kernel.getBody().getOps<RoleOp>().empty()) {
      kernel.emitOpError("expected roles that use the channels, got none");
      return signalPassFailure();
    }
    // Barriers are prepared before any role begins, and no CTA of a cluster
    // ends before the others have used its memory.
    SyncKind all = kernel.getCluster() > 1 ? SyncKind::Cluster : SyncKind::CTA;
    Location loc = kernel.getLoc();
    OpBuilder beforeRoles(*kernel.getBody().getOps<RoleOp>().begin());
    SyncOp::create(beforeRoles, loc, all);
    if (kernel.getCluster() > 1) {
      OpBuilder atEnd(kernel.getContext());
      atEnd.setInsertionPointToEnd(&kernel.getBody().front());
      SyncOp::create(atEnd, loc, all);
    }
    SmallVector<PreparedBarrier> barriers;
    for (ChannelOp channel : channels)
      if (failed(ChannelLowering(channel, lanesArrive).run(barriers)))
        return signalPassFailure();
    kernel.walk([&](ClusterSendOp sum) { addBarriers(sum, barriers); });
    prepareBarriers(kernel, barriers);
    lowerStores(kernel);
  }

  void lowerStores(KernelOp kernel) {
    kernel.walk([](TmaStoreOp store) {
      OpBuilder b(store);
      Location loc = store.getLoc();
      inFirstLane(b, loc, [&] {
        BulkTensorStoreOp::create(b, loc, store.getView(), store.getArray(),
                                  store.getOffsets(), store.getAxesAttr(),
                                  store.getEnd(), store.getDimAttr());
      });
      store.erase();
    });
  }
};
} // namespace
