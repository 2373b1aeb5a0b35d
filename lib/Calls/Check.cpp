//===- Check.cpp - What the arrays of a call must be ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "Layout.h"
#include "Signature.h"
#include "gdn/GateForms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>
#include <tuple>

using namespace gdn::calls;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {
/// The rule of one array: its name, the letters of its dimensions, and the
/// types that it may have. The first ones have gradients.
struct Rule {
  std::string_view name;
  View CallArrays::*place;
  const char *dims;
  std::span<const int32_t> types;
  bool hasGradient = false;
};
} // namespace

static constexpr int32_t floats[] = {GDN_DTYPE_F32, GDN_DTYPE_BF16,
                                     GDN_DTYPE_F16},
                         data[] = {GDN_DTYPE_BF16, GDN_DTYPE_F16,
                                   GDN_DTYPE_F32},
                         integers[] = {GDN_DTYPE_I32, GDN_DTYPE_I64},
                         flags[] = {GDN_DTYPE_U8};

// In the order in which callers list arrays that want no time for that.
static constexpr Rule rules[] = {
    {"q", &CallArrays::q, "BTHK", data, true},
    {"k", &CallArrays::k, "BTHK", {}, true},
    {"v", &CallArrays::v, "BThV", {}, true},
    {"gate", &CallArrays::gate, "BTh", floats, true},
    {"beta", &CallArrays::beta, "BTh", floats, true},
    {"a_log", &CallArrays::aLog, "h", floats, true},
    {"dt_bias", &CallArrays::dtBias, "h", floats, true},
    {"initial_state", &CallArrays::initialState, "NhKV", floats, true},
    {"cu_seqlens", &CallArrays::cuSeqlens, "n", integers},
    {"o", &CallArrays::o, "BThV", {}},
    {"final_state", &CallArrays::finalState, "NhKV", floats},
    {"state_indices", &CallArrays::stateIndices, "N", integers},
    {"has_initial_state", &CallArrays::hasInitialState, "N", flags},
    {"step_states", &CallArrays::stepStates, "RhKV", floats},
    {"step_indices", &CallArrays::stepIndices, "NS", integers},
    {"num_accepted", &CallArrays::numAccepted, "N", integers},
    {"parents", &CallArrays::parents, "NS", integers},
    {"step_starts", &CallArrays::stepStarts, "n", integers},
    {"step_intervals", &CallArrays::stepIntervals, "N", integers}};

/// What stands before the name of an array in a call, or of its gradient.
static const char *prefixOf(const Call &call, const Rule &rule,
                            bool isGradient = false) {
  bool isOutput =
      rule.place == &CallArrays::o || rule.place == &CallArrays::finalState;
  return isGradient ? "d" : isOutput && call.isBackward() ? "d_" : "";
}

CallArrays::CallArrays(const Call &call, bool areGradients) {
  const GdnCall &given = call.get();
  int32_t next = 0;
  for (const Rule &rule : rules) {
    if (areGradients && !rule.hasGradient)
      return;
    const char *prefix = prefixOf(call, rule, areGradients);
    const size_t length = std::strlen(prefix);
    for (int32_t i = 0; i < given.num_arrays; ++i) {
      const GdnCallArray &one = given.arrays[(next + i) % given.num_arrays];
      if (!std::equal(prefix, prefix + length, one.name) ||
          !isCalled(one.name + length, rule.name))
        continue;
      if (one.tensor)
        this->*rule.place = View(*one.tensor);
      next += i + 1;
      break;
    }
  }
}

namespace {
/// An extent of a call: what messages call it, and its size, negative if any
/// will do.
struct NamedExtent {
  const char *name;
  int64_t size;
};

/// A call whose arrays are compared with the rules.
class Checker {
public:
  Checker(const GdnCallTable &table, const Call &call, const CallArrays &arrays)
      : table(table), call(call), a(arrays) {}
  void run() const;

private:
  bool isWide() const { return a.gate.tensor.rank == kMaxRank; }
  const char *dimsOf(const Rule &rule) const;
  NamedExtent extentOf(char letter, const Rule &rule) const;
  void checkRule(const Rule &rule) const;
  void checkTokens() const;
  void checkOptions() const;
  void checkPool() const;
  void checkGradients() const;
  void checkSpread(const Rule &rule) const;

