//===- Forward.cpp - Run the items of a call ------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A kernel computes one item, a sequence and a value head, on views of the
// caller's arrays: numbers of sequences and heads, packed sequences and strides
// are settled here, so one compiled kernel serves all of them. What a kernel
// does not read itself is copied to memory of the thread: gates and beta, whose
// forms are many and whose arrays are small; states of 16 bits, or whose rows
// have gaps between their elements; heads whose channels a kernel has more of
// (zeros there change no result), whose channels do not lie side by side, or
// whose 16 bits are computed in float32.
//
//===----------------------------------------------------------------------===//

#include "Items.h"
#include "KernelChoice.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

using namespace gdn::cpu;

/// Bytes of a cache line.
static constexpr int64_t kLineBytes = 64;

namespace {
/// What one thread needs to run items.
class Worker {
public:
  Worker(const Problem &problem, const KernelChoice &chosen);
  /// `state` is the row of the item's state.
  void runItem(const Range &range, int64_t state, int64_t head);

private:
  /// The state to start from, as the kernel reads it.
  StateView readState(int64_t row, int64_t head);
  void runDirect(const Range &range, int64_t head, const StateView &from,
                 const StateView &to);
  void runPadded(const Range &range, int64_t head, StateView from,
                 const StateView &to);
  void call(MemRef<4> &q, MemRef<4> &k, MemRef<4> &v, MemRef<4> &o,
            int64_t firstToken, const StateView &from, const StateView &to);
  StateView scratchState(std::vector<float> &memory) const;
  void scaleRow(char *row, Element element, int64_t size) const;

  const Problem &p;
  const KernelChoice &chosen;
  Kernel kernel;
  /// Channels of the kernel.
  int64_t D;
  /// What o still has to be multiplied by: kernels scale by D^(-1/2).
  float factor;
  std::vector<float> gate, beta;
  std::vector<float> states[3];
  std::vector<char> copies[4];
};
} // namespace

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

StateView Worker::scratchState(std::vector<float> &memory) const {
  if (memory.empty())
    memory.assign(D * D, 0.0f);
  return {reinterpret_cast<char *>(memory.data()), Element::F32, D, D, D};
}

StateView Worker::readState(int64_t row, int64_t head) {
  if (!p.initialState.isPresent()) {
    StateView zero = scratchState(states[0]);
    // A padded run may have left its states here.
    std::fill(states[0].begin(), states[0].end(), 0.0f);
    return zero;
  }
  StateView given = stateOf(p.initialState, row, head);
  if (given.isDirect() && !chosen.padded)
    return given;
  StateView copy = scratchState(states[0]);
  std::fill(states[0].begin(), states[0].end(), 0.0f);
  copyState(given, copy);
  return copy;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void Worker::call(MemRef<4> &q, MemRef<4> &k, MemRef<4> &v, MemRef<4> &o,
                  int64_t firstToken, const StateView &from,
                  const StateView &to) {
  int64_t tokens = q.sizes[1];
  MemRef<3> gates = viewOf(gate.data() + firstToken, tokens);
  MemRef<4> channelGates = viewOf(gate.data() + firstToken * D, tokens, D, D);
  MemRef<3> betas = viewOf(beta.data() + firstToken, tokens);
  MemRef<4> initial = viewOf(from), final = viewOf(to);
  void *decays = p.hasChannelGates() ? static_cast<void *>(&channelGates)
                                     : static_cast<void *>(&gates);
  kernel(&q, &k, &v, &betas, decays, &initial, &o, &final);
}

void Worker::scaleRow(char *row, Element element, int64_t size) const {
  for (int64_t i = 0; i < size && factor != 1.0f; ++i)
    storeFloat(row, element, i, factor * loadFloat(row, element, i));
}

void Worker::runDirect(const Range &range, int64_t head, const StateView &from,
                       const StateView &to) {
  int64_t keyHead = head / (p.valueHeads() / p.keyHeads());
  auto view = [&](const Array &array, int64_t head) {
    return viewOf(at(array, range.batch, range.begin, head), range.length(),
                  array.strides[1], D);
  };
  MemRef<4> q = view(p.q, keyHead), k = view(p.k, keyHead);
  MemRef<4> v = view(p.v, head), o = view(p.o, head);
  call(q, k, v, o, 0, from, to);
  for (int64_t t = range.begin; t < range.end && factor != 1.0f; ++t)
    scaleRow(at(p.o, range.batch, t, head), p.o.element, D);
}

namespace {
/// Rows of elements: where they begin, and the distances in elements.
struct Rows {
  char *data;
  Element element;
  int64_t rowStride, elementStride;
};
} // namespace

/// Copies elements of type T, in blocks of the rows that fit a cache line of a
/// transposed array.
template <typename T>
static void copyElements(Rows from, Rows to, int64_t rows, int64_t size) {
  constexpr int64_t kBlock = kLineBytes / sizeof(T);
  const T *source = reinterpret_cast<const T *>(from.data);
  T *target = reinterpret_cast<T *>(to.data);
  for (int64_t first = 0; first < rows; first += kBlock) {
    int64_t end = std::min(first + kBlock, rows);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t row = first; row < end; ++row)
        target[row * to.rowStride + i * to.elementStride] =
            source[row * from.rowStride + i * from.elementStride];
  }
}

