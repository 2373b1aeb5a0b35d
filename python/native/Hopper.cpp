//===- Hopper.cpp - Calls on a Hopper GPU ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

using namespace gdn;
using namespace gdn::cpu;
using namespace gdn::hopper;

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

// The build writes a line an entry and one for each conversion.
#define GDN_ENTRY(name) extern "C" const GdnEntryDesc name##_entry;
#define GDN_CONVERSION(name, ...)                                              \
  extern "C" const GdnFunctionDesc name##_function;
#include "HopperKernels.inc"

// The last row keeps each table from being empty.
static const GdnEntryDesc *const entries[] = {
#define GDN_ENTRY(name) &name##_entry,
#include "HopperKernels.inc"
    nullptr};
static const GdnConversionDesc conversions[] = {
#define GDN_CONVERSION(name, kind, from, to, factor)                           \
  {kind, from, to, factor, &name##_function},
#include "HopperKernels.inc"
    {}};

const GdnCallTable &gdn::hopper::allFunctions() {
  static void *index = nullptr;
  static const GdnCallTable table = {sizeof(GdnCallTable),
                                     std::size(entries) - 1,
                                     std::size(conversions) - 1,
                                     entries,
                                     conversions,
                                     &index};
  return table;
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

/// What Python calls arrays, facts and their values; and states that are kept
/// after every so many tokens.
template <bool keepsEvery>
static constexpr GdnFact words[] = {
    {keepsEvery ? "step_states" : "", "state_checkpoints"},
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward) {operand, name},
#define GDN_GATE_DOMAIN(key, name, hasParameters, fact, bound)                 \
  {"gate_domain=" fact, name},
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) {"beta_domain=" fact, name},
#define GDN_WORD(fact, word) {fact, word},
#include "Manifest.inc"
};

static constexpr const char *gradientNames[] = {
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward) "d" operand,
#include "Manifest.inc"
};

namespace {
/// A problem as the library of calls takes it. The problem outlives it.
class HopperCall {
public:
  explicit HopperCall(const Problem &problem);
  HopperCall(const HopperCall &) = delete;
  HopperCall &operator=(const HopperCall &) = delete;

  GdnCall call = {};

private:
  void add(const char *name, const Array &array);

  /// Those of a call, their gradients, and what is saved.
  static constexpr int kMaxArrays = kNumArrays + kNumGradients + 2;

  GdnTensor tensors[kMaxArrays];
  GdnCallArray arrays[kMaxArrays];
  GdnFact facts[6];
};
} // namespace

void HopperCall::add(const char *name, const Array &array) {
  GdnTensor &tensor = tensors[call.num_arrays];
  tensor = {array.data, infoOf(array.element).dtype, array.rank,
            array.sizes.data(), array.strides.data()};
  arrays[call.num_arrays++] = {name, array.isPresent() ? &tensor : nullptr};
}

HopperCall::HopperCall(const Problem &p) {
  using namespace manifest;
  bool isBackward = p.kind == Kind::Backward;
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward)                \
  add(isBackward ? ofBackward : operand, p.field);
#include "Manifest.inc"
  for (int i = 0; p.gradients && i < kNumGradients; ++i)
    add(gradientNames[i], *arraysOf(*p.gradients)[i]);
  auto addFact = [this](const char *name, const char *value) {
    facts[call.num_facts++] = {name, value};
  };
  addFact("op", isBackward    ? "gdn.chunk_gated_delta_rule_bwd"
                : p.recurrent ? "gdn.recurrent_gated_delta_rule"
                              : "gdn.chunk_gated_delta_rule");
  addFact("gate_domain", p.gateForm().fact);
  addFact("beta_domain", p.betaForm().fact);
  addFact("qk_l2norm", p.l2norm ? "true" : "false");
  if (p.gateForm().lowerBound)
    addFact("lower_bound", p.gateForm().lowerBound);
  call.struct_size = sizeof(GdnCall);
  call.device = p.device.index;
  call.facts = facts;
  call.arrays = arrays;
  call.state_layout = p.stateVFirst ? "vk" : "kv";
  call.split = p.split;
  call.is_undecayed = p.undecayed;
  call.split_value = p.splitBy;
  // 0 would stand for K^(-1/2).
  call.scale = p.scale != 0 ? p.scale : std::numeric_limits<double>::min();
  call.longest = p.maxSeqlen;
  call.first_state = p.firstState;
  if (p.kind == Kind::Saving || (isBackward && p.savesStates)) {
    static const std::string savedTokens = std::to_string(HopperSavedTokens);
    add("writes", p.writes);
    add("states", p.states);
    addFact("state_interval", savedTokens.c_str());
    // Those that states have memory for (_torch_saved.py).
    call.saved_segments = std::min<int64_t>(
        p.tokens() / HopperSavedSegmentTokens,
        HopperSavedItems / std::max<int64_t>(p.valueHeads(), 1));
  }
  call.words = p.keepsEvery() ? words<true> : words<false>;
  call.num_words = std::size(words<true>);
}

//===----------------------------------------------------------------------===//
// Launches and descriptions
//===----------------------------------------------------------------------===//

/// Throws unless a function of the library succeeded. What is wrong with a call
/// that it was to plan is in Python's words.
static void require(GdnRuntimeStatus status, bool isPlan = false) {
  if (status == GDN_SUCCESS)
    return;
  bool isArgument = status == GDN_ERROR_INVALID_ARGUMENT,
       isServed = status != GDN_ERROR_NOT_SERVED || !isPlan;
  bool isOfCall = isPlan && (isArgument || !isServed);
  throw Error{!isServed                           ? "NotImplementedError"
              : isArgument                        ? "ValueError"
              : status == GDN_ERROR_OUT_OF_MEMORY ? "MemoryError"
                                                  : "RuntimeError",
              std::string(isOfCall ? "" : "gdn: ") + gdnGetLastErrorMessage()};
}

void gdn::hopper::run(const Problem &p, void *stream, GdnAllocate allocate,
                      void *user) {
  const HopperCall call(p);
  GdnCallPlan plan;
  const GdnCallPlan *known = gdnCallRecall(&allFunctions(), &call.call);
  if (known)
    checkOverlaps(p);
  else
    check(p);
  checkMemory(p);
  if (!known)
    require(gdnCallPlan(&allFunctions(), &call.call, &plan), /*isPlan=*/true);
  require(
      gdnCallRun(known ? known : &plan, &call.call, allocate, user, stream));
}

bool gdn::hopper::predictSaving(const Problem &p, bool hasSegments) {
  const HopperCall call(p);
  int32_t pays = 0;
  require(gdnCallSavingPays(&call.call, hasSegments, &pays));
  return pays;
}

std::string gdn::hopper::describe(Problem p) {
  // Dense ones, with a state behind each token at the most.
  Arrays gradients = p;
  p.writes = p.states = p.v;
  p.states.sizes = {p.tokens() + p.sequences(), p.valueHeads(),
                    p.valueChannels(), p.keyChannels()};
  std::vector<Array *> unallocated = {&p.writes, &p.states};
  std::ranges::copy(arraysOf(gradients), std::back_inserter(unallocated));
  for (Array *array : unallocated) {
    array->data = nullptr;
    array->makeDense();
  }
  if (p.kind == Kind::Backward)
    p.gradients = &gradients;
  const HopperCall call(p);
  std::string facts;
  auto write = [&](size_t size) {
    facts.resize(size);
    require(
        gdnCallDescribe(&allFunctions(), &call.call, facts.data(), size, &size),
        /*isPlan=*/true);
    return size;
  };
  write(write(0));
  // It ends with 0.
  facts.pop_back();
  return facts;
}
