//===- Report.h - What the passes decided, for who asks ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Remarks of the category of a pass, and LLVM_DEBUG output of its type
// (docs/Contributing.md, "See what a pass decides"). They cost nothing unless
// somebody asks for them.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_REPORT_H
#define GDN_LIB_CONVERSION_TILETOWARP_REPORT_H

#include "Partition.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::gdn {

/// A remark of pass `pass` about a part of the kernel or program `op`.
remark::detail::InFlightRemark analyse(SymbolOpInterface op, StringRef pass,
                                       StringRef part);

/// Reports the ops of roles and the values that cross in channels.
void reportPartition(const Partition &partition);

/// How many values of a role have a layout.
struct LayoutCounts {
  int64_t fragments = 0, vectors = 0;
};

/// Reports the layouts of the values of each role. Returns their sums.
LayoutCounts reportLayouts(warp::KernelOp kernel);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_REPORT_H
