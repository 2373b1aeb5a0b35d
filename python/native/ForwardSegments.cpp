//===- ForwardSegments.cpp - Cut sequences on a CPU -----------------------===//
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
#include "KernelChoice.h"
#include "Parallel.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

using namespace gdn::cpu;

namespace {
/// One batch row, or all packed sequences, in segments.
class SegmentedRow {
public:
  SegmentedRow(const Problem &row, std::vector<int64_t> sequences);

  Error run();

private:
  int64_t countSegments() const {
    return static_cast<int64_t>(boundaries.size()) - 1;
  }
  Array segmentStates(std::vector<float> &memory, int64_t columns) const;
  /// The forward of `problem` on the segments. What the caller says of these
  /// stays: it may be that no length chooses the kernel.
  Error runForward(Problem problem, Array *initial, Array *final);
  /// The same of the segments with others behind them. No output is read.
  Error runAhead(Problem problem, Array *initial, Array final);
  Error choose(Problem &problem, Array *initial, Array *final,
               KernelChoice &chosen);
  Error makeMaps();
  void scan(int64_t sequence, int64_t head);
  void copyLast(const Array &states, int64_t sequence, int64_t head) const;
  template <typename Function> void forEachState(Function function) const;

  const Problem &p;
  int64_t K, V, H;
  /// Boundaries of the segments, where those of each sequence begin, and those
  /// with others behind them.
  std::vector<int64_t> boundaries, first, ahead;
  /// M [S, H, K, K], B (and the states behind segments, in the end) and the
  /// states before segments [S, H, K, V].
  std::vector<float> maps, added, entry;
};
} // namespace

/// The tokens of a segment where the longest sequence has so many.
static int64_t lengthOf(const gdn::cost::SplitRequest &split, int64_t longest) {
  if (split.kind == gdn::cost::SplitRequest::Kind::Length)
    return split.value;
  constexpr int64_t chunk = gdn::manifest::CPUChunkTokens;
  int64_t chunks = (longest + chunk - 1) / chunk;
  return std::max<int64_t>((chunks + split.value - 1) / split.value, 1) * chunk;
}

SegmentedRow::SegmentedRow(const Problem &row, std::vector<int64_t> sequences)
    : p(row), K(row.keyChannels()), V(row.valueChannels()),
      H(row.valueHeads()) {
  int64_t longest = 0;
  for (size_t n = 0; n + 1 < sequences.size(); ++n)
    longest = std::max(longest, sequences[n + 1] - sequences[n]);
  int64_t length = lengthOf(p.split, longest);
  for (size_t n = 0; n + 1 < sequences.size(); ++n) {
    first.push_back(static_cast<int64_t>(boundaries.size()));
    for (int64_t t = sequences[n]; t < sequences[n + 1]; t += length) {
      if (t + length < sequences[n + 1])
        ahead.push_back(std::ssize(boundaries));
      boundaries.push_back(t);
    }
  }
  first.push_back(static_cast<int64_t>(boundaries.size()));
  boundaries.push_back(sequences.back());
  int64_t states = countSegments() * H * K;
  if (!ahead.empty())
    maps.resize(states * K);
  if (!ahead.empty() || p.finalState.isPresent())
    added.resize(states * V);
  if (!ahead.empty() || p.initialState.isPresent())
    entry.resize(states * V);
}

static Array makeArray(void *data, Element element,
                       std::initializer_list<int64_t> sizes,
                       std::initializer_list<int64_t> strides) {
  Array array;
  array.element = element;
  array.rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), array.sizes.begin());
  std::copy(strides.begin(), strides.end(), array.strides.begin());
  array.data = data;
  return array;
}

/// The states [S, H, K, columns] of all segments.
Array SegmentedRow::segmentStates(std::vector<float> &memory,
                                  int64_t columns) const {
  return makeArray(memory.data(), Element::F32,
                   {countSegments(), H, K, columns},
                   {H * K * columns, K * columns, columns, 1});
}

Error SegmentedRow::choose(Problem &problem, Array *initial, Array *final,
                           KernelChoice &chosen) {
  problem.stateVFirst = false;
  problem.initialState = initial ? *initial : Array();
  problem.finalState = final ? *final : Array();
  problem.stateIndices = Array();
  problem.cuSeqlens =
      makeArray(boundaries.data(), Element::I64, {countSegments() + 1}, {1});
  return chooseKernel(problem, chosen);
}

Error SegmentedRow::runForward(Problem problem, Array *initial, Array *final) {
  KernelChoice chosen;
  if (Error error = choose(problem, initial, final, chosen))
    return error;
  gdn::cpu::run(problem, chosen);
  return {};
}

Error SegmentedRow::runAhead(Problem problem, Array *initial, Array final) {
  KernelChoice chosen;
  if (Error error = choose(problem, initial, &final, chosen))
    return error;
  runSequences(problem, chosen, ahead);
  return {};
}

