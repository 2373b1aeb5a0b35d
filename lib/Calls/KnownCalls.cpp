//===- KnownCalls.cpp - Calls that were planned lately --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layers of a model make calls alike, and its next step differs in the
// number of tokens or sequences. What a plan follows from is written down as
// numbers: all of a call but its words and its addresses, of which it matters
// how far they are aligned, and which arrays have the same.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

using namespace gdn::calls;

namespace {
/// A call as numbers.
class Key {
public:
  Key(const GdnCallTable &table, const GdnCall &call);

  /// Whether there was room for all of them.
  bool isWhole() const { return count < kMost; }
  bool operator==(const std::vector<uint64_t> &other) const {
    return other.size() == count &&
           std::memcmp(other.data(), words, count * sizeof(uint64_t)) == 0;
  }
  std::vector<uint64_t> copy() const { return {words, words + count}; }

private:
  void add(uint64_t word) {
    if (count < kMost)
      words[count++] = word;
  }
  /// A name, which stays as it is where it stands, or the table.
  void add(const void *place) { add(reinterpret_cast<uintptr_t>(place)); }
  void add(const GdnTensor &array);

  /// Those of a backward with all its arrays take about 260.
  static constexpr size_t kMost = 384;
  uint64_t words[kMost];
  size_t count = 0;
};

struct KnownCall {
  std::vector<uint64_t> key;
  GdnCallPlan plan;
};

/// The last few of a thread.
struct KnownCalls {
  static constexpr int size = 8;

  KnownCall list[size];
  int oldest = 0;
};
} // namespace

void Key::add(const GdnTensor &array) {
  // No call with more dimensions has a plan.
  int rank = std::min(array.rank, kMaxRank);
  if (count + 2 * kMaxRank + 1 > kMost) {
    count = kMost;
    return;
  }
  uint64_t *next = words + count;
  *next++ = reinterpret_cast<uintptr_t>(array.data) % kUnit << 32 |
            static_cast<uint64_t>(array.dtype) << 16 |
            static_cast<uint64_t>(array.rank);
  int64_t dense = 1;
  for (int i = rank - 1; i >= 0; --i) {
    *next++ = static_cast<uint64_t>(array.shape[i]);
    *next++ = static_cast<uint64_t>(array.strides ? array.strides[i] : dense);
    dense *= array.shape[i];
  }
  count = next - words;
}

Key::Key(const GdnCallTable &table, const GdnCall &call) {
  add(&table);
  add(static_cast<uint64_t>(call.device) << 32 |
      static_cast<uint64_t>(call.split) << 1 | (call.is_undecayed != 0));
  for (int64_t number : {call.split_value, call.longest, call.saved_segments,
                         call.first_state, std::bit_cast<int64_t>(call.scale)})
    add(static_cast<uint64_t>(number));
  add(call.state_layout);
  for (int32_t i = 0; i < call.num_facts; ++i) {
    add(call.facts[i].name);
    add(call.facts[i].value);
  }
  const GdnCallArray *end = call.arrays + call.num_arrays;
  for (const GdnCallArray *array = call.arrays; array != end; ++array) {
    add(array->name);
    if (!array->tensor) {
      add(uint64_t(0));
      continue;
    }
    add(*array->tensor);
    const GdnCallArray *first = call.arrays;
    while (first != array &&
           !(first->tensor && first->tensor->data == array->tensor->data))
      ++first;
    add(static_cast<uint64_t>(first - call.arrays));
  }
}

static thread_local KnownCalls knownCalls;

const GdnCallPlan *gdnCallRecall(const GdnCallTable *table,
                                 const GdnCall *call) {
  if (!table || !call)
    return nullptr;
  const Key key(*table, *call);
  for (const KnownCall &known : knownCalls.list)
    if (key == known.key)
      return &known.plan;
  return nullptr;
}

void gdn::calls::rememberPlan(const GdnCallTable &table, const GdnCall &call,
                              const GdnCallPlan &plan) {
  const Key key(table, call);
  if (!key.isWhole())
    return;
  knownCalls.list[knownCalls.oldest] = {key.copy(), plan};
  knownCalls.oldest = (knownCalls.oldest + 1) % KnownCalls::size;
}
