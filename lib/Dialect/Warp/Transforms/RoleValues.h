//===- RoleValues.h - What a role computes with numbers ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_TRANSFORMS_ROLEVALUES_H
#define GDN_LIB_DIALECT_WARP_TRANSFORMS_ROLEVALUES_H

#include "gdn/Dialect/Warp/IR/Warp.h"

namespace mlir::gdn::warp {

/// The integers and indices that a warp knows while it runs, in the first CTA
/// of one. Sizes that a kernel gets when it is launched are large enough for
/// many iterations.
class RoleValues {
public:
  explicit RoleValues(int64_t warp) : warp(warp) {}

  /// The number that `value` is; none if nobody knows.
  std::optional<int64_t> getNumber(Value value);
  void set(Value value, int64_t number) {
    values[value] = IntegerAttr::get(value.getType(), number);
  }
  /// Computes the results of `op`, as far as they are known.
  void evaluate(Operation *op);
  /// Passes values to a loop or branch, or out of it, all at once.
  void assign(ValueRange to, ValueRange from);

private:
  Attribute getKnown(Value value);

  int64_t warp;
  DenseMap<Value, Attribute> values;
  static constexpr int64_t kExtent = 4096;
};

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_TRANSFORMS_ROLEVALUES_H
