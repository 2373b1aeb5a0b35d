//===- Backward.cpp - The gradients of a call on a CPU --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A kernel computes the gradients of one sequence and value head, in float32
// and for heads of K = V channels of its own number. What goes in and comes out
// is copied here, from and to arrays of any type and strides, by the chain
// rules of what the kernel does not know: the norm of q and k, raw gates,
// logits, the scale. An item is a sequence and a query/key head with all its
// value heads: their gradients of q and k are added in float32, in the heads'
// order, and rounded once. So are those of the parameters, in the sequences'
// order: results do not depend on the number of threads.

#include "Backward.h"
#include "Items.h"
#include "KernelChoice.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace gdn::cpu;

/// A backward is taken for this many times the forward in chunks. It decides on
/// threads alone.
static constexpr double kBackwardCost = 4.0;
/// What is added to the squares of a row before its norm, as in the forward.
static constexpr float kNormEpsilon = 1e-6f;

namespace {
using Floats = std::vector<float>;

/// What one thread needs to run items.
class Worker {
public:
  Worker(const Problem &problem, const Gradients &gradients,
         const BackwardKernelSet &kernels, Floats &dALog, Floats &dDtBias);
  void runItem(const Range &range, int64_t sequence, int64_t keyHead);

private:
  void runHead(const Range &range, int64_t sequence, int64_t head,
               Floats *dQKOfHead);
  void callKernel(int64_t tokens, Floats *dQK);
  /// Elements of a row of `array` in memory: of beta and gates of heads one.
  int64_t widthOf(const Array &array) const { return array.rank == 3 ? 1 : D; }
  void loadRows(const Array &array, const Range &range, int64_t head,
                float factor, Floats &rows) const;
  void storeRows(const Array &array, const Range &range, int64_t head,
                 const Floats &rows) const;
  StateView stateIn(Floats &memory) const;
  StateView turned(const Array &states, int64_t sequence, int64_t head) const;
  void loadState(const Array &states, int64_t sequence, int64_t head,
                 Floats &memory) const;
  void undoRawGate(const Range &range, int64_t sequence, int64_t head);
  void storeGate(const Range &range, int64_t sequence, int64_t head);
  void storeBeta(const Range &range, int64_t head);

  const Problem &p;
  const Gradients &wanted;
  BackwardKernel kernel;
  bool linear;
  /// Channels of the kernel.
  int64_t D;
  /// What the gradient of o is multiplied by: kernels scale by D^(-1/2).
  float factor;
  /// Of all sequences and heads.
  Floats &dALog, &dDtBias;
  /// Rows of D channels: q and k, normalised where the call says so, with the
  /// reciprocals of their norms; the rest of one head.
  Floats qk[2], inverse[2], v, dO;
  Floats gate, beta, from, dTo;
  /// The gradients of q and k: the sums, and those of one head.
  Floats dQK[2], dQKOfHead[2];
  Floats dV, dBeta, dGate, dFrom;
};
} // namespace