/// Copies elements to another type. The types are constants, so that a loop
/// over rows of both side by side has no branches.
template <Element From, Element To>
static void convertElements(Rows from, Rows to, int64_t rows, int64_t size) {
  bool dense = from.elementStride == 1 && to.elementStride == 1;
  for (int64_t row = 0; row < rows; ++row) {
    const char *source = from.data + row * from.rowStride * sizeOf(From);
    char *target = to.data + row * to.rowStride * sizeOf(To);
    for (int64_t i = 0; i < size && dense; ++i)
      storeFloat(target, To, i, loadFloat(source, From, i));
    for (int64_t i = 0; i < size && !dense; ++i)
      storeFloat(target, To, i * to.elementStride,
                 loadFloat(source, From, i * from.elementStride));
  }
}

static void convertRows(Rows from, Rows to, int64_t rows, int64_t size) {
  constexpr Element f32 = Element::F32, f16 = Element::F16,
                    bf16 = Element::BF16;
  if (from.element == f32)
    return to.element == f16 ? convertElements<f32, f16>(from, to, rows, size)
                             : convertElements<f32, bf16>(from, to, rows, size);
  return from.element == f16 ? convertElements<f16, f32>(from, to, rows, size)
                             : convertElements<bf16, f32>(from, to, rows, size);
}

/// Copies `size` elements of each of the rows.
static void copyRows(Rows from, Rows to, int64_t rows, int64_t size) {
  if (from.element != to.element)
    return convertRows(from, to, rows, size);
  int64_t bytes = sizeOf(from.element);
  if (from.elementStride != 1 || to.elementStride != 1)
    return bytes == 2 ? copyElements<uint16_t>(from, to, rows, size)
                      : copyElements<uint32_t>(from, to, rows, size);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to.data + row * to.rowStride * bytes,
                from.data + row * from.rowStride * bytes, size * bytes);
}

