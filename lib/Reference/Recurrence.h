//===- Recurrence.h - The recurrence on a few value columns -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Given q, k, the decay and beta, the columns of the state (one for each value
// channel) do not see each other. The recurrence therefore runs on blocks of
// `lanes` columns: a block of the state stays in the first-level cache, and the
// lanes are the vector that the compiler makes of the inner loops. Columns
// beyond V are zero and stay zero.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_REFERENCE_RECURRENCE_H
#define GDN_LIB_REFERENCE_RECURRENCE_H

#include <cstdint>

namespace gdn::reference {

/// Value columns in a block: one cache line of doubles.
constexpr int64_t lanes = 8;

/// Tokens between two checkpoints of the state. A backward holds one state for
/// each checkpoint and, of the chunk that it is in, one block for each token.
constexpr int64_t chunkTokens = 64;

/// What all columns of one v-head share: rows of up to chunkTokens tokens after
/// the input transforms. A gate per head is repeated over K.
struct ChunkRows {
  int64_t tokens, K;
  double scale;
  const double *q;     ///< [tokens, K]
  const double *k;     ///< [tokens, K]
  const double *alpha; ///< [tokens, K]
  const double *beta;  ///< [tokens]
  bool deltaRule;      ///< Whether a write is of the prediction's error.
};

/// Gradients of ChunkRows. Every block of columns adds its part.
struct ChunkGradients {
  double *dq;     ///< [tokens, K]
  double *dk;     ///< [tokens, K]
  double *dAlpha; ///< [tokens, K]
  double *dBeta;  ///< [tokens]
};

/// Advances one block of the state, [K, lanes], over the chunk. v and o are
/// [tokens, lanes].
void advanceState(const ChunkRows &rows, const double *v, double *state,
                  double *o);

/// Advances as advanceState() does and keeps what the adjoint reads: states,
/// [tokens + 1, K, lanes], whose first block is given, and the prediction
/// errors e, [tokens, lanes].
void recordStates(const ChunkRows &rows, const double *v, double *states,
                  double *e);

/// The adjoint of one block over the chunk, last token first. states and e are
/// those of recordStates(), dO and dV are [tokens, lanes], and dState is
/// d loss / d state, [K, lanes], from after the chunk to before it.
void reverseState(const ChunkRows &rows, const double *states, const double *e,
                  const double *dO, double *dState, double *dV,
                  const ChunkGradients &gradients);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_RECURRENCE_H
