//===- Memory.cpp - Where the arrays of a call may lie --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

using namespace gdn::cpu;

void Array::makeDense() {
  int64_t stride = 1;
  for (int i = std::min(rank, kMaxRank) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= sizes[i];
  }
}

int64_t Array::countElements() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i)
    count *= sizes[i];
  return count;
}

bool Array::isSameView(const Array &other) const {
  bool same =
      data == other.data && element == other.element && sizes == other.sizes;
  // Nothing steps along an extent of 1, so its stride says nothing.
  for (int i = 0; i < rank && same; ++i)
    same = sizes[i] == 1 || strides[i] == other.strides[i];
  return same;
}

void gdn::cpu::checkMemory(const Problem &p) {
  auto check = [&](const Array &array) {
    if (array.isPresent() && !array.data && array.countElements() != 0)
      fail(p.nameOf(array), "a tensor whose elements have memory",
           "a null address (.clone() of a zero tensor of torch has memory)");
  };
  for (const Array *array : arraysOf<const Arrays>(p))
    check(*array);
  for (int i = 0; p.gradients && i < kNumGradients; ++i)
    check(*arraysOf(*p.gradients)[i]);
  check(p.writes);
  check(p.states);
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
  if (!array.data || !array.countElements())
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
static void checkSpread(const char *name, const Array &array) {
  if (!array.isPresent() || array.countElements() == 0)
    return;
  // Nothing steps along an extent of 1.
  auto stepOf = [&](int i) {
    return array.sizes[i] > 1 ? std::abs(array.strides[i]) : 0;
  };
  std::array<int, kMaxRank> order = {0, 1, 2, 3};
  std::ranges::sort(order, {}, stepOf);
  int64_t reach = 0;
  for (int i : order) {
    if (array.sizes[i] > 1 && stepOf(i) <= reach)
      fail(name, "a tensor whose elements have memory of their own",
           "stride " + std::to_string(array.strides[i]) + " in dimension " +
               std::to_string(i));
    reach += (array.sizes[i] - 1) * stepOf(i);
  }
}

/// An output is written once, by one thread, while others read: it may lie on
/// no input and on no other output. Gradients have memory of their own.
void gdn::cpu::checkOverlaps(const Problem &p) {
  if (p.kind == Kind::Backward)
    return;
  const auto arrays = arraysOf<const Arrays>(p);
  enum Number {
#define GDN_ARRAY(field, ...) field,
#include "Manifest.inc"
  };
  Extent extents[kNumArrays];
  for (int i = 0; i < kNumArrays; ++i)
    extents[i] = extentOf(*arrays[i]);
  // A state may be updated in place: an item reads all of it first, and calls
  // whose segments begin in any order copy it.
  for (int output : {finalState, stepStates})
    if (p.initialState.isSameView(*arrays[output]))
      extents[output] = {};
  for (int output : {o, finalState, stepStates}) {
    Extent written = std::exchange(extents[output], {});
    for (int i = 0; i < kNumArrays; ++i)
      if (written.overlaps(extents[i]))
        fail(p.nameOf(*arrays[output]),
             std::string("memory apart from ") + p.nameOf(*arrays[i]),
             "tensors that overlap");
  }
}

void gdn::cpu::checkOutputs(const Problem &p) {
  for (const Array *output : {&p.o, &p.finalState, &p.stepStates})
    checkSpread(p.nameOf(*output), *output);
  checkOverlaps(p);
}
