//===- Backward.cpp - Gradients of all inputs -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each sequence and v-head: a forward that keeps the state at every chunk
// start, then the chunks from the last to the first. A chunk replays its tokens
// from the checkpoint, block of columns by block, and runs the adjoint.
//
//===----------------------------------------------------------------------===//

#include "Activation.h"
#include "Parallel.h"
#include "StateBlocks.h"
#include "Validate.h"

#include <cmath>

using namespace gdn::reference;

namespace {

/// One worker's pass over a (sequence, v-head).
class HeadBackward {
public:
  HeadBackward(const Problem &p, const std::vector<double> &dO,
               const std::vector<double> &dFinalState, Gradients &result,
               Progress &progress)
      : p(p), dO(dO), dFinalState(dFinalState), result(result),
        progress(progress), chunk(p), states((chunkTokens + 1) * blockSize(p)),
        v(chunkTokens * lanes), e(v), o(v), dOColumns(v), dV(v) {}

  /// Writes the gradients of sequence n and `head`; returns the sequence's part
  /// of dALog[head].
  TokenSum run(int64_t n, int64_t head);

private:
  void keepCheckpoints(int64_t n, int64_t head);
  TokenSum reverseChunk(int64_t head, int64_t first, int64_t tokens,
                        const double *checkpoint);

  const Problem &p;
  const std::vector<double> &dO, &dFinalState;
  Gradients &result;
  Progress &progress;
  ActivatedChunk chunk;
  /// The state at the start of each chunk, [chunks, stateSize].
  std::vector<double> checkpoints;
  std::vector<double> state, dState;
  /// One block of columns through a chunk.
  std::vector<double> states, v, e, o, dOColumns, dV;
};

} // namespace

void HeadBackward::keepCheckpoints(int64_t n, int64_t head) {
  loadState(p, p.initialState, n, head, state);
  checkpoints.clear();
  int64_t end = p.sequenceStart(n + 1);
  for (int64_t first = p.sequenceStart(n); first < end; first += chunkTokens) {
    checkpoints.insert(checkpoints.end(), state.begin(), state.end());
    int64_t tokens = std::min(chunkTokens, end - first);
    chunk.load(head, first, tokens);
    for (int64_t block = 0; block < numBlocks(p); ++block) {
      loadColumns(p, p.v, head, first, tokens, block, v.data());
      advanceState(chunk.rows(), v.data(), &state[block * blockSize(p)],
                   o.data());
    }
    progress.add(tokens);
  }
}

TokenSum HeadBackward::reverseChunk(int64_t head, int64_t first, int64_t tokens,
                                    const double *checkpoint) {
  chunk.load(head, first, tokens);
  for (int64_t block = 0; block < numBlocks(p); ++block) {
    int64_t offset = block * blockSize(p);
    std::copy_n(checkpoint + offset, blockSize(p), states.begin());
    loadColumns(p, p.v, head, first, tokens, block, v.data());
    loadColumns(p, dO, head, first, tokens, block, dOColumns.data());
    recordStates(chunk.rows(), v.data(), states.data(), e.data());
    reverseState(chunk.rows(), states.data(), e.data(), dOColumns.data(),
                 &dState[offset], dV.data(), chunk.gradients());
    storeColumns(p, dV.data(), head, first, tokens, block, result.dv);
  }
  progress.add(tokens);
  return chunk.storeGradients(result);
}

TokenSum HeadBackward::run(int64_t n, int64_t head) {
  keepCheckpoints(n, head);
  loadState(p, dFinalState, n, head, dState);
  int64_t start = p.sequenceStart(n), end = p.sequenceStart(n + 1);
  int64_t chunks = (end - start + chunkTokens - 1) / chunkTokens;
  TokenSum dALog;
  for (int64_t i = chunks - 1; i >= 0; --i) {
    int64_t first = start + i * chunkTokens;
    dALog += reverseChunk(head, first, std::min(chunkTokens, end - first),
                          &checkpoints[i * stateSize(p)]);
  }
  storeState(p, dState, n, head, result.dInitialState);
  return dALog;
}

static void storeSums(const std::vector<TokenSum> &sums,
                      std::vector<double> &values,
                      std::vector<double> &spread) {
  for (size_t i = 0; i < sums.size(); ++i) {
    values[i] = sums[i].value;
    spread[i] = std::sqrt(sums[i].squares);
  }
}

/// The gradient of a [H] or [H, K] parameter that is added to every token's
/// gate: the sum over the tokens (spec 5.5).
static void sumOverTokens(const std::vector<double> &dGate, Gradients &result) {
  std::vector<TokenSum> sums(result.dDtBias.size());
  for (size_t i = 0; i < dGate.size(); ++i)
    sums[i % sums.size()].add(dGate[i]);
  storeSums(sums, result.dDtBias, result.dDtBiasSpread);
}

static Gradients zeroGradients(const Problem &p) {
  Gradients result;
  result.dq.resize(p.q.size());
  result.dk.resize(p.k.size());
  result.dv.resize(p.v.size());
  result.dGate.resize(p.gate.size());
  result.dBeta.resize(p.beta.size());
  result.dInitialState.resize(p.numSequences() * p.H * p.K * p.V);
  result.dALog.resize(p.aLog.size());
  result.dALogSpread.resize(p.aLog.size());
  result.dDtBias.resize(p.dtBias.size());
  result.dDtBiasSpread.resize(p.dtBias.size());
  return result;
}

Result<Gradients>
gdn::reference::backward(const Problem &p, const std::vector<double> &dO,
                         const std::vector<double> &dFinalState,
                         const RunOptions &options) {
  std::string error = validateBackward(p, dO, dFinalState);
  if (!error.empty())
    return {std::nullopt, error};

  Gradients result = zeroGradients(p);
  int64_t N = p.numSequences(), group = p.H / p.Hq;
  std::vector<TokenSum> dALogParts(N * p.H);
  // Both passes over the tokens count, hence the 2.
  Progress progress(options, 2 * p.B * p.T * p.H);
  // The v-heads of a group add to the same rows of dq and dk: one task has them
  // all, in a fixed order, so that the sums do not depend on the threads.
  parallelFor(N * p.Hq, options, [&](int64_t task) {
    HeadBackward worker(p, dO, dFinalState, result, progress);
    int64_t n = task / p.Hq, firstHead = task % p.Hq * group;
    for (int64_t head = firstHead; head < firstHead + group; ++head)
      dALogParts[n * p.H + head] = worker.run(n, head);
  });
  if (!p.aLog.empty()) {
    std::vector<TokenSum> sums(p.H);
    for (size_t i = 0; i < dALogParts.size(); ++i)
      sums[i % p.H] += dALogParts[i];
    storeSums(sums, result.dALog, result.dALogSpread);
  }
  if (!p.dtBias.empty())
    sumOverTokens(result.dGate, result);
  progress.finish();
  return {std::move(result), {}};
}
