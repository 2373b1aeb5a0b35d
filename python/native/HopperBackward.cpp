//===- HopperBackward.cpp - The gradients of a call on a GPU --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperBackward.h"

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include "gdn/CostModel/BackwardSegments.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::Gradients;
using gdn::cpu::nameOf;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

#define GDN_HOPPER_BACKWARD(name, ...)                                         \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperBackwardKernels.inc"
#endif
#undef GDN_HOPPER_BACKWARD

// The last entry keeps the table from being empty.
static const BackwardKernel table[] = {
#define GDN_HOPPER_BACKWARD(name, keyChannels, valueChannels, element,         \
                            gateDomain, gate, betaDomain, beta, norm,          \
                            schedule, inSegments, readsSaved)                  \
  {#name,                                                                      \
   keyChannels,                                                                \
   valueChannels,                                                              \
   Element::element,                                                           \
   GateDomain::gateDomain,                                                     \
   Element::gate,                                                              \
   BetaDomain::betaDomain,                                                     \
   Element::beta,                                                              \
   Norm::norm,                                                                 \
   Schedule::schedule,                                                         \
   inSegments,                                                                 \
   readsSaved,                                                                 \
   &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperBackwardKernels.inc"
#endif
#undef GDN_HOPPER_BACKWARD
    {}};

std::span<const BackwardKernel> gdn::hopper::allBackwardKernels() {
  return std::span(table).first(std::size(table) - 1);
}

//===----------------------------------------------------------------------===//
// What a call must be
//===----------------------------------------------------------------------===//

/// Gates, beta and norms as a kernel takes them.
static bool hasForm(const BackwardKernel &kernel, const Problem &p) {
  bool hasNorm = kernel.norm == Norm::L2;
  return kernel.gateDomain == p.gateDomain && kernel.gate == p.gate.element &&
         kernel.betaDomain == p.betaDomain && kernel.beta == p.beta.element &&
         hasNorm == p.l2norm;
}

/// Whether a kernel is of these channels and types.
static bool hasRow(const BackwardKernel &kernel, const Problem &p) {
  return kernel.keyChannels == p.keyChannels() &&
         kernel.valueChannels == p.valueChannels() &&
         kernel.element == p.q.element;
}

/// The kernel of whole sequences, or of segments; null if there is none. Not
/// all forms have one of each schedule.
static const BackwardKernel *
findKernel(const Problem &p, bool inSegments,
           Schedule schedule = Schedule::CtaPerVTile) {
  const BackwardKernel *found = nullptr;
  for (const BackwardKernel &kernel : allBackwardKernels())
    if (kernel.inSegments == inSegments && kernel.readsSaved == p.savesStates &&
        hasRow(kernel, p) && hasForm(kernel, p) &&
        (!found || kernel.schedule == schedule))
      found = &kernel;
  return found;
}

static Error explainMissing(const Problem &p) {
  if (p.savesStates)
    return {
        "NotImplementedError",
        "save_for_backward: expected a form whose gradients can read states "
        "in this version, got another call; pass \"inputs\""};
  for (const BackwardKernel &kernel : allBackwardKernels())
    if (hasRow(kernel, p))
      return {"NotImplementedError",
              "g, beta, use_qk_l2norm_in_kernel: expected a form that this "
              "version has gradients of on a GPU, got " +
                  std::string(infoOf(p.gateDomain).name) + " gates in " +
                  nameOf(p.gate.element) + ", " + infoOf(p.betaDomain).name +
                  " in " + nameOf(p.beta.element) + " and " +
                  (p.l2norm ? "True" : "False")};
  return {"NotImplementedError",
          "q, v: expected bfloat16 or float16 with K = V = 64 or 128 for "
          "gradients on a GPU in this version, got " +
              std::string(nameOf(p.q.element)) +
              " with K = " + std::to_string(p.keyChannels()) +
              " and V = " + std::to_string(p.valueChannels())};
}

namespace {
/// What the gradients of a call run.
struct BackwardPlan {
  const BackwardKernel *kernel = nullptr;
  /// Tokens of a segment; 0 where sequences are not cut.
  int64_t segmentLength = 0;
  /// Of a call that reads what its forward saved.
  gdn::cost::SavingChoice saved = {};
};
} // namespace

/// Tokens of a segment; 0 where sequences are not cut.
static Error chooseLength(const Problem &p, int64_t &length) {
  using namespace gdn::cost;
  Chip chip;
  if (Error error = readChip(p.device.index, chip))
    return error;
  gdn::cost::Problem problem = gdn::cpu::describe(p);
  // The longest sequence, as somebody says it is or as the model guesses.
  int64_t longest = choose(problem, chip).longest;
  length = chooseBackwardSplit(problem, chip, longest,
                               gdn::manifest::HopperGradientTokens, p.split)
               .length;
  return {};
}

