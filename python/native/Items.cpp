//===- Items.cpp - What the items of a call read and write ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Items.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace gdn::cpu;

std::vector<Range> gdn::cpu::rangesOf(const Problem &p) {
  std::vector<Range> ranges(p.sequences());
  const Array &cu = p.cuSeqlens;
  auto boundary = [&](int64_t i) {
    return loadInteger(cu.data, cu.element, i * cu.strides[0]);
  };
  for (int64_t n = 0; n < p.sequences(); ++n)
    ranges[n] = cu.isPresent() ? Range{0, boundary(n), boundary(n + 1)}
                               : Range{n, 0, p.tokens()};
  return ranges;
}

std::vector<int64_t> gdn::cpu::orderByLength(const std::vector<Range> &ranges) {
  std::vector<int64_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    int64_t left = ranges[a].length(), right = ranges[b].length();
    return left != right ? left > right : a < b;
  });
  return order;
}

/// The column of an array [B, T, H] at one head, as floats.
static void loadColumn(const Array &array, const Range &range, int64_t head,
                       std::vector<float> &column) {
  column.resize(range.length());
  const char *first = at(array, range.batch, range.begin, head);
  for (int64_t t = 0; t < range.length(); ++t)
    column[t] = loadFloat(first, array.element, t * array.strides[1]);
}

float gdn::cpu::loadParameter(const Array &parameter, int64_t index) {
  if (!parameter.isPresent())
    return 0.0f;
  return loadFloat(parameter.data, parameter.element,
                   offsetOf(parameter, index));
}

std::vector<double> gdn::cpu::loadBiases(const Problem &p, int64_t head) {
  std::vector<double> biases(p.gatesOfHead());
  for (size_t i = 0; i < biases.size(); ++i)
    biases[i] = loadParameter(p.dtBias, head * biases.size() + i);
  return biases;
}

static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void gdn::cpu::loadGate(const Problem &p, const Range &range, int64_t head,
                        int64_t channels, std::vector<float> &gate) {
  int64_t width = p.hasChannelGates() ? channels : 1, given = p.gatesOfHead();
  gate.assign(range.length() * width, 0.0f);
  if (!p.gate.isPresent())
    return;
  const GateDomainInfo &domain = infoOf(p.gateDomain);
  RawGate raw(domain, loadParameter(p.aLog, head));
  std::vector<double> biases = loadBiases(p, head);
  for (int64_t t = 0; t < range.length(); ++t) {
    const char *row = at(p.gate, range.batch, range.begin + t, head);
    float *to = gate.data() + t * width;
    for (int64_t i = 0; i < given; ++i)
      to[i] = loadFloat(row, p.gate.element, i * p.gate.strides[3]);
    bool isFactor = domain.formula == GateFormula::Log;
    for (int64_t i = 0; i < given && isFactor; ++i)
      to[i] = std::log(to[i]);
    for (int64_t i = 0; i < given && domain.hasParameters; ++i)
      to[i] = raw.gate(to[i] + biases[i]);
  }
}

void gdn::cpu::loadBeta(const Problem &p, const Range &range, int64_t head,
                        std::vector<float> &beta) {
  if (!p.beta.isPresent()) {
    beta.assign(range.length(), 1.0f);
    return;
  }
  loadColumn(p.beta, range, head, beta);
  int most = infoOf(p.betaDomain).sigmoid;
  if (most == 0)
    return;
  for (float &x : beta)
    x = static_cast<float>(most) * sigmoid(x);
}

int64_t gdn::cpu::stateRowOf(const Problem &p, int64_t sequence) {
  if (!p.hasPool())
    return sequence;
  const Array &rows = p.stateIndices;
  int64_t row =
      loadInteger(rows.data, rows.element, sequence * rows.strides[0]);
  return row >= p.firstState && row < p.initialState.sizes[0] ? row : -1;
}

void gdn::cpu::clearOutputs(const Problem &p, const Range &range) {
  for (int64_t t = range.begin; t < range.end; ++t)
    for (int64_t h = 0; h < p.valueHeads(); ++h)
      for (int64_t i = 0; i < p.valueChannels(); ++i)
        storeFloat(at(p.o, range.batch, t, h), p.o.element, i * p.o.strides[3],
                   0.0f);
}

StateView gdn::cpu::stateOf(const Array &states, int64_t row, int64_t head) {
  int64_t index = row * states.strides[0] + head * states.strides[1];
  return {static_cast<char *>(states.data) + index * sizeOf(states.element),
          states.element,
          states.sizes[2],
          states.sizes[3],
          states.strides[2],
          states.strides[3]};
}

void gdn::cpu::copyState(const StateView &from, const StateView &to) {
  int64_t rows = std::min(from.rows, to.rows),
          columns = std::min(from.columns, to.columns);
  bool isDirect = from.isDirect() && to.isDirect();
  // A state may be copied to itself.
  for (int64_t i = 0; i < rows && isDirect; ++i)
    std::memmove(to.row(i), from.row(i), columns * sizeOf(Element::F32));
  for (int64_t i = 0; i < rows && !isDirect; ++i)
    for (int64_t j = 0; j < columns; ++j)
      storeFloat(to.row(i), to.element, j * to.columnStride,
                 loadFloat(from.row(i), from.element, j * from.columnStride));
}

MemRef<4> gdn::cpu::viewOf(void *data, int64_t tokens, int64_t tokenStride,
                           int64_t channels) {
  return {data, data, 0, {1, tokens, 1, channels}, {0, tokenStride, 0, 1}};
}

MemRef<4> gdn::cpu::viewOf(const StateView &state) {
  return {state.data,
          state.data,
          0,
          {1, 1, state.rows, state.columns},
          {0, 0, state.rowStride, 1}};
}

MemRef<3> gdn::cpu::viewOf(float *column, int64_t tokens) {
  return {column, column, 0, {1, tokens, 1}, {tokens, 1, 1}};
}
