//===- HopperSaved.cpp - What a forward saves for its gradients -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperSaved.h"

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include "gdn/CostModel/Saving.h"

#include <algorithm>
#include <cstdio>
#include <span>

using namespace gdn::hopper;
using gdn::cpu::Array;

//===----------------------------------------------------------------------===//
// Forwards that save
//===----------------------------------------------------------------------===//

#define GDN_HOPPER_SAVING(name, ...)                                           \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperSavingKernels.inc"
#endif
#undef GDN_HOPPER_SAVING

namespace {
/// A compiled forward, and what it serves.
struct SavingKernel {
  const char *name;
  int64_t channels;
  Element element;
  bool inSegments;
  GateDomain gateDomain;
  Element gate;
  BetaDomain betaDomain;
  Element beta;
  Norm norm;
  Schedule schedule;
  const GdnFunctionDesc *function;
};
} // namespace

// The last entry keeps the table from being empty.
static const SavingKernel table[] = {
#define GDN_HOPPER_SAVING(name, channels, element, inSegments, gateDomain,     \
                          gate, betaDomain, beta, norm, schedule)              \
  {#name,                                                                      \
   channels,                                                                   \
   Element::element,                                                           \
   inSegments,                                                                 \
   GateDomain::gateDomain,                                                     \
   Element::gate,                                                              \
   BetaDomain::betaDomain,                                                     \
   Element::beta,                                                              \
   Norm::norm,                                                                 \
   Schedule::schedule,                                                         \
   &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperSavingKernels.inc"
#endif
#undef GDN_HOPPER_SAVING
    {}};