Error SegmentedRow::makeMaps() {
  if (ahead.empty())
    return {};
  // Outputs of these calls are not read: o has its values last.
  if (Error error = runAhead(p, nullptr, segmentStates(added, V)))
    return error;
  Problem problem = p;
  std::vector<float> zeros(K);
  problem.v =
      makeArray(zeros.data(), p.v.element, {1, p.tokens(), H, K}, {0, 0, 0, 1});
  std::vector<char> unread;
  if (K != V) {
    unread.resize(p.tokens() * H * K * sizeOf(p.o.element));
    problem.o = makeArray(unread.data(), p.o.element, {1, p.tokens(), H, K},
                          {p.tokens() * H * K, H * K, K, 1});
  }
  std::vector<float> identity(K * K);
  for (int64_t i = 0; i < K; ++i)
    identity[i * K + i] = 1;
  Array initial = makeArray(identity.data(), Element::F32,
                            {countSegments(), H, K, K}, {0, 0, K, 1});
  return runAhead(problem, &initial, segmentStates(maps, K));
}

/// The state of a sequence as [K, V], whatever the call's layout is.
static StateView stateAt(const Problem &p, const Array &states,
                         int64_t sequence, int64_t head) {
  StateView view = stateOf(states, stateRowOf(p, sequence), head);
  if (p.stateVFirst) {
    std::swap(view.rows, view.columns);
    std::swap(view.rowStride, view.columnStride);
  }
  return view;
}

/// The states before the segments of a sequence.
void SegmentedRow::scan(int64_t sequence, int64_t head) {
  int64_t begin = first[sequence], end = first[sequence + 1], size = K * V;
  if (begin < end && p.initialState.isPresent() && stateRowOf(p, sequence) >= 0)
    copyState(stateAt(p, p.initialState, sequence, head),
              stateOf(segmentStates(entry, V), begin, head));
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
void SegmentedRow::copyLast(const Array &states, int64_t sequence,
                            int64_t head) const {
  if (stateRowOf(p, sequence) < 0)
    return;
  std::vector<float> zeros;
  StateView from;
  if (first[sequence] < first[sequence + 1]) {
    from = stateOf(states, first[sequence + 1] - 1, head);
  } else if (p.initialState.isPresent()) {
    from = stateAt(p, p.initialState, sequence, head);
  } else {
    zeros.resize(K * V);
    from = {reinterpret_cast<char *>(zeros.data()), Element::F32, K, V, V};
  }
  copyState(from, stateAt(p, p.finalState, sequence, head));
}

/// Calls a member for all sequences and heads.
template <typename Function>
void SegmentedRow::forEachState(Function function) const {
  int64_t items = (std::ssize(first) - 1) * H;
  forEachItem(items, std::max(p.threads, 1),
              [&](const std::function<int64_t()> &take) {
                for (int64_t i = take(); i < items; i = take())
                  function(i / H, i % H);
              });
}

Error SegmentedRow::run() {
  if (countSegments() == 0) {
    KernelChoice chosen;
    if (Error error = chooseKernel(p, chosen))
      return error;
    gdn::cpu::run(p, chosen);
    return {};
  }
  if (Error error = makeMaps())
    return error;
  forEachState([this](int64_t n, int64_t head) { scan(n, head); });
  Array states = segmentStates(entry, V);
  Array *before = entry.empty() ? nullptr : &states;
  if (!p.finalState.isPresent())
    return runForward(p, before, nullptr);
  // What segments add has been read.
  Array behind = segmentStates(added, V);
  if (Error error = runForward(p, before, &behind))
    return error;
  forEachState([&](int64_t n, int64_t head) { copyLast(behind, n, head); });
  return {};
}

/// Batch row b of an array [B, ...].
static void takeRow(Array &array, int64_t b) {
  if (!array.isPresent())
    return;
  array.data = static_cast<char *>(array.data) +
               b * array.strides[0] * sizeOf(array.element);
  array.sizes[0] = 1;
}

bool gdn::cpu::isCut(const Problem &p) {
  using Kind = cost::SplitRequest::Kind;
  return p.split.kind == Kind::Length ||
         (p.split.kind == Kind::Segments && p.split.value > 1);
}

/// Outputs of sequences that have no state in a pool, which were computed as if
/// they had one of zeros.
static void clearUnnamed(const Problem &p) {
  std::vector<Range> ranges = rangesOf(p);
  for (size_t n = 0; n < ranges.size() && p.hasPool(); ++n)
    if (stateRowOf(p, static_cast<int64_t>(n)) < 0)
      clearOutputs(p, ranges[n]);
}

static Error runRowsInSegments(const Problem &p) {
  if (p.cuSeqlens.isPresent()) {
    std::vector<int64_t> sequences;
    for (int64_t i = 0; i <= p.sequences(); ++i)
      sequences.push_back(loadInteger(p.cuSeqlens.data, p.cuSeqlens.element,
                                      i * p.cuSeqlens.strides[0]));
    return SegmentedRow(p, std::move(sequences)).run();
  }
  for (int64_t b = 0; b < p.batches(); ++b) {
    Problem row = p;
    for (Array *array : {&row.q, &row.k, &row.v, &row.gate, &row.beta, &row.o,
                         &row.stateIndices})
      takeRow(*array, b);
    for (Array *state : {&row.initialState, &row.finalState})
      if (!p.hasPool())
        takeRow(*state, b);
    if (Error error = SegmentedRow(row, {0, p.tokens()}).run())
      return error;
  }
  return {};
}

Error gdn::cpu::runInSegments(const Problem &p) {
  Error error = runRowsInSegments(p);
  if (!error)
    clearUnnamed(p);
  return error;
}
