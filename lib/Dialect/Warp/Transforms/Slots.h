//===- Slots.h - Uses of slots ----------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_SLOTS_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_SLOTS_H

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::gdn::warp {

/// Ops that read or write a slot's view or slices of it, or that share it with
/// the warpgroup that fills it.
SmallVector<Operation *> getViewUsers(SlotOp slot);

/// The fields that a slot op may stand for: where it names a chunk or a V tile,
/// those of all.
SmallVector<uint64_t> getNamedFields(SlotOp slot);

/// Whether both are fields of one slot, and `first` takes all that `later`
/// does.
bool isSameSlot(SlotOp first, SlotOp later);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_SLOTS_H
