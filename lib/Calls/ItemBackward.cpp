//===- ItemBackward.cpp - The gradients of a call on a CPU ----------------===//
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

#include "Items.h"

using namespace gdn::calls;

/// What is added to the squares of a row before its norm, as in the forward.
static constexpr float kNormEpsilon = 1e-6f;

namespace {
/// What one thread needs to run items.
class BackwardWorker {
public:
  BackwardWorker(const ItemCall &call, const GdnItemDesc &items, Floats &dALog,
                 Floats &dDtBias);
  void runItem(const Range &range, int64_t keyHead);

private:
  void runHead(const Range &range, int64_t head, Floats *dQKOfHead);
  void runKernel(Floats *dQK);
  void undoRawGate(const Range &range, int64_t head);

  const ItemCall &p;
  const CallArrays &wanted;
  void (*function)();
  bool linear;
  /// Channels of the kernel, and what it has of a gate.
  int64_t D, width;
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

BackwardWorker::BackwardWorker(const ItemCall &call, const GdnItemDesc &items,
                               Floats &dALog, Floats &dDtBias)
    : p(call), wanted(call.gradients), linear(p.backwardFunction()),
      D(items.channels), width(p.hasChannelGates ? D : 1), dALog(dALog),
      dDtBias(dDtBias) {
  function = items.functions[p.backwardFunction()];
  factor = static_cast<float>(p.scale * std::sqrt(static_cast<double>(D)));
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
void BackwardWorker::undoRawGate(const Range &range, int64_t head) {
  Floats x;
  load(tokensOf(p.gate, range, head), x, range.length(), width);
  RawGate raw(p, head);
  std::vector<double> sums(raw.biases.size());
  int64_t count = p.gatesOfHead(), row = range.sequence * p.valueHeads() + head;
  double sumRate = 0;
  for (int64_t t = 0; t < range.length(); ++t)
    for (int64_t i = 0; i < count; ++i) {
      int64_t n = t * width + i;
      double place = x[n] + static_cast<double>(raw.biases[i]);
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

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void BackwardWorker::runKernel(Floats *dQK) {
  auto rows = [&](Floats &memory) { return matrixOf(memory, D).asTokens(); };
  auto column = [](Floats &memory) { return matrixOf(memory, 1).asColumn(); };
  auto state = [&](Floats &memory) { return matrixOf(memory, D).asState(); };
  auto gates = [&](Floats &memory) {
    return p.hasChannelGates ? rows(memory) : column(memory);
  };
  callItem(function, rows(qk[0]), rows(qk[1]), rows(v), column(beta),
           gates(gate), state(from), rows(dO), state(dTo), rows(dQK[0]),
           rows(dQK[1]), rows(dV), column(dBeta), gates(dGate), state(dFrom));
}

void BackwardWorker::runHead(const Range &range, int64_t head,
                             Floats *dQKOfHead) {
  auto tokensIn = [&](const View &array) {
    return tokensOf(array, range, head);
  };
  auto stateIn = [&](const View &states) {
    return stateOf(states, range.sequence, head, p.stateVFirst);
  };
  int64_t tokens = range.length();
  load(tokensIn(p.v), v, tokens, D);
  load(tokensIn(p.o), dO, tokens, D);
  for (float &x : dO)
    x *= factor;
  if (linear)
    load(tokensIn(p.gate), gate, tokens, width);
  else
    loadGate(p, range, head, D, gate);
  loadBeta(p, range, head, beta);
  load(stateIn(p.initialState), from, D, D);
  load(stateIn(p.finalState), dTo, D, D);
  dV.resize(tokens * D);
  dBeta.resize(tokens);
  dGate.resize(gate.size());
  dFrom.resize(D * D);
  if (tokens > 0)
    runKernel(dQKOfHead);
  else
    dFrom = dTo;
  // Of factors the kernel's own gradient is theirs.
  if (p.gateForm.hasParameters())
    undoRawGate(range, head);
  if (p.sigmoid != 0)
    for (int64_t t = 0; t < tokens; ++t)
      dBeta[t] *= beta[t] * (1.0f - beta[t] / p.sigmoid);
  copy(matrixOf(dV, D), tokensIn(wanted.v));
  copy(matrixOf(dGate, width), tokensIn(wanted.gate));
  copy(matrixOf(dBeta, 1), tokensIn(wanted.beta));
  copy(matrixOf(dFrom, D), stateIn(wanted.initialState));
}

void BackwardWorker::runItem(const Range &range, int64_t keyHead) {
  const View *given[] = {&p.q, &p.k}, *gradients[] = {&wanted.q, &wanted.k};
  for (int i = 0; i < 2; ++i) {
    load(tokensOf(*given[i], range, keyHead), qk[i], range.length(), D);
    if (p.l2norm)
      normalise(qk[i], D, inverse[i]);
    dQK[i].resize(range.length() * D);
    dQKOfHead[i].resize(range.length() * D);
  }
  int64_t heads = p.valueHeads() / p.keyHeads();
  for (int64_t j = 0; j < heads; ++j) {
    runHead(range, keyHead * heads + j, j ? dQKOfHead : dQK);
    for (int i = 0; i < 2 && j > 0; ++i)
      for (size_t n = 0; n < dQK[i].size(); ++n)
        dQK[i][n] += dQKOfHead[i][n];
  }
  for (int i = 0; i < 2; ++i) {
    if (p.l2norm)
      undoNorm(qk[i], inverse[i], D, dQK[i]);
    copy(matrixOf(dQK[i], D), tokensOf(*gradients[i], range, keyHead));
  }
}

//===----------------------------------------------------------------------===//
// All items
//===----------------------------------------------------------------------===//

/// The sum over the sequences for each of a parameter's elements, of which a
/// head has `width`.
static void storeParameter(const View &gradient, const Floats &parts,
                           int64_t heads, int64_t width) {
  Floats sums(width);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t n = 0; n < width; ++n) {
      double sum = 0;
      for (size_t i = head * width + n; i < parts.size(); i += heads * width)
        sum += parts[i];
      sums[n] = static_cast<float>(sum);
    }
    copy(matrixOf(sums, width), parameterOf(gradient, head, width));
  }
}

void gdn::calls::runBackward(const ItemCall &p, const GdnItemDesc &items,
                             int threads, Ranges sequences) {
  sortByLength(sequences);
  int64_t H = p.keyHeads(), count = std::ssize(sequences) * H;
  int64_t heads = p.valueHeads(), width = p.gatesOfHead();
  Floats dALog(sequences.size() * heads),
      dDtBias(sequences.size() * heads * width);
  forEachItem(count, threads, [&] {
    return [&, worker = BackwardWorker(p, items, dALog, dDtBias)](
               int64_t i) mutable { worker.runItem(sequences[i / H], i % H); };
  });
  storeParameter(p.gradients.aLog, dALog, heads, 1);
  storeParameter(p.gradients.dtBias, dDtBias, heads, width);
}
