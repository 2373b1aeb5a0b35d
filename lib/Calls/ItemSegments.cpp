//===- ItemSegments.cpp - Cut sequences on a CPU --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A segment takes the state S before it to M S + B. B is the final state of the
// segment from zero, M that from the identity with values of zero: both are
// calls of the forward whose sequences are the segments. With the states before
// all segments, so are the output and the states behind the last ones: a
// sequence of one segment has no map, and is computed as one that is not cut.
//
//===----------------------------------------------------------------------===//

#include "Items.h"

#include <algorithm>
#include <utility>

using namespace gdn::calls;

namespace {
/// One batch row, or all packed sequences, in segments.
class SegmentedRow {
public:
  SegmentedRow(const GdnCallTable &table, const ItemCall &call, int64_t split,
               Ranges sequences);

  void run();

private:
  /// The states [S, H, K, columns] of all segments.
  View statesIn(Floats &memory, int64_t columns) const {
    const Strides shape = {std::ssize(segments), H, K, columns};
    return View(
        {memory.data(), GDN_DTYPE_F32, kMaxRank, shape.data(), nullptr});
  }
  /// The forward of `call` on those segments. What the caller says of all
  /// stays: it may be that no length chooses the kernel.
  void runPart(ItemCall call, const View &initial, const View &final,
               const Ranges &part) const;
  void makeMaps();
  void scan(size_t number, int64_t head);
  void copyLast(const View &states, size_t number, int64_t head) const;
  template <typename Function> void forEachState(Function function) const;

  const GdnCallTable &table;
  const ItemCall &p;
  int64_t K, V, H;
  Ranges sequences;
  /// The segments, the numbers of each sequence's first one, and those with
  /// others behind them.
  Ranges segments, ahead;
  std::vector<int64_t> first;
  /// M [S, H, K, K], B (and the states behind segments, in the end) and the
  /// states before segments [S, H, K, V].
  Floats maps, added, entry;
};
} // namespace

/// The tokens of a segment if the longest sequence has so many.
static int64_t lengthOf(const ItemCall &p, int64_t split, int64_t longest) {
  if (p.isFixed)
    return split;
  int64_t chunks = (longest + kChunkTokens - 1) / kChunkTokens;
  return std::max<int64_t>((chunks + split - 1) / split, 1) * kChunkTokens;
}

SegmentedRow::SegmentedRow(const GdnCallTable &table, const ItemCall &call,
                           int64_t split, Ranges given)
    : table(table), p(call), K(p.keyChannels()), V(p.valueChannels()),
      H(p.valueHeads()), sequences(std::move(given)) {
  int64_t longest = 0;
  for (const Range &range : sequences)
    longest = std::max(longest, range.length());
  int64_t length = lengthOf(p, split, longest);
  for (const Range &range : sequences) {
    first.push_back(std::ssize(segments));
    for (int64_t t = range.begin; t < range.end; t += length) {
      int64_t end = std::min(t + length, range.end);
      segments.push_back({range.batch, t, end, std::ssize(segments)});
      if (end < range.end)
        ahead.push_back(segments.back());
    }
  }
  first.push_back(std::ssize(segments));
  int64_t states = std::ssize(segments) * H * K;
  if (!ahead.empty())
    maps.resize(states * K);
  if (!ahead.empty() || p.finalState.isPresent())
    added.resize(states * V);
  if (!ahead.empty() || p.initialState.isPresent())
    entry.resize(states * V);
}

void SegmentedRow::runPart(ItemCall call, const View &initial,
                           const View &final, const Ranges &part) const {
  call.stateVFirst = false;
  call.initialState = initial;
  call.finalState = final;
  call.stateIndices = call.hasInitialState = View{};
  ItemChoice chosen = chooseItems(table, call, segments);
  runForward(call, *chosen.items, chosen.threads, part);
}

