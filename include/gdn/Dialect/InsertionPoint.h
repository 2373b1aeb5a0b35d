//===- InsertionPoint.h - Where an op may stand -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_INSERTIONPOINT_H
#define GDN_DIALECT_INSERTIONPOINT_H

#include "mlir/IR/Builders.h"

namespace mlir::gdn {

/// Sets the insertion point of `b` behind the last op of `block` that makes one
/// of `values`, or to the start of the block if none does.
inline void setInsertionPointBehind(OpBuilder &b, ValueRange values,
                                    Block &block) {
  Operation *last = nullptr;
  for (Value value : values) {
    Operation *maker = value.getDefiningOp();
    if (maker && maker->getBlock() == &block &&
        (!last || last->isBeforeInBlock(maker)))
      last = maker;
  }
  if (last)
    b.setInsertionPointAfter(last);
  else
    b.setInsertionPointToStart(&block);
}

} // namespace mlir::gdn

#endif // GDN_DIALECT_INSERTIONPOINT_H
