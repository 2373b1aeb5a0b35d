//===- Items.cpp - What the items of a call read and write ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Items.h"

#include <charconv>
#include <cstring>
#include <type_traits>
#include <utility>

using namespace gdn::calls;

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

ItemCall::ItemCall(const Call &call)
    : CallArrays(call), l2norm(call.fact("qk_l2norm") == "true"),
      stateVFirst(call.stateLayout() == "vk"), isFixed(call.isFixed()),
      hasChannelGates(call.hasChannelGates()), isByToken(call.isByToken()),
      isInFloat32(call.fact("arithmetic") == "float32"),
      element(commonType(q.tensor.dtype, k.tensor.dtype, v.tensor.dtype)),
      gateForm(gdn_gates::gateFormOf(call.fact("gate_domain"))),
      hasLinearGates(gateForm.word == "linear"), scale(call.get().scale),
      threads(call.get().threads), firstState(call.get().first_state),
      sequences(call.sequences) {
  if (call.isBackward())
    gradients = CallArrays(call, /*areGradients=*/true);
  if (scale == 0)
    scale = std::pow(static_cast<double>(keyChannels()), -0.5);
  if (threads <= 0) {
    GdnDeviceInfo cpu = {};
    cpu.struct_size = sizeof(cpu);
    gdnDeviceGetInfo(GDN_DEVICE_CPU, &cpu);
    threads = std::max(cpu.multiprocessors, 1);
  }
  std::string_view bound = call.fact("lower_bound");
  std::from_chars(bound.data(), bound.data() + bound.size(), lowerBound);
  std::string_view beta = call.fact("beta_domain");
  sigmoid = beta == "logit" ? 1.0f : beta == "doubled_logit" ? 2.0f : 0.0f;
}

/// Whether the channels of a head do not lie side by side.
static bool hasGaps(const View &array) {
  return array.shape[3] > 1 && array.strides[3] != 1;
}

bool gdn::calls::isPadded(const ItemCall &p, const GdnItemDesc &items) {
  const View *arrays[] = {&p.q, &p.k, &p.v, &p.o};
  return items.channels != p.keyChannels() ||
         items.channels != p.valueChannels() ||
         std::ranges::any_of(arrays, [&](const View *array) {
           return array->isPresent() &&
                  (array->tensor.dtype != items.dtype || hasGaps(*array));
         });
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Ranges gdn::calls::rangesOf(const ItemCall &p) {
  const int64_t N = p.sequences, T = p.tokens();
  Ranges ranges(N);
  const View &cu = p.cuSeqlens;
  for (int64_t n = 0; n < N; ++n)
    ranges[n] = !cu.isPresent() ? Range{n, 0, T, n}
                : cu.tensor.data
                    ? Range{0, cu.integerAt(n), cu.integerAt(n + 1), n}
                    : Range{0, 0, T / N, n};
  return ranges;
}

void gdn::calls::sortByLength(Ranges &ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::pair(b.length(), a.sequence) <
           std::pair(a.length(), b.sequence);
  });
}

Matrix gdn::calls::tokensOf(const View &array, const Range &range,
                            int64_t head) {
  if (!array.isPresent())
    return {};
  int64_t index = range.batch * array.strides[0] +
                  range.begin * array.strides[1] + head * array.strides[2];
  return {array.at(index),  array.tensor.dtype,
          range.length(),   array.tensor.rank == 3 ? 1 : array.shape[3],
          array.strides[1], array.strides[3]};
}

Matrix gdn::calls::parameterOf(const View &parameter, int64_t head,
                               int64_t width) {
  if (!parameter.isPresent())
    return {};
  int64_t stride = parameter.strides[parameter.tensor.rank - 1],
          ofHead = parameter.tensor.rank == 1 ? width * stride
                                              : parameter.strides[0];
  return {
      parameter.at(head * ofHead), parameter.tensor.dtype, 1, width, 0, stride};
}

Matrix gdn::calls::stateOf(const View &states, int64_t row, int64_t head,
                           bool isTurned) {
  if (!states.isPresent())
    return {};
  Matrix state = {states.at(row * states.strides[0] + head * states.strides[1]),
                  states.tensor.dtype,
                  states.shape[2],
                  states.shape[3],
                  states.strides[2],
                  states.strides[3]};
  if (isTurned) {
    std::swap(state.rows, state.columns);
    std::swap(state.rowStride, state.columnStride);
  }
  return state;
}

Matrix gdn::calls::matrixOf(Floats &memory, int64_t columns) {
  return {reinterpret_cast<char *>(memory.data()), GDN_DTYPE_F32,
          std::ssize(memory) / columns, columns, columns};
}