  const GdnCallTable &table;
  const Call &call;
  const CallArrays &a;
};
} // namespace

/// The letters of an array's dimensions in this call.
const char *Checker::dimsOf(const Rule &rule) const {
  if (rule.place == &CallArrays::gate && isWide())
    return "BThK";
  if (rule.place == &CallArrays::dtBias && isWide())
    return a.dtBias.tensor.rank == 2 ? "hK" : "c";
  if (!std::string_view(rule.dims).ends_with("hKV"))
    return rule.dims;
  constexpr const char *states[][2] = {
      {"NhKV", "NhVK"}, {"PhKV", "PhVK"}, {"RhKV", "RhVK"}};
  return states[rule.dims[0] == 'R' ? 2 : a.stateIndices.isPresent()]
               [call.stateLayout() == "vk"];
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

NamedExtent Checker::extentOf(char letter, const Rule &rule) const {
  // q and v say what is not known before.
  bool isQ = rule.place == &CallArrays::q, isV = rule.place == &CallArrays::v;
  switch (letter) {
  case 'B':
    return {"B", isQ ? -1 : call.batches};
  case 'T':
    return {"T", isQ ? -1 : call.tokens};
  case 'H':
    return {"H", isQ ? -1 : call.keyHeads};
  case 'K':
    return {"K", isQ ? -1 : call.keyChannels};
  case 'h':
    return {"HV", isV ? -1 : call.heads};
  case 'V':
    return {"V", isV ? -1 : call.valueChannels};
  case 'c':
    return {"HV * K", call.heads * call.keyChannels};
  case 'N':
    return {"N", call.sequences};
  case 'n':
    return {"N + 1",
            rule.place == &CallArrays::cuSeqlens ? -1 : call.sequences + 1};
  case 'S':
    return {"steps", a.stepIndices.shape[1]};
  default:
    return {letter == 'P' ? "P" : "R", -1};
  }
}

void Checker::checkRule(const Rule &rule) const {
  const View &array = a.*rule.place;
  if (!array.isPresent())
    return;
  // Gradients of outputs have the name that functions have for them.
  const char *prefix = prefixOf(call, rule);
  auto refuseArray = [&](const std::string &wanted, const std::string &got,
                         GdnRuntimeStatus status) {
    gdn::calls::refuse(status, (*prefix ? std::string(prefix).append(rule.name)
                                        : call.say(rule.name)) +
                                   ": expected " + wanted + ", got " + got);
  };
  // Arrays without types of their own have q's; k, v and a gradient of o may
  // have another one that q may have, and o's follows from these.
  bool isOutput = rule.place == &CallArrays::o;
  int32_t own = isOutput ? call.outputType() : a.q.tensor.dtype;
  auto types =
      rule.types.empty() ? std::span<const int32_t>(&own, 1) : rule.types;
  bool isData = rule.types.empty() && (!isOutput || call.isBackward()) &&
                std::ranges::count(data, array.tensor.dtype);
  if (!isData && !std::ranges::count(types, array.tensor.dtype))
    refuseArray("a tensor of " +
                    join(
                        types.size(),
                        [&](size_t i) { return typeName(types[i]); }, " or "),
                typeName(array.tensor.dtype), GDN_ERROR_INVALID_TYPE);
  const std::string_view dims = dimsOf(rule);
  bool fits = array.tensor.rank == std::ssize(dims);
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    int64_t size = extentOf(dims[i], rule).size;
    fits = size < 0 || size == array.shape[i];
  }
  if (fits)
    return;
  auto nameAt = [&](size_t i) { return extentOf(dims[i], rule).name; };
  auto wantedAt = [&](size_t i) {
    int64_t size = extentOf(dims[i], rule).size;
    return size < 0 ? "*" : std::to_string(size);
  };
  auto sizeAt = [&](size_t i) { return std::to_string(array.shape[i]); };
  const char *origin = rule.place == &CallArrays::k   ? " of q"
                       : rule.place == &CallArrays::o ? " of v"
                                                      : "";
  refuseArray("the shape [" + join(dims.size(), nameAt) + "]" + origin +
                  " = [" + join(dims.size(), wantedAt) + "]",
              array.tensor.rank > kMaxRank
                  ? std::to_string(array.tensor.rank) + " dimensions"
                  : "[" + join(array.tensor.rank, sizeAt) + "]",
              GDN_ERROR_INVALID_ARGUMENT);
}

