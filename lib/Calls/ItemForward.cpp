//===- ItemForward.cpp - Run the items of a call --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a function does not read itself is copied to memory of the thread: gates
// and beta, whose forms are many and whose arrays are small; states of 16 bits,
// or whose rows have gaps between their elements; heads whose channels a
// function has more of (zeros there change no result), whose channels do not
// lie side by side, or whose 16 bits are computed in float32.
//
//===----------------------------------------------------------------------===//

#include "Items.h"

using namespace gdn::calls;

namespace {
/// What one thread needs to run items.
class ForwardWorker {
public:
  ForwardWorker(const ItemCall &call, const GdnItemDesc &items);
  /// `state` is the row of the item's state.
  void runItem(const Range &range, int64_t state, int64_t head);

private:
  /// Tokens of a head as the kernel reads them.
  Matrix read(const View &array, const Range &range, int64_t head,
              std::vector<char> &memory) const;
  /// Computes tokens, of which the item has `before` in front.
  void runTokens(const Range &range, int64_t before, int64_t head,
                 const Matrix &from, const Matrix &to);
  Matrix scratchState(Floats &memory) const;
  /// Rounds the state after a token as it is kept, and keeps it.
  void keepState(const Matrix &state, int64_t sequence, int64_t step,
                 int64_t head) const;

  const ItemCall &p;
  bool padded;
  void (*function)();
  /// What the kernel reads, and its channels.
  int32_t dtype;
  int64_t D;
  /// What o still has to be multiplied by: kernels scale by D^(-1/2).
  float factor;
  Floats gate, beta, states[3];
  std::vector<char> copies[4];
};
} // namespace

ForwardWorker::ForwardWorker(const ItemCall &call, const GdnItemDesc &items)
    : p(call), padded(isPadded(call, items)),
      function(items.functions[p.forwardFunction()]), dtype(items.dtype),
      D(items.channels) {
  double exact = p.scale * std::sqrt(static_cast<double>(D));
  // The kernel's own scale is a float.
  factor = std::abs(exact - 1.0) < 1e-7 ? 1.0f : static_cast<float>(exact);
}

Matrix ForwardWorker::scratchState(Floats &memory) const {
  memory.resize(D * D);
  return matrixOf(memory, D);
}

/// Whether a kernel reads and writes a state where it lies.
static bool isDirect(const Matrix &state) {
  return state.data && state.dtype == GDN_DTYPE_F32 && state.columnStride == 1;
}

Matrix ForwardWorker::read(const View &array, const Range &range, int64_t head,
                           std::vector<char> &memory) const {
  Matrix given = tokensOf(array, range, head);
  if (!padded)
    return given;
  // At least one token, so that there is an address.
  size_t bytes = std::max<int64_t>(given.rows, 1) * D * sizeOf(dtype);
  if (given.columns < D)
    memory.assign(bytes, 0);
  memory.resize(bytes);
  Matrix wide = {memory.data(), dtype, given.rows, D, D};
  copy(given, wide);
  return wide;
}

void ForwardWorker::runTokens(const Range &range, int64_t before, int64_t head,
                              const Matrix &from, const Matrix &to) {
  int64_t keyHead = head / (p.valueHeads() / p.keyHeads());
  int64_t tokens = range.length();
  Matrix o = tokensOf(p.o, range, head), written = o;
  if (padded) {
    copies[3].resize(std::max<int64_t>(tokens, 1) * D * sizeOf(dtype));
    written = {copies[3].data(), dtype, tokens, D, D};
  }
  auto partOf = [&](Floats &memory, int64_t width) {
    Matrix all = matrixOf(memory, width);
    return Matrix{all.data + before * width * sizeOf(GDN_DTYPE_F32), all.dtype,
                  tokens, width, width};
  };
  Matrix gates = partOf(gate, p.hasChannelGates ? D : 1);
  callItem(function, read(p.q, range, keyHead, copies[0]).asTokens(),
           read(p.k, range, keyHead, copies[1]).asTokens(),
           read(p.v, range, head, copies[2]).asTokens(),
           partOf(beta, 1).asColumn(),
           p.hasChannelGates ? gates.asTokens() : gates.asColumn(),
           from.asState(), written.asTokens(), to.asState());
  // In the kernel's type, which may be wider than the caller's.
  for (int64_t t = 0; t < tokens && factor != 1.0f; ++t) {
    char *row = written.data + t * written.rowStride * sizeOf(dtype);
    for (int64_t i = 0; i < o.columns; ++i)
      storeFloat(row, dtype, i, factor * loadFloat(row, dtype, i));
  }
  if (padded)
    copy(written, o);
}

void ForwardWorker::keepState(const Matrix &state, int64_t sequence,
                              int64_t step, int64_t head) const {
  auto *entries = reinterpret_cast<float *>(state.data);
  uint16_t bits;
  bool isRounded =
      p.stepStates.tensor.dtype != GDN_DTYPE_F32 && !p.keepsEvery();
  for (int64_t i = 0; isRounded && i < D * D; ++i) {
    storeFloat(&bits, p.stepStates.tensor.dtype, 0, entries[i]);
    entries[i] = loadFloat(&bits, p.stepStates.tensor.dtype, 0);
  }
  if (int64_t row = stepRowOf(p, sequence, step); row >= 0)
    copy(state, stateOf(p.stepStates, row, head));
}

void ForwardWorker::runItem(const Range &range, int64_t state, int64_t head) {
  loadGate(p, range, head, D, gate);
  loadBeta(p, range, head, beta);
  Matrix from = stateBefore(p, range.sequence, head),
         to = stateOf(p.finalState, state, head);
  if (padded || !isDirect(from))
    from = load(from, states[0], D, D);
  // The kernel writes the caller's state where it may: float32 in rows, and
  // not the one that it reads.
  int64_t every = std::max<int64_t>(p.keptEvery(range.sequence), 0);
  bool inParts = padded || every;
  bool writesTo = !inParts && isDirect(to) && to.data != from.data;
  Matrix spare[2] = {writesTo ? to : scratchState(states[1]),
                     inParts ? scratchState(states[2]) : Matrix()};
  Range part = range;
  int parity = 0;
  do {
    int64_t before = part.begin - range.begin;
    int64_t left = every ? every - before % every : kSegmentTokens;
    if (inParts)
      part.end =
          std::min({part.begin + left, part.begin + kSegmentTokens, range.end});
    if (int64_t row = parentRowOf(p, range.sequence, before); row >= 0)
      from = load(stateOf(p.stepStates, row, head), states[0], D, D);
    runTokens(part, before, head, from, spare[parity]);
    from = spare[parity];
    int64_t tokens = part.end - range.begin;
    if (every && part.length() && tokens % every == 0)
      keepState(from, range.sequence, tokens / every - 1, head);
    parity = 1 - parity;
    part.begin = part.end;
  } while (part.begin < range.end);
  if (!writesTo)
    copy(from, to);
}

void gdn::calls::runForward(const ItemCall &p, const GdnItemDesc &items,
                            int threads, Ranges sequences) {
  sortByLength(sequences);
  int64_t H = p.valueHeads();
  forEachItem(std::ssize(sequences) * H, threads, [&] {
    return [&, worker = ForwardWorker(p, items)](int64_t i) mutable {
      const Range &range = sequences[i / H];
      int64_t state = stateRowOf(p, range.sequence);
      if (state >= 0)
        worker.runItem(range, state, i % H);
      else if (i % H == 0)
        clearOutputs(p, range);
    };
  });
}