static Error choosePlan(const Problem &p, BackwardPlan &plan) {
  plan.kernel = findKernel(p, /*inSegments=*/false);
  if (!plan.kernel)
    return explainMissing(p);
  // Without kernels of segments the gradients are those of whole sequences.
  const BackwardKernel *cut = findKernel(p, /*inSegments=*/true);
  if (p.savesStates) {
    if (Error error = planSaved(p, plan.saved))
      return error;
    plan.segmentLength = plan.saved.backward.length;
    plan.kernel =
        findKernel(p, /*inSegments=*/false, plan.saved.backward.schedule);
  } else if (cut && p.split.kind != gdn::cost::SplitRequest::Kind::Never) {
    if (Error error = chooseLength(p, plan.segmentLength))
      return error;
  }
  if (plan.segmentLength && !cut)
    return explainMissing(p);
  if (plan.segmentLength)
    plan.kernel = cut;
  return {};
}

/// Makes the kernels ready on the device, on their first call there.
static Error prepare(const BackwardKernel &kernel, int32_t device) {
  static ReadyDevices ready[std::size(table)];
  return ready[&kernel - table].prepare(kernel.function, device);
}

static Error expected(const char *name, const char *rule) {
  return {"NotImplementedError",
          std::string(name) + ": expected " + rule +
              " for gradients on a GPU in this version, got another form"};
}

static bool isF32(const Array &array) {
  return array.isPresent() && array.element == Element::F32;
}

/// What the package brings all calls to.
static Error checkForm(const Problem &p) {
  for (auto [name, array] : {std::pair("g", &p.gate), {"beta", &p.beta}})
    if (!array->isPresent())
      return expected(name, "a tensor");
  bool isRaw = infoOf(p.gateDomain).hasParameters;
  for (auto [name, array] :
       {std::pair("A_log", &p.aLog), {"dt_bias", &p.dtBias}})
    if (isF32(*array) != isRaw || array->isPresent() != isRaw)
      return expected(name, isRaw ? "a tensor in float32" : "None");
  double scale = p.scale * std::sqrt(static_cast<double>(p.keyChannels()));
  if (std::abs(scale - 1) > 1e-6)
    return expected("scale", "K^(-1/2)");
  if (!p.cuSeqlens.isPresent())
    return expected("cu_seqlens", "a tensor");
  if (!p.o.isPresent())
    return expected("gradient of o", "a tensor");
  if (p.initialState.isPresent() != p.finalState.isPresent())
    return expected("initial_state, gradient of the final state",
                    "both or neither");
  if (p.initialState.isPresent() &&
      (!isF32(p.initialState) || !isF32(p.finalState)))
    return expected("initial_state, gradient of the final state", "float32");
  return {};
}

/// The gradients as the kernels write them, dense and at no address.
static Gradients describeGradients(const Problem &p) {
  auto dense = [](Array array) {
    array.data = nullptr;
    int64_t stride = 1;
    for (int i = array.rank - 1; i >= 0; --i) {
      array.strides[i] = stride;
      stride *= array.sizes[i];
    }
    return array;
  };
  Gradients made;
  made.q = dense(p.q);
  made.k = dense(p.k);
  made.v = dense(p.v);
  made.gate = dense(p.gate);
  made.beta = dense(p.beta);
  if (p.aLog.isPresent())
    made.aLog = dense(p.aLog);
  if (p.dtBias.isPresent())
    made.dtBias = dense(p.dtBias);
  if (p.initialState.isPresent())
    made.initialState = dense(p.initialState);
  return made;
}

/// What a forward saves, dense and at no address.
static Saved describeSaved(const Problem &p, int64_t segmentLength) {
  Saved saved;
  saved.writes = describeGradients(p).v;
  saved.states = saved.writes;
  int64_t H = p.valueHeads(), V = p.valueChannels(), K = p.keyChannels();
  saved.states.sizes = {countSavedStates(p, segmentLength), H, V, K};
  saved.states.strides = {H * V * K, V * K, K, 1};
  return saved;
}