static const SavingKernel *findSaving(const Problem &p, bool inSegments,
                                      Schedule schedule) {
  for (const SavingKernel &kernel :
       std::span(table).first(std::size(table) - 1))
    if (kernel.channels == p.keyChannels() &&
        kernel.channels == p.valueChannels() && kernel.element == p.q.element &&
        kernel.inSegments == inSegments && kernel.gateDomain == p.gateDomain &&
        kernel.gate == p.gate.element && kernel.betaDomain == p.betaDomain &&
        kernel.beta == p.beta.element &&
        (kernel.norm == Norm::L2) == p.l2norm && kernel.schedule == schedule)
      return &kernel;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The plan of forward and backward
//===----------------------------------------------------------------------===//

Error gdn::hopper::chooseSaving(const SavedCall &call,
                                cost::SavingChoice &choice) {
  // Forward and backward of all layers of a model ask for the same.
  static thread_local SavedCall lastCall;
  static thread_local cost::SavingChoice lastChoice;
  if (call == lastCall) {
    choice = lastChoice;
    return {};
  }
  using namespace gdn::manifest;
  cost::Chip chip;
  if (Error error = readChip(call.device, chip))
    return error;
  cost::Problem problem;
  problem.packed = true;
  problem.sequences = call.sequences;
  problem.tokens = call.tokens;
  problem.keyHeads = call.keyHeads;
  problem.heads = call.heads;
  problem.stateBytes = 2 * gdn::cpu::sizeOf(Element::F32);
  cost::SavingLimits limits;
  limits.chunk = kSegmentMultiple;
  limits.stateTokens = HopperSavedTokens;
  // Those that states have memory for (_torch_saved.py).
  limits.segments =
      std::min(call.tokens / HopperSavedSegmentTokens,
               HopperSavedItems / std::max<int64_t>(call.heads, 1));
  cost::SplitRequest request = call.split;
  if (!call.hasSegments)
    request = {cost::SplitRequest::Kind::Never};
  // A call that saves nothing has them in most forms that may save.
  request.ownStarts = call.hasSegments;
  choice = cost::chooseSaving(problem, chip, cost::choose(problem, chip),
                              limits, request);
  lastCall = call;
  lastChoice = choice;
  return {};
}

Error gdn::hopper::planSaved(const Problem &p, cost::SavingChoice &plan) {
  bool hasSegments = findSaving(p, /*inSegments=*/true, Schedule::CtaPerHead);
  return chooseSaving({p.device.index, p.sequences(), p.tokens(), p.keyHeads(),
                       p.valueHeads(), hasSegments, p.split},
                      plan);
}

int64_t gdn::hopper::countSavedStates(const Problem &p, int64_t length) {
  int64_t segments = length
                         ? cost::countSegments(p.sequences(), p.tokens(),
                                               length, p.cuSeqlens.isPresent())
                         : p.sequences();
  return p.tokens() / gdn::manifest::HopperSavedTokens + segments;
}

Error gdn::hopper::fitSaved(const Problem &p, int64_t length, Saved &saved) {
  int64_t count = countSavedStates(p, length);
  int64_t &given = saved.states.sizes[0];
  if (saved.states.rank != 4)
    return {"ValueError", "states: expected 4 dimensions, got " +
                              std::to_string(saved.states.rank)};
  if (given < count)
    return {"ValueError", "states: expected room for " + std::to_string(count) +
                              " states of all sequences or segments, got " +
                              std::to_string(given)};
  given = count;
  return {};
}

static void addSaving(const Problem &p, const SavingKernel &kernel,
                      int64_t length, const Saved &saved,
                      Arguments &arguments) {
  arguments.addAll(p, *kernel.function, {length});
  arguments.add(saved.writes);
  arguments.add(saved.states);
}

Error gdn::hopper::runSaving(const Problem &p, const Saved &given, void *stream,
                             Allocate allocate) {
  bool isPacked = p.cuSeqlens.isPresent();
  cost::SavingChoice plan;
  if (isPacked)
    if (Error error = planSaved(p, plan))
      return error;
  int64_t length = plan.forward.length;
  const SavingKernel *kernel =
      isPacked ? findSaving(p, length, plan.forward.schedule) : nullptr;
  if (!kernel)
    return {"NotImplementedError",
            "save_for_backward: expected packed sequences "
            "of a form with a forward that saves in this version, got "
            "another call; pass \"inputs\""};
  Saved saved = given;
  if (Error error = fitSaved(p, length, saved))
    return error;
  static ReadyDevices ready[std::size(table)];
  int32_t device = p.device.index;
  if (Error error = ready[kernel - table].prepare(kernel->function, device))
    return error;
  Arguments arguments;
  addSaving(p, *kernel, length, saved, arguments);
  return launch(*kernel->function, device, arguments, stream, allocate);
}

Error gdn::hopper::describeSaving(const Problem &p,
                                  const cost::SavingChoice &plan,
                                  const Saved &saved, std::string &facts) {
  const cost::SavingEstimate &chosen = plan.forward;
  const SavingKernel *kernel = findSaving(p, chosen.length, chosen.schedule);
  if (!kernel)
    return {"RuntimeError", "gdn: expected a forward that saves, got none"};
  // There is memory for those of both, which may be cut differently.
  Saved fitted = saved;
  fitted.states.sizes[0] = countSavedStates(p, chosen.length);
  Arguments arguments;
  addSaving(p, *kernel, chosen.length, fitted, arguments);
  uint64_t bytes = 0;
  if (Error error = errorOf(gdnFunctionGetWorkspaceBytes(
          kernel->function, arguments.data(), arguments.size(), &bytes)))
    return error;
  int64_t segments = countSavedStates(p, chosen.length) -
                     p.tokens() / manifest::HopperSavedTokens;
  bool isPerHead = chosen.schedule == Schedule::CtaPerHead;
  int64_t tiles = isPerHead ? 1 : p.valueChannels() / cost::kVTileChannels;
  char numbers[256];
  std::snprintf(numbers, sizeof(numbers),
                "\"ctas\": %lld, \"seconds\": %.9g, \"step_seconds\": %.9g, "
                "\"inputs_seconds\": %.9g, \"workspace_bytes\": %llu}",
                static_cast<long long>(segments * p.valueHeads() * tiles),
                chosen.seconds, plan.seconds(), plan.inputsSeconds,
                static_cast<unsigned long long>(bytes));
  facts = std::string("{\"kernel\": \"") + kernel->name +
          "\", \"schedule\": \"" + std::string(chosen.schedule.name) + "\", " +
          numbers;
  return {};
}
