//===- SimulateRoles.h - Do roles wait for each other? ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_SIMULATEROLES_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_SIMULATEROLES_H

#include "gdn/Dialect/Warp/IR/Warp.h"

namespace mlir::gdn::warp {

/// Runs the waits and arrivals of a kernel's roles for a work item of many
/// iterations. Fails, with an error, where all roles that are left wait. Says
/// nothing of kernels whose control flow it does not know, nor of clusters.
LogicalResult simulateRoles(KernelOp kernel);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_SIMULATEROLES_H
