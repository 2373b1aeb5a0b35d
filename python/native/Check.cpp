//===- Check.cpp - What a call's arguments must be ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <utility>
#include <vector>

using namespace gdn::cpu;

namespace {
/// The rule of one array: its dimensions by name and size (negative: any), and
/// the element types that it may have.
struct Rule {
  const char *name;
  const Array *array;
  const char *dims;
  std::initializer_list<int64_t> sizes;
  std::initializer_list<Element> elements;
};
} // namespace

Error gdn::cpu::fail(const char *kind, const char *name,
                     const std::string &rule, const std::string &got) {
  return {kind, std::string(name) + ": expected " + rule + ", got " + got};
}

static std::string listOf(const int64_t *values, size_t count) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

/// "[B, T, H, K] = [1, 64, *, 128]".
static std::string shapeRule(const Rule &rule) {
  std::string text = std::string("the shape ") + rule.dims + " = [";
  bool first = true;
  for (int64_t size : rule.sizes) {
    text += (first ? "" : ", ") + (size < 0 ? "*" : std::to_string(size));
    first = false;
  }
  return text + "]";
}

static std::string elementRule(const Rule &rule) {
  std::string text = "a tensor of ";
  size_t left = rule.elements.size();
  for (Element element : rule.elements) {
    text += nameOf(element);
    if (--left)
      text += left > 1 ? ", " : " or ";
  }
  return text;
}

/// The type as NumPy and torch call it.
static std::string typeName(const Array &array) {
  if (array.element != Element::Other)
    return nameOf(array.element);
  const char *kinds[] = {"int",    "uint",    "float", "an opaque type",
                         "bfloat", "complex", "bool"};
  if (array.typeCode >= std::size(kinds))
    return "a type without a name here";
  std::string kind = kinds[array.typeCode];
  bool hasWidth = kind != "bool" && kind != "an opaque type";
  return hasWidth ? kind + std::to_string(array.typeBits) : kind;
}

static Error checkRule(const Rule &rule) {
  const Array &array = *rule.array;
  if (!array.isPresent())
    return {};
  bool known = false;
  for (Element element : rule.elements)
    known |= element == array.element;
  if (!known)
    return fail("TypeError", rule.name, elementRule(rule), typeName(array));
  bool fits = array.rank == static_cast<int>(rule.sizes.size());
  if (fits) {
    size_t i = 0;
    for (int64_t size : rule.sizes) {
      fits &= size < 0 || size == array.sizes[i];
      ++i;
    }
  }
  if (!fits)
    return fail("ValueError", rule.name, shapeRule(rule),
                array.rank > kMaxRank
                    ? std::to_string(array.rank) + " dimensions"
                    : listOf(array.sizes.data(), array.rank));
  return {};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Error gdn::cpu::checkBoundaries(const Array &cu, int64_t tokens) {
  int64_t previous = 0;
  for (int64_t i = 0; i < cu.sizes[0]; ++i) {
    int64_t value = loadInteger(cu.data, cu.element, i * cu.strides[0]);
    std::string at = "cu_seqlens[" + std::to_string(i) + "]";
    if (i == 0 && value != 0)
      return fail("ValueError", "cu_seqlens", at + " = 0",
                  std::to_string(value));
    if (value < previous)
      return fail("ValueError", "cu_seqlens", "boundaries that ascend",
                  at + " = " + std::to_string(value) + " after " +
                      std::to_string(previous));
    if (value > tokens)
      return fail("ValueError", "cu_seqlens",
                  "boundaries of at most T = " + std::to_string(tokens),
                  at + " = " + std::to_string(value));
    previous = value;
  }
  return {};
}

Error gdn::cpu::checkStateIndices(const Array &rows, int64_t first,
                                  int64_t count) {
  std::vector<int64_t> named;
  for (int64_t n = 0; n < rows.sizes[0]; ++n) {
    int64_t row = loadInteger(rows.data, rows.element, n * rows.strides[0]);
    if (row >= first && row < count)
      named.push_back(row);
  }
  std::sort(named.begin(), named.end());
  auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice == named.end())
    return {};
  return fail("ValueError", "state_indices", "rows that differ",
              std::to_string(*twice) + " twice");
}