void Worker::runPadded(const Range &range, int64_t head, StateView from,
                       const StateView &to) {
  int64_t keyHead = head / (p.valueHeads() / p.keyHeads());
  Element element = chosen.kernel->element;
  int64_t bytes = sizeOf(element);
  StateView spare[2] = {scratchState(states[1]), scratchState(states[2])};
  int64_t first = 0, parity = 0;
  do {
    int64_t tokens = std::min(kSegmentTokens, range.length() - first);
    for (std::vector<char> &copy : copies)
      copy.resize(std::max<int64_t>(tokens, 1) * D * bytes);
    auto rowsOf = [&](const Array &array, int64_t head) -> Rows {
      return {at(array, range.batch, range.begin + first, head), array.element,
              array.strides[1], array.strides[3]};
    };
    auto pad = [&](const Array &array, int64_t head, std::vector<char> &copy) {
      int64_t used = array.sizes[3];
      copyRows(rowsOf(array, head), {copy.data(), element, D, 1}, tokens, used);
      for (int64_t t = 0; t < tokens && used < D; ++t)
        std::memset(copy.data() + (t * D + used) * bytes, 0,
                    (D - used) * bytes);
      return viewOf(copy.data(), tokens, D, D);
    };
    MemRef<4> q = pad(p.q, keyHead, copies[0]),
              k = pad(p.k, keyHead, copies[1]);
    MemRef<4> v = pad(p.v, head, copies[2]);
    MemRef<4> o = viewOf(copies[3].data(), tokens, D, D);
    const StateView &next = spare[parity];
    call(q, k, v, o, first, from, next);
    // In the kernel's type, which may be wider than the caller's.
    for (int64_t t = 0; t < tokens; ++t)
      scaleRow(copies[3].data() + t * D * bytes, element, p.valueChannels());
    copyRows({copies[3].data(), element, D, 1}, rowsOf(p.o, head), tokens,
             p.valueChannels());
    from = next;
    parity = 1 - parity;
    first += tokens;
  } while (first < range.length());
  if (to.data)
    copyState(from, to);
}

Worker::Worker(const Problem &problem, const KernelChoice &chosen)
    : p(problem), chosen(chosen),
      kernel(chosen.kernel->get(p.stateVFirst, p.l2norm)),
      D(chosen.kernel->channels) {
  double exact = p.scale * std::sqrt(static_cast<double>(D));
  // The kernel's own scale is a float.
  factor = std::abs(exact - 1.0) < 1e-7 ? 1.0f : static_cast<float>(exact);
}

void Worker::runItem(const Range &range, int64_t state, int64_t head) {
  loadGate(p, range, head, D, gate);
  loadBeta(p, range, head, beta);
  StateView from = readState(state, head), to;
  if (p.finalState.isPresent())
    to = stateOf(p.finalState, state, head);
  if (chosen.padded)
    return runPadded(range, head, from, to);
  // The kernel writes the caller's state where it may: float32 in rows, and
  // not the one that it reads.
  bool direct = to.data && to.isDirect() && to.data != from.data;
  if (direct)
    return runDirect(range, head, from, to);
  StateView scratch = scratchState(states[1]);
  runDirect(range, head, from, scratch);
  if (to.data)
    copyState(scratch, to);
}

//===----------------------------------------------------------------------===//
// All items
//===----------------------------------------------------------------------===//

/// The items of the sequences, which are begun in this order.
static void runItems(const Problem &p, const KernelChoice &chosen,
                     const std::vector<Range> &ranges,
                     const std::vector<int64_t> &sequences) {
  int64_t H = p.valueHeads(), count = std::ssize(sequences) * H;
  forEachItem(count, chosen.threads, [&](const std::function<int64_t()> &take) {
    Worker worker(p, chosen);
    for (int64_t i = take(); i < count; i = take()) {
      int64_t sequence = sequences[i / H], state = stateRowOf(p, sequence);
      if (state >= 0)
        worker.runItem(ranges[sequence], state, i % H);
      else if (i % H == 0)
        clearOutputs(p, ranges[sequence]);
    }
  });
}

void gdn::cpu::runSequences(const Problem &p, const KernelChoice &chosen,
                            const std::vector<int64_t> &sequences) {
  runItems(p, chosen, rangesOf(p), sequences);
}

void gdn::cpu::run(const Problem &p, const KernelChoice &chosen) {
  std::vector<Range> ranges = rangesOf(p);
  runItems(p, chosen, ranges, orderByLength(ranges));
  // Of tokens that belong to no sequence: those from the last boundary on, as
  // it was read.
  if (p.cuSeqlens.isPresent())
    clearOutputs(p, {0, ranges.back().end, p.tokens()});
}
