//===- Iterations.h - Which iteration a number is of ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_ITERATIONS_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_ITERATIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::gdn::warp {

/// The iteration of a loop that is `ahead` of the current one, by its number
/// from the first one on.
struct Iteration {
  scf::ForOp loop;
  int64_t ahead;
};

/// The iteration whose number `number` (i32) is, of a loop of i32 with steps of
/// one. What it is made of may be an index that counts smaller units, whose
/// number in an iteration divides it.
std::optional<Iteration> findIteration(Value number);

/// Whether `op` is in a branch for iterations of `loop` from number `first` on.
bool runsFrom(Operation *op, scf::ForOp loop, int64_t first);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_ITERATIONS_H
