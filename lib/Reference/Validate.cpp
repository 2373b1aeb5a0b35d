//===- Validate.cpp - Shape and option checks of a problem ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Validate.h"

#include <initializer_list>
#include <limits>
#include <set>

using namespace gdn::reference;

static std::string number(int64_t value) { return std::to_string(value); }

namespace {
/// One named extent of an array, e.g. "H", 4.
struct Extent {
  const char *name;
  int64_t value;
};
} // namespace

/// The product of the extents, or the largest integer when it does not fit:
/// no vector is that long, so the size check then fails as it should.
static uint64_t product(std::initializer_list<Extent> shape) {
  uint64_t result = 1;
  for (const Extent &extent : shape) {
    uint64_t value = static_cast<uint64_t>(extent.value);
    if (value != 0 && result > std::numeric_limits<uint64_t>::max() / value)
      return std::numeric_limits<uint64_t>::max();
    result *= value;
  }
  return result;
}

static std::string checkArray(const char *name,
                              const std::vector<double> &array,
                              std::initializer_list<Extent> shape) {
  uint64_t size = product(shape);
  if (array.size() == size)
    return {};
  std::string text = std::string("expected ") + name + " of shape [";
  const char *separator = "";
  for (const Extent &extent : shape) {
    text += std::string(separator) + extent.name + "=" + number(extent.value);
    separator = ", ";
  }
  return text + "], " + std::to_string(size) + " values, got " +
         std::to_string(array.size());
}

static std::string checkDimensions(const Problem &p) {
  for (const Extent &extent :
       {Extent{"B", p.B}, Extent{"Hq", p.Hq}, Extent{"H", p.H},
        Extent{"K", p.K}, Extent{"V", p.V}})
    if (extent.value < 1)
      return std::string("expected ") + extent.name + " >= 1, got " +
             number(extent.value);
  if (p.T < 0)
    return "expected T >= 0, got " + number(p.T);
  if (p.H % p.Hq != 0)
    return "expected H to be a multiple of Hq=" + number(p.Hq) + ", got " +
           number(p.H);
  return {};
}

static std::string checkCuSeqlens(const Problem &p) {
  const std::vector<int64_t> &cu = p.cuSeqlens;
  if (cu.empty())
    return {};
  if (p.B != 1)
    return "expected B = 1 with cu_seqlens, got " + number(p.B);
  if (cu.size() < 2)
    return "expected cu_seqlens of at least 2 entries, got 1";
  if (cu.front() != 0)
    return "expected cu_seqlens to start at 0, got " + number(cu.front());
  for (size_t i = 1; i < cu.size(); ++i)
    if (cu[i] < cu[i - 1])
      return "expected sorted cu_seqlens, got " + number(cu[i]) + " after " +
             number(cu[i - 1]);
  if (cu.back() != p.T)
    return "expected cu_seqlens to end at T=" + number(p.T) + ", got " +
           number(cu.back());
  return {};
}

/// Gate parameters belong to a raw gate; elsewhere they would be ignored, which
/// hides a caller's mistake.
static std::string checkUnusedGateParameters(const Problem &p) {
  if (!p.aLog.empty())
    return "expected a_log only with a raw gate, got " +
           std::to_string(p.aLog.size()) + " values";
  if (!p.dtBias.empty())
    return "expected dt_bias only with a raw gate, got " +
           std::to_string(p.dtBias.size()) + " values";
  return {};
}

static std::string checkGate(const Problem &p) {
  Extent b{"B", p.B}, t{"T", p.T}, h{"H", p.H}, k{"K", p.K};
  std::string error;
  if (p.gateKind == GateKind::None)
    error = p.gate.empty() ? std::string()
                           : "expected no gate for gate kind none, got " +
                                 std::to_string(p.gate.size()) + " values";
  else
    error = p.gateKind == GateKind::Head
                ? checkArray("gate", p.gate, {b, t, h})
                : checkArray("gate", p.gate, {b, t, h, k});
  if (!error.empty())
    return error;
  const gdn_gates::GateForm &form = gdn_gates::formOf(p.gateDomain);
  if (p.gateKind == GateKind::None || !form.hasParameters())
    return checkUnusedGateParameters(p);

  // Written so that NaN is refused too.
  if (form.needsBound() && !(p.lowerBound < 0))
    return "expected lower_bound < 0, got " + std::to_string(p.lowerBound);
  if (form.needsRate() || !p.aLog.empty())
    error = checkArray("a_log", p.aLog, {h});
  if (!error.empty() || p.dtBias.empty())
    return error;
  return p.gateKind == GateKind::Head ? checkArray("dt_bias", p.dtBias, {h})
                                      : checkArray("dt_bias", p.dtBias, {h, k});
}

