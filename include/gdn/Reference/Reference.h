//===- Reference.h - The recurrence in double precision ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gated delta rule token by token, as spec 1 writes it, with the input
// transforms in front (spec 1, 5.5) and the exact adjoint behind. Every
// numerical test compares with this library, so it takes no short cut that a
// kernel takes: no chunks in the mathematics, no reduced precision, and no
// dependency on MLIR or LLVM.
//
// All arrays are row-major vectors of double. B sequences of T tokens are one
// batch; packed sequences have B = 1 and offsets in cuSeqlens. N is the number
// of sequences. Head h of v, gate and beta reads head h / (H / Hq) of q and k.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_REFERENCE_REFERENCE_H
#define GDN_REFERENCE_REFERENCE_H

#include "gdn/GateForms.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gdn::reference {

/// The shape of the gate, which is the variant of the operator.
enum class GateKind {
  /// No gate: the delta rule (DeltaNet). The decay is 1.
  None,
  /// One gate for each token and head, [B, T, H]: Gated DeltaNet.
  Head,
  /// One gate for each token, head and channel, [B, T, H, K]: KDA.
  Channel
};

/// What the numbers in Problem::gate are. The decay is alpha, g = log alpha:
/// g itself, at most 0, of which -inf is legal and means a decay of exactly 0;
/// alpha itself, in [0, 1]; or, with x = number + dt_bias, -exp(A_log)
/// softplus(x) = g, or lowerBound sigmoid(exp(A_log) x) = g.
using gdn_gates::GateDomain;

/// The order of the last two dimensions of every state.
enum class StateLayout { KV, VK };

/// One call of the operator: shapes, options and inputs. An input that the text
/// below calls optional is absent when its vector is empty.
struct Problem {
  int64_t B = 1, T = 0, Hq = 1, H = 1, K = 1, V = 1;

  /// Optional: N + 1 offsets from 0 to T; equal neighbours are an empty
  /// sequence.
  std::vector<int64_t> cuSeqlens;

  std::vector<double> q;      ///< [B, T, Hq, K]
  std::vector<double> k;      ///< [B, T, Hq, K]
  std::vector<double> v;      ///< [B, T, H, V]
  std::vector<double> gate;   ///< The shape that gateKind says.
  std::vector<double> beta;   ///< [B, T, H]; optional, absent means 1.
  std::vector<double> aLog;   ///< [H]; optional for Bounded (absent: 0).
  std::vector<double> dtBias; ///< [H] or [H, K]; optional, absent means 0.
  std::vector<double> initialState; ///< [N, H, K, V]; optional, absent means 0.

  /// Optional, [N]: the state of sequence n is row stateIndices[n] of a pool,
  /// which is initialState, and becomes the final state there. An index below
  /// firstState or of poolSize and more names no row: the sequence has no state
  /// and outputs of zero. No two sequences name the same row. forward() alone
  /// knows it.
  std::vector<int64_t> stateIndices;
  int64_t firstState = 0;
  int64_t poolSize = 0; ///< P, the rows of initialState with stateIndices.
  /// Optional, [N], with stateIndices: a sequence with false begins with zeros,
  /// whatever its row holds.
  std::vector<bool> hasInitialState;
  /// Optional, [N, steps]: the row that keeps the state after each token of a
  /// sequence, of stepStates or, without it, of the pool, which gets no other
  /// states then. Rows are as those of stateIndices, which go with them.
  /// parents, optional, names the token that each one follows, if that is
  /// before the one before it and was kept.
  std::vector<int64_t> stepIndices, parents;
  int64_t steps = 0;
  /// Optional, [N]: a sequence keeps the state after each multiple of so many
  /// tokens, if they are a multiple of keptTokens(), and no other one: in rows
  /// of stepIndices, or without these in rows of stepStates from stepStarts[n]
  /// to before stepStarts[n + 1].
  std::vector<int64_t> stepIntervals, stepStarts;
  /// Optional: rows that steps are kept in, stepRows of them.
  std::vector<double> stepStates;
  int64_t stepRows = 0;
  /// Optional, [N]: sequence n begins with the row of its step numAccepted[n] -
  /// 1, at least the first one and at most the last one.
  std::vector<int64_t> numAccepted;

