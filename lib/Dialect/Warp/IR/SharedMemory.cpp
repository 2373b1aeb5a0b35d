//===- SharedMemory.cpp - Places of slots and barriers --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/SharedMemory.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn::warp;

/// What a plain view is aligned to: the widest access of a thread.
static constexpr int64_t kPlainAlignment = 16;

static int64_t getAlignment(ViewType view) {
  return view.isSwizzled() ? format::kSwizzleAlignment : kPlainAlignment;
}

/// Fields of greater alignment lie first.
SlotLayout gdn::warp::layOutSlot(ArrayRef<Type> fields) {
  SlotLayout slot;
  slot.places.assign(fields.size(), 0);
  slot.alignment = kPlainAlignment;
  int64_t shared = 0;
  for (bool swizzled : {true, false})
    for (auto [field, place] : llvm::zip(fields, slot.places)) {
      auto view = cast<ViewType>(field);
      if (view.isSwizzled() != swizzled)
        continue;
      // A view that begins inside a row shares the rows of the last narrow one.
      if (view.getColumn() != 0) {
        place = shared;
        continue;
      }
      place = llvm::alignTo(slot.bytes, getAlignment(view));
      if (view.getColumns() * view.getElementBytes() <= format::kPanelBytes / 2)
        shared = place;
      slot.bytes = place + view.getSpan();
      slot.alignment = std::max(slot.alignment, getAlignment(view));
    }
  slot.bytes = llvm::alignTo(slot.bytes, slot.alignment);
  return slot;
}

SharedLayout gdn::warp::layOutShared(ArrayRef<ChannelSlots> channels) {
  SharedLayout shared;
  for (const ChannelSlots &channel : channels) {
    int64_t start = llvm::alignTo(shared.end, channel.slot.alignment);
    shared.slots.push_back(start);
    shared.end = start + channel.slot.bytes * channel.depth;
  }
  shared.end = llvm::alignTo(shared.end, format::kBarrierBytes);
  for (const ChannelSlots &channel : channels) {
    shared.barriers.push_back(shared.end);
    shared.end += 2 * format::kBarrierBytes * channel.depth;
  }
  shared.end = llvm::alignTo(shared.end, kPlainAlignment);
  return shared;
}
