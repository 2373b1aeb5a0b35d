//===- AllocateShared.cpp - Places of slots and barriers ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/SharedMemory.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

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
      if (view.isSwizzled() && bytes <= kSm90a.panelBytes / 2)
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

namespace {
struct AllocateShared
    : gdn::warp::impl::AllocateSharedPassBase<AllocateShared> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    OpBuilder b(&getContext());
    SmallVector<ChannelOp> channels(kernel.getBody().getOps<ChannelOp>());
    if (channels.empty())
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
    kernel.setSharedBytes(shared.end);
    if (shared.end > kSm90a.sharedBytes) {
      InFlightDiagnostic diagnostic =
          kernel.emitOpError("expected at most ")
          << kSm90a.sharedBytes << " bytes of shared memory, got " << shared.end
          << ": " << shared.end - kSm90a.sharedBytes
          << " too many; give a channel fewer "
             "slots, or use chunks of fewer tokens";
      for (ChannelOp channel : channels)
        diagnostic.attachNote(channel.getLoc())
            << "channel " << channel.getNameAttr() << ": " << channel.getDepth()
            << " slots of " << *channel.getSlotBytes() << " bytes";
      return signalPassFailure();
    }
  }
};
} // namespace