Error gdn::cpu::checkStateRange(const Array &rows, int64_t count) {
  for (int64_t n = 0; n < rows.sizes[0]; ++n) {
    int64_t row = loadInteger(rows.data, rows.element, n * rows.strides[0]);
    if (row < -1 || row >= count)
      return fail("ValueError", "state_indices",
                  "rows of -1 to P - 1 = " + std::to_string(count - 1),
                  "state_indices[" + std::to_string(n) +
                      "] = " + std::to_string(row));
  }
  return {};
}

static Error checkSizes(const Problem &p) {
  auto channels = [](const char *name, const char *dim, int64_t size) -> Error {
    if (size >= 1 && size <= kMaxChannels)
      return {};
    return fail("ValueError", name,
                std::string(dim) + " of 1 to " + std::to_string(kMaxChannels),
                std::string(dim) + " = " + std::to_string(size));
  };
  if (Error error = channels("q", "K", p.keyChannels()))
    return error;
  if (Error error = channels("v", "V", p.valueChannels()))
    return error;
  if (p.keyHeads() < 1)
    return fail("ValueError", "q", "at least one head", "none");
  if (p.valueHeads() < 1 || p.valueHeads() % p.keyHeads() != 0)
    return fail("ValueError", "v",
                "a number of heads that is a multiple of q's " +
                    std::to_string(p.keyHeads()),
                std::to_string(p.valueHeads()));
  if (p.cuSeqlens.isPresent() && p.batches() != 1)
    return fail("ValueError", "q",
                "B = 1 with cu_seqlens (flatten the batch into one row)",
                "B = " + std::to_string(p.batches()));
  return {};
}

/// "'log' or 'linear'": the domains that a CPU knows a formula for.
static std::string listGatesOfCPU() {
  std::string text;
  for (const GateDomainInfo &domain : allGateDomains)
    if (domain.formula != GateFormula::None)
      text += (text.empty() ? "" : " or ") + std::string(domain.name);
  return text;
}

static Error checkOptions(const Problem &p) {
  if (!std::isfinite(p.scale))
    return fail("ValueError", "scale", "a finite number",
                std::isnan(p.scale) ? "nan"
                : p.scale < 0       ? "-inf"
                                    : "inf");
  const GateDomainInfo &gate = infoOf(p.gateDomain);
  if (p.device.type == Device::CPU && gate.formula == GateFormula::None)
    return {"NotImplementedError", "gate_domain: expected " + listGatesOfCPU() +
                                       " on a CPU in this version, got " +
                                       gate.name};
  bool raw = gate.hasParameters;
  if (raw && !p.gate.isPresent())
    return fail("ValueError", "g", "a tensor with a raw gate", "None");
  if (raw && !p.aLog.isPresent())
    return fail("ValueError", "A_log",
                "a tensor of shape [H] with a raw gate (use_gate_in_kernel)",
                "None");
  if (!raw && p.aLog.isPresent())
    return fail("ValueError", "A_log",
                "None unless the gate is raw (use_gate_in_kernel=True)",
                "a tensor");
  if (!raw && p.dtBias.isPresent())
    return fail("ValueError", "dt_bias",
                "None unless the gate is raw (use_gate_in_kernel=True)",
                "a tensor");
  if (infoOf(p.betaDomain).sigmoid != 0 && !p.beta.isPresent())
    return fail("ValueError", "beta", "a tensor of logits", "None");
  if (p.threads < 1)
    return fail("ValueError", "num_threads", "at least 1",
                std::to_string(p.threads));
  return {};
}

/// The inputs that every call has; later checks read their sizes.
static Error checkTokens(const Problem &p) {
  Named required[] = {{"q", &p.q}, {"k", &p.k}, {"v", &p.v}};
  for (Named argument : required)
    if (!argument.array->isPresent())
      return fail("TypeError", argument.name, "a tensor", "None");
  auto data = {
#define GDN_DATA_TYPE(key) Element::key,
#include "Manifest.inc"
  };
  const int64_t any = -1;
  if (Error error =
          checkRule({"q", &p.q, "[B, T, H, K]", {any, any, any, any}, data}))
    return error;
  if (Error error =
          checkRule({"k",
                     &p.k,
                     "[B, T, H, K] of q",
                     {p.batches(), p.tokens(), p.keyHeads(), p.keyChannels()},
                     {p.q.element}}))
    return error;
  if (Error error = checkRule({"v",
                               &p.v,
                               "[B, T, HV, V]",
                               {p.batches(), p.tokens(), any, any},
                               {p.q.element}}))
    return error;
  return checkSizes(p);
}

