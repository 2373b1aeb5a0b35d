//===- Activation.h - Input transforms and their chain rule -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_REFERENCE_ACTIVATION_H
#define GDN_LIB_REFERENCE_ACTIVATION_H

#include "Recurrence.h"
#include "gdn/Reference/Reference.h"

namespace gdn::reference {

/// A sum over tokens, and the sum of the squares of its terms.
struct TokenSum {
  double value = 0, squares = 0;

  void add(double term) {
    value += term;
    squares += term * term;
  }
  TokenSum &operator+=(const TokenSum &other) {
    value += other.value;
    squares += other.squares;
    return *this;
  }
};

/// One v-head of one chunk after the input transforms (spec 1). Holds room for
/// the gradients as well, so that a worker allocates once.
class ActivatedChunk {
public:
  explicit ActivatedChunk(const Problem &problem);

  /// Transforms the rows of head `head` from token `first` (in the flat order).
  void load(int64_t head, int64_t first, int64_t tokens);

  /// The transformed rows.
  ChunkRows rows() const;

  /// Where the recurrence's adjoint adds its gradients; zero after load().
  ChunkGradients gradients();

  /// Takes gradients() through the chain rule of spec 5.5. Adds to dq and dk,
  /// which the v-heads of a group share, writes dGate and dBeta, and returns
  /// this chunk's part of dALog[head].
  TokenSum storeGradients(Gradients &out) const;

private:
  void loadQK(const std::vector<double> &source, std::vector<double> &rows,
              std::vector<double> &factors);
  void addQKGradients(const std::vector<double> &rows,
                      const std::vector<double> &factors,
                      const std::vector<double> &gradient,
                      std::vector<double> &out) const;
  void loadGates();
  void loadBeta();
  TokenSum storeGateGradients(std::vector<double> &dGate) const;
  void storeBetaGradients(std::vector<double> &dBeta) const;

  const Problem &problem;
  int64_t head = 0, first = 0, tokens = 0;
  std::vector<double> q, k, alpha, beta;
  /// r of the l2norm for each token; 1 without it.
  std::vector<double> qFactor, kFactor;
  std::vector<double> dq, dk, dAlpha, dBeta;
};

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_ACTIVATION_H
