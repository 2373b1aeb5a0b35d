//===- Calls.cpp - Calls for the library of calls -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Request.h"

#include <algorithm>
#include <iterator>

using namespace gdn;
using namespace gdn::native;

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void Array::makeDense() {
  int64_t stride = 1;
  for (int i = std::min(rank, kMaxRank) - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= sizes[i];
  }
}

bool Array::isSameView(const Array &other) const {
  bool same =
      data == other.data && dtype == other.dtype && sizes == other.sizes;
  // Nothing steps along an extent of 1, so its stride says nothing.
  for (int i = 0; i < rank && same; ++i)
    same = sizes[i] == 1 || strides[i] == other.strides[i];
  return same;
}

const char *Request::nameOf(int place) const {
  static constexpr const char *names[][2] = {
#define GDN_ARRAY(field, name, inBackward, ...) {name, inBackward},
#include "Manifest.inc"
  };
  if (keepsEvery() && place == At::stepStates)
    return "state_checkpoints";
  if (keepsEvery() && place == At::stepIndices)
    return "checkpoint_state_indices";
  if (place >= At::writes)
    return "saved";
  return names[place % At::gradients][kind == Kind::Backward];
}

void gdn::native::fail(const std::string &name, const std::string &rule,
                       const std::string &got, const char *kind) {
  throw Error{kind, name + ": expected " + rule + ", got " + got};
}

std::string gdn::native::nameOf(Device device) {
  if (device.type == Device::CPU)
    return "cpu";
  std::string kind = device.type == Device::CUDA ? "cuda:" : "another device:";
  return kind + std::to_string(device.index);
}

void gdn::native::settleSteps(Request &p) {
  Array &rows = p[At::stateIndices], &steps = p[At::stepIndices],
        &last = p[At::finalState];
  if (rows.rank == 2 && !steps.isPresent()) {
    steps = rows;
    rows.rank = 1;
  }
  if (!steps.isPresent() || p[At::stepStates].isPresent())
    return;
  if (!last.isPresent() || !p[At::initialState].isSameView(last))
    fail("final_state",
         "initial_state, the pool, which keeps the states after tokens",
         last.isPresent() ? "another tensor" : "None");
  p[At::stepStates] = last;
  if (!p.keepsEvery())
    last = {};
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

// The build writes a line an entry, one for each conversion, and for CPUs one
// for each function and for each row of functions.
#define GDN_ENTRY(name) extern "C" const GdnEntryDesc name##_entry;
#define GDN_CONVERSION(name, ...)                                              \
  extern "C" const GdnFunctionDesc name##_function;
#include "HopperKernels.inc"
#define GDN_KERNEL(name) extern "C" void name();
#include "Kernels.inc"

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
static const GdnItemDesc items[] = {
#define GDN_ITEMS(...) {__VA_ARGS__},
#include "Kernels.inc"
    {}};

const GdnCallTable &gdn::native::allFunctions() {
  static void *index = nullptr;
  static const GdnCallTable table = {sizeof(GdnCallTable),
                                     std::size(entries) - 1,
                                     std::size(conversions) - 1,
                                     entries,
                                     conversions,
                                     &index,
                                     items,
                                     std::size(items) - 1};
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
    {keepsEvery ? "step_indices" : "", "checkpoint_state_indices"},
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward)                \
  {operand, name}, {"d" operand, "gradient of " name},
#define GDN_GATE_DOMAIN(key, name, fact, bound) {"gate_domain=" fact, name},
#define GDN_BETA_DOMAIN(key, name, fact) {"beta_domain=" fact, name},
#define GDN_WORD(fact, word) {fact, word},
#include "Manifest.inc"
};

static GdnTensor tensorOf(const Array &array) {
  return {array.data, array.dtype, array.rank, array.sizes.data(),
          array.strides.data()};
}

/// Tokens between saved states, by whether gates decay channels.
static constexpr const char *savedTokens[] = {
#define GDN_DECAY(key, tokens) #tokens,
#include "Manifest.inc"
};

/// What functions call arrays: of forwards, of backwards, and gradients.
static constexpr const char *operands[][3] = {
#define GDN_ARRAY(field, name, inBackward, operand, ofBackward)                \
  {operand, ofBackward, "d" operand},
#include "Manifest.inc"
};

namespace {
/// A request as the library of calls takes it. The request outlives it.
class PreparedCall {
public:
  explicit PreparedCall(const Request &request);
  PreparedCall(const PreparedCall &) = delete;
  PreparedCall &operator=(const PreparedCall &) = delete;

  GdnCall call = {};

private:
  void add(const char *name, const Array &array);

  GdnTensor tensors[At::end];
  GdnCallArray arrays[At::end];
  GdnFact facts[7];
};
} // namespace

void PreparedCall::add(const char *name, const Array &array) {
  GdnTensor &tensor = tensors[call.num_arrays];
  tensor = tensorOf(array);
  arrays[call.num_arrays++] = {name, array.isPresent() ? &tensor : nullptr};
}

