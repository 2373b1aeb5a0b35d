//===- AllocateShared.cpp - Places of slots and barriers ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/SharedMemory.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "gdn-warp-allocate-shared"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_ALLOCATESHAREDPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// A view that begins inside a row has the rest of the rows of the narrow one
/// before it, for itself.
static LogicalResult verifyColumns(ChannelOp channel) {
  ViewType narrow;
  for (auto [number, field] : llvm::enumerate(channel.getType().getFields())) {
    auto view = cast<ViewType>(field);
    int64_t bytes = view.getColumns() * view.getElementBytes();
    if (view.getColumn() == 0) {
      if (view.isSwizzled() && bytes <= format::kPanelBytes / 2)
        narrow = view;
      continue;
    }
    bool fits =
        narrow && narrow.getRows() >= view.getRows() &&
        narrow.getColumns() * narrow.getElementBytes() <= view.getColumn() &&
        view.getPanels() == 1;
    if (!fits)
      return channel.emitOpError("expected before field ")
             << number << ", " << view
             << ", a view of as many rows that leaves "
             << "room from column byte " << view.getColumn() << ", got none";
    narrow = ViewType();
  }
  return success();
}

/// What a plain view is aligned to: the widest access of a thread.
static constexpr int64_t kPlainAlignment = 16;

static int64_t getAlignment(ViewType view) {
  return view.isSwizzled() ? format::kSwizzleAlignment : kPlainAlignment;
}

namespace {
/// What the warps of a warpgroup hand to each other: a place for each publish
/// and for each reduction of a spread tile beside another, and one of each role
/// for all else, of which one op is run at a time.
class Scratch {
public:
  explicit Scratch(KernelOp kernel) {
    kernel.walk([&](Operation *op) {
      if (auto publish = dyn_cast<PublishOp>(op))
        add(publish);
      else if (int64_t bytes = getScratchBytes(op))
        ops[op->getParentOfType<RoleOp>()].emplace_back(op, bytes);
    });
  }

  bool isEmpty() const { return ops.empty() && publishes.empty(); }
  /// Places all at or behind byte `start`. Returns the end.
  int64_t place(int64_t start);
  void attachNotes(InFlightDiagnostic &diagnostic) const;

private:
  static int64_t getWarpgroups(RoleOp role) {
    return role ? llvm::divideCeil(role.getCount(), format::kWarpgroupWarps)
                : 1;
  }
  void add(PublishOp publish);
  /// `bytes` for each warpgroup of `op`'s role from `start` on.
  static void setPlace(Operation *op, int64_t start, int64_t bytes);

  /// Publishes that take turns in one place; most are alone there.
  SmallVector<SmallVector<PublishOp>> publishes;
  llvm::MapVector<RoleOp, SmallVector<std::pair<Operation *, int64_t>>> ops;
};
} // namespace

void Scratch::setPlace(Operation *op, int64_t start, int64_t bytes) {
  // Warpgroups are counted from the first one of the CTA.
  auto role = op->getParentOfType<RoleOp>();
  int64_t first = role ? role.getFirst() / format::kWarpgroupWarps : 0;
  op->setAttr(WarpDialect::getScratchAttrName(),
              Builder(op->getContext())
                  .getDenseI64ArrayAttr({start - first * bytes, bytes}));
}

/// Whether `op` is a reduction of a spread tile, and another one stands in its
/// block: who waits for the sums there has read those of `op`, so that in a
/// place of its own `op` need not wait before it writes.
static bool isBesideAnother(Operation *op,
                            ArrayRef<std::pair<Operation *, int64_t>> list) {
  auto isSpread = [](Operation *one) {
    auto reduce = dyn_cast<linalg::ReduceOp>(one);
    if (!reduce)
      return false;
    auto type = cast<RankedTensorType>(reduce.getInputs().front().getType());
    return isa_and_nonnull<SpreadAttr, SliceAttr>(type.getEncoding());
  };
  return isSpread(op) && llvm::any_of(list, [&](const auto &other) {
           return other.first != op &&
                  other.first->getBlock() == op->getBlock() &&
                  isSpread(other.first);
         });
}

