//===- Addresses.cpp - Where the arrays of a call may lie -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "Layout.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

using namespace gdn::calls;

void gdn::calls::checkMemory(const Call &call) {
  const GdnCall &given = call.get();
  for (int32_t i = 0; i < given.num_arrays; ++i) {
    const auto &[name, tensor] = given.arrays[i];
    if (tensor && !tensor->data && hasElements(*tensor))
      call.refuse(name, "a tensor whose elements have memory",
                  call.say("a null address"));
  }
}

//===----------------------------------------------------------------------===//
// Overlaps
//===----------------------------------------------------------------------===//

namespace {
/// First and one past the last byte that an array reaches; the same if there
/// are none.
struct Extent {
  uintptr_t begin = 0, end = 0;

  bool overlaps(const Extent &other) const {
    return begin < other.end && other.begin < end;
  }
};
} // namespace

static Extent extentOf(const GdnTensor *array) {
  if (!array || !array->data || !hasElements(*array))
    return {};
  const Strides strides = stridesOf(*array);
  int64_t low = 0, high = 1;
  for (int i = 0; i < array->rank; ++i) {
    int64_t reach = (array->shape[i] - 1) * strides[i];
    (reach < 0 ? low : high) += reach;
  }
  auto base = reinterpret_cast<uintptr_t>(array->data);
  int64_t bytes = sizeOf(array->dtype);
  return {base + low * bytes, base + high * bytes};
}

static void checkOverlaps(const Call &call) {
  const GdnCall &given = call.get();
  std::vector<Extent> extents(given.num_arrays);
  for (int32_t i = 0; i < given.num_arrays; ++i)
    extents[i] = extentOf(given.arrays[i].tensor);
  // A state may be updated in place: an item reads all of it first, and calls
  // whose segments begin in any order copy it.
  const GdnTensor *initial = call.find("initial_state");
  for (const char *name : {"o", "final_state", "step_states"}) {
    int32_t output = call.indexOf(name);
    const GdnTensor *array = output < 0 ? nullptr : given.arrays[output].tensor;
    if (!array)
      continue;
    Extent written = std::exchange(extents[output], {});
    if (initial && initial->data == array->data &&
        areOne(View(*initial), View(*array)))
      continue;
    for (int32_t i = 0; i < given.num_arrays; ++i)
      if (written.overlaps(extents[i]))
        call.refuse(name, "memory apart from " + call.say(given.arrays[i].name),
                    "tensors that overlap");
  }
}

//===----------------------------------------------------------------------===//
// Boundaries and rows of states
//===----------------------------------------------------------------------===//

[[noreturn]] static void refuseValue(const char *name, const std::string &rule,
                                     const std::string &got) {
  refuse(GDN_ERROR_INVALID_ARGUMENT,
         std::string(name) + ": expected " + rule + ", got " + got);
}

static void checkBoundaries(const View &cu, int64_t tokens) {
  int64_t previous = 0;
  for (int64_t i = 0; i < cu.shape[0]; ++i) {
    int64_t value = cu.integerAt(i);
    const char *name = "cu_seqlens";
    std::string at = "cu_seqlens[" + std::to_string(i) + "]";
    if (i == 0 && value != 0)
      refuseValue(name, at + " = 0", std::to_string(value));
    if (value < previous)
      refuseValue(name, "boundaries that ascend",
                  at + " = " + std::to_string(value) + " after " +
                      std::to_string(previous));
    if (value > tokens)
      refuseValue(name, "boundaries of at most T = " + std::to_string(tokens),
                  at + " = " + std::to_string(value));
    previous = value;
  }
}

/// Of rows from `first` on no two are equal. If others are refused, each is one
/// of the pool, or -1, which engines write for none.
static void checkRows(const char *name, const View &rows, int64_t first,
                      int64_t count, bool refusesOthers = false) {
  std::vector<int64_t> named;
  int64_t columns = rows.tensor.rank > 1 ? rows.shape[1] : 1;
  for (int64_t n = 0; n < rows.shape[0] * columns; ++n) {
    int64_t row = rows.integerAt(n / columns, n % columns);
    if (row >= first && row < count)
      named.push_back(row);
    if (refusesOthers && (row < -1 || row >= count))
      refuseValue(name, "rows of -1 to P - 1 = " + std::to_string(count - 1),
                  std::string(name) + "[" + std::to_string(n) +
                      "] = " + std::to_string(row));
  }
  std::sort(named.begin(), named.end());
  auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice != named.end())
    refuseValue(name, "rows that differ", std::to_string(*twice) + " twice");
}

void gdn::calls::checkAddresses(const Call &call) {
  if (!call.isBackward())
    checkOverlaps(call);
  if (!call.isOnCPU())
    return;
  auto rowsOf = [&](const char *name) -> int64_t {
    const GdnTensor *array = call.find(name);
    return array ? array->shape[0] : 0;
  };
  auto isKnown = [](const GdnTensor *array) { return array && array->data; };
  const GdnTensor *boundaries = call.find("cu_seqlens"),
                  *rows = call.find("state_indices"),
                  *steps = call.find("step_indices");
  int64_t first = call.get().first_state;
  if (isKnown(boundaries))
    checkBoundaries(View(*boundaries), call.tokens);
  if (isKnown(steps))
    checkRows("step_indices", View(*steps), first, rowsOf("step_states"));
  if (isKnown(rows))
    checkRows("state_indices", View(*rows), first, rowsOf("initial_state"));
}

GdnRuntimeStatus gdnCallCheckValues(const GdnTensor *boundaries,
                                    const GdnTensor *rows, int64_t tokens,
                                    int64_t first, int64_t count) {
  return guarded([&] {
    if (boundaries)
      checkBoundaries(View(*boundaries), tokens);
    if (rows)
      checkRows("state_indices", View(*rows), first, count,
                /*refusesOthers=*/true);
  });
}
