//===- HopperBackward.cpp - Training on a Hopper GPU ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperBackward.h"

#include "HopperCall.h"

using namespace gdn::hopper;
using gdn::cpu::Array;
using gdn::cpu::Gradients;

Error gdn::hopper::runSaving(const Problem &p, const Saved &saved, void *stream,
                             Allocate allocate) {
  HopperCall call(p, Kind::Saving);
  call.add(saved);
  return run(call, call.recall(), stream, allocate);
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
  return {dense(p.q),    dense(p.k),    dense(p.v),      dense(p.gate),
          dense(p.beta), dense(p.aLog), dense(p.dtBias), dense(p.initialState)};
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

Error gdn::hopper::runBackward(const Problem &p, const Gradients &gradients,
                               const Saved &saved, void *stream,
                               Allocate allocate) {
  HopperCall call(p, Kind::Backward);
  call.add(gradients);
  if (p.savesStates)
    call.add(saved);
  if (Error error = checkGradients(p, gradients))
    return error;
  return run(call, call.recall(), stream, allocate);
}

/// What a forward saves, dense and at no address, with memory for the states
/// of as many segments as there may be.
static Saved describeSaved(const Problem &p) {
  Saved saved;
  saved.writes = describeGradients(p).v;
  saved.states = saved.writes;
  int64_t H = p.valueHeads(), V = p.valueChannels(), K = p.keyChannels();
  saved.states.sizes = {p.tokens() + p.sequences(), H, V, K};
  saved.states.strides = {H * V * K, V * K, K, 1};
  return saved;
}

Error gdn::hopper::describeBackward(const Problem &p, std::string &facts) {
  Gradients gradients = describeGradients(p);
  Saved saved = describeSaved(p);
  HopperCall call(p, Kind::Backward);
  call.add(gradients);
  std::string forward = "null";
  if (p.savesStates) {
    call.add(saved);
    HopperCall saving(p, Kind::Saving);
    saving.add(saved);
    if (Error error = describe(saving, forward))
      return error;
  }
  if (Error error = describe(call, facts))
    return error;
  // The last character ends the object.
  facts.pop_back();
  facts += ", \"forward\": " + forward + "}";
  return {};
}

Error gdn::hopper::predictSaving(const Problem &problem, bool hasSegments,
                                 bool &pays) {
  HopperCall call(problem, Kind::Saving);
  int32_t answer = 0;
  if (Error error =
          errorOf(gdnCallSavingPays(call.get(), hasSegments, &answer)))
    return error;
  pays = answer;
  return {};
}
