//===- Rules.cpp - What a forward must be, and what it hears --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rules.h"

#include "Arguments.h"

#include <algorithm>

using namespace gdn::calls;

/// More tokens are taken in chunks, if functions of chunks can be had by a
/// conversion.
static constexpr int64_t kFewTokens = 64;

//===----------------------------------------------------------------------===//
// What a call must be
//===----------------------------------------------------------------------===//

GdnRuntimeStatus gdn::calls::checkSizes(const Call &call) {
  if (call.tokens > INT32_MAX)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("q") +
                    ": expected T of at most 2^31 - 1 on a GPU, got " +
                    std::to_string(call.tokens));
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::calls::checkTypes(const Call &call) {
  if (!call.hasUsualScale())
    return fail(GDN_ERROR_NOT_SERVED,
                call.say("scale") +
                    ": expected K^(-1/2) on a GPU in this version, got " +
                    std::to_string(call.get().scale));
  for (const char *name : {"a_log", "dt_bias"})
    if (hasParameters(call.fact("gate_domain")) &&
        call.typeOf(name) != GDN_DTYPE_F32)
      return fail(GDN_ERROR_NOT_SERVED,
                  call.say(name) +
                      ": expected float32 with a raw gate on a GPU, got " +
                      typeName(call.typeOf(name)));
  int32_t initial = call.typeOf("initial_state"),
          last = call.typeOf("final_state");
  if (!initial || initial == last || call.find("step_indices"))
    return GDN_SUCCESS;
  if (!last)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("final_state") + ": expected a tensor with " +
                    call.say("initial_state") + " on a GPU, got None");
  return fail(GDN_ERROR_NOT_SERVED,
              call.say("final_state") + ": expected " + typeName(initial) +
                  " as " + call.say("initial_state") +
                  " is, on a GPU in this version, got " + typeName(last));
}

/// Whether two arrays are one.
static bool areOne(const GdnTensor &a, const GdnTensor &b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
         std::equal(a.shape, a.shape + a.rank, b.shape) &&
         stridesOf(a) == stridesOf(b);
}

GdnRuntimeStatus gdn::calls::checkPool(const Call &call) {
  if (!call.find("state_indices"))
    return GDN_SUCCESS;
  const GdnTensor *pool = call.find("initial_state"),
                  *last = call.find("final_state");
  constexpr int32_t kRank = 4;
  if (!pool || pool->rank != kRank)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("initial_state") +
                    ": expected a pool of states with " +
                    call.say("state_indices") + ", got " +
                    (pool ? "another rank" : "None"));
  const GdnTensor *steps = call.find("step_states");
  if (steps && call.find("step_indices")) {
    if (!last && steps->rank == kRank && steps->dtype == pool->dtype)
      return GDN_SUCCESS;
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("step_states") + ": expected states as " +
                    call.say("initial_state") + " has, without " +
                    call.say("final_state") + ", on a GPU, got others");
  }
  if (!last || !areOne(*pool, *last))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                call.say("final_state") + ": expected " +
                    call.say("initial_state") + ", the pool, with " +
                    call.say("state_indices") + ", got " +
                    (last ? "another array" : "None"));
  return GDN_SUCCESS;
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

GdnRuntimeStatus gdn::calls::explainLength(const Call &call,
                                           const Signature &form,
                                           bool ofStates) {
  std::string rest = " for more than " + std::to_string(kFewTokens) +
                     " tokens a sequence on a GPU in this version, got ";
  if (ofStates)
    return fail(GDN_ERROR_NOT_SERVED,
                call.say("initial_state") + ", " + call.say("final_state") +
                    ": expected float32" + rest + typeName(form.state));
  return fail(GDN_ERROR_NOT_SERVED,
              call.say("beta") + ": expected " + call.say("beta_domain=value") +
                  rest +
                  call.say("beta_domain=" + std::string(form.betaDomain)));
}

std::string gdn::calls::sayOfSplit(const Call &call, const char *what) {
  return call.say(std::string(call.isFixed() ? "split_length" : "split_into") +
                  what);
}

GdnRuntimeStatus gdn::calls::explainNoSegments(const Call &call) {
  return fail(
      GDN_ERROR_NOT_SERVED,
      sayOfSplit(call, "") + ": expected a form of " + call.say("q") + ", " +
          call.say("v") + ", " + call.say("gate") + ", " + call.say("beta") +
          " and states with kernels of segments on a GPU in this version, got "
          "one without; pass " +
          sayOfSplit(call, "=none"));
}
