//===- BridgeBackward.cpp - The function `backward` for TVM-FFI -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backward.h"
#include "BridgeArguments.h"
#include "BridgeFunction.h"
#include "BridgeWorkspace.h"
#include "HopperBackward.h"

using namespace gdn;
using namespace gdn::bridge;
using namespace gdn::cpu;

static Error run(Problem &problem, const Gradients &gradients,
                 const hopper::Saved &saved) {
  if (Error error = checkArguments(problem))
    return error;
  bool isOnCPU = problem.device.type == Device::CPU;
  if (problem.hasChannelGates() && !isOnCPU)
    return {"NotImplementedError",
            "g: expected gates [B, T, HV] for gradients on a GPU in this "
            "version, got one per channel"};
  if (Error error = checkDevice(problem.device))
    return error;
  if (Error error = checkAddresses(problem))
    return error;
  if (isOnCPU)
    return runBackward(problem, gradients);
  return hopper::runBackward(problem, gradients, saved,
                             streamOfCaller(problem.device.index),
                             allocateForCaller);
}

/// Number of v, in whose words messages speak of what is shaped or typed so.
static constexpr int kValues = 2;

/// Reads what a forward saved, or is to save: the two arguments from `first`.
static Error readSaved(const TVMFFIAny *first, Problem &problem,
                       hopper::Saved &saved) {
  for (auto [number, array] :
       {std::pair(0, &saved.writes), {1, &saved.states}}) {
    if (Error error = readArray(first[number], kValues, *array, problem))
      return error;
    if (Error error = checkMemory("saved", *array))
      return error;
  }
  return {};
}

GDN_FUNCTION(forward_saving) {
  return guarded([&] {
    Problem problem;
    hopper::Saved saved;
    constexpr int numTensors = kNumArrays + 2;
    if (count != numTensors + kNumOptions)
      return wrongCount("forward_saving", numTensors + kNumOptions, count);
    if (Error error = readCall(args, numTensors, problem))
      return raise(error);
    if (Error error = readSaved(args + kNumArrays, problem, saved))
      return raise(error);
    setDefaultScale(problem);
    if (Error error = check(problem))
      return raise(error);
    if (problem.device.type == Device::CPU)
      return raise({"NotImplementedError", "gdn: expected a GPU for a forward "
                                           "that saves, got the CPU"});
    if (Error error = hopper::runSaving(problem, saved,
                                        streamOfCaller(problem.device.index),
                                        allocateForCaller))
      return raise(error);
    return returnNothing(result);
  });
}

/// `backward`, and `backward_saved`, which takes two arrays more.
static int computeGradients(const char *name, bool readsSaved,
                            const TVMFFIAny *args, int32_t count,
                            TVMFFIAny *result) {
  return guarded([&] {
    Problem problem;
    Gradients gradients;
    Array *written[] = {&gradients.q,      &gradients.k,
                        &gradients.v,      &gradients.gate,
                        &gradients.beta,   &gradients.aLog,
                        &gradients.dtBias, &gradients.initialState};
    constexpr int numWritten = std::size(written);
    const int numTensors = kNumArrays + numWritten + (readsSaved ? 2 : 0);
    if (count != numTensors + kNumOptions)
      return wrongCount(name, numTensors + kNumOptions, count);
    problem.oName = "d_o";
    problem.finalStateName = "d_final_state";
    if (Error error = readCall(args, numTensors, problem))
      return raise(error);
    // The gradients are in the order of the inputs, whose names messages say.
    for (int i = 0; i < numWritten; ++i)
      if (Error error =
              readArray(args[kNumArrays + i], i, *written[i], problem))
        return raise(error);
    hopper::Saved saved;
    if (readsSaved)
      if (Error error =
              readSaved(args + kNumArrays + numWritten, problem, saved))
        return raise(error);
    if (args[numTensors].type_index == kTVMFFINone)
      setDefaultScale(problem);
    problem.savesStates = readsSaved;
    if (Error error = run(problem, gradients, saved))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(backward) {
  return computeGradients("backward", /*readsSaved=*/false, args, count,
                          result);
}

GDN_FUNCTION(backward_saved) {
  return computeGradients("backward_saved", /*readsSaved=*/true, args, count,
                          result);
}

/// Gives arrays the extents of a packed call. Their channels are of no account.
static void setShape(Problem &problem, int64_t sequences, int64_t tokens,
                     int64_t keyHeads, int64_t heads) {
  problem.q.rank = problem.k.rank = problem.v.rank = kMaxRank;
  problem.q.sizes = problem.k.sizes = {1, tokens, keyHeads, 1};
  problem.v.sizes = {1, tokens, heads, 1};
  problem.cuSeqlens.rank = 1;
  problem.cuSeqlens.sizes = {sequences + 1};
}

GDN_FUNCTION(saving_pays) {
  enum {
    Device,
    Sequences,
    Tokens,
    KeyHeads,
    Heads,
    HasSegments,
    Split,
    Count
  };
  if (count != Count)
    return wrongCount("saving_pays", Count, count);
  for (int i = 0; i < Count; ++i)
    if (args[i].type_index != kTVMFFIInt)
      return raise({"TypeError", "saving_pays: expected integers, got another "
                                 "type as argument #" +
                                     std::to_string(i)});
  return guarded([&] {
    Problem options;
    if (Error error = unpackOptions(args[Split].v_int64, options))
      return raise(error);
    Problem problem;
    static_cast<Options &>(problem) = options;
    problem.device = {cpu::Device::CUDA,
                      static_cast<int32_t>(args[Device].v_int64)};
    setShape(problem, args[Sequences].v_int64, args[Tokens].v_int64,
             args[KeyHeads].v_int64, args[Heads].v_int64);
    bool pays = false;
    if (Error error = hopper::predictSaving(
            problem, args[HasSegments].v_int64 != 0, pays))
      return raise(error);
    result->type_index = kTVMFFIBool;
    result->v_int64 = pays;
    return 0;
  });
}

GDN_FUNCTION(explain_backward) {
  return explainCall("explain_backward", args, count, result,
                     [](Problem &problem, std::string &facts) -> Error {
                       if (Error error = checkArguments(problem))
                         return error;
                       return hopper::describeBackward(problem, facts);
                     });
}
