//===- Items.cpp - What the items of a call read and write ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPU.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

using namespace gdn::cpu;

void gdn::cpu::forEachItem(
    int64_t count, int threads,
    const std::function<std::function<void(int64_t)>()> &makeItem) {
  std::atomic<int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  auto run = [&] {
    try {
      std::function<void(int64_t)> item = makeItem();
      for (int64_t i = next++; i < count; i = next++)
        item(i);
    } catch (...) {
      // Out of memory: the others stop at their next item.
      next = count;
      std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(threads);
  for (int i = 1; i < threads && i < count; ++i) {
    try {
      helpers.emplace_back(run);
    } catch (const std::system_error &) {
      break;
    }
  }
  run();
  for (std::thread &helper : helpers)
    helper.join();
  if (failure)
    std::rethrow_exception(failure);
}

Ranges gdn::cpu::rangesOf(const Problem &p) {
  const int64_t N = p.sequences(), T = p.tokens();
  Ranges ranges(N);
  const Array &cu = p.cuSeqlens;
  for (int64_t n = 0; n < N; ++n)
    ranges[n] = !cu.isPresent() ? Range{n, 0, T, n}
                : cu.data ? Range{0, cu.integerAt(n), cu.integerAt(n + 1), n}
                          : Range{0, 0, T / N, n};
  return ranges;
}

void gdn::cpu::sortByLength(Ranges &ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::pair(b.length(), a.sequence) <
           std::pair(a.length(), b.sequence);
  });
}

Matrix gdn::cpu::tokensOf(const Array &array, const Range &range,
                          int64_t head) {
  if (!array.isPresent())
    return {};
  int64_t index = range.batch * array.strides[0] +
                  range.begin * array.strides[1] + head * array.strides[2];
  return {array.at(index),  array.element,
          range.length(),   array.rank == 3 ? 1 : array.sizes[3],
          array.strides[1], array.strides[3]};
}

Matrix gdn::cpu::parameterOf(const Array &parameter, int64_t head,
                             int64_t width) {
  if (!parameter.isPresent())
    return {};
  int64_t stride = parameter.strides[parameter.rank - 1],
          ofHead = parameter.rank == 1 ? width * stride : parameter.strides[0];
  return {parameter.at(head * ofHead), parameter.element, 1, width, 0, stride};
}

Matrix gdn::cpu::stateOf(const Array &states, int64_t row, int64_t head,
                         bool isTurned) {
  if (!states.isPresent())
    return {};
  Matrix state = {states.at(row * states.strides[0] + head * states.strides[1]),
                  states.element,
                  states.sizes[2],
                  states.sizes[3],
                  states.strides[2],
                  states.strides[3]};
  if (isTurned) {
    std::swap(state.rows, state.columns);
    std::swap(state.rowStride, state.columnStride);
  }
  return state;
}

Matrix gdn::cpu::matrixOf(Floats &memory, int64_t columns) {
  return {reinterpret_cast<char *>(memory.data()), Element::F32,
          std::ssize(memory) / columns, columns, columns};
}

int64_t gdn::cpu::stateRowOf(const Problem &p, int64_t sequence) {
  if (!p.hasPool())
    return sequence;
  int64_t row = p.stateIndices.integerAt(sequence);
  if (p.numAccepted.isPresent()) {
    int64_t accepted = p.numAccepted.integerAt(sequence);
    row = p.stepIndices.integerAt(
        sequence, std::clamp<int64_t>(accepted, 1, p.stepIndices.sizes[1]) - 1);
  }
  int64_t first = static_cast<int64_t>(p.firstState);
  return row >= first && row < p.initialState.sizes[0] ? row : -1;
}

int64_t gdn::cpu::stepRowOf(const Problem &p, int64_t sequence, int64_t step) {
  int64_t first = static_cast<int64_t>(p.firstState), row = -1;
  int64_t end = p.stepStates.isPresent() ? p.stepStates.sizes[0] : 0;
  if (p.keepsEvery()) {
    first = 0;
    row = p.stepStarts.integerAt(sequence) + step;
    end = std::min(end, p.stepStarts.integerAt(sequence + 1));
  } else if (step >= 0 && step < p.stepIndices.sizes[1]) {
    row = p.stepIndices.integerAt(sequence, step);
  }
  return row >= first && row < end ? row : -1;
}

int64_t gdn::cpu::parentRowOf(const Problem &p, int64_t sequence,
                              int64_t step) {
  if (!p.parents.isPresent() || step >= p.stepIndices.sizes[1])
    return -1;
  int64_t parent = p.parents.integerAt(sequence, step);
  return parent + 1 < step ? stepRowOf(p, sequence, parent) : -1;
}