static Error checkGradients(const Problem &p, const Gradients &gradients) {
  Gradients wanted = describeGradients(p);
  struct {
    const char *name;
    const Array &given, &wanted;
  } pairs[] = {{"q", gradients.q, wanted.q},
               {"k", gradients.k, wanted.k},
               {"v", gradients.v, wanted.v},
               {"g", gradients.gate, wanted.gate},
               {"beta", gradients.beta, wanted.beta},
               {"A_log", gradients.aLog, wanted.aLog},
               {"dt_bias", gradients.dtBias, wanted.dtBias},
               {"initial_state", gradients.initialState, wanted.initialState}};
  for (const auto &[name, given, wanted] : pairs) {
    if (given.rank != wanted.rank || given.sizes != wanted.sizes ||
        given.element != wanted.element)
      return {"ValueError", std::string("gradient of ") + name +
                                ": expected the shape and type that the "
                                "kernels write, got others"};
    if (Error error = gdn::cpu::checkMemory(name, given))
      return error;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// An argument of a kernel: its name, if it is a state, and the array.
template <typename AnyArray> struct Named {
  const char *state;
  AnyArray *array;
};

/// In the order of the kernels' arguments; absent ones are none, but for
/// states.
template <typename AnyProblem, typename AnyGradients, typename AnySaved>
static auto arraysOf(AnyProblem &p, AnyGradients &gradients, AnySaved &saved) {
  using AnyArray = std::remove_reference_t<decltype((p.q))>;
  return std::array<Named<AnyArray>, 21>{
      {{"", &p.q},
       {"", &p.k},
       {"", &p.v},
       {"", &p.beta},
       {"", &p.gate},
       {"initial_state", &p.initialState},
       {"", &p.cuSeqlens},
       {"", &p.aLog},
       {"", &p.dtBias},
       {"", &p.o},
       {"d_final_state", &p.finalState},
       {"", &saved.writes},
       {"", &saved.states},
       {"", &gradients.q},
       {"", &gradients.k},
       {"", &gradients.v},
       {"", &gradients.beta},
       {"", &gradients.gate},
       {"dinitial_state", &gradients.initialState},
       {"", &gradients.aLog},
       {"", &gradients.dtBias}}};
}

static void addArguments(const Problem &p, const BackwardPlan &plan,
                         const Gradients &gradients, const Saved &saved,
                         Arguments &arguments) {
  const GdnFunctionDesc &function = *plan.kernel->function;
  for (auto [state, array] : arraysOf(p, gradients, saved)) {
    arguments.addCut(function, {plan.segmentLength});
    arguments.addNamed(function, state, *array, p.stateVFirst);
  }
}

Error gdn::hopper::runBackward(const Problem &p, const Gradients &gradients,
                               const Saved &given, void *stream,
                               Allocate allocate) {
  BackwardPlan plan;
  if (Error error = checkForm(p))
    return error;
  if (Error error = choosePlan(p, plan))
    return error;
  if (Error error = checkGradients(p, gradients))
    return error;
  Saved saved = given;
  if (p.savesStates)
    if (Error error = fitSaved(p, plan.segmentLength, saved))
      return error;
  int32_t device = p.device.index;
  if (Error error = prepare(*plan.kernel, device))
    return error;
  Arguments arguments;
  addArguments(p, plan, gradients, saved, arguments);
  return launch(*plan.kernel->function, device, arguments, stream, allocate);
}

Error gdn::hopper::describeBackward(const Problem &given, std::string &facts) {
  Problem p = given;
  BackwardPlan plan;
  if (Error error = checkForm(p))
    return error;
  if (Error error = choosePlan(p, plan))
    return error;
  Gradients gradients = describeGradients(p);
  Saved saved = p.savesStates ? describeSaved(p, plan.segmentLength) : Saved();
  // Never read, and as far aligned as an allocation.
  alignas(GDN_WORKSPACE_ALIGNMENT) static char somewhere[1];
  for (auto [state, array] : arraysOf(p, gradients, saved))
    if (array->isPresent())
      array->data = somewhere;
  Arguments arguments;
  addArguments(p, plan, gradients, saved, arguments);
  const GdnFunctionDesc &function = *plan.kernel->function;
  if (Error error = errorOf(
          gdnFunctionCheck(&function, arguments.data(), arguments.size())))
    return error;
  uint64_t bytes = 0;
  if (Error error = errorOf(gdnFunctionGetWorkspaceBytes(
          &function, arguments.data(), arguments.size(), &bytes)))
    return error;
  std::string forward = "null";
  if (p.savesStates)
    if (Error error = describeSaving(p, plan.saved, saved, forward))
      return error;
  facts = "{\"kernel\": \"" + std::string(plan.kernel->name) +
          "\", \"launches\": " + std::to_string(function.num_launches) +
          ", \"segment_tokens\": " + std::to_string(plan.segmentLength) +
          ", \"forward_segment_tokens\": " +
          std::to_string(plan.saved.forward.length) +
          ", \"workspace_bytes\": " + std::to_string(bytes) +
          ", \"forward\": " + forward + "}";
  return {};
}
