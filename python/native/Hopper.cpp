//===- Hopper.cpp - Calls on a Hopper GPU ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::nameOf;
using gdn::cpu::sizeOf;
namespace cost = gdn::cost;

//===----------------------------------------------------------------------===//
// What a call asks for, and which kernels serve it
//===----------------------------------------------------------------------===//

static Element elementOf(const Array &array) {
  return array.isPresent() ? array.element : Element::Other;
}

static std::string typeName(Element element) {
  return element == Element::Other ? "None" : nameOf(element);
}

static Traits traitsOf(const Problem &p) {
  Traits traits = {};
  traits.element = p.q.element;
  traits.layout = p.cuSeqlens.isPresent() ? Layout::Packed : Layout::Fixed;
  traits.ends = p.initialState.isPresent() ? Ends::Both
                : p.finalState.isPresent() ? Ends::Final
                                           : Ends::None;
  // Without states there is nothing to lay out.
  bool hasStates = traits.ends != Ends::None;
  traits.stateLayout =
      hasStates && p.stateVFirst ? StateLayout::VK : StateLayout::KV;
  traits.state = p.initialState.isPresent() ? p.initialState.element
                 : p.finalState.isPresent() ? p.finalState.element
                                            : Element::F32;
  traits.gateDomain = p.gateDomain;
  traits.gate = elementOf(p.gate);
  traits.betaDomain = p.betaDomain;
  traits.beta = elementOf(p.beta);
  traits.norm = p.l2norm ? Norm::L2 : Norm::Plain;
  return traits;
}

namespace {
/// One thing that kernels differ in, in the words of Python.
struct Trait {
  const char *argument;
  std::string (*describe)(const Traits &);
};
} // namespace

/// In the order in which they are looked at: each message lists what there is
/// for a call that agrees in all that stands before.
static constexpr Trait allTraits[] = {
    {"q", [](const Traits &t) { return typeName(t.element); }},
    {"gate_domain",
     [](const Traits &t) -> std::string {
       constexpr const char *names[] = {"'log'", "'linear'", "'raw'"};
       return names[static_cast<int>(t.gateDomain)];
     }},
    {"g", [](const Traits &t) { return typeName(t.gate); }},
    {"beta",
     [](const Traits &t) -> std::string {
       constexpr const char *names[] = {"values", "logits (of the sigmoid)",
                                        "logits (of the doubled sigmoid)"};
       return names[static_cast<int>(t.betaDomain)];
     }},
    {"beta", [](const Traits &t) { return typeName(t.beta); }},
    {"use_qk_l2norm_in_kernel",
     [](const Traits &t) -> std::string {
       return t.norm == Norm::L2 ? "True" : "False";
     }},
    {"cu_seqlens",
     [](const Traits &t) -> std::string {
       return t.layout == Layout::Packed ? "a tensor" : "None";
     }},
    {"initial_state, final_state",
     [](const Traits &t) -> std::string {
       constexpr const char *names[] = {"neither", "a final state alone",
                                        "both"};
       return names[static_cast<int>(t.ends)];
     }},
    {"initial_state, final_state",
     [](const Traits &t) { return typeName(t.state); }},
    {"state_layout", [](const Traits &t) -> std::string {
       return t.stateLayout == StateLayout::VK ? "'vk'" : "'kv'";
     }}};

/// Says which trait no kernel has, with those that there are.
static Error explainMissing(const Traits &wanted) {
  auto agrees = [&](const Kernel &kernel, size_t count) {
    return std::all_of(allTraits, allTraits + count, [&](const Trait &trait) {
      return trait.describe(kernel.traits) == trait.describe(wanted);
    });
  };
  for (size_t i = 0; i < std::size(allTraits); ++i) {
    std::string known;
    bool found = false;
    for (const Kernel &kernel : allKernels()) {
      if (!agrees(kernel, i))
        continue;
      std::string text = allTraits[i].describe(kernel.traits);
      found |= text == allTraits[i].describe(wanted);
      if ((" or " + known + " or ").find(" or " + text + " or ") ==
          std::string::npos)
        known += (known.empty() ? "" : " or ") + text;
    }
    if (!found)
      return {"NotImplementedError", std::string(allTraits[i].argument) +
                                         ": expected " + known +
                                         " on a GPU in this version, got " +
                                         allTraits[i].describe(wanted)};
  }
  return {"RuntimeError", "gdn: expected a GPU kernel, got none"};
}