Matrix gdn::cpu::stateBefore(const Problem &p, int64_t sequence, int64_t head,
                             bool isTurned) {
  const Array &flags = p.hasInitialState;
  int64_t row = stateRowOf(p, sequence);
  bool begins = !flags.isPresent() || *flags.at(sequence * flags.strides[0]);
  if (row < 0 || !begins)
    return {};
  return stateOf(p.initialState, row, head, isTurned);
}

/// Copies elements. The types are constants, so that a loop over rows of both
/// side by side has no branches.
template <Element From, Element To>
static void copyElements(const Matrix &from, const Matrix &to, int64_t rows,
                         int64_t columns) {
  auto copyOne = [&](int64_t row, int64_t source, int64_t target) {
    const char *data = from.data + row * from.rowStride * sizeOf(From);
    char *written = to.data + row * to.rowStride * sizeOf(To);
    if constexpr (From == To)
      std::memmove(written + target * sizeOf(To), data + source * sizeOf(From),
                   sizeOf(To));
    else
      storeFloat(written, To, target, loadFloat(data, From, source));
  };
  if (from.columnStride == 1 && to.columnStride == 1) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < columns; ++i)
        copyOne(row, i, i);
    return;
  }
  // In blocks of the rows that fit a cache line of a transposed array.
  constexpr int64_t kBlock = 64 / sizeOf(From);
  for (int64_t first = 0; first < rows; first += kBlock)
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t row = first; row < std::min(first + kBlock, rows); ++row)
        copyOne(row, i * from.columnStride, i * to.columnStride);
}

/// Calls a function with a float type as a constant.
static void withType(Element element, auto function) {
  switch (element) {
#define GDN_GATES_AND_STATES_TYPE(key)                                         \
  case Element::key:                                                           \
    return function(std::integral_constant<Element, Element::key>());
#include "Manifest.inc"
  default:
    break;
  }
}

void gdn::cpu::copy(const Matrix &from, const Matrix &to) {
  withType(from.element, [&](auto source) {
    withType(to.element, [&](auto target) {
      copyElements<source(), target()>(from, to, std::min(from.rows, to.rows),
                                       std::min(from.columns, to.columns));
    });
  });
}

Matrix gdn::cpu::load(const Matrix &from, Floats &to, int64_t rows,
                      int64_t columns) {
  to.assign(rows * columns, 0.0f);
  copy(from, matrixOf(to, columns));
  return matrixOf(to, columns);
}

void gdn::cpu::clearOutputs(const Problem &p, const Range &range) {
  Floats zeros(p.valueChannels());
  Matrix rows = matrixOf(zeros, p.valueChannels());
  rows.rows = range.length();
  rows.rowStride = 0;
  for (int64_t head = 0; head < p.valueHeads(); ++head)
    copy(rows, tokensOf(p.o, range, head));
}

RawGate::RawGate(const Problem &p, int64_t head) {
  Floats aLog;
  load(parameterOf(p.aLog, head, 1), aLog, 1, 1);
  load(parameterOf(p.dtBias, head, p.gatesOfHead()), biases, 1,
       p.gatesOfHead());
  rate = std::exp(static_cast<double>(aLog[0]));
  if (const char *text = p.gateForm().lowerBound)
    bound = std::strtod(text, nullptr);
}

void gdn::cpu::loadGate(const Problem &p, const Range &range, int64_t head,
                        int64_t channels, Floats &gate) {
  int64_t width = p.hasChannelGates() ? channels : 1;
  Matrix given = tokensOf(p.gate, range, head);
  load(given, gate, range.length(), width);
  bool isRaw = p.gateForm().hasParameters;
  if (!isRaw && !p.gateForm().isLinear())
    return;
  RawGate raw(p, head);
  for (int64_t t = 0; t < given.rows; ++t)
    for (int64_t i = 0; i < given.columns; ++i) {
      float &x = gate[t * width + i];
      x = isRaw ? raw.gate(x + static_cast<double>(raw.biases[i]))
                : std::log(x);
    }
}

void gdn::cpu::loadBeta(const Problem &p, const Range &range, int64_t head,
                        Floats &beta) {
  beta.assign(range.length(), 1.0f);
  copy(tokensOf(p.beta, range, head), matrixOf(beta, 1));
  auto most = static_cast<float>(p.betaForm().sigmoid);
  for (float &x : beta)
    if (most != 0)
      x = most * (1.0f / (1.0f + std::exp(-x)));
}