/// Everything whose shape follows from q, k and v.
static Error checkRest(const Problem &p) {
  int64_t B = p.batches(), T = p.tokens(), H = p.valueHeads();
  int64_t rows = p.keyChannels(), columns = p.valueChannels();
  if (p.stateVFirst)
    std::swap(rows, columns);
  const char *allDims[2][2] = {{"[N, HV, K, V]", "[N, HV, V, K]"},
                               {"[P, HV, K, V]", "[P, HV, V, K]"}};
  const char *stateDims = allDims[p.hasPool()][p.stateVFirst];
  auto floats = {
#define GDN_GATES_AND_STATES_TYPE(key) Element::key,
#include "Manifest.inc"
  };
  std::initializer_list<Element> integers = {
#define GDN_BOUNDARIES_TYPE(key) Element::key,
#include "Manifest.inc"
  };
  // Gates of heads, and of key channels.
  int64_t K = p.keyChannels();
  const Rule gates[] = {
      {"g", &p.gate, "[B, T, HV]", {B, T, H}, floats},
      {"g", &p.gate, "[B, T, HV, K]", {B, T, H, K}, floats},
  };
  const Rule biases[] = {
      {"dt_bias", &p.dtBias, "[HV]", {H}, floats},
      {"dt_bias", &p.dtBias, "[HV * K]", {H * K}, floats},
      {"dt_bias", &p.dtBias, "[HV, K]", {H, K}, floats},
  };
  bool isWide = p.hasChannelGates();
  const Rule rules[] = {
      {"cu_seqlens", &p.cuSeqlens, "[N + 1]", {-1}, integers},
      gates[isWide],
      {"beta", &p.beta, "[B, T, HV]", {B, T, H}, floats},
      {"A_log", &p.aLog, "[HV]", {H}, floats},
      biases[isWide && p.dtBias.rank == 2 ? 2 : isWide],
  };
  for (const Rule &rule : rules)
    if (Error error = checkRule(rule))
      return error;
  if (p.cuSeqlens.isPresent() && p.cuSeqlens.sizes[0] < 2)
    return fail("ValueError", "cu_seqlens", "at least two boundaries",
                std::to_string(p.cuSeqlens.sizes[0]));
  int64_t N = p.sequences(), states = p.hasPool() ? -1 : N;
  const Rule others[] = {
      {"state_indices", &p.stateIndices, "[N]", {N}, integers},
      {"initial_state",
       &p.initialState,
       stateDims,
       {states, H, rows, columns},
       floats},
      {p.finalStateName,
       &p.finalState,
       stateDims,
       {states, H, rows, columns},
       floats},
      {p.oName,
       &p.o,
       "[B, T, HV, V] of v",
       {B, T, H, p.valueChannels()},
       {p.v.element}},
  };
  for (const Rule &rule : others)
    if (Error error = checkRule(rule))
      return error;
  return {};
}

/// States in a pool are read and written in place.
static Error checkPool(const Problem &p) {
  if (!p.hasPool())
    return {};
  if (!p.initialState.isPresent())
    return fail("ValueError", "initial_state",
                "a pool of states with state_indices", "None");
  if (p.finalState.isPresent() && !isSameView(p.initialState, p.finalState))
    return fail("ValueError", p.finalStateName,
                "initial_state, the pool, with state_indices",
                "another tensor");
  if (p.stateIndices.data && p.device.type == Device::CPU)
    return checkStateIndices(p.stateIndices, p.firstState,
                             p.initialState.sizes[0]);
  return {};
}

Error gdn::cpu::checkArguments(const Problem &p) {
  if (Error error = checkTokens(p))
    return error;
  if (Error error = checkRest(p))
    return error;
  if (Error error = checkOptions(p))
    return error;
  if (Error error = checkPool(p))
    return error;
  const Array &cu = p.cuSeqlens;
  if (cu.isPresent() && cu.data && p.device.type == Device::CPU)
    return checkBoundaries(cu, p.tokens());
  return {};
}

Error gdn::cpu::check(const Problem &p) {
  if (Error error = checkArguments(p))
    return error;
  const Named outputs[] = {{"out", &p.o}, {"final_state", &p.finalState}};
  for (Named output : outputs)
    if (Error error = checkSpread(output))
      return error;
  return checkOverlaps(p);
}