int64_t gdn::calls::stateRowOf(const ItemCall &p, int64_t sequence) {
  if (!p.stateIndices.isPresent())
    return sequence;
  int64_t row = p.stateIndices.integerAt(sequence);
  if (p.numAccepted.isPresent()) {
    int64_t accepted = p.numAccepted.integerAt(sequence);
    row = p.stepIndices.integerAt(
        sequence, std::clamp<int64_t>(accepted, 1, p.stepIndices.shape[1]) - 1);
  }
  return row >= p.firstState && row < p.initialState.shape[0] ? row : -1;
}

int64_t gdn::calls::stepRowOf(const ItemCall &p, int64_t sequence,
                              int64_t step) {
  int64_t first = p.firstState, end = p.stepStates.shape[0], row = -1;
  if (p.stepStarts.isPresent()) {
    first = 0;
    row = p.stepStarts.integerAt(sequence) + step;
    end = std::min(end, p.stepStarts.integerAt(sequence + 1));
  } else if (step >= 0 && step < p.stepIndices.shape[1]) {
    row = p.stepIndices.integerAt(sequence, step);
  }
  return row >= first && row < end ? row : -1;
}

int64_t gdn::calls::parentRowOf(const ItemCall &p, int64_t sequence,
                                int64_t step) {
  if (!p.parents.isPresent() || step >= p.stepIndices.shape[1])
    return -1;
  int64_t parent = p.parents.integerAt(sequence, step);
  return parent + 1 < step ? stepRowOf(p, sequence, parent) : -1;
}

Matrix gdn::calls::stateBefore(const ItemCall &p, int64_t sequence,
                               int64_t head, bool isTurned) {
  const View &flags = p.hasInitialState;
  int64_t row = stateRowOf(p, sequence);
  bool begins = !flags.isPresent() || *flags.at(sequence * flags.strides[0]);
  if (row < 0 || !begins)
    return {};
  return stateOf(p.initialState, row, head, isTurned);
}

/// Copies elements. The types are constants, so that a loop over rows of both
/// side by side has no branches.
template <int32_t From, int32_t To>
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
static void withType(int32_t dtype, auto function) {
  if (dtype == GDN_DTYPE_F32)
    function(std::integral_constant<int32_t, GDN_DTYPE_F32>());
  else if (dtype == GDN_DTYPE_BF16)
    function(std::integral_constant<int32_t, GDN_DTYPE_BF16>());
  else if (dtype == GDN_DTYPE_F16)
    function(std::integral_constant<int32_t, GDN_DTYPE_F16>());
}

void gdn::calls::copy(const Matrix &from, const Matrix &to) {
  withType(from.dtype, [&](auto source) {
    withType(to.dtype, [&](auto target) {
      copyElements<source(), target()>(from, to, std::min(from.rows, to.rows),
                                       std::min(from.columns, to.columns));
    });
  });
}

Matrix gdn::calls::load(const Matrix &from, Floats &to, int64_t rows,
                        int64_t columns) {
  to.assign(rows * columns, 0.0f);
  copy(from, matrixOf(to, columns));
  return matrixOf(to, columns);
}

void gdn::calls::clearOutputs(const ItemCall &p, const Range &range) {
  Floats zeros(p.valueChannels());
  Matrix rows = matrixOf(zeros, p.valueChannels());
  rows.rows = range.length();
  rows.rowStride = 0;
  for (int64_t head = 0; head < p.valueHeads(); ++head)
    copy(rows, tokensOf(p.o, range, head));
}

RawGate::RawGate(const ItemCall &p, int64_t head)
    : form(p.gateForm), bound(p.lowerBound) {
  Floats aLog;
  load(parameterOf(p.aLog, head, 1), aLog, 1, 1);
  load(parameterOf(p.dtBias, head, p.gatesOfHead()), biases, 1,
       p.gatesOfHead());
  rate = std::exp(static_cast<double>(aLog[0]));
}

void gdn::calls::loadGate(const ItemCall &p, const Range &range, int64_t head,
                          int64_t channels, Floats &gate) {
  int64_t width = p.hasChannelGates ? channels : 1;
  Matrix given = tokensOf(p.gate, range, head);
  load(given, gate, range.length(), width);
  bool isRaw = p.gateForm.hasParameters();
  if (!isRaw && !p.hasLinearGates)
    return;
  RawGate raw(p, head);
  for (int64_t t = 0; t < given.rows; ++t)
    for (int64_t i = 0; i < given.columns; ++i) {
      float &x = gate[t * width + i];
      x = isRaw ? raw.gate(x + static_cast<double>(raw.biases[i]))
                : std::log(x);
    }
}

void gdn::calls::loadBeta(const ItemCall &p, const Range &range, int64_t head,
                          Floats &beta) {
  beta.assign(range.length(), 1.0f);
  copy(tokensOf(p.beta, range, head), matrixOf(beta, 1));
  for (float &x : beta)
    if (p.sigmoid != 0)
      x = p.sigmoid * (1.0f / (1.0f + std::exp(-x)));
}
