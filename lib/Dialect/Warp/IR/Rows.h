//===- Rows.h - Some rows of a fragment -------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_IR_ROWS_H
#define GDN_LIB_DIALECT_WARP_IR_ROWS_H

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/Operation.h"

namespace mlir::gdn::warp {

/// How many of `count` rows an op is about: all, or `rows` [a, b), which whole
/// warps hold.
inline FailureOr<int64_t> countRows(Operation *op, int64_t count,
                                    std::optional<ArrayRef<int64_t>> rows) {
  constexpr int64_t kWarpRows = format::kWarpRows;
  if (!rows)
    return count;
  if (rows->size() != 2 || (*rows)[0] % kWarpRows != 0 ||
      (*rows)[1] % kWarpRows != 0 || (*rows)[0] < 0 ||
      (*rows)[1] <= (*rows)[0] || (*rows)[1] > count)
    return op->emitOpError("expected rows [a, b] in multiples of ")
           << kWarpRows << " up to " << count << ", got [" << *rows << "]";
  return (*rows)[1] - (*rows)[0];
}

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_IR_ROWS_H
