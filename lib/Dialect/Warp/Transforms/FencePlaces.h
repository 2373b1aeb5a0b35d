//===- FencePlaces.h - Where accesses to slots need a fence -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_FENCEPLACES_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_FENCEPLACES_H

#include "Slots.h"

namespace mlir::gdn::warp {

/// What a fence orders: a thread's accesses before those that products and
/// copies make of the same slot, through the async proxy.
enum class FenceReason {
  /// Stores, before what products or other CTAs read: behind the last store.
  StoresBeforeReads,
  /// Stores, before what copies alone read: before the first copy.
  StoresBeforeCopies,
  /// Loads, before what copies fill the slot with next: behind the last load.
  LoadsBeforeRefill
};

/// A place where a fence must stand. `slot` is where the block names the slot
/// first.
struct FencePlace {
  Operation *op = nullptr;
  FenceReason reason = FenceReason::StoresBeforeReads;
  SlotOp slot = {};

  bool isBehind() const { return reason != FenceReason::StoresBeforeCopies; }
};

/// Whether `op` orders accesses before those of the async proxy.
bool isAsyncFence(Operation *op);

/// Places of fences; those of loads that have a fence already are left out.
/// Fails where values have no layouts yet.
FailureOr<SmallVector<FencePlace>> findFencePlaces(KernelOp kernel);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_FENCEPLACES_H
