//===- PrepareBarriers.h - Barriers before roles begin ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_PREPAREBARRIERS_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_PREPAREBARRIERS_H

#include "gdn/Dialect/Warp/IR/Warp.h"

namespace mlir::gdn::warp {

/// A barrier at byte `offset` of shared memory, whose phases end with as many
/// arrivals.
struct PreparedBarrier {
  int64_t offset, arrivals;
};

/// The barriers of sums over a cluster: tiles of the other CTAs are there, and
/// every warp of them has read those of this one.
void addBarriers(ClusterSendOp sum, SmallVectorImpl<PreparedBarrier> &barriers);

/// Prepares barriers at the kernel's start. Four warps share them, as one
/// thread for all would hold up CTAs that find no work.
void prepareBarriers(KernelOp kernel, ArrayRef<PreparedBarrier> barriers);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_PREPAREBARRIERS_H