/// The maps of segments with others behind them. No output is read.
void SegmentedRow::makeMaps() {
  if (ahead.empty())
    return;
  // o has its values last.
  runPart(p, View{}, statesIn(added, V), ahead);
  ItemCall call = p;
  Floats zeros(K);
  call.v.tensor.data = zeros.data();
  call.v.shape[3] = K;
  call.v.strides = {0, 0, 0, 1};
  std::vector<char> unread;
  if (K != V) {
    unread.resize(p.tokens() * H * K * sizeOf(p.o.tensor.dtype));
    call.o.tensor.data = unread.data();
    call.o.shape[3] = K;
    call.o.strides = {0, H * K, K, 1};
  }
  Floats identity(K * K);
  for (int64_t i = 0; i < K; ++i)
    identity[i * K + i] = 1;
  View initial = statesIn(identity, K);
  initial.strides = {0, 0, K, 1};
  runPart(call, initial, statesIn(maps, K), ahead);
}

/// The states before the segments of a sequence.
void SegmentedRow::scan(size_t number, int64_t head) {
  int64_t begin = first[number], end = first[number + 1], size = K * V;
  if (begin < end)
    copy(stateBefore(p, sequences[number].sequence, head, p.stateVFirst),
         stateOf(statesIn(entry, V), begin, head));
  if (end - begin < 2)
    return;
  auto entryOf = [&](int64_t s) {
    return entry.begin() + (s * H + head) * size;
  };
  // In double precision: what a segment adds may cancel what it keeps.
  std::vector<double> state(entryOf(begin), entryOf(begin) + size), next(size);
  for (int64_t s = begin; s + 1 < end; ++s) {
    int64_t item = s * H + head;
    const float *map = maps.data() + item * K * K;
    std::copy_n(added.begin() + item * size, size, next.begin());
    for (int64_t i = 0; i < K; ++i)
      for (int64_t k = 0; k < K; ++k)
        for (int64_t j = 0; j < V; ++j)
          next[i * V + j] +=
              static_cast<double>(map[i * K + k]) * state[k * V + j];
    state.swap(next);
    std::transform(state.begin(), state.end(), entryOf(s + 1),
                   [](double x) { return static_cast<float>(x); });
  }
}

/// The state behind a sequence, of those behind all segments. One without
/// tokens keeps its own.
void SegmentedRow::copyLast(const View &states, size_t number,
                            int64_t head) const {
  int64_t sequence = sequences[number].sequence;
  int64_t row = stateRowOf(p, sequence);
  if (row < 0)
    return;
  Floats zeros(K * V);
  Matrix from = first[number] < first[number + 1]
                    ? stateOf(states, first[number + 1] - 1, head)
                    : stateBefore(p, sequence, head, p.stateVFirst);
  if (!from.data)
    from = matrixOf(zeros, V);
  copy(from, stateOf(p.finalState, row, head, p.stateVFirst));
}

/// Calls a function for all sequences and heads.
template <typename Function>
void SegmentedRow::forEachState(Function function) const {
  forEachItem(std::ssize(sequences) * H, p.threads,
              [&] { return [&](int64_t i) { function(i / H, i % H); }; });
}

void SegmentedRow::run() {
  if (segments.empty()) {
    ItemChoice chosen = chooseItems(table, p, sequences);
    return runForward(p, *chosen.items, chosen.threads, sequences);
  }
  makeMaps();
  forEachState([&](size_t number, int64_t head) { scan(number, head); });
  // What segments add has been read.
  View before{}, behind{};
  if (!entry.empty())
    before = statesIn(entry, V);
  if (p.finalState.isPresent())
    behind = statesIn(added, V);
  runPart(p, before, behind, segments);
  if (behind.isPresent())
    forEachState(
        [&](size_t number, int64_t head) { copyLast(behind, number, head); });
  // Outputs of sequences that have no state in a pool were computed as if they
  // had one of zeros.
  for (const Range &range : sequences)
    if (stateRowOf(p, range.sequence) < 0)
      clearOutputs(p, range);
}

void gdn::calls::runInSegments(const GdnCallTable &table, const ItemCall &p,
                               int64_t split, const Ranges &sequences) {
  if (p.cuSeqlens.isPresent())
    return SegmentedRow(table, p, split, sequences).run();
  // Rows one by one have memory for one.
  for (const Range &row : sequences)
    SegmentedRow(table, p, split, {row}).run();
}