//===----------------------------------------------------------------------===//
// All rules
//===----------------------------------------------------------------------===//

/// The inputs that every call has; later checks read their sizes.
void Checker::checkTokens() const {
  for (const Rule &rule : std::span(rules).first(3))
    if (!(a.*rule.place).isPresent())
      call.refuse(rule.name, "a tensor", "None", GDN_ERROR_INVALID_TYPE);
  for (const Rule &rule : std::span(rules).first(3))
    checkRule(rule);
  const int64_t most = maxChannels(table);
  for (auto [name, dim, size] :
       {std::tuple("q", "K", call.keyChannels), {"v", "V", call.valueChannels}})
    if (size < 1 || size > most)
      call.refuse(name, std::string(dim) + " of 1 to " + std::to_string(most),
                  std::string(dim) + " = " + std::to_string(size));
  if (call.keyHeads < 1)
    call.refuse("q", "at least one head", "none");
  if (call.heads < 1 || call.heads % call.keyHeads != 0)
    call.refuse("v",
                "a number of heads that is a multiple of q's " +
                    std::to_string(call.keyHeads),
                std::to_string(call.heads));
  if (call.isPacked() && call.batches != 1)
    call.refuse("q",
                "B = 1 with " + call.say("cu_seqlens") +
                    " (flatten the batch into one row)",
                "B = " + std::to_string(call.batches));
}

void Checker::checkOptions() const {
  double scale = call.get().scale;
  if (!std::isfinite(scale))
    call.refuse("scale", "a finite number",
                std::isnan(scale) ? "nan"
                : scale < 0       ? "-inf"
                                  : "inf");
  const gdn_gates::GateForm &form =
      gdn_gates::gateFormOf(call.fact("gate_domain"));
  bool isRaw = form.hasParameters();
  if (isRaw && !a.gate.isPresent())
    call.refuse("gate", "a tensor with a raw gate", "None");
  if (form.needsRate() && !a.aLog.isPresent())
    call.refuse("a_log", "a tensor of shape [H] with " + call.say("a raw gate"),
                "None");
  for (auto [name, array] :
       {std::pair("a_log", &a.aLog), {"dt_bias", &a.dtBias}})
    if (!isRaw && array->isPresent())
      call.refuse(name, "None unless " + call.say("the gate is raw"),
                  "a tensor");
  if (call.fact("beta_domain").ends_with("logit") && !a.beta.isPresent())
    call.refuse("beta", "a tensor of logits", "None");
}

