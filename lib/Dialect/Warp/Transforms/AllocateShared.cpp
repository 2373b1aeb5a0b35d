//===- AllocateShared.cpp - Places of slots and barriers ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "gdn-warp-allocate-shared"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_ALLOCATESHAREDPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// What a plain view is aligned to: the widest access of a thread.
static constexpr int64_t kPlainAlignment = 16;
static int64_t getAlignment(ViewType view) {
  return view.isSwizzled() ? kSm90a.swizzleAlignment : kPlainAlignment;
}

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

/// Places the fields in a slot, those of greater alignment first. Returns the
/// slot's bytes and alignment.
static std::pair<int64_t, int64_t>
placeFields(ArrayRef<Type> fields, SmallVectorImpl<int64_t> &places) {
  places.assign(fields.size(), 0);
  int64_t bytes = 0, greatest = kPlainAlignment, shared = 0;
  for (bool swizzled : {true, false})
    for (auto [field, place] : llvm::zip(fields, places)) {
      auto view = cast<ViewType>(field);
      if (view.isSwizzled() != swizzled)
        continue;
      // A view that begins inside a row shares the rows of the last narrow one.
      if (view.getColumn() != 0) {
        place = shared;
        continue;
      }
      place = llvm::alignTo(bytes, getAlignment(view));
      if (view.getColumns() * view.getElementBytes() <= kSm90a.panelBytes / 2)
        shared = place;
      bytes = place + view.getSpan();
      greatest = std::max(greatest, getAlignment(view));
    }
  return {llvm::alignTo(bytes, greatest), greatest};
}

/// Places a channel at or behind byte `start`. Returns its end.
static int64_t placeChannel(ChannelOp channel, int64_t start) {
  OpBuilder b(channel.getContext());
  SmallVector<int64_t> places;
  auto [bytes, alignment] = placeFields(channel.getType().getFields(), places);
  start = llvm::alignTo(start, alignment);
  channel.setOffsetAttr(b.getI64IntegerAttr(start));
  channel.setPlacesAttr(b.getDenseI64ArrayAttr(places));
  channel.setSlotBytesAttr(b.getI64IntegerAttr(bytes));
  return start + bytes * channel.getDepth();
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
    int64_t end = 0;
    for (ChannelOp channel : channels)
      end = placeChannel(channel, end);
    end = llvm::alignTo(end, kSm90a.barrierBytes);
    for (ChannelOp channel : channels) {
      channel.setBarriersAttr(b.getI64IntegerAttr(end));
      end += 2 * kSm90a.barrierBytes * channel.getDepth();
    }
    kernel.setSharedBytes(llvm::alignTo(end, kPlainAlignment));
    if (end > kSm90a.sharedBytes) {
      InFlightDiagnostic diagnostic = kernel.emitOpError("expected at most ")
                                      << kSm90a.sharedBytes
                                      << " bytes of shared memory, got " << end
                                      << ": " << end - kSm90a.sharedBytes
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
