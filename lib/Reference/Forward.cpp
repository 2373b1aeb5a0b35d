//===- Forward.cpp - Output and final state ---------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activation.h"
#include "Parallel.h"
#include "StateBlocks.h"

using namespace gdn::reference;

/// Runs sequence n of v-head `head` and writes its part of the result.
static void forwardHead(const Problem &p, int64_t n, int64_t head,
                        Forward &result, Progress &progress) {
  std::optional<int64_t> row = p.stateRow(n);
  if (!row)
    return progress.add(p.sequenceStart(n + 1) - p.sequenceStart(n));
  ActivatedChunk chunk(p);
  std::vector<double> state, v(chunkTokens * lanes), o(v);
  bool hasState = p.hasInitialState.empty() || p.hasInitialState[n];
  loadState(p, hasState ? p.initialState : std::vector<double>(), *row, head,
            state);
  std::vector<double> &kept =
      p.stepRows ? result.stepStates : result.finalState;
  int64_t end = p.sequenceStart(n + 1), begin = p.sequenceStart(n);
  int64_t most = p.keepsTokens()           ? 1
                 : p.stepIntervals.empty() ? chunkTokens
                                           : p.keptTokens();
  for (int64_t first = begin; first < end; first += most) {
    int64_t tokens = std::min(most, end - first);
    if (std::optional<int64_t> parent = p.parentRow(n, first - begin))
      loadState(p, kept, *parent, head, state);
    chunk.load(head, first, tokens);
    for (int64_t block = 0; block < numBlocks(p); ++block) {
      loadColumns(p, p.v, head, first, tokens, block, v.data());
      advanceState(chunk.rows(), v.data(), &state[block * blockSize(p)],
                   o.data());
      storeColumns(p, o.data(), head, first, tokens, block, result.o);
    }
    progress.add(tokens);
    std::optional<int64_t> step =
        p.keepsTokens() ? p.stepRow(n, first - begin)
                        : p.intervalRow(n, first + tokens - begin);
    if (step)
      storeState(p, state, *step, head, kept);
  }
  if (!p.keepsTokens() || p.stepRows)
    storeState(p, state, *row, head, result.finalState);
}

Result<Forward> gdn::reference::forward(const Problem &p,
                                        const RunOptions &options) {
  std::string error = validate(p);
  if (!error.empty())
    return {std::nullopt, error};

  int64_t N = p.numSequences(), tokens = p.B * p.T;
  Forward result;
  result.stepStates = p.stepStates;
  result.o.resize(tokens * p.H * p.V);
  // Rows of a pool that no sequence names stay as they are.
  if (!p.stateIndices.empty())
    result.finalState = p.initialState;
  result.finalState.resize(p.numStates() * p.H * p.K * p.V);
  Progress progress(options, tokens * p.H);
  parallelFor(N * p.H, options, [&](int64_t task) {
    forwardHead(p, task / p.H, task % p.H, result, progress);
  });
  progress.finish();
  return {std::move(result), {}};
}