/// States in a pool are read and written in place.
void Checker::checkPool() const {
  for (auto [name, array, other, otherName] :
       {std::tuple("has_initial_state", &a.hasInitialState, &a.stateIndices,
                   "state_indices"),
        {"step_indices", &a.stepIndices,
         a.keepsEvery() ? &a.stepStates : &a.stateIndices, "state_indices"},
        {"step_intervals", &a.stepIntervals,
         a.stepIndices.isPresent() ? &a.stepIndices : &a.stepStarts,
         "step_starts"},
        {"step_intervals", &a.stepIntervals, &a.stepStates, "step_states"},
        {"step_states", &a.stepStates,
         a.stepStarts.isPresent() ? &a.stepStarts : &a.stepIndices,
         "step_indices"},
        {"num_accepted", &a.numAccepted, &a.stepIndices, "step_indices"},
        {"parents", &a.parents, &a.stepIndices, "step_indices"}})
    if (array->isPresent() && !other->isPresent())
      call.refuse(name, "None without " + call.say(otherName), "a tensor");
  if (a.stepIndices.isPresent() && a.stepStarts.isPresent())
    call.refuse("step_starts", "None with " + call.say("step_indices"),
                "a tensor");
  if (!a.stateIndices.isPresent())
    return;
  if (a.stepIndices.isPresent() && !a.stepIndices.shape[1])
    call.refuse("step_indices", "rows of at least one token", "none");
  if (a.stepStates.isPresent() && !a.keepsEvery() &&
      a.stepStates.tensor.dtype != a.initialState.tensor.dtype)
    call.refuse("step_states",
                "a tensor of the type of " + call.say("initial_state"),
                typeName(a.stepStates.tensor.dtype), GDN_ERROR_INVALID_TYPE);
  if (!a.initialState.isPresent())
    call.refuse("initial_state",
                "a pool of states with " + call.say("state_indices"), "None");
  if (a.finalState.isPresent() && !areOne(a.initialState, a.finalState))
    call.refuse("final_state",
                call.say("initial_state") + ", the pool, with " +
                    call.say("state_indices"),
                "another tensor");
}

/// A gradient may be absent and, on a CPU, have another float type than its
/// input.
void Checker::checkGradients() const {
  const CallArrays gradients(call, /*areGradients=*/true);
  for (const Rule &rule : rules) {
    const View &input = a.*rule.place, &given = gradients.*rule.place;
    bool isFloat = std::ranges::count(floats, given.tensor.dtype),
         isSame = given.tensor.dtype == input.tensor.dtype;
    bool fits = given.tensor.rank == input.tensor.rank &&
                given.shape == input.shape &&
                (call.isOnCPU() ? isFloat : isSame);
    if (given.isPresent() && !fits)
      call.refuse(std::string("d").append(rule.name),
                  call.isOnCPU() ? "the shape of its tensor and floats"
                                 : "the shape and type that the kernels write",
                  "others");
  }
}

/// Elements of an output have memory of their own, as those of an expanded
/// view have not: a step along a dimension leads past all that the dimensions
/// of smaller steps reach.
void Checker::checkSpread(const Rule &rule) const {
  const View &array = a.*rule.place;
  if (!array.isPresent() || !hasElements(array.tensor))
    return;
  // Nothing steps along an extent of 1.
  auto stepOf = [&](int i) {
    return array.shape[i] > 1 ? std::abs(array.strides[i]) : 0;
  };
  Strides order = {0, 1, 2, 3};
  std::ranges::sort(order, {}, stepOf);
  int64_t reach = 0;
  for (int64_t i : order) {
    if (array.shape[i] > 1 && stepOf(i) <= reach)
      call.refuse(rule.name, "a tensor whose elements have memory of their own",
                  "stride " + std::to_string(array.strides[i]) +
                      " in dimension " + std::to_string(i));
    reach += (array.shape[i] - 1) * stepOf(i);
  }
}

void Checker::run() const {
  checkTokens();
  // The number of sequences first.
  for (const Rule &rule : rules)
    if (rule.place == &CallArrays::cuSeqlens)
      checkRule(rule);
  if (call.isPacked() && call.sequences < 1)
    call.refuse("cu_seqlens", "at least two boundaries",
                std::to_string(call.sequences + 1));
  for (const Rule &rule : rules)
    checkRule(rule);
  checkOptions();
  checkPool();
  if (call.isBackward())
    return checkGradients();
  for (const Rule &rule : rules)
    if (rule.place == &CallArrays::o || rule.place == &CallArrays::finalState ||
        rule.place == &CallArrays::stepStates)
      checkSpread(rule);
}

void gdn::calls::check(const GdnCallTable &table, const Call &call,
                       const CallArrays &arrays) {
  Checker(table, call, arrays).run();
}