PreparedCall::PreparedCall(const Request &p) {
  using namespace manifest;
  if (!p.isOnCPU() && p.device.type != Device::CUDA)
    fail("q", "a tensor on a CPU or a CUDA device",
         "one on " + nameOf(p.device));
  bool isBackward = p.kind == Kind::Backward;
  for (int place = 0; place < At::gradients; ++place)
    add(operands[place][isBackward], p[place]);
  for (int i = 0; isBackward && i < Gradients; ++i)
    add(operands[i][2], p[At::gradients + i]);
  auto addFact = [this](const char *name, const char *value) {
    facts[call.num_facts++] = {name, value};
  };
  addFact("op", isBackward    ? "gdn.chunk_gated_delta_rule_bwd"
                : p.recurrent ? "gdn.recurrent_gated_delta_rule"
                              : "gdn.chunk_gated_delta_rule");
  addFact("gate_domain", p.gateForm().fact);
  addFact("beta_domain", allBetaDomains[p.betaDomain]);
  addFact("qk_l2norm", p.l2norm ? "true" : "false");
  if (p.gateForm().lowerBound)
    addFact("lower_bound", p.gateForm().lowerBound);
  if (p.float32Arithmetic)
    addFact("arithmetic", "float32");
  call.struct_size = sizeof(GdnCall);
  call.device = p.isOnCPU() ? GDN_DEVICE_CPU : p.device.index;
  call.threads = p.threads;
  call.facts = facts;
  call.arrays = arrays;
  call.state_layout = p.stateVFirst ? "vk" : "kv";
  call.split = p.split;
  call.is_undecayed = p.undecayed;
  call.split_value = p.splitBy;
  call.scale = p.scale;
  call.longest = p.maxSeqlen;
  call.first_state = p.firstState;
  if (p.kind == Kind::Saving || (isBackward && p.savesStates)) {
    add("writes", p[At::writes]);
    add("states", p[At::states]);
    addFact("state_interval", savedTokens[p[At::gate].rank == kMaxRank]);
    // Those that states have memory for (_torch_saved.py).
    call.saved_segments = std::min<int64_t>(
        p[At::q].sizes[1] / HopperSavedSegmentTokens,
        HopperSavedItems / std::max<int64_t>(p[At::v].sizes[2], 1));
  }
  call.words = p.keepsEvery() ? words<true> : words<false>;
  call.num_words = std::size(words<true>);
}

//===----------------------------------------------------------------------===//
// Launches and descriptions
//===----------------------------------------------------------------------===//

/// Throws unless a function of the library succeeded. What is wrong with a call
/// is in Python's words.
static void require(GdnRuntimeStatus status) {
  const char *kind = nullptr, *prefix = "";
  switch (status) {
  case GDN_SUCCESS:
    return;
  case GDN_ERROR_NOT_SERVED:
    kind = "NotImplementedError";
    break;
  case GDN_ERROR_INVALID_TYPE:
    kind = "TypeError";
    break;
  case GDN_ERROR_INVALID_ARGUMENT:
    kind = "ValueError";
    break;
  default:
    kind = status == GDN_ERROR_OUT_OF_MEMORY ? "MemoryError" : "RuntimeError";
    prefix = "gdn: ";
  }
  throw Error{kind, std::string(prefix) + gdnGetLastErrorMessage()};
}

void gdn::native::run(const Request &p, void *stream, GdnAllocate allocate,
                      void *user) {
  const PreparedCall call(p);
  require(gdnCallExecute(&allFunctions(), &call.call, allocate, user, stream));
}

void gdn::native::checkValues(const Array &boundaries, const Array &rows,
                              int64_t tokens, int64_t first, int64_t count) {
  const GdnTensor lists[] = {tensorOf(boundaries), tensorOf(rows)};
  require(gdnCallCheckValues(boundaries.isPresent() ? &lists[0] : nullptr,
                             rows.isPresent() ? &lists[1] : nullptr, tokens,
                             first, count));
}

bool gdn::native::predictSaving(const Request &p, bool hasSegments) {
  const PreparedCall call(p);
  int32_t pays = 0;
  require(gdnCallSavingPays(&call.call, hasSegments, &pays));
  return pays;
}

std::string gdn::native::describe(Request p) {
  // Dense ones, with a state behind each token at the most.
  std::copy_n(p.arrays.begin(), manifest::Gradients, &p[At::gradients]);
  p[At::writes] = p[At::states] = p[At::v];
  const auto &q = p[At::q].sizes, &v = p[At::v].sizes;
  const Array &boundaries = p[At::cuSeqlens];
  int64_t sequences = boundaries.isPresent() ? boundaries.sizes[0] - 1 : q[0];
  p[At::states].sizes = {q[1] + sequences, v[2], v[3], q[3]};
  for (int place = At::gradients; place < At::end; ++place) {
    p[place].data = nullptr;
    p[place].makeDense();
  }
  const PreparedCall call(p);
  std::string facts;
  auto write = [&](size_t size) {
    facts.resize(size);
    require(gdnCallDescribe(&allFunctions(), &call.call, facts.data(), size,
                            &size));
    return size;
  };
  write(write(0));
  // It ends with 0.
  facts.pop_back();
  return facts;
}
