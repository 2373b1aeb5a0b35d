//===- Signature.cpp - What functions compute, and calls ask for ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include "gdn/GateForms.h"

#include <algorithm>
#include <span>

using namespace gdn::calls;

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

bool Signature::isServedBy(const Signature &function) const {
  Signature wanted = *this;
  if (function.ends == Ends::Any)
    wanted.ends = Ends::Any;
  // Absent states have any type, and lie in any way.
  if (ends == Ends::None)
    wanted.state = function.state;
  if (ends == Ends::None || function.stateLayout.empty())
    wanted.stateLayout = function.stateLayout;
  wanted.asked |= function.asked;
  wanted.steps |= function.maybeSteps;
  wanted.maybeSteps = function.maybeSteps;
  return wanted == function;
}

/// A bit for each name, set if `has` says so of it.
static uint8_t bitsOf(std::span<const std::string_view> names, auto has) {
  unsigned bits = 0;
  for (size_t i = 0; i < names.size(); ++i)
    bits |= (has(names[i]) ? 1u : 0u) << i;
  return static_cast<uint8_t>(bits);
}

Signature gdn::calls::signatureOf(const Call &call, std::string_view op) {
  Signature wanted;
  wanted.keyChannels = call.keyChannels;
  wanted.valueChannels = call.valueChannels;
  wanted.element =
      commonType(call.typeOf("q"), call.typeOf("k"), call.typeOf("v"));
  wanted.gate = call.typeOf("gate");
  wanted.beta = call.typeOf("beta");
  // Those of 64 bits are read as ones of 32.
  wanted.stateIndices = call.find("state_indices") ? GDN_DTYPE_I32 : 0;
  auto has = [&](std::string_view name) { return call.find(name) != nullptr; };
  wanted.asked = bitsOf(kAsked, has);
  wanted.steps = bitsOf(kSteps, has);
  wanted.stepStates = call.typeOf("step_states");
  wanted.isPacked = call.isPacked();
  wanted.hasChannelGates = call.hasChannelGates();
  int32_t initial = call.typeOf("initial_state"),
          last = call.typeOf(op.ends_with("_bwd") ? "d_final_state"
                                                  : "final_state");
  wanted.ends = initial ? Ends::Both : last ? Ends::Final : Ends::None;
  wanted.state = initial ? initial : last;
  wanted.stateLayout = call.stateLayout();
  wanted.op = op;
  wanted.gateDomain = call.fact("gate_domain");
  wanted.betaDomain = call.fact("beta_domain");
  wanted.norm = call.fact("qk_l2norm");
  wanted.stateInterval = call.fact("state_interval");
  if (gdn_gates::gateFormOf(wanted.gateDomain).needsBound())
    wanted.lowerBound = call.fact("lower_bound");
  return wanted;
}

static const GdnArgDesc *findArgument(const GdnFunctionDesc &function,
                                      std::string_view name) {
  const GdnArgDesc *end = function.args + function.num_args;
  const GdnArgDesc *found = std::find_if(
      function.args, end, [&](const auto &arg) { return name == arg.name; });
  return found == end ? nullptr : found;
}

static const GdnArgDesc *findArgument(const GdnEntryDesc &entry,
                                      std::string_view name) {
  return findArgument(*entry.variants[0].function, name);
}

/// The last extent of an array; 0 if there is none.
static int64_t channelsOf(const GdnFunctionDesc &function,
                          std::string_view name) {
  const GdnArgDesc *arg = findArgument(function, name);
  return arg ? arg->shape[arg->rank - 1] : 0;
}

int64_t gdn::calls::keyChannelsOf(const GdnFunctionDesc &function) {
  return channelsOf(function, "q");
}

int64_t gdn::calls::valueChannelsOf(const GdnFunctionDesc &function) {
  return channelsOf(function, "v");
}

bool gdn::calls::hasAnyLayout(const GdnArgDesc &arg) {
  bool isKept = std::string_view(arg.name) == "step_states";
  return (isState(arg) || isKept) && arg.flags & GDN_ARG_FLAG_STRIDED;
}

bool gdn::calls::isState(const GdnArgDesc &arg) {
  return std::string_view(arg.name).ends_with("initial_state") ||
         std::string_view(arg.name).ends_with("final_state");
}

/// What the states of an entry's functions are.
static void readStates(const GdnEntryDesc &entry, Signature &signature) {
  const GdnArgDesc *initial = findArgument(entry, "initial_state"),
                   *last = findArgument(entry, "final_state");
  const GdnArgDesc *state = initial ? initial : last;
  if (!state)
    return;
  signature.ends = initial && initial->flags & GDN_ARG_FLAG_OPTIONAL ? Ends::Any
                   : initial ? Ends::Both
                             : Ends::Final;
  signature.state = state->dtype;
  if (!hasAnyLayout(*state))
    signature.stateLayout = entry.variants[0].state_layout;
}

Signature gdn::calls::signatureOf(const GdnEntryDesc &entry) {
  auto fact = [&](std::string_view name) {
    return findFact(entry.facts, entry.num_facts, name);
  };
  auto typeOf = [&](std::string_view name) {
    const GdnArgDesc *arg = findArgument(entry, name);
    return arg ? arg->dtype : 0;
  };
  Signature signature;
  signature.keyChannels = keyChannelsOf(*entry.variants[0].function);
  signature.valueChannels = valueChannelsOf(*entry.variants[0].function);
  signature.element = typeOf("q");
  signature.gate = typeOf("gate");
  signature.beta = typeOf("beta");
  signature.stateIndices = typeOf("state_indices");
  auto has = [&](std::string_view name) {
    return findArgument(entry, name) != nullptr;
  };
  signature.asked = bitsOf(kAsked, has);
  signature.steps = bitsOf(kSteps, has);
  signature.maybeSteps = bitsOf(kSteps, [&](std::string_view name) {
    return has(name) &&
           findArgument(entry, name)->flags & GDN_ARG_FLAG_OPTIONAL;
  });
  signature.stepStates = typeOf("step_states");
  signature.isPacked = findArgument(entry, "cu_seqlens");
  const GdnArgDesc *gate = findArgument(entry, "gate");
  signature.hasChannelGates = gate && gate->rank == kMaxRank;
  readStates(entry, signature);
  signature.op = fact("op");
  signature.gateDomain = fact("gate_domain");
  signature.betaDomain = fact("beta_domain");
  signature.norm = fact("qk_l2norm");
  signature.stateInterval = fact("state_interval");
  if (gdn_gates::gateFormOf(signature.gateDomain).needsBound())
    signature.lowerBound = fact("lower_bound");
  return signature;
}