/// Whether `other` runs behind all that reads what `publish` has written, or
/// not in the same iteration.
static bool isOverBefore(PublishOp publish, PublishOp other) {
  SmallVector<Value> views = {publish.getResult()};
  for (size_t i = 0; i < views.size(); ++i)
    for (Operation *user : views[i].getUsers()) {
      if (isa<SliceOp, ShareOp>(user))
        views.push_back(user->getResult(0));
      Block *block = user->getBlock();
      while (!block->findAncestorOpInBlock(*other))
        block = block->getParentOp()->getBlock();
      Operation *reader = block->findAncestorOpInBlock(*user),
                *writer = block->findAncestorOpInBlock(*other);
      bool areApart = reader == writer && isa<scf::IfOp>(reader);
      if (!areApart && (reader == writer || !reader->isBeforeInBlock(writer)))
        return false;
    }
  return true;
}

/// What rare cases need takes turns with each other and with the usual case, in
/// a place of its size where there is one. So do those that say so, where there
/// is one: others are of larger tiles, which readers keep.
void Scratch::add(PublishOp publish) {
  auto role = publish->getParentOfType<RoleOp>();
  int64_t bytes = publish.getType().getSpan();
  auto fits = [&](ArrayRef<PublishOp> turns) {
    PublishOp first = turns.front();
    return first.getType().getSpan() == bytes;
  };
  SmallVector<PublishOp> *place = nullptr;
  bool isRare = isUnlikely(publish, WarpDialect::getLikelyAttrName());
  if (isRare || publish.getInTurn())
    for (SmallVector<PublishOp> &turns : publishes) {
      bool isFree = turns.back()->getParentOfType<RoleOp>() == role &&
                    llvm::all_of(turns, [&](PublishOp other) {
                      return isOverBefore(other, publish);
                    });
      if (isFree && (isRare || fits(turns)) &&
          (!place || (fits(turns) && !fits(*place))))
        place = &turns;
    }
  if (place)
    place->push_back(publish);
  else
    publishes.push_back({publish});
}

int64_t Scratch::place(int64_t start) {
  for (ArrayRef<PublishOp> turns : publishes) {
    int64_t bytes = 0, alignment = 1;
    for (PublishOp op : turns) {
      alignment = std::max(alignment, getAlignment(op.getType()));
      bytes = std::max(bytes, op.getType().getSpan());
    }
    bytes = llvm::alignTo(bytes, alignment);
    start = llvm::alignTo(start, alignment);
    for (PublishOp op : turns)
      setPlace(op, start, bytes);
    start += bytes * getWarpgroups(turns.front()->getParentOfType<RoleOp>());
  }
  for (auto &[role, list] : ops) {
    int64_t bytes = 0;
    SmallVector<Operation *> together;
    start = llvm::alignTo(start, kPlainAlignment);
    for (auto &[op, own] : list) {
      int64_t aligned = llvm::alignTo(own, kPlainAlignment);
      if (isBesideAnother(op, list)) {
        setPlace(op, start, aligned);
        op->setAttr(WarpDialect::getScratchApartAttrName(),
                    UnitAttr::get(op->getContext()));
        start += aligned * getWarpgroups(role);
        continue;
      }
      together.push_back(op);
      bytes = std::max(bytes, aligned);
    }
    for (Operation *op : together)
      setPlace(op, start, bytes);
    start += bytes * getWarpgroups(role);
  }
  return start;
}

void Scratch::attachNotes(InFlightDiagnostic &diagnostic) const {
  for (ArrayRef<PublishOp> turns : publishes)
    for (PublishOp op : turns)
      diagnostic.attachNote(op->getLoc())
          << "an operand of a product of its own role: "
          << op.getType().getSpan() << " bytes for each warpgroup"
          << (turns.size() > 1 ? ", in turn with others" : "");
}