  GateKind gateKind = GateKind::None;
  GateDomain gateDomain = GateDomain::Log;
  /// The bound of Bounded, below 0.
  double lowerBound = -5.0;
  /// Factor of the output; absent means K^(-1/2).
  std::optional<double> scale;
  /// Normalise q and k over K first (spec 1, eps 1e-6).
  bool qkL2norm = false;
  /// beta holds logits b: beta = sigmoid(b), or 2 sigmoid(b) with
  /// allowNegEigval.
  bool betaIsLogit = false;
  /// Doubles the sigmoid of beta logits; beta given as values is used as it is.
  bool allowNegEigval = false;
  /// False: linear attention, S_t = S_{t-1} + beta_t k_t v_t^T. forward() alone
  /// knows it.
  bool deltaRule = true;
  /// Layout of initialState, of the final state and of their gradients.
  StateLayout stateLayout = StateLayout::KV;

  /// N, the number of sequences.
  int64_t numSequences() const {
    return cuSeqlens.empty() ? B : static_cast<int64_t>(cuSeqlens.size()) - 1;
  }
  /// Rows of initialState and of the final state.
  int64_t numStates() const {
    return stateIndices.empty() ? numSequences() : poolSize;
  }
  /// `row`, if it is one of `count` that a sequence may name.
  std::optional<int64_t> rowOf(int64_t row, int64_t count) const {
    if (row < firstState || row < 0 || row >= count)
      return std::nullopt;
    return row;
  }
  /// The row that has the state of sequence n, or none.
  std::optional<int64_t> stateRow(int64_t n) const {
    if (stateIndices.empty())
      return n;
    if (numAccepted.empty())
      return rowOf(stateIndices[n], poolSize);
    int64_t step =
        std::clamp<int64_t>(numAccepted[n], 1, std::max<int64_t>(steps, 1)) - 1;
    return rowOf(stepIndices[n * steps + step], poolSize);
  }
  /// The row that keeps the state after step `step` of sequence n, or none.
  std::optional<int64_t> stepRow(int64_t n, int64_t step) const {
    if (step < 0 || step >= steps)
      return std::nullopt;
    return rowOf(stepIndices[n * steps + step], stepRows ? stepRows : poolSize);
  }
  /// Intervals between kept states are multiples of so many tokens.
  int64_t keptTokens() const { return gateKind == GateKind::Channel ? 16 : 64; }
  /// Whether the state after each token is kept.
  bool keepsTokens() const {
    return !stepIndices.empty() && stepIntervals.empty();
  }
  /// The row that keeps the state after the first `tokens` of sequence n, or
  /// none.
  std::optional<int64_t> intervalRow(int64_t n, int64_t tokens) const {
    if (stepIntervals.empty() || stepIntervals[n] < 1 ||
        stepIntervals[n] % keptTokens() != 0 || tokens == 0 ||
        tokens % stepIntervals[n] != 0 || !stateRow(n))
      return std::nullopt;
    int64_t step = tokens / stepIntervals[n] - 1;
    if (!stepIndices.empty())
      return stepRow(n, step);
    int64_t row = stepStarts[n] + step;
    if (row < 0 || row >= std::min(stepStarts[n + 1], stepRows))
      return std::nullopt;
    return row;
  }
  /// The row with the state that step `step` of sequence n begins with, if it
  /// does not follow the one before.
  std::optional<int64_t> parentRow(int64_t n, int64_t step) const {
    int64_t parent =
        parents.empty() || step >= steps ? -1 : parents[n * steps + step];
    return parent + 1 < step ? stepRow(n, parent) : std::nullopt;
  }
  /// First token of sequence n (n = N gives the end) in the flat [B * T] order.
  int64_t sequenceStart(int64_t n) const {
    return cuSeqlens.empty() ? n * T : cuSeqlens[n];
  }
};