static const Kernel *findKernel(const Traits &traits, Schedule schedule) {
  for (const Kernel &kernel : allKernels())
    if (kernel.schedule == schedule && kernel.traits == traits)
      return &kernel;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// What the kernels' arithmetic relies on.
static Error checkSizes(const Problem &p) {
  if (p.keyChannels() != kChannels || p.valueChannels() != kChannels)
    return {"NotImplementedError",
            "q, v: expected K = V = " + std::to_string(kChannels) +
                " on a GPU in this version, got K = " +
                std::to_string(p.keyChannels()) +
                " and V = " + std::to_string(p.valueChannels())};
  if (p.tokens() > INT32_MAX)
    return {"ValueError", "q: expected T of at most 2^31 - 1 on a GPU, got " +
                              std::to_string(p.tokens())};
  double scale = p.scale * std::sqrt(static_cast<double>(kChannels));
  if (std::abs(scale - 1) > 1e-6)
    return {"NotImplementedError",
            "scale: expected K^(-1/2) on a GPU in this version, got " +
                std::to_string(p.scale)};
  for (auto [name, gate] : {std::pair("g", &p.gate), {"beta", &p.beta}})
    if (gate->isPresent() && gate->sizes[2] > 1 && gate->strides[2] != 1)
      return {
          "ValueError",
          std::string(name) +
              ": expected a contiguous last dimension on a GPU, got stride " +
              std::to_string(gate->strides[2])};
  for (auto [name, parameter] :
       {std::pair("A_log", &p.aLog), {"dt_bias", &p.dtBias}})
    if (p.gateDomain == GateDomain::Raw &&
        elementOf(*parameter) != Element::F32)
      return {"NotImplementedError",
              std::string(name) +
                  ": expected float32 with a raw gate on a GPU, got " +
                  typeName(elementOf(*parameter))};
  if (p.initialState.isPresent() && !p.finalState.isPresent())
    return {"ValueError", "final_state: expected a tensor with initial_state "
                          "on a GPU, got None"};
  if (p.initialState.isPresent() &&
      p.initialState.element != p.finalState.element)
    return {"NotImplementedError",
            std::string("final_state: expected ") +
                nameOf(p.initialState.element) +
                " as initial_state is, on a GPU in this version, got " +
                nameOf(p.finalState.element)};
  return {};
}

Error gdn::hopper::chooseKernel(const Problem &p, KernelChoice &chosen) {
  if (Error error = checkSizes(p))
    return error;
  Traits traits = traitsOf(p);
  if (!findKernel(traits, Schedule::CtaPerHead) ||
      !findKernel(traits, Schedule::CtaPerVTile))
    return explainMissing(traits);
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (gdnDeviceGetInfo(p.device.index, &info) != GDN_SUCCESS)
    return {"RuntimeError", std::string("gdn: ") + gdnGetLastErrorMessage()};
  chosen.multiprocessors = std::max(info.multiprocessors, 1);
  chosen.items = p.sequences() * p.valueHeads();
  chosen.choice =
      cost::choose(cpu::describe(p), cost::getHopper(chosen.multiprocessors));
  chosen.kernel = findKernel(traits, chosen.choice.schedule);
  return {};
}

/// The schedules that lost, each with the reason, as JSON.
static std::string alternativesOf(const cost::Choice &choice) {
  std::string text;
  for (const cost::Estimate &estimate : choice.estimates)
    if (estimate.schedule != choice.schedule)
      text += std::string(text.empty() ? "" : ", ") + "[\"" +
              cost::costsOf(estimate.schedule).name + "\", \"" +
              choice.whyNot(estimate) + "\"]";
  return "[" + text + "]";
}

std::string gdn::hopper::toJson(const Problem &p, const KernelChoice &chosen) {
  const cost::Choice &choice = chosen.choice;
  char text[1024];
  std::snprintf(
      text, sizeof(text),
      "{\"device\": \"%s\", \"kernel\": \"%s\", \"algorithm\": \"chunk\", "
      "\"isa\": \"sm_90a\", \"kernel_channels\": %lld, \"padded\": false, "
      "\"chunk_size\": %lld, \"items\": %lld, \"threads\": 0, "
      "\"schedule\": \"%s\", \"ctas\": %lld, \"multiprocessors\": %lld, "
      "\"sequences\": %lld, \"flop\": %.0f, \"bytes\": %.0f, "
      "\"workspace_bytes\": 0, \"seconds\": %.9g, \"floor_seconds\": %.9g, "
      "\"longest\": %lld, \"knows_longest\": %s, \"alternatives\": ",
      nameOf(p.device).c_str(), chosen.kernel->name,
      static_cast<long long>(kChannels), static_cast<long long>(kChunkTokens),
      static_cast<long long>(chosen.items), cost::costsOf(choice.schedule).name,
      static_cast<long long>(choice.chosen().ctas),
      static_cast<long long>(chosen.multiprocessors),
      static_cast<long long>(p.sequences()), choice.flop, choice.bytes,
      choice.chosen().seconds, choice.floorSeconds,
      static_cast<long long>(choice.longest),
      choice.knowsLongest ? "true" : "false");
  return text + alternativesOf(choice) + "}";
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

static int32_t dtypeOf(Element element) {
  switch (element) {
  case Element::BF16:
    return GDN_DTYPE_BF16;
  case Element::F16:
    return GDN_DTYPE_F16;
  case Element::F32:
    return GDN_DTYPE_F32;
  case Element::I32:
    return GDN_DTYPE_I32;
  case Element::I64:
    return GDN_DTYPE_I64;
  case Element::Other:
    break;
  }
  return 0;
}

/// The exception that a status of the runtime becomes.
static Error errorOf(GdnRuntimeStatus status) {
  if (status == GDN_SUCCESS)
    return {};
  bool isArgument = status == GDN_ERROR_INVALID_ARGUMENT;
  return {isArgument ? "ValueError" : "RuntimeError",
          std::string("gdn: ") + gdnGetLastErrorMessage()};
}

namespace {
/// The arguments of a launch: arrays that are there, in the kernel's order.
class Arguments {
public:
  explicit Arguments(const Problem &p) {
    for (const Array *array :
         {&p.q, &p.k, &p.v, &p.beta, &p.gate, &p.initialState})
      add(*array);
    addBoundaries(p.cuSeqlens);
    for (const Array *array : {&p.aLog, &p.dtBias, &p.o, &p.finalState})
      add(*array);
  }
  Arguments(const Arguments &) = delete;

  const GdnArg *data() const { return args; }
  int32_t size() const { return count; }

private:
  static constexpr int kMaxCount = 11;

  void add(const Array &array) {
    if (!array.isPresent())
      return;
    tensors[count] = {array.data, dtypeOf(array.element), array.rank,
                      array.sizes.data(), array.strides.data()};
    args[count].kind = GDN_ARG_TENSOR;
    args[count].value.tensor = &tensors[count];
    ++count;
  }

  /// Boundaries of 64 bits are their lower halves, with a stride of 2.
  void addBoundaries(const Array &array) {
    boundaries = array;
    if (array.element == Element::I64) {
      boundaries.element = Element::I32;
      boundaries.strides[0] *= 2;
    }
    add(boundaries);
  }

  Array boundaries;
  GdnTensor tensors[kMaxCount];
  GdnArg args[kMaxCount];
  int32_t count = 0;
};
} // namespace

Error gdn::hopper::checkLaunch(const Problem &p, const KernelChoice &chosen) {
  Arguments arguments(p);
  return errorOf(gdnFunctionCheck(chosen.kernel->function, arguments.data(),
                                  arguments.size()));
}

/// Makes the kernel ready on the device, on its first call there.
static Error prepare(const Kernel &kernel, int32_t device) {
  // A bit for each device that is ready; the runtime knows up to 64.
  static const auto ready =
      std::make_unique<std::atomic<uint64_t>[]>(allKernels().size());
  std::atomic<uint64_t> &devices = ready[&kernel - allKernels().data()];
  uint64_t bit = uint64_t(1) << device;
  if (devices.load(std::memory_order_acquire) & bit)
    return {};
  if (Error error = errorOf(gdnFunctionPrepare(kernel.function, device)))
    return error;
  devices.fetch_or(bit, std::memory_order_release);
  return {};
}

Error gdn::hopper::run(const Problem &p, const KernelChoice &chosen,
                       void *stream) {
  if (Error error = prepare(*chosen.kernel, p.device.index))
    return error;
  Arguments arguments(p);
  return errorOf(gdnFunctionLaunchOn(chosen.kernel->function, p.device.index,
                                     arguments.data(), arguments.size(),
                                     /*workspace=*/nullptr,
                                     /*workspace_bytes=*/0, stream));
}
