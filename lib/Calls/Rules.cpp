//===- Rules.cpp - What a forward must be, and what it hears --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include "Arguments.h"
#include "gdn/GateForms.h"

#include <algorithm>

using namespace gdn::calls;

/// More tokens are taken in chunks, if functions of chunks can be had by a
/// conversion.
static constexpr int64_t kFewTokens = 64;

//===----------------------------------------------------------------------===//
// What a call must be
//===----------------------------------------------------------------------===//

void gdn::calls::checkSizes(const Call &call) {
  if (call.tokens > INT32_MAX)
    call.refuse("q", "T of at most 2^31 - 1 on a GPU",
                std::to_string(call.tokens));
}

void gdn::calls::checkTypes(const Call &call) {
  if (!call.hasUsualScale())
    call.refuse("scale", "K^(-1/2) on a GPU in this version",
                std::to_string(call.get().scale), GDN_ERROR_NOT_SERVED);
  for (const char *name : {"a_log", "dt_bias"})
    if (gdn_gates::gateFormOf(call.fact("gate_domain")).hasParameters() &&
        call.typeOf(name) != GDN_DTYPE_F32)
      call.refuse(name, "float32 with a raw gate on a GPU",
                  typeName(call.typeOf(name)), GDN_ERROR_NOT_SERVED);
  int32_t initial = call.typeOf("initial_state"),
          last = call.typeOf("final_state");
  if (!initial || initial == last || call.keepsTokens())
    return;
  if (!last)
    call.refuse("final_state",
                "a tensor with " + call.say("initial_state") + " on a GPU",
                "None");
  call.refuse("final_state",
              typeName(initial) + " as " + call.say("initial_state") +
                  " is, on a GPU in this version",
              typeName(last), GDN_ERROR_NOT_SERVED);
}

void gdn::calls::checkPool(const Call &call) {
  const GdnTensor *last = call.find("final_state");
  const std::string pool = call.say("initial_state");
  if (call.keepsTokens() && last)
    call.refuse("step_states",
                "states as " + pool + " has, without " +
                    call.say("final_state") + ", on a GPU",
                "others");
  if (call.find("state_indices") && !call.keepsTokens() && !last)
    call.refuse("final_state",
                pool + ", the pool, with " + call.say("state_indices"), "None");
}

bool gdn::calls::hasPoolOfRows(const Call &call) {
  const GdnTensor *pool = call.find("initial_state");
  return !call.find("state_indices") || pool->shape[3] == 1 ||
         stridesOf(*pool)[3] == 1;
}

bool gdn::calls::hasNearChunks(const GdnCallTable &table, const Signature &form,
                               bool &ofStates) {
  Signature near = form;
  near.state = GDN_DTYPE_F32;
  ofStates = findEntry(table, near);
  near.gateDomain = "log";
  near.betaDomain = "value";
  near.gate = near.beta = GDN_DTYPE_F32;
  return ofStates || findEntry(table, near);
}

bool gdn::calls::hasLongSequences(const Call &call) {
  int64_t tokens =
      call.get().longest > 0
          ? call.get().longest
          : call.batches * call.tokens / std::max<int64_t>(call.sequences, 1);
  return !call.isByToken() && !call.isFixed() && tokens > kFewTokens;
}

void gdn::calls::explainLength(const Call &call, const Signature &form,
                               bool ofStates) {
  std::string rest = " for more than " + std::to_string(kFewTokens) +
                     " tokens a sequence on a GPU in this version";
  if (ofStates)
    refuse(GDN_ERROR_NOT_SERVED,
           call.say("initial_state") + ", " + call.say("final_state") +
               ": expected float32" + rest + ", got " + typeName(form.state));
  call.refuse("beta", call.say("beta_domain=value") + rest,
              call.say("beta_domain=" + std::string(form.betaDomain)),
              GDN_ERROR_NOT_SERVED);
}

std::string gdn::calls::sayOfSplit(const Call &call, const char *what) {
  return call.say(std::string(call.isFixed() ? "split_length" : "split_into") +
                  what);
}

void gdn::calls::explainNoSegments(const Call &call) {
  call.refuse(sayOfSplit(call, ""),
              "a form of " + call.say("q") + ", " + call.say("v") + ", " +
                  call.say("gate") + ", " + call.say("beta") +
                  " and states with kernels of segments on a GPU in this "
                  "version",
              "one without; pass " + sayOfSplit(call, "=none"),
              GDN_ERROR_NOT_SERVED);
}
