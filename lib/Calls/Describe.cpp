//===- Describe.cpp - Calls as JSON ---------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"

#include <cstdarg>
#include <cstdio>

using namespace gdn::calls;
namespace cost = gdn::cost;

std::string gdn::calls::alternative(std::string_view name, const char *reason,
                                    ...) {
  char text[512];
  va_list values;
  va_start(values, reason);
  std::vsnprintf(text, sizeof(text), reason, values);
  va_end(values);
  return "[\"" + std::string(name) + "\", \"" + text + "\"]";
}

/// The schedules that lost, each with the reason.
static std::string alternativesOf(const cost::Choice &choice) {
  std::string text;
  for (const cost::Estimate &estimate : choice.estimates)
    if (estimate.schedule != choice.schedule)
      text += (text.empty() ? "" : ", ") +
              alternative(estimate.schedule.name, "%s: %s",
                          estimate.schedule.name.data(),
                          choice.whyNot(estimate).c_str());
  return "[" + text + "]";
}

static std::string splitToJson(const cost::SplitChoice &split) {
  if (!split.best)
    return "null";
  const cost::SplitEstimate &best = *split.best;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  char text[640];
  std::snprintf(
      text, sizeof(text),
      "{\"splits\": %s, \"forced\": %s, \"length\": %lld, "
      "\"longer_length\": %lld, \"parts\": %lld, \"late\": %s, \"longest\": "
      "%lld, \"segments\": %lld, \"schedule\": \"%s\", \"map_seconds\": "
      "%.9g, \"scan_seconds\": %.9g, \"forward_seconds\": %.9g, "
      "\"slow_gate_seconds\": %.9g, \"whole_seconds\": %.9g}",
      split.splits ? "true" : "false", split.isForced ? "true" : "false",
      number(best.length), number(best.longerLength), number(best.parts),
      best.isLate ? "true" : "false", number(best.ofLongest),
      number(best.segments), std::string(best.schedule.name).c_str(),
      best.mapSeconds, best.scanSeconds, best.forwardSeconds,
      best.slowGateSeconds, split.wholeSeconds);
  return text;
}

static std::string describeForward(const Call &call, const Choice &chosen,
                                   const Conversions &conversions,
                                   uint64_t workspaceBytes) {
  const cost::Choice &choice = chosen.whole;
  const cost::Chip &chip = chosen.chip;
  const GdnVariantDesc &variant = *chosen.plan.variant;
  double seconds = chosen.plan.seconds;
  for (const Conversion &one : conversions.get())
    seconds += Conversions::predictSeconds(one, chip);
  bool byToken = variant.schedule == cost::Schedule::Token.name;
  char text[1024];
  std::snprintf(
      text, sizeof(text),
      "{\"device\": \"cuda:%d\", \"kernel\": \"%s\", \"algorithm\": \"%s\", "
      "\"isa\": \"%.*s\", \"kernel_channels\": %lld, \"padded\": false, "
      "\"chunk_size\": %lld, \"items\": %lld, \"threads\": 0, "
      "\"schedule\": \"%s\", \"ctas\": %lld, \"multiprocessors\": %d, "
      "\"sequences\": %lld, \"flop\": %.0f, \"bytes\": %.0f, "
      "\"workspace_bytes\": %llu, \"seconds\": %.9g, \"floor_seconds\": %.9g, "
      "\"longest\": %lld, \"knows_longest\": %s, \"alternatives\": ",
      call.get().device, variant.function->name,
      byToken ? "recurrent" : "chunk", static_cast<int>(chip.name.size()),
      chip.name.data(), static_cast<long long>(chosen.form.keyChannels),
      static_cast<long long>(byToken ? 1 : kChunkTokens),
      static_cast<long long>(call.sequences * call.heads), variant.schedule,
      static_cast<long long>(choice.chosen().ctas), chosen.plan.multiprocessors,
      static_cast<long long>(call.sequences), choice.flop, choice.bytes,
      static_cast<unsigned long long>(workspaceBytes), seconds,
      choice.floorSeconds, static_cast<long long>(choice.longest),
      choice.knowsLongest ? "true" : "false");
  return text + alternativesOf(choice) +
         ", \"copies\": " + copiesToJson(conversions, call, chip) +
         ", \"conversions\": " +
         conversionsToJson(conversions, call, chosen.plan, chip) +
         ", \"split\": " + splitToJson(chosen.split) + "}";
}

/// A forward that saves states, with the times of a step of training.
static std::string describeSaving(const Call &call, const Choice &chosen,
                                  uint64_t workspaceBytes) {
  const GdnCallPlan &plan = chosen.plan;
  const cost::PassEstimate &forward = chosen.saving.forward;
  int64_t segments = plan.saved_states - call.tokens / call.savedTokens();
  bool isPerHead = forward.schedule == cost::Schedule::CtaPerHead;
  int64_t tiles = isPerHead ? 1 : call.valueChannels / cost::kVTileChannels;
  char text[512];
  std::snprintf(text, sizeof(text),
                "{\"kernel\": \"%s\", \"schedule\": \"%s\", \"ctas\": %lld, "
                "\"seconds\": %.9g, \"segment_tokens\": %lld, "
                "\"workspace_bytes\": %llu, \"copies\": [], \"split\": null, "
                "\"alternatives\": [",
                plan.variant->function->name, plan.variant->schedule,
                static_cast<long long>(segments * call.heads * tiles),
                forward.seconds, static_cast<long long>(plan.segment_length),
                static_cast<unsigned long long>(workspaceBytes));
  return text +
         alternative("inputs",
                     "saving inputs: %.3g ms predicted with its backward, %.3g "
                     "ms with states",
                     chosen.saving.inputsSeconds * 1e3,
                     chosen.saving.seconds() * 1e3) +
         "]}";
}

static std::string describeBackward(const Choice &chosen,
                                    uint64_t workspaceBytes) {
  const GdnFunctionDesc &function = *chosen.plan.variant->function;
  char text[384];
  std::snprintf(text, sizeof(text),
                "{\"kernel\": \"%s\", \"launches\": %d, "
                "\"segment_tokens\": %lld, \"workspace_bytes\": %llu}",
                function.name, function.num_launches,
                static_cast<long long>(chosen.plan.segment_length),
                static_cast<unsigned long long>(workspaceBytes));
  return text;
}

std::string gdn::calls::describeChoice(const Call &call, const Choice &chosen,
                                       const Conversions &conversions,
                                       uint64_t workspaceBytes) {
  if (call.isBackward())
    return describeBackward(chosen, workspaceBytes);
  return call.savedTokens()
             ? describeSaving(call, chosen, workspaceBytes)
             : describeForward(call, chosen, conversions, workspaceBytes);
}
