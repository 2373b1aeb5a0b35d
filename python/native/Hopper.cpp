//===- Hopper.cpp - Calls on a Hopper GPU ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <string_view>

using namespace gdn;
using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::Arrays;
using gdn::cpu::Kind;

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

/// What Python calls arrays, facts and their values.
static constexpr GdnFact words[] = {
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward) {operand, name},
#define GDN_GATE_DOMAIN(key, name, formula, hasParameters, fact, bound)        \
  {"gate_domain=" fact, name},
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) {"beta_domain=" fact, name},
#include "Manifest.inc"
    {"d_o", "gradient of o"},
    {"d_final_state", "gradient of the final state"},
    {"qk_l2norm", "use_qk_l2norm_in_kernel"},
    {"qk_l2norm=true", "True"},
    {"qk_l2norm=false", "False"},
    {"state_layout=kv", "'kv'"},
    {"state_layout=vk", "'vk'"},
    {"split_length", "segment_length"},
    {"split_length=none", "None"},
    {"split_into", "context_parallel"},
    {"split_into=none", "False"},
    {"state_interval", "save_for_backward"},
    {"state_interval=none", "\"inputs\""}};

static constexpr const char *gradientNames[] = {
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward) "d" operand,
#include "Manifest.inc"
};

void HopperCall::add(const char *name, const Array &array) {
  int32_t place = call.num_arrays++;
  arrays[place] = {name, nullptr};
  if (!array.isPresent())
    return;
  tensors[place] = {array.data, cpu::infoOf(array.element).dtype, array.rank,
                    array.sizes.data(), array.strides.data()};
  arrays[place].tensor = &tensors[place];
}

HopperCall::HopperCall(const Problem &p) {
  using namespace manifest;
  bool isBackward = p.kind == Kind::Backward;
  bool saves = p.kind == Kind::Saving || (isBackward && p.savesStates);
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward)                \
  add(isBackward ? ofBackward : operand, p.field);
#include "Manifest.inc"
  for (int i = 0; p.gradients && i < cpu::kNumGradients; ++i)
    add(gradientNames[i], *arraysOf(*p.gradients)[i]);
  if (saves) {
    add("writes", p.writes);
    add("states", p.states);
  }
  static const std::string savedTokens = std::to_string(HopperSavedTokens);
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
  if (saves)
    addFact("state_interval", savedTokens.c_str());
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
  // Those that states have memory for (_torch_saved.py).
  if (saves)
    call.saved_segments = std::min<int64_t>(
        p.tokens() / HopperSavedSegmentTokens,
        HopperSavedItems / std::max<int64_t>(p.valueHeads(), 1));
  call.words = words;
  call.num_words = std::size(words);
}

void HopperCall::inventAddresses(bool isPool) {
  // Views of one unknown buffer have its offsets as addresses, and stay as far
  // apart. Where outputs lie nobody knows, so they are no inputs.
  constexpr uintptr_t kBase = uintptr_t(1) << 40, kOutputs = kBase << 1;
  auto isUnknown = [](const GdnCallArray &array) {
    return array.tensor && !array.tensor->data;
  };
  const int count = call.num_arrays;
  if (std::none_of(arrays, arrays + count, isUnknown))
    return;
  for (int i = 0; i < count; ++i) {
    if (!arrays[i].tensor)
      continue;
    std::string_view name = arrays[i].name;
    bool isOutput = i >= cpu::kNumArrays || name == "o" ||
                    (name == "final_state" && !isPool);
    auto address = reinterpret_cast<uintptr_t>(tensors[i].data);
    bool isFar = isOutput && address == 0;
    tensors[i].data = reinterpret_cast<void *>(
        address + (isFar ? kOutputs + i * kBase : kBase));
  }
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
  throw cpu::Error{!isServed    ? "NotImplementedError"
                   : isArgument ? "ValueError"
                                : "RuntimeError",
                   std::string(isOfCall ? "" : "gdn: ") +
                       gdnGetLastErrorMessage()};
}

namespace {
/// An allocator with what it gave, and why it did not.
struct Memory {
  const Allocate &allocate;
  Workspace workspace;
  std::exception_ptr failure;
};
} // namespace

static GdnRuntimeStatus allocateFor(void *user, int32_t device, uint64_t bytes,
                                    void *stream, void **data) {
  auto *memory = static_cast<Memory *>(user);
  try {
    memory->workspace = memory->allocate(device, stream, bytes);
  } catch (...) {
    memory->failure = std::current_exception();
    return GDN_ERROR_OUT_OF_MEMORY;
  }
  *data = memory->workspace.get();
  return GDN_SUCCESS;
}

void HopperCall::run(const GdnCallPlan *known, void *stream,
                     const Allocate &allocate) const {
  GdnCallPlan plan;
  if (!known)
    require(gdnCallPlan(&allFunctions(), &call, &plan), /*isPlan=*/true);
  Memory memory = {allocate, {}, {}};
  GdnRuntimeStatus status =
      gdnCallRun(known ? known : &plan, &call, allocateFor, &memory, stream);
  if (memory.failure)
    std::rethrow_exception(memory.failure);
  require(status);
}

bool HopperCall::predictSaving(bool hasSegments) const {
  int32_t pays = 0;
  require(gdnCallSavingPays(&call, hasSegments, &pays));
  return pays;
}

std::string HopperCall::describe(bool isPool) {
  inventAddresses(isPool);
  std::string facts;
  auto write = [&](size_t size) {
    facts.resize(size);
    require(gdnCallDescribe(&allFunctions(), &call, facts.data(), size, &size),
            /*isPlan=*/true);
    return size;
  };
  write(write(0));
  // It ends with 0.
  facts.pop_back();
  return facts;
}

/// A dense array at no address.
static Array makeDense(Array array) {
  array.data = nullptr;
  int64_t stride = 1;
  for (int i = array.rank - 1; i >= 0; --i) {
    array.strides[i] = stride;
    stride *= array.sizes[i];
  }
  return array;
}

/// A backward, and the forward that saves for it, whose outputs nobody has
/// allocated.
static std::string describeBackward(Problem p) {
  Arrays gradients;
  for (int i = 0; i < cpu::kNumGradients; ++i)
    *arraysOf(gradients)[i] = makeDense(*arraysOf<Arrays>(p)[i]);
  p.gradients = &gradients;
  p.writes = p.states = gradients.v;
  // There may be a state behind each token.
  p.states.sizes = {p.tokens() + p.sequences(), p.valueHeads(),
                    p.valueChannels(), p.keyChannels()};
  p.states = makeDense(p.states);
  std::string facts = HopperCall(p).describe(/*isPool=*/false);
  p.kind = Kind::Saving;
  p.gradients = nullptr;
  std::string forward =
      p.savesStates ? HopperCall(p).describe(/*isPool=*/false) : "null";
  // The last character ends the object.
  facts.pop_back();
  return facts + ", \"forward\": " + forward + "}";
}

std::string gdn::hopper::describe(const Problem &p) {
  if (p.kind == Kind::Backward)
    return describeBackward(p);
  bool isPool = p.hasPool() && p.initialState.isSameView(p.finalState);
  return HopperCall(p).describe(isPool);
}