/// Places what the CTAs of a cluster add up at or behind byte `start`, and the
/// barriers of it: the sums of a role take turns in one place. Returns the end.
static FailureOr<int64_t> placeSums(KernelOp kernel, int64_t start) {
  llvm::MapVector<Operation *, SmallVector<ClusterSendOp>> roles;
  kernel.walk([&](ClusterSendOp send) {
    roles[send->getParentOfType<RoleOp>()].push_back(send);
  });
  for (auto &[role, sends] : roles) {
    int64_t bytes = 0;
    for (ClusterSendOp send : sends) {
      if (!role || send->getBlock() != sends.front()->getBlock()) {
        InFlightDiagnostic error = send.emitOpError(
            "expected all sums of a role in one block, to take turns");
        error.attachNote(sends.front().getLoc()) << "the first one";
        return error;
      }
      bytes = std::max(bytes, (send.getItems() - 1) * send.getSliceBytes());
    }
    start = llvm::alignTo(start, kPlainAlignment);
    int64_t barriers = start + bytes;
    for (auto [use, send] : llvm::enumerate(sends)) {
      SmallVector<int64_t> place = {start, barriers, static_cast<int64_t>(use),
                                    static_cast<int64_t>(sends.size())};
      send.setPlace(place);
      for (Operation *user : send->getUsers())
        if (auto add = dyn_cast<ClusterAddOp>(user))
          add.setPlace(place);
    }
    start = barriers + 2 * format::kBarrierBytes;
  }
  return start;
}

/// Reports what each channel has of shared memory.
static void report(KernelOp kernel, ArrayRef<ChannelOp> channels) {
  auto analyse = [&](StringRef part) {
    return remark::analysis(kernel.getLoc(),
                            remark::RemarkOpts::name(part)
                                .category(DEBUG_TYPE)
                                .function(kernel.getSymName()));
  };
  analyse("Kernel") << remark::metric("Bytes", kernel.getSharedBytes())
                    << remark::metric("MostBytes", getArch(kernel).sharedBytes);
  for (ChannelOp channel : channels) {
    LLVM_DEBUG(llvm::dbgs()
               << "@" << kernel.getSymName() << ": " << channel << "\n");
    analyse("Channel") << remark::metric("Channel", channel.getName())
                       << remark::metric("Slots", channel.getDepth())
                       << remark::metric("SlotBytes", *channel.getSlotBytes())
                       << remark::metric("Offset", *channel.getOffset());
  }
}

namespace {
struct AllocateShared
    : gdn::warp::impl::AllocateSharedPassBase<AllocateShared> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    OpBuilder b(&getContext());
    SmallVector<ChannelOp> channels(kernel.getBody().getOps<ChannelOp>());
    Scratch scratch(kernel);
    bool hasSums =
        kernel.walk([](ClusterSendOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (channels.empty() && scratch.isEmpty() && !hasSums)
      return;
    for (ChannelOp channel : channels)
      if (llvm::any_of(channel.getType().getFields(),
                       [](Type type) { return !isa<ViewType>(type); })) {
        channel.emitOpError("expected fields with layouts, got ")
            << channel.getType();
        return signalPassFailure();
      }
    for (ChannelOp channel : channels)
      if (failed(verifyColumns(channel)))
        return signalPassFailure();
    SmallVector<ChannelSlots> slots;
    for (ChannelOp channel : channels)
      slots.push_back({layOutSlot(channel.getType().getFields()),
                       static_cast<int64_t>(channel.getDepth())});
    SharedLayout shared = layOutShared(slots);
    for (auto [number, channel] : llvm::enumerate(channels)) {
      const SlotLayout &slot = slots[number].slot;
      channel.setOffsetAttr(b.getI64IntegerAttr(shared.slots[number]));
      channel.setPlacesAttr(b.getDenseI64ArrayAttr(slot.places));
      channel.setSlotBytesAttr(b.getI64IntegerAttr(slot.bytes));
      channel.setBarriersAttr(b.getI64IntegerAttr(shared.barriers[number]));
    }
    FailureOr<int64_t> end = placeSums(kernel, scratch.place(shared.end));
    if (failed(end))
      return signalPassFailure();
    shared.end = llvm::alignTo(*end, kPlainAlignment);
    kernel.setSharedBytes(shared.end);
    numBytes += shared.end;
    report(kernel, channels);
    int64_t most = getArch(kernel).sharedBytes;
    if (shared.end > most) {
      InFlightDiagnostic diagnostic = kernel.emitOpError("expected at most ")
                                      << most << " bytes of shared memory, got "
                                      << shared.end << ": " << shared.end - most
                                      << " too many; give a channel fewer "
                                         "slots, or use chunks of fewer tokens";
      for (ChannelOp channel : channels)
        diagnostic.attachNote(channel.getLoc())
            << "channel " << channel.getNameAttr() << ": " << channel.getDepth()
            << " slots of " << *channel.getSlotBytes() << " bytes";
      scratch.attachNotes(diagnostic);
      return signalPassFailure();
    }
  }
};
} // namespace
