//===- Memory.cpp - Where the arrays of a call may lie --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

using namespace gdn::cpu;

Error gdn::cpu::checkMemory(const char *name, const Array &array) {
  if (!array.isPresent() || array.data || countElements(array) == 0)
    return {};
  return fail("ValueError", name, "a tensor whose elements have memory",
              "a null address (.clone() of a zero tensor of torch has memory)");
}

namespace {
/// First and one past the last byte that an array reaches; the same where there
/// are none.
struct Extent {
  uintptr_t begin = 0, end = 0;

  bool overlaps(const Extent &other) const {
    return begin < other.end && other.begin < end;
  }
};
} // namespace

static Extent extentOf(const Array &array) {
  if (!array.data || !countElements(array))
    return {};
  int64_t low = 0, high = 1;
  for (int i = 0; i < array.rank; ++i) {
    int64_t reach = (array.sizes[i] - 1) * array.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  auto base = reinterpret_cast<uintptr_t>(array.data);
  int64_t bytes = sizeOf(array.element);
  return {base + low * bytes, base + high * bytes};
}

/// Elements of an output have memory of their own, as those of an expanded
/// view have not: a step along a dimension leads past all that the dimensions
/// of smaller steps reach.
Error gdn::cpu::checkSpread(Named output) {
  const Array &array = *output.array;
  if (!array.isPresent() || countElements(array) == 0)
    return {};
  std::array<int64_t, kMaxRank> order{}, steps{};
  int count = 0;
  for (int i = 0; i < array.rank; ++i) {
    if (array.sizes[i] <= 1)
      continue;
    steps[i] = std::abs(array.strides[i]);
    order[count++] = i;
  }
  std::sort(order.begin(), order.begin() + count,
            [&](int64_t a, int64_t b) { return steps[a] < steps[b]; });
  int64_t reach = 0;
  for (int n = 0; n < count; ++n) {
    int64_t i = order[n];
    if (steps[i] <= reach)
      return fail("ValueError", output.name,
                  "a tensor whose elements have memory of their own",
                  "stride " + std::to_string(array.strides[i]) +
                      " in dimension " + std::to_string(i));
    reach += (array.sizes[i] - 1) * steps[i];
  }
  return {};
}

/// An output is written once, by one thread, while others read: it may lie on
/// no input and on no other output.
Error gdn::cpu::checkOverlaps(const Problem &p) {
  const Named arrays[] = {{"out", &p.o},
                          {"final_state", &p.finalState},
                          {"initial_state", &p.initialState},
                          {"q", &p.q},
                          {"k", &p.k},
                          {"v", &p.v},
                          {"g", &p.gate},
                          {"beta", &p.beta},
                          {"A_log", &p.aLog},
                          {"dt_bias", &p.dtBias},
                          {"cu_seqlens", &p.cuSeqlens},
                          {"state_indices", &p.stateIndices}};
  constexpr size_t numOutputs = 2, numArrays = std::size(arrays);
  Extent extents[numArrays];
  for (size_t i = 0; i < numArrays; ++i)
    extents[i] = extentOf(*arrays[i].array);
  // A state may be updated in place: an item reads all of it first, and calls
  // whose segments begin in any order copy it.
  if (isSameView(p.initialState, p.finalState))
    extents[numOutputs] = {};
  for (size_t i = 0; i < numOutputs; ++i)
    for (size_t j = i + 1; j < numArrays; ++j)
      if (extents[i].overlaps(extents[j]))
        return fail("ValueError", arrays[i].name,
                    std::string("memory apart from ") + arrays[j].name,
                    "tensors that overlap");
  return {};
}
