//===- HopperCall.cpp - Forwards on a Hopper GPU --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperArguments.h"

#include <algorithm>
#include <iterator>

using namespace gdn::hopper;
using gdn::cpu::Array;

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

// The build writes a line an entry and one for each function that copies.
#define GDN_ENTRY(name) extern "C" const GdnEntryDesc name##_entry;
#define GDN_COPY(name, ...) extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_ENTRY
#undef GDN_COPY

// The last row keeps each table from being empty.
static const GdnEntryDesc *const entries[] = {
#define GDN_ENTRY(name) &name##_entry,
#define GDN_COPY(...)
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_ENTRY
#undef GDN_COPY
    nullptr};
static const GdnCopyDesc copies[] = {
#define GDN_ENTRY(...)
#define GDN_COPY(name, isTransposed, bits)                                     \
  {isTransposed, bits, &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
    {}};

const GdnCallTable &gdn::hopper::allFunctions() {
  static void *index = nullptr;
  static const GdnCallTable table = {sizeof(GdnCallTable),
                                     std::size(entries) - 1,
                                     std::size(copies) - 1,
                                     entries,
                                     copies,
                                     &index};
  return table;
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

/// What Python calls arrays, facts and their values.
static constexpr GdnFact words[] = {
#define GDN_HOPPER_ARGUMENT(field, operand, name) {operand, name},
#define GDN_GATE_DOMAIN(key, name, formula, hasParameters, fact)               \
  {"gate_domain=" fact, name},
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) {"beta_domain=" fact, name},
#include "Manifest.inc"
    {"qk_l2norm", "use_qk_l2norm_in_kernel"},
    {"qk_l2norm=true", "True"},
    {"qk_l2norm=false", "False"},
    {"state_layout=kv", "'kv'"},
    {"state_layout=vk", "'vk'"},
    {"split_length", "segment_length"},
    {"split_length=none", "None"},
    {"split_into", "context_parallel"},
    {"split_into=none", "False"}};

static constexpr const char *gateFacts[] = {
#define GDN_GATE_DOMAIN(key, name, formula, hasParameters, fact) fact,
#include "Manifest.inc"
};
static constexpr const char *betaFacts[] = {
#define GDN_BETA_DOMAIN(key, name, sigmoid, fact) fact,
#include "Manifest.inc"
};

namespace {
/// A problem as the library of calls takes it. The problem outlives it.
class HopperCall {
public:
  explicit HopperCall(const Problem &problem);
  HopperCall(const HopperCall &) = delete;
  HopperCall &operator=(const HopperCall &) = delete;

  /// Gives arrays whose addresses nobody knows those of allocations, none of
  /// which is read.
  void inventAddresses();
  const GdnCall *get() const { return &call; }

private:
  static constexpr int kNumArrays = 0
#define GDN_HOPPER_ARGUMENT(...) +1
#include "Manifest.inc"
      ;
  static constexpr int kNumInputs = kNumArrays - gdn::manifest::HopperResults;
  GdnTensor tensors[kNumArrays] = {};
  GdnCallArray arrays[kNumArrays];
  GdnFact facts[4];
  GdnCall call = {};
};
} // namespace

HopperCall::HopperCall(const Problem &p) {
  int count = 0;
  auto add = [&](const char *name, const Array &array) {
    arrays[count] = {name, nullptr};
    if (array.isPresent()) {
      tensors[count] = {array.data, dtypeOf(array.element), array.rank,
                        array.sizes.data(), array.strides.data()};
      arrays[count].tensor = &tensors[count];
    }
    ++count;
  };
#define GDN_HOPPER_ARGUMENT(field, operand, name) add(operand, p.field);
#include "Manifest.inc"
  facts[0] = {"op", p.recurrent ? "gdn.recurrent_gated_delta_rule"
                                : "gdn.chunk_gated_delta_rule"};
  facts[1] = {"gate_domain", gateFacts[static_cast<int>(p.gateDomain)]};
  facts[2] = {"beta_domain", betaFacts[static_cast<int>(p.betaDomain)]};
  facts[3] = {"qk_l2norm", p.l2norm ? "true" : "false"};
  call.struct_size = sizeof(GdnCall);
  call.device = p.device.index;
  call.num_facts = std::size(facts);
  call.num_arrays = kNumArrays;
  call.facts = facts;
  call.arrays = arrays;
  call.state_layout = p.stateVFirst ? "vk" : "kv";
  call.split = static_cast<int32_t>(p.split.kind);
  call.is_undecayed = !p.split.decays;
  call.split_value = p.split.value;
  call.scale = p.scale;
  call.longest = p.maxSeqlen;
  call.words = words;
  call.num_words = std::size(words);
}

void HopperCall::inventAddresses() {
  // Views of one unknown buffer have its offsets as addresses, and stay as far
  // apart. Where outputs lie nobody knows, so they are no inputs.
  constexpr uintptr_t kBase = uintptr_t(1) << 40, kOutputs = kBase << 1;
  auto isUnknown = [](const GdnCallArray &array) {
    return array.tensor && !array.tensor->data;
  };
  if (std::none_of(arrays, arrays + kNumArrays, isUnknown))
    return;
  for (int i = 0; i < kNumArrays; ++i) {
    uintptr_t address = reinterpret_cast<uintptr_t>(tensors[i].data);
    bool isOutput = i >= kNumInputs && address == 0;
    tensors[i].data = reinterpret_cast<void *>(
        address + (isOutput ? kOutputs + i * kBase : kBase));
  }
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
// Calls alike
//===----------------------------------------------------------------------===//

namespace {
/// A call that has been checked, with what it runs.
struct KnownCall {
  Problem problem;
  GdnCallPlan plan;
};

/// The last few of a thread: the layers of a model make calls alike, and its
/// next step differs in the number of tokens or sequences.
struct KnownCalls {
  static constexpr int size = 8;

  KnownCall list[size];
  int oldest = 0;
};
} // namespace

static thread_local KnownCalls knownCalls;

/// Addresses may decide by how far they are aligned, and by nothing else.
static uintptr_t alignmentOf(const Array &array) {
  return reinterpret_cast<uintptr_t>(array.data) % 16;
}

static bool areAlike(const Array &a, const Array &b) {
  const gdn::cpu::ArrayType &left = a, &right = b;
  return left == right && alignmentOf(a) == alignmentOf(b);
}

static bool areAlike(const Problem &a, const Problem &b) {
  const gdn::cpu::Options &left = a, &right = b;
  return left == right && a.device == b.device
#define GDN_ARRAY(field, name) &&areAlike(a.field, b.field)
#include "Manifest.inc"
      ;
}

const GdnCallPlan *gdn::hopper::recallPlan(const Problem &problem) {
  for (const KnownCall &call : knownCalls.list)
    if (call.plan.variant && areAlike(call.problem, problem))
      return &call.plan;
  return nullptr;
}

static const GdnCallPlan &rememberPlan(const Problem &problem,
                                       const GdnCallPlan &plan) {
  KnownCall &call = knownCalls.list[knownCalls.oldest];
  call = {problem, plan};
  knownCalls.oldest = (knownCalls.oldest + 1) % KnownCalls::size;
  return call.plan;
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

Error gdn::hopper::run(const Problem &problem, const GdnCallPlan *known,
                       void *stream, Allocate allocate) {
  HopperCall call(problem);
  if (!known) {
    GdnCallPlan plan;
    if (Error error =
            refusalOf(gdnCallPlan(&allFunctions(), call.get(), &plan)))
      return error;
    known = &rememberPlan(problem, plan);
  }
  Memory memory = {allocate, {}, {}};
  GdnRuntimeStatus status =
      gdnCallRun(known, call.get(), allocateFor, &memory, stream);
  return memory.error ? memory.error : errorOf(status);
}

Error gdn::hopper::describe(const Problem &problem, std::string &facts) {
  HopperCall call(problem);
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
