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
// all segments, so is the output.
//
//===----------------------------------------------------------------------===//

#include "KernelChoice.h"
#include "Parallel.h"

#include <algorithm>
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
  /// The forward of `problem` on the segments.
  Error runForward(Problem problem, Array *initial, Array *final);
  Error makeMaps();
  void scan(int64_t sequence, int64_t head);

  const Problem &p;
  int64_t K, V, H;
  /// Boundaries of the segments, and where those of each sequence begin.
  std::vector<int64_t> boundaries, first;
  /// M [S, H, K, K], B and the states before segments [S, H, K, V].
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
    for (int64_t t = sequences[n]; t < sequences[n + 1]; t += length)
      boundaries.push_back(t);
  }
  first.push_back(static_cast<int64_t>(boundaries.size()));
  boundaries.push_back(sequences.back());
  int64_t states = countSegments() * H * K;
  maps.resize(states * K);
  added.resize(states * V);
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

Error SegmentedRow::runForward(Problem problem, Array *initial, Array *final) {
  problem.split = {};
  problem.stateVFirst = false;
  problem.initialState = initial ? *initial : Array();
  problem.finalState = final ? *final : Array();
  problem.cuSeqlens =
      makeArray(boundaries.data(), Element::I64, {countSegments() + 1}, {1});
  KernelChoice chosen;
  if (Error error = chooseKernel(problem, chosen))
    return error;
  gdn::cpu::run(problem, chosen);
  return {};
}

Error SegmentedRow::makeMaps() {
  // Outputs of these calls are not read: o has its values last.
  Array states = segmentStates(added, V);
  if (Error error = runForward(p, nullptr, &states))
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
  states = segmentStates(maps, K);
  return runForward(problem, &initial, &states);
}

/// The states before the segments of a sequence, and the one behind them.
void SegmentedRow::scan(int64_t sequence, int64_t head) {
  // In double precision: what a segment adds may cancel what it keeps.
  std::vector<double> state(K * V), next(K * V);
  auto place = [&](const Array &states, int64_t i, int64_t j) {
    int64_t row = p.stateVFirst ? j : i, column = p.stateVFirst ? i : j;
    return sequence * states.strides[0] + head * states.strides[1] +
           row * states.strides[2] + column * states.strides[3];
  };
  for (int64_t i = 0; i < K && p.initialState.isPresent(); ++i)
    for (int64_t j = 0; j < V; ++j)
      state[i * V + j] = loadFloat(p.initialState.data, p.initialState.element,
                                   place(p.initialState, i, j));
  for (int64_t s = first[sequence]; s < first[sequence + 1]; ++s) {
    int64_t item = s * H + head;
    std::transform(state.begin(), state.end(), entry.begin() + item * K * V,
                   [](double x) { return static_cast<float>(x); });
    const float *map = maps.data() + item * K * K;
    std::copy_n(added.begin() + item * K * V, K * V, next.begin());
    for (int64_t i = 0; i < K; ++i)
      for (int64_t k = 0; k < K; ++k)
        for (int64_t j = 0; j < V; ++j)
          next[i * V + j] +=
              static_cast<double>(map[i * K + k]) * state[k * V + j];
    state.swap(next);
  }
  for (int64_t i = 0; i < K && p.finalState.isPresent(); ++i)
    for (int64_t j = 0; j < V; ++j)
      storeFloat(p.finalState.data, p.finalState.element,
                 place(p.finalState, i, j),
                 static_cast<float>(state[i * V + j]));
}

Error SegmentedRow::run() {
  if (countSegments() == 0) {
    Problem whole = p;
    whole.split = {};
    KernelChoice chosen;
    if (Error error = chooseKernel(whole, chosen))
      return error;
    gdn::cpu::run(whole, chosen);
    return {};
  }
  if (Error error = makeMaps())
    return error;
  int64_t items = (static_cast<int64_t>(first.size()) - 1) * H;
  forEachItem(items, std::max(p.threads, 1),
              [&](const std::function<int64_t()> &take) {
                for (int64_t i = take(); i < items; i = take())
                  scan(i / H, i % H);
              });
  Array states = segmentStates(entry, V);
  return runForward(p, &states, nullptr);
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

Error gdn::cpu::runInSegments(const Problem &p) {
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
                         &row.initialState, &row.finalState})
      takeRow(*array, b);
    if (Error error = SegmentedRow(row, {0, p.tokens()}).run())
      return error;
  }
  return {};
}