Worker::Worker(const Problem &problem, const Gradients &gradients,
               const BackwardKernelSet &kernels, Floats &dALog, Floats &dDtBias)
    : p(problem), wanted(gradients),
      linear(infoOf(problem.gateDomain).formula == GateFormula::Log &&
             problem.gate.isPresent()),
      D(kernels.channels), dALog(dALog), dDtBias(dDtBias) {
  kernel = linear ? kernels.linear : kernels.log;
  factor = static_cast<float>(p.scale * std::sqrt(static_cast<double>(D)));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Elements of a row of an array [B, T, H] or [B, T, H, K].
static int64_t channelsOf(const Array &array) {
  return array.rank == 3 ? 1 : array.sizes[3];
}

void Worker::loadRows(const Array &array, const Range &range, int64_t head,
                      float factor, Floats &rows) const {
  rows.assign(range.length() * widthOf(array), 0.0f);
  if (!array.isPresent())
    return;
  for (int64_t t = 0; t < range.length(); ++t) {
    const char *from = at(array, range.batch, range.begin + t, head);
    for (int64_t i = 0; i < channelsOf(array); ++i)
      rows[t * widthOf(array) + i] =
          factor * loadFloat(from, array.element, i * array.strides[3]);
  }
}

void Worker::storeRows(const Array &array, const Range &range, int64_t head,
                       const Floats &rows) const {
  if (!array.isPresent())
    return;
  for (int64_t t = 0; t < range.length(); ++t) {
    char *to = at(array, range.batch, range.begin + t, head);
    for (int64_t i = 0; i < channelsOf(array); ++i)
      storeFloat(to, array.element, i * array.strides[3],
                 rows[t * widthOf(array) + i]);
  }
}

StateView Worker::stateIn(Floats &memory) const {
  return {reinterpret_cast<char *>(memory.data()), Element::F32, D, D, D};
}

/// The state as [K, V], whatever the call's layout.
StateView Worker::turned(const Array &states, int64_t sequence,
                         int64_t head) const {
  StateView view = stateOf(states, sequence, head);
  if (p.stateVFirst) {
    std::swap(view.rows, view.columns);
    std::swap(view.rowStride, view.columnStride);
  }
  return view;
}

void Worker::loadState(const Array &states, int64_t sequence, int64_t head,
                       Floats &memory) const {
  memory.assign(D * D, 0.0f);
  if (states.isPresent())
    copyState(turned(states, sequence, head), stateIn(memory));
}

//===----------------------------------------------------------------------===//
// Chain rules
//===----------------------------------------------------------------------===//

/// Divides rows by their norms, whose reciprocals it gives.
static void normalise(Floats &rows, int64_t channels, Floats &inverse) {
  inverse.resize(rows.size() / channels);
  for (size_t t = 0; t < inverse.size(); ++t) {
    float *row = rows.data() + t * channels, sum = kNormEpsilon;
    for (int64_t i = 0; i < channels; ++i)
      sum += row[i] * row[i];
    inverse[t] = 1.0f / std::sqrt(sum);
    for (int64_t i = 0; i < channels; ++i)
      row[i] *= inverse[t];
  }
}

/// The gradient of rows x from that of y = r x, in place: r (dy - y (y . dy)).
static void undoNorm(const Floats &rows, const Floats &inverse,
                     int64_t channels, Floats &gradient) {
  for (size_t t = 0; t < inverse.size(); ++t) {
    const float *y = rows.data() + t * channels;
    float *dy = gradient.data() + t * channels, dot = 0;
    for (int64_t i = 0; i < channels; ++i)
      dot += y[i] * dy[i];
    for (int64_t i = 0; i < channels; ++i)
      dy[i] = inverse[t] * (dy[i] - y[i] * dot);
  }
}

/// From the gradient of a raw gate, in place, to that of x; and the parts of
/// this sequence in those of the parameters.
void Worker::undoRawGate(const Range &range, int64_t sequence, int64_t head) {
  Floats x;
  loadRows(p.gate, range, head, 1.0f, x);
  RawGate raw(infoOf(p.gateDomain), loadParameter(p.aLog, head));
  std::vector<double> biases = loadBiases(p, head), sums(biases.size());
  int64_t count = p.gatesOfHead(), row = sequence * p.valueHeads() + head;
  double sumRate = 0;
  for (int64_t t = 0; t < range.length(); ++t)
    for (int64_t i = 0; i < count; ++i) {
      int64_t n = t * widthOf(p.gate) + i;
      double place = x[n] + biases[i];
      // Such a gate has no gradient, and what rounding leaves of one may meet a
      // huge rate.
      bool forgets = gate[n] <= kLeastGate;
      double dg = forgets ? 0.0 : dGate[n];
      double slope = forgets ? 0.0 : raw.slope(place);
      sumRate += raw.slopeOfRate(place, gate[n], slope) * dg;
      dGate[n] = static_cast<float>(slope * dg);
      sums[i] += dGate[n];
    }
  dALog[row] = static_cast<float>(sumRate);
  std::copy(sums.begin(), sums.end(), dDtBias.begin() + row * count);
}

void Worker::storeGate(const Range &range, int64_t sequence, int64_t head) {
  // Of factors the kernel's own gradient is theirs.
  if (infoOf(p.gateDomain).hasParameters)
    undoRawGate(range, sequence, head);
  storeRows(wanted.gate, range, head, dGate);
}

void Worker::storeBeta(const Range &range, int64_t head) {
  if (int most = infoOf(p.betaDomain).sigmoid)
    for (int64_t t = 0; t < range.length(); ++t)
      dBeta[t] *= beta[t] * (1.0f - beta[t] / static_cast<float>(most));
  storeRows(wanted.beta, range, head, dBeta);
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void Worker::callKernel(int64_t tokens, Floats *dQK) {
  auto rows = [&](Floats &memory) {
    return viewOf(memory.data(), tokens, D, D);
  };
  auto column = [&](Floats &memory) { return viewOf(memory.data(), tokens); };
  auto state = [&](Floats &memory) { return viewOf(stateIn(memory)); };
  MemRef<4> q = rows(qk[0]), k = rows(qk[1]), v = rows(this->v);
  MemRef<3> beta = column(this->beta);
  MemRef<3> gates[] = {column(gate), column(dGate)};
  MemRef<4> channelGates[] = {rows(gate), rows(dGate)};
  auto gateOf = [&](int i) {
    return p.hasChannelGates() ? static_cast<void *>(&channelGates[i])
                               : static_cast<void *>(&gates[i]);
  };
  MemRef<4> initial = state(from), dO = rows(this->dO), dFinal = state(dTo);
  MemRef<4> dQ = rows(dQK[0]), dK = rows(dQK[1]), dV = rows(this->dV);
  MemRef<3> dBeta = column(this->dBeta);
  MemRef<4> dInitial = state(dFrom);
  kernel(&q, &k, &v, &beta, gateOf(0), &initial, &dO, &dFinal, &dQ, &dK, &dV,
         &dBeta, gateOf(1), &dInitial);
}

void Worker::runHead(const Range &range, int64_t sequence, int64_t head,
                     Floats *dQKOfHead) {
  int64_t tokens = range.length();
  loadRows(p.v, range, head, 1.0f, v);
  loadRows(p.o, range, head, factor, dO);
  if (linear)
    loadRows(p.gate, range, head, 1.0f, gate);
  else
    loadGate(p, range, head, D, gate);
  loadBeta(p, range, head, beta);
  loadState(p.initialState, sequence, head, from);
  loadState(p.finalState, sequence, head, dTo);
  dV.resize(tokens * D);
  dBeta.resize(tokens);
  dGate.resize(gate.size());
  dFrom.resize(D * D);
  if (tokens > 0)
    callKernel(tokens, dQKOfHead);
  else
    dFrom = dTo;
  storeRows(wanted.v, range, head, dV);
  if (p.gate.isPresent())
    storeGate(range, sequence, head);
  storeBeta(range, head);
  if (wanted.initialState.isPresent())
    copyState(stateIn(dFrom), turned(wanted.initialState, sequence, head));
}

void Worker::runItem(const Range &range, int64_t sequence, int64_t keyHead) {
  const Array *given[] = {&p.q, &p.k}, *gradients[] = {&wanted.q, &wanted.k};
  for (int i = 0; i < 2; ++i) {
    loadRows(*given[i], range, keyHead, 1.0f, qk[i]);
    if (p.l2norm)
      normalise(qk[i], D, inverse[i]);
    dQK[i].resize(range.length() * D);
    dQKOfHead[i].resize(range.length() * D);
  }
  int64_t heads = p.valueHeads() / p.keyHeads();
  for (int64_t j = 0; j < heads; ++j) {
    runHead(range, sequence, keyHead * heads + j, j ? dQKOfHead : dQK);
    for (int i = 0; i < 2 && j > 0; ++i)
      for (size_t n = 0; n < dQK[i].size(); ++n)
        dQK[i][n] += dQKOfHead[i][n];
  }
  for (int i = 0; i < 2; ++i) {
    if (p.l2norm)
      undoNorm(qk[i], inverse[i], D, dQK[i]);
    storeRows(*gradients[i], range, keyHead, dQK[i]);
  }
}

//===----------------------------------------------------------------------===//
// All items
//===----------------------------------------------------------------------===//

/// A gradient has its input's extents, and a float type.
static Error checkGradient(const char *name, const Array &gradient,
                           const Array &input) {
  bool fits =
      !gradient.isPresent() ||
      (input.isPresent() && gradient.rank == input.rank &&
       gradient.sizes == input.sizes &&
       (gradient.element == Element::F32 || gradient.element == Element::F16 ||
        gradient.element == Element::BF16));
  if (fits)
    return {};
  return {"ValueError", std::string("gradient of ") + name +
                            ": expected the shape of its tensor and floats, "
                            "got others"};
}

static Error checkGradients(const Problem &p, const Gradients &gradients) {
  struct {
    const char *name;
    const Array &gradient, &input;
  } pairs[] = {
      {"q", gradients.q, p.q},
      {"k", gradients.k, p.k},
      {"v", gradients.v, p.v},
      {"g", gradients.gate, p.gate},
      {"beta", gradients.beta, p.beta},
      {"A_log", gradients.aLog, p.aLog},
      {"dt_bias", gradients.dtBias, p.dtBias},
      {"initial_state", gradients.initialState, p.initialState},
  };
  for (const auto &[name, gradient, input] : pairs)
    if (Error error = checkGradient(name, gradient, input))
      return error;
  return {};
}

/// The sum over the sequences for each of a parameter's elements.
static void storeParameter(const Array &gradient, const Floats &parts,
                           int64_t count) {
  for (int64_t n = 0; gradient.isPresent() && n < count; ++n) {
    double sum = 0;
    for (size_t i = n; i < parts.size(); i += count)
      sum += parts[i];
    storeFloat(gradient.data, gradient.element, offsetOf(gradient, n),
               static_cast<float>(sum));
  }
}

Error gdn::cpu::runBackward(const Problem &p, const Gradients &gradients) {
  if (Error error = checkGradients(p, gradients))
    return error;
  KernelChoice forward;
  if (Error error = chooseKernel(p, forward))
    return error;
  int64_t channels = std::max(p.keyChannels(), p.valueChannels());
  const BackwardKernelSet *kernels =
      findBackwardKernel(forward.kernel->decay, channels);
  if (!kernels)
    return {"RuntimeError", "gdn: expected kernels for gradients of " +
                                std::to_string(channels) +
                                " channels in this build, got none"};
  std::vector<Range> ranges = rangesOf(p);
  std::vector<int64_t> order = orderByLength(ranges);
  int64_t H = p.keyHeads(), count = p.sequences() * H;
  int threads = countThreads(p, count, kBackwardCost * forward.chunkSeconds);
  int64_t heads = p.valueHeads(), biases = heads * p.gatesOfHead();
  Floats dALog(p.sequences() * heads), dDtBias(p.sequences() * biases);
  forEachItem(count, threads, [&](const std::function<int64_t()> &take) {
    Worker worker(p, gradients, *kernels, dALog, dDtBias);
    for (int64_t i = take(); i < count; i = take()) {
      int64_t sequence = order[i / H];
      worker.runItem(ranges[sequence], sequence, i % H);
    }
  });
  storeParameter(gradients.aLog, dALog, heads);
  storeParameter(gradients.dtBias, dDtBias, biases);
  return {};
}
