//===- SharedMemory.h - Places of slots and barriers ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place that says what channels take of shared memory: the schedule is
// fitted by it and gdn-warp-allocate-shared hands it out.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_SHAREDMEMORY_H
#define GDN_DIALECT_WARP_IR_SHAREDMEMORY_H

#include "gdn/Dialect/Warp/IR/Warp.h"

namespace mlir::gdn::warp {

/// A slot: where each field begins, and what the slot takes.
struct SlotLayout {
  SmallVector<int64_t> places;
  int64_t bytes = 0, alignment = 1;
};

/// Places the fields of a slot, all of them views.
SlotLayout layOutSlot(ArrayRef<Type> fields);

/// A channel's slots, which lie one behind the other.
struct ChannelSlots {
  SlotLayout slot;
  int64_t depth = 1;
};

/// Where the slots and barriers of each channel begin, and where all end.
struct SharedLayout {
  SmallVector<int64_t> slots, barriers;
  int64_t end = 0;
};

/// Places channels one behind the other, then their barriers, two a slot.
SharedLayout layOutShared(ArrayRef<ChannelSlots> channels);

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_IR_SHAREDMEMORY_H