/// Result of forward().
struct Forward {
  std::vector<double> o;          ///< [B, T, H, V]
  std::vector<double> finalState; ///< [N, H, K, V] or [N, H, V, K], or the pool
  std::vector<double> stepStates; ///< Those of the problem, with what is kept.
};

/// Result of backward(): gradients with respect to the inputs as given in the
/// Problem, before any transform. Empty where the Problem has no such input,
/// but dInitialState is always there, since an absent initial state is zero.
struct Gradients {
  std::vector<double> dq, dk, dv, dGate, dBeta, dInitialState, dALog, dDtBias;
  /// Of dALog and dDtBias, sums over all tokens: the root of the sum of the
  /// squares of the terms, which is how large the sum would be if their signs
  /// were random.
  std::vector<double> dALogSpread, dDtBiasSpread;
};

/// A value, or the reason why there is none.
template <typename T> struct Result {
  std::optional<T> value;
  /// "expected ..., got ..." when there is no value, else empty.
  std::string error;

  explicit operator bool() const { return value.has_value(); }
  /// Access to the value, which must be there.
  // NOLINTBEGIN(bugprone-unchecked-optional-access)
  T &operator*() { return *value; }
  T *operator->() { return &*value; }
  // NOLINTEND(bugprone-unchecked-optional-access)
};

/// How to run, without influence on the numbers: results do not depend on the
/// number of threads.
struct RunOptions {
  /// Worker threads, the calling one included; 0 means one per processor.
  unsigned threads = 0;
  /// Called now and then on the calling thread with the fraction done, which
  /// never falls; the last call gives 1.
  std::function<void(double)> progress;
};

/// Returns an empty string if the problem is well formed, otherwise one line
/// "expected <rule>, got <value>". Only sizes and options are checked: values
/// are the caller's, and NaN in means NaN out.
std::string validate(const Problem &problem);

/// Output and final state (spec 1).
Result<Forward> forward(const Problem &problem, const RunOptions &options = {});

/// Gradients of <o, dO> + <finalState, dFinalState>, where dO is [B, T, H, V]
/// and dFinalState, in the state layout, may be empty for zero. The adjoint of
/// spec 1 and the chain rule of spec 5.5.
Result<Gradients> backward(const Problem &problem,
                           const std::vector<double> &dO,
                           const std::vector<double> &dFinalState,
                           const RunOptions &options = {});

/// Distance of a computed array from the reference.
struct Error {
  double relRms; ///< rms(actual - expected) / rms(size)
  double maxAbs; ///< max |actual - expected|
  double maxRef; ///< max size
};

/// Measures actual against expected. relRms and maxAbs are infinite when the
/// sizes differ or a value on either side is NaN or infinite, and relRms is
/// infinite when only expected is all zero, so no tolerance accepts these. The
/// size of a value is |expected|, or its `spread` where that is given and
/// larger: a sum whose terms happen to cancel has the error of its terms.
Error compare(const std::vector<double> &actual,
              const std::vector<double> &expected,
              const std::vector<double> &spread = {});

/// The outputs that have a tolerance (spec 9).
enum class Output {
  O,
  FinalState,
  DQ,
  DK,
  DV,
  DBeta,
  DGate,
  DInitialState,
  DALog,
  DDtBias
};

/// How the measured kernel computes, as far as tolerances depend on it.
struct Numerics {
  /// Products take fp32 operands; otherwise 16-bit ones.
  bool float32Operands = false;
  /// The state between chunks is rounded to 16 bits.
  bool roundedState = false;
  /// The sequence is split (context parallel).
  bool splitSequence = false;
};

/// What is accepted: relRms <= this relRms, and maxAbs <= maxNorm * maxRef.
struct Tolerance {
  double relRms;
  double maxNorm;
};

/// The acceptance table of spec 9.
Tolerance tolerance(Output output, const Numerics &numerics = {});

/// True if the error lies within the tolerance; false for any NaN.
bool accepts(const Tolerance &tolerance, const Error &error);

} // namespace gdn::reference

#endif // GDN_REFERENCE_REFERENCE_H
