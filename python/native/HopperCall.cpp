//===- HopperCall.cpp - Forwards on a Hopper GPU --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperCall.h"

#include "Check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

using namespace gdn::hopper;
using gdn::cpu::Array;
namespace cpu = gdn::cpu;

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

// The build writes a line an entry and one for each conversion.
#define GDN_ENTRY(name) extern "C" const GdnEntryDesc name##_entry;
#define GDN_CONVERSION(name, ...)                                              \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_ENTRY
#undef GDN_CONVERSION

// The last row keeps each table from being empty.
static const GdnEntryDesc *const entries[] = {
#define GDN_ENTRY(name) &name##_entry,
#define GDN_CONVERSION(...)
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_ENTRY
#undef GDN_CONVERSION
    nullptr};
static const GdnConversionDesc conversions[] = {
#define GDN_ENTRY(...)
#define GDN_CONVERSION(name, kind, from, to, factor)                           \
  {kind, from, to, factor, &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
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
#define GDN_HOPPER_ARGUMENT(field, operand, name) {operand, name},
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

static constexpr const char *betaFacts[] = {
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) fact,
#include "Manifest.inc"
};

static int32_t dtypeOf(Element element) {
  switch (element) {
#define GDN_TYPE(key, ...)                                                     \
  case Element::key:                                                           \
    return GDN_DTYPE_##key;
#include "Manifest.inc"
  case Element::Other:
    break;
  }
  return 0;
}

void HopperCall::add(const char *name, const Array &array) {
  int32_t place = call.num_arrays++;
  arrays[place] = {name, nullptr};
  if (!array.isPresent())
    return;
  tensors[place] = {array.data, dtypeOf(array.element), array.rank,
                    array.sizes.data(), array.strides.data()};
  arrays[place].tensor = &tensors[place];
}

void HopperCall::share(std::string_view name, std::string_view other) {
  auto find = [&](std::string_view wanted) {
    return std::find_if(
        arrays, arrays + call.num_arrays,
        [&](const GdnCallArray &array) { return wanted == array.name; });
  };
  find(other)->tensor = find(name)->tensor;
}

/// The name of an array in a backward: results of the forward are there as
/// their gradients.
static const char *nameInBackward(const char *name) {
  std::string_view forward = name;
  return forward == "o"             ? "d_o"
         : forward == "final_state" ? "d_final_state"
                                    : name;
}

HopperCall::HopperCall(const Problem &p, Kind kind) {
  bool isBackward = kind == Kind::Backward;
  call.arrays = arrays;
#define GDN_HOPPER_ARGUMENT(field, operand, name)                              \
  add(isBackward ? nameInBackward(operand) : operand, p.field);
#include "Manifest.inc"
  // A pool is one array, whose address nobody may know.
  if (p.hasPool() && cpu::isSameView(p.initialState, p.finalState))
    share("initial_state", "final_state");
  numInputs = call.num_arrays - (isBackward ? 0 : gdn::manifest::HopperResults);
  facts[0] = {"op", isBackward    ? "gdn.chunk_gated_delta_rule_bwd"
                    : p.recurrent ? "gdn.recurrent_gated_delta_rule"
                                  : "gdn.chunk_gated_delta_rule"};
  const gdn::cpu::GateDomainInfo &gate = infoOf(p.gateDomain);
  facts[1] = {"gate_domain", gate.fact};
  facts[2] = {"beta_domain", betaFacts[static_cast<int>(p.betaDomain)]};
  facts[3] = {"qk_l2norm", p.l2norm ? "true" : "false"};
  static const std::string savedTokens =
      std::to_string(gdn::manifest::HopperSavedTokens);
  facts[4] = {"lower_bound", gate.lowerBound};
  call.num_facts = gate.lowerBound ? 5 : 4;
  bool saves = kind == Kind::Saving || (isBackward && p.savesStates);
  if (saves)
    facts[call.num_facts++] = {"state_interval", savedTokens.c_str()};
  call.struct_size = sizeof(GdnCall);
  call.device = p.device.index;
  call.facts = facts;
  call.state_layout = p.stateVFirst ? "vk" : "kv";
  call.split = static_cast<int32_t>(p.split.kind);
  call.is_undecayed = !p.split.decays;
  call.split_value = p.split.value;
  // 0 would stand for K^(-1/2).
  call.scale = p.scale != 0 ? p.scale : std::numeric_limits<double>::min();
  call.longest = p.maxSeqlen;
  call.first_state = p.firstState;
  // Those that states have memory for (_torch_saved.py).
  using namespace gdn::manifest;
  if (saves)
    call.saved_segments = std::min<int64_t>(
        p.tokens() / HopperSavedSegmentTokens,
        HopperSavedItems / std::max<int64_t>(p.valueHeads(), 1));
  call.words = words;
  call.num_words = std::size(words);
}

void HopperCall::add(const gdn::cpu::Gradients &gradients) {
  add("dq", gradients.q);
  add("dk", gradients.k);
  add("dv", gradients.v);
  add("dbeta", gradients.beta);
  add("dgate", gradients.gate);
  add("dinitial_state", gradients.initialState);
  add("da_log", gradients.aLog);
  add("ddt_bias", gradients.dtBias);
}

void HopperCall::add(const Saved &saved) {
  add("writes", saved.writes);
  add("states", saved.states);
}

void HopperCall::inventAddresses() {
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
    uintptr_t address = reinterpret_cast<uintptr_t>(tensors[i].data);
    bool isOutput = i >= numInputs && address == 0;
    tensors[i].data = reinterpret_cast<void *>(
        address + (isOutput ? kOutputs + i * kBase : kBase));
  }
}