static std::string checkBeta(const Problem &p) {
  bool noTokens = p.T == 0;
  if (p.beta.empty() && (!p.betaIsLogit || noTokens))
    return {};
  return checkArray("beta", p.beta, {{"B", p.B}, {"T", p.T}, {"H", p.H}});
}

static std::string checkState(const char *name, const Problem &p,
                              const std::vector<double> &state) {
  if (state.empty())
    return {};
  Extent n{p.stateIndices.empty() ? "N" : "P", p.numStates()}, h{"H", p.H},
      k{"K", p.K}, v{"V", p.V};
  return p.stateLayout == StateLayout::KV
             ? checkArray(name, state, {n, h, k, v})
             : checkArray(name, state, {n, h, v, k});
}

/// States in a pool.
static std::string checkStateIndices(const Problem &p) {
  auto flags = static_cast<int64_t>(p.hasInitialState.size());
  if (flags && (p.stateIndices.empty() || flags != p.numSequences()))
    return "expected has_initial_state of shape [N=" +
           number(p.numSequences()) + "] with state_indices, got " +
           number(flags) + " values";
  if (p.stateIndices.empty())
    return {};
  if (p.poolSize < 0)
    return "expected a pool size >= 0, got " + number(p.poolSize);
  if (p.initialState.empty() && p.poolSize != 0)
    return "expected initial_state, a pool, with state_indices, got none";
  int64_t count = p.stateIndices.size();
  if (count != p.numSequences())
    return "expected state_indices of shape [N=" + number(p.numSequences()) +
           "], got " + number(count) + " values";
  std::set<int64_t> rows;
  for (int64_t n = 0; n < count; ++n)
    if (std::optional<int64_t> row = p.stateRow(n);
        row && !rows.insert(*row).second)
      return "expected a row of the pool for each sequence, got row " +
             number(*row) + " twice";
  return {};
}

/// States that are kept after tokens.
static std::string checkSteps(const Problem &p) {
  Extent n{"N", p.numSequences()}, steps{"steps", p.steps};
  Extent h{"H", p.H}, rows{"R", p.stepRows}, k{"K", p.K}, v{"V", p.V};
  auto check = [](const char *name, const std::vector<int64_t> &numbers,
                  std::initializer_list<Extent> shape) {
    return checkArray(name, {numbers.begin(), numbers.end()}, shape);
  };
  if (!p.stepIntervals.empty()) {
    std::string error = check("step_intervals", p.stepIntervals, {n});
    if (error.empty() && p.stepIndices.empty())
      error =
          check("step_starts", p.stepStarts, {{"N+1", p.numSequences() + 1}});
    if (!error.empty())
      return error;
  } else if (p.stepIndices.empty()) {
    return {};
  }
  if (p.stepIndices.empty())
    return checkArray("step_states", p.stepStates, {rows, h, k, v});
  if (p.stateIndices.empty() && (p.keepsTokens() || !p.stepRows))
    return "expected state_indices with step_indices, got none";
  std::string error = check("step_indices", p.stepIndices, {n, steps});
  if (error.empty() && !p.parents.empty())
    error = check("parents", p.parents, {n, steps});
  if (error.empty() && !p.numAccepted.empty())
    error = check("num_accepted", p.numAccepted, {n});
  if (!error.empty() || !p.stepRows)
    return error;
  return checkArray("step_states", p.stepStates, {rows, h, k, v});
}

/// The first of the checks that has something to say.
template <typename... Checks> static std::string firstError(Checks... checks) {
  std::string error;
  (void)((error = checks(), !error.empty()) || ...);
  return error;
}

std::string gdn::reference::validate(const Problem &p) {
  Extent b{"B", p.B}, t{"T", p.T}, hq{"Hq", p.Hq}, h{"H", p.H}, k{"K", p.K},
      v{"V", p.V};
  return firstError(
      [&] { return checkDimensions(p); }, [&] { return checkCuSeqlens(p); },
      [&] { return checkArray("q", p.q, {b, t, hq, k}); },
      [&] { return checkArray("k", p.k, {b, t, hq, k}); },
      [&] { return checkArray("v", p.v, {b, t, h, v}); },
      [&] { return checkGate(p); }, [&] { return checkBeta(p); },
      [&] { return checkStateIndices(p); }, [&] { return checkSteps(p); },
      [&] { return checkState("initial_state", p, p.initialState); });
}

std::string
gdn::reference::validateBackward(const Problem &p,
                                 const std::vector<double> &dO,
                                 const std::vector<double> &dFinalState) {
  return firstError(
      [&] { return validate(p); },
      [&] {
        return p.stateIndices.empty()
                   ? std::string()
                   : "expected no state_indices with gradients, got " +
                         std::to_string(p.stateIndices.size()) + " values";
      },
      [&] {
        return checkArray("d_o", dO,
                          {{"B", p.B}, {"T", p.T}, {"H", p.H}, {"V", p.V}});
      },
      [&] { return checkState("d_final_state", p, dFinalState); });
}
