//===- Warpgroups.h - What warps hand to each other -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_WARPTONVVM_WARPGROUPS_H
#define GDN_LIB_CONVERSION_WARPTONVVM_WARPGROUPS_H

#include "Lowering.h"

namespace mlir::gdn::warp {

/// Lanes of a quad hold the same rows; eight quads of a warp, the same columns.
inline constexpr int64_t kQuad = 4, kQuads = 8;

/// The scratch memory of a warpgroup, where an op that its warps run together
/// leaves vectors of columns.
class Scratch {
public:
  /// `tile` is what the op works on. With `isLate` addresses are made where
  /// they are used, and no loop holds them.
  Scratch(ImplicitLocOpBuilder &b, Operation *op, RankedTensorType tile,
          bool isLate = false);

  /// Stores, in the threads where `isWriter` holds, vector `number` (i32) of
  /// columns of those that are there. All warps run it, and go on together.
  void store(Value isWriter, Value number, ArrayRef<Value> columns) {
    store(isWriter, number, columns, /*first=*/Value(), 2 * kQuad);
  }
  /// The same of sums of all quads of this warp. Quads hand each other halves
  /// of what they hold, until each has the sums of some columns: half as many
  /// shuffles as if all had all.
  void storeSums(Value number, SmallVector<Value> columns,
                 function_ref<Value(Value, Value)> combine);
  /// The columns of this thread in the sums of vectors [first, last), the first
  /// one first. A lane sums up two columns, and all take theirs from it: four
  /// bytes for each lane that reads them are a cycle of shared memory.
  SmallVector<Value> loadSums(std::pair<int64_t, int64_t> numbers,
                              function_ref<Value(Value, Value)> combine);
  /// The columns of this thread in vector `number`.
  SmallVector<Value> load(int64_t number);

private:
  void sync();
  /// This thread, and where the memory of its warpgroup begins.
  Value getThread();
  Value getBase(Value thread);
  /// Stores pairs of columns, of which the first is `first` bytes (i32, null
  /// for 0) behind this quad's own, and the others are `distance` columns
  /// apart.
  void store(Value isWriter, Value number, ArrayRef<Value> columns, Value first,
             int64_t distance);
  /// The address of this thread's columns of vector `number` (i32).
  Value getAddress(Value number);

  ImplicitLocOpBuilder &b;
  RankedTensorType tile;
  ArrayRef<int64_t> place;
  int64_t elementBytes;
  VectorType pair;
  /// The thread as all know it; null where it is read at each use.
  Value thread;
};

/// Fails where `op` has no place for what its warps hand to each other.
LogicalResult verifyScratch(Operation *op);

/// Rows of which `op` is about, as warps [first, last).
std::pair<int64_t, int64_t> getWarps(Operation *op);

/// Of a thread's elements of a fragment those of its row `half`, by column.
SmallVector<Value> getHalf(ArrayRef<Value> elements, int64_t half);

Value createIsEqual(ImplicitLocOpBuilder &b, Value value, int64_t number);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_CONVERSION_WARPTONVVM_WARPGROUPS_H