Error gdn::hopper::errorOf(GdnRuntimeStatus status) {
  if (status == GDN_SUCCESS)
    return {};
  bool isArgument = status == GDN_ERROR_INVALID_ARGUMENT;
  return {isArgument ? "ValueError" : "RuntimeError",
          std::string("gdn: ") + gdnGetLastErrorMessage()};
}

/// The exception of a call that is not planned.
static Error refusalOf(GdnRuntimeStatus status) {
  switch (status) {
  case GDN_SUCCESS:
    return {};
  case GDN_ERROR_NOT_SERVED:
    return {"NotImplementedError", gdnGetLastErrorMessage()};
  case GDN_ERROR_INVALID_ARGUMENT:
    return {"ValueError", gdnGetLastErrorMessage()};
  default:
    return errorOf(status);
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {
/// An allocator with what it gave, and why it did not.
struct Memory {
  Allocate allocate;
  std::unique_ptr<Workspace> workspace;
  Error error;
};
} // namespace

static GdnRuntimeStatus allocateFor(void *user, int32_t device, uint64_t bytes,
                                    void *stream, void **data) {
  auto *memory = static_cast<Memory *>(user);
  memory->error = memory->allocate(device, stream, bytes, memory->workspace);
  if (memory->error)
    return GDN_ERROR_OUT_OF_MEMORY;
  *data = memory->workspace->data;
  return GDN_SUCCESS;
}

Error gdn::hopper::run(const HopperCall &call, const GdnCallPlan *known,
                       void *stream, Allocate allocate) {
  GdnCallPlan plan;
  if (!known)
    if (Error error =
            refusalOf(gdnCallPlan(&allFunctions(), call.get(), &plan)))
      return error;
  Memory memory = {allocate, {}, {}};
  GdnRuntimeStatus status = gdnCallRun(known ? known : &plan, call.get(),
                                       allocateFor, &memory, stream);
  return memory.error ? memory.error : errorOf(status);
}

Error gdn::hopper::describe(HopperCall &call, std::string &facts) {
  call.inventAddresses();
  size_t size = 0;
  GdnRuntimeStatus status =
      gdnCallDescribe(&allFunctions(), call.get(), nullptr, 0, &size);
  if (Error error = refusalOf(status))
    return error;
  facts.resize(size);
  status =
      gdnCallDescribe(&allFunctions(), call.get(), facts.data(), size, &size);
  facts.resize(size - 1);
  return refusalOf(status);
}

Error gdn::hopper::describeForward(const Problem &problem, std::string &facts) {
  HopperCall call(problem, Kind::Forward);
  return describe(call, facts);
}
