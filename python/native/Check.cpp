//===- Check.cpp - What a call's arguments must be ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

using namespace gdn;
using namespace gdn::cpu;

const char *Problem::nameOf(const Array &array) const {
  static constexpr const char *names[][2] = {
#define GDN_ARRAY(field, name, inBackward, ...) {name, inBackward},
#include "Manifest.inc"
  };
  auto findIn = [&](const Arrays &arrays) {
    auto all = arraysOf(arrays);
    return std::find(all.begin(), all.end(), &array) - all.begin();
  };
  if (&array == &stepStates && keepsEvery())
    return "state_checkpoints";
  auto index = findIn(*this);
  if (index == kNumArrays && gradients)
    index = findIn(*gradients);
  return index < kNumArrays ? names[index][kind == Kind::Backward] : "saved";
}

void gdn::cpu::fail(const std::string &name, const std::string &rule,
                    const std::string &got, const char *kind) {
  throw Error{kind, name + ": expected " + rule + ", got " + got};
}

std::string gdn::cpu::nameOf(Device device) {
  if (device.type == Device::CPU)
    return "cpu";
  std::string kind = device.type == Device::CUDA ? "cuda:" : "another device:";
  return kind + std::to_string(device.index);
}

/// The texts of so many things, as a list.
static std::string join(size_t count, auto textOf, const char *last = ", ") {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : i + 1 < count ? ", " : last;
    text += textOf(i);
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

namespace {
/// An extent of a call: its letter in rules, what messages call it, and its
/// size, negative if any will do.
struct Extent {
  char letter;
  const char *name;
  int64_t size;
};

/// The rule of one array: the letters of its dimensions, the element types that
/// it may have, the letters whose size it says itself, and the array whose
/// shape it has, in words.
struct Rule {
  const Array &array;
  const char *dims;
  std::span<const Element> elements;
  const char *own = "", *origin = "";
};
} // namespace

static void checkRule(const Problem &p, const Rule &rule) {
  const Extent extents[] = {{'B', "B", p.batches()},
                            {'T', "T", p.tokens()},
                            {'H', "H", p.keyHeads()},
                            {'K', "K", p.keyChannels()},
                            {'h', "HV", p.valueHeads()},
                            {'V', "V", p.valueChannels()},
                            {'c', "HV * K", p.valueHeads() * p.keyChannels()},
                            {'N', "N", p.sequences()},
                            {'n', "N + 1", p.sequences() + 1},
                            {'P', "P", -1},
                            {'R', "R", -1},
                            {'S', "steps", p.stepIndices.sizes[1]}};
  const Array &array = rule.array;
  const size_t rank = std::strlen(rule.dims);
  auto extentAt = [&](size_t i) {
    Extent extent = *std::ranges::find(extents, rule.dims[i], &Extent::letter);
    if (std::strchr(rule.own, extent.letter))
      extent.size = -1;
    return extent;
  };
  if (!array.isPresent())
    return;
  if (!std::ranges::count(rule.elements, array.element)) {
    auto typeAt = [&](size_t i) { return nameOf(rule.elements[i]); };
    fail(p.nameOf(array),
         "a tensor of " + join(rule.elements.size(), typeAt, " or "),
         typeName(array), "TypeError");
  }
  bool fits = array.rank == static_cast<int>(rank);
  for (size_t i = 0; fits && i < rank; ++i) {
    int64_t size = extentAt(i).size;
    fits = size < 0 || size == array.sizes[i];
  }
  if (fits)
    return;
  auto nameAt = [&](size_t i) { return extentAt(i).name; };
  auto wantedAt = [&](size_t i) {
    int64_t size = extentAt(i).size;
    return size < 0 ? "*" : std::to_string(size);
  };
  auto sizeAt = [&](size_t i) { return std::to_string(array.sizes[i]); };
  fail(p.nameOf(array),
       "the shape [" + join(rank, nameAt) + "]" + rule.origin + " = [" +
           join(rank, wantedAt) + "]",
       array.rank > kMaxRank ? std::to_string(array.rank) + " dimensions"
                             : "[" + join(array.rank, sizeAt) + "]");
}

static void checkRules(const Problem &p, std::initializer_list<Rule> rules) {
  for (const Rule &rule : rules)
    checkRule(p, rule);
}

static constexpr Element dataTypes[] = {
#define GDN_DATA_TYPE(key) Element::key,
#include "Manifest.inc"
};
static constexpr Element floatTypes[] = {
#define GDN_GATES_AND_STATES_TYPE(key) Element::key,
#include "Manifest.inc"
};
static constexpr Element integerTypes[] = {
#define GDN_BOUNDARIES_TYPE(key) Element::key,
#include "Manifest.inc"
};

static constexpr Element flagTypes[] = {
#define GDN_FLAGS_TYPE(key) Element::key,
#include "Manifest.inc"
};

static void checkSizes(const Problem &p) {
  auto checkChannels = [](const char *name, std::string dim, int64_t size) {
    if (size < 1 || size > manifest::MaxChannels)
      fail(name, dim + " of 1 to " + std::to_string(manifest::MaxChannels),
           dim + " = " + std::to_string(size));
  };
  checkChannels("q", "K", p.keyChannels());
  checkChannels("v", "V", p.valueChannels());
  if (p.keyHeads() < 1)
    fail("q", "at least one head", "none");
  if (p.valueHeads() < 1 || p.valueHeads() % p.keyHeads() != 0)
    fail("v",
         "a number of heads that is a multiple of q's " +
             std::to_string(p.keyHeads()),
         std::to_string(p.valueHeads()));
  if (p.cuSeqlens.isPresent() && p.batches() != 1)
    fail("q", "B = 1 with cu_seqlens (flatten the batch into one row)",
         "B = " + std::to_string(p.batches()));
}

/// The inputs that every call has; later checks read their sizes.
static void checkTokens(const Problem &p) {
  for (const Array *array : {&p.q, &p.k, &p.v})
    if (!array->isPresent())
      fail(p.nameOf(*array), "a tensor", "None", "TypeError");
  std::span<const Element> same(&p.q.element, 1);
  checkRules(p, {{p.q, "BTHK", dataTypes, "BTHK"},
                 {p.k, "BTHK", same, "", " of q"},
                 {p.v, "BThV", same, "hV"}});
  checkSizes(p);
}

/// Everything whose shape follows from q, k and v.
static void checkRest(const Problem &p) {
  bool isWide = p.hasChannelGates();
  const char *biases = !isWide ? "h" : p.dtBias.rank == 2 ? "hK" : "c";
  const char *allStates[3][2] = {
      {"NhKV", "NhVK"}, {"PhKV", "PhVK"}, {"RhKV", "RhVK"}};
  const char *states = allStates[p.hasPool()][p.stateVFirst];
  checkRules(p, {{p.cuSeqlens, "n", integerTypes, "n"},
                 {p.gate, isWide ? "BThK" : "BTh", floatTypes},
                 {p.beta, "BTh", floatTypes},
                 {p.aLog, "h", floatTypes},
                 {p.dtBias, biases, floatTypes}});
  if (p.cuSeqlens.isPresent() && p.cuSeqlens.sizes[0] < 2)
    fail("cu_seqlens", "at least two boundaries",
         std::to_string(p.cuSeqlens.sizes[0]));
  checkRules(p, {{p.stateIndices, "N", integerTypes},
                 {p.hasInitialState, "N", flagTypes},
                 {p.stepIndices, "NS", integerTypes, "S"},
                 {p.numAccepted, "N", integerTypes},
                 {p.parents, "NS", integerTypes},
                 {p.stepStarts, "n", integerTypes},
                 {p.stepIntervals, "N", integerTypes},
                 {p.stepStates, allStates[2][p.stateVFirst], floatTypes},
                 {p.initialState, states, floatTypes},
                 {p.finalState, states, floatTypes},
                 {p.o, "BThV", {&p.q.element, 1}, "", " of v"}});
}

//===----------------------------------------------------------------------===//
// Values and options
//===----------------------------------------------------------------------===//

void gdn::cpu::checkBoundaries(const Array &cu, int64_t tokens) {
  int64_t previous = 0;
  for (int64_t i = 0; i < cu.sizes[0]; ++i) {
    int64_t value = cu.integerAt(i);
    std::string at = "cu_seqlens[" + std::to_string(i) + "]";
    if (i == 0 && value != 0)
      fail("cu_seqlens", at + " = 0", std::to_string(value));
    if (value < previous)
      fail("cu_seqlens", "boundaries that ascend",
           at + " = " + std::to_string(value) + " after " +
               std::to_string(previous));
    if (value > tokens)
      fail("cu_seqlens", "boundaries of at most T = " + std::to_string(tokens),
           at + " = " + std::to_string(value));
    previous = value;
  }
}

void gdn::cpu::checkStateIndices(const Array &rows, int64_t first,
                                 int64_t count, bool refusesOthers,
                                 const char *name) {
  std::vector<int64_t> named;
  int64_t columns = rows.rank > 1 ? rows.sizes[1] : 1;
  for (int64_t n = 0; n < rows.sizes[0] * columns; ++n) {
    int64_t row = rows.integerAt(n / columns, n % columns);
    if (row >= first && row < count)
      named.push_back(row);
    if (refusesOthers && (row < -1 || row >= count))
      fail("state_indices",
           "rows of -1 to P - 1 = " + std::to_string(count - 1),
           "state_indices[" + std::to_string(n) + "] = " + std::to_string(row));
  }
  std::sort(named.begin(), named.end());
  auto twice = std::adjacent_find(named.begin(), named.end());
  if (twice == named.end())
    return;
  fail(name, "rows that differ", std::to_string(*twice) + " twice");
}

static void checkOptions(const Problem &p) {
  if (!std::isfinite(p.scale))
    fail("scale", "a finite number",
         std::isnan(p.scale) ? "nan"
         : p.scale < 0       ? "-inf"
                             : "inf");
  const GateDomain &gate = p.gateForm();
  bool raw = gate.hasParameters;
  const char *notRaw = "None unless the gate is raw (use_gate_in_kernel=True)";
  struct {
    bool holds;
    const char *name, *rule, *got;
  } rules[] = {
      {!raw || p.gate.isPresent(), "g", "a tensor with a raw gate", "None"},
      // A bounded gate without one has the rate 1.
      {!raw || gate.lowerBound || p.aLog.isPresent(), "A_log",
       "a tensor of shape [H] with a raw gate (use_gate_in_kernel)", "None"},
      {raw || !p.aLog.isPresent(), "A_log", notRaw, "a tensor"},
      {raw || !p.dtBias.isPresent(), "dt_bias", notRaw, "a tensor"},
      {p.betaForm().sigmoid == 0 || p.beta.isPresent(), "beta",
       "a tensor of logits", "None"},
      // Numbers below are read as 0.
      {p.threads >= 1, "num_threads", "at least 1", "0"},
  };
  for (const auto &[holds, name, rule, got] : rules)
    if (!holds)
      fail(name, rule, got);
}

void gdn::cpu::settleSteps(Problem &p) {
  if (p.stateIndices.rank == 2 && !p.stepIndices.isPresent()) {
    p.stepIndices = p.stateIndices;
    p.stateIndices.rank = 1;
  }
  if (!p.stepIndices.isPresent() || p.stepStates.isPresent())
    return;
  if (!p.finalState.isPresent() || !p.initialState.isSameView(p.finalState))
    fail("final_state",
         "initial_state, the pool, which keeps the states after tokens",
         p.finalState.isPresent() ? "another tensor" : "None");
  p.stepStates = std::exchange(p.finalState, {});
}

/// States in a pool are read and written in place.
static void checkPool(const Problem &p) {
  for (auto [array, other, name] :
       {std::tuple(&p.hasInitialState, &p.stateIndices, "state_indices"),
        {&p.stepIndices, &p.stateIndices, "state_indices"},
        {&p.stepIntervals, &p.stepStarts, "checkpoint_cu_starts"},
        {&p.stepIntervals, &p.stepStates, "state_checkpoints"},
        {&p.stepStates, p.keepsEvery() ? &p.stepStarts : &p.stepIndices,
         "step_indices"},
        {&p.numAccepted, &p.stepIndices, "step_indices"},
        {&p.parents, &p.stepIndices, "step_indices"}})
    if (array->isPresent() && !other->isPresent())
      fail(p.nameOf(*array), std::string("None without ") + name, "a tensor");
  if (!p.hasPool())
    return;
  if (p.stepIndices.isPresent() && !p.stepIndices.sizes[1])
    fail("step_indices", "rows of at least one token", "none");
  if (p.stepStates.isPresent() && !p.keepsEvery() &&
      p.stepStates.element != p.initialState.element)
    fail("step_states", "a tensor of the type of initial_state",
         typeName(p.stepStates), "TypeError");
  if (p.stepIndices.isPresent() && p.stepIndices.data && p.isOnCPU())
    checkStateIndices(p.stepIndices, p.firstState, p.stepStates.sizes[0], false,
                      "step_indices");
  if (!p.initialState.isPresent())
    fail("initial_state", "a pool of states with state_indices", "None");
  if (p.finalState.isPresent() && !p.initialState.isSameView(p.finalState))
    fail(p.nameOf(p.finalState), "initial_state, the pool, with state_indices",
         "another tensor");
  if (p.stateIndices.data && p.isOnCPU())
    checkStateIndices(p.stateIndices, p.firstState, p.initialState.sizes[0]);
}

/// On a CPU a gradient may be absent, and have another float type than its
/// input.
static void checkGradients(const Problem &p) {
  for (int i = 0; p.gradients && i < kNumGradients; ++i) {
    const Array &input = *arraysOf(p)[i], &given = *arraysOf(*p.gradients)[i];
    bool isFloat = std::ranges::count(floatTypes, given.element);
    bool fits = p.isOnCPU()
                    ? !given.isPresent() || (isFloat && given.hasShapeOf(input))
                    : given.element == input.element && given.hasShapeOf(input);
    if (!fits)
      fail(std::string("gradient of ") + p.nameOf(input),
           p.isOnCPU() ? "the shape of its tensor and floats"
                       : "the shape and type that the kernels write",
           "others");
  }
}

void gdn::cpu::check(const Problem &p) {
  for (auto part :
       {checkTokens, checkRest, checkOptions, checkPool, checkGradients})
    part(p);
  if (p.cuSeqlens.isPresent() && p.cuSeqlens.data && p.isOnCPU())
    checkBoundaries(p.cuSeqlens, p.tokens());
  if (p.kind != Kind::Backward)
    checkOutputs(p);
  if (!p.isOnCPU() && p.device.type != Device::CUDA)
    fail("q", "a tensor on a CPU or a CUDA device",
         "one on " + nameOf(p.device));
}
