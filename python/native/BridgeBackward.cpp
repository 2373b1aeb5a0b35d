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

static Error run(Problem &problem, const Gradients &gradients) {
  if (Error error = checkArguments(problem))
    return error;
  if (Error error = checkDevice(problem.device))
    return error;
  if (Error error = checkAddresses(problem))
    return error;
  if (problem.device.type == Device::CPU)
    return runBackward(problem, gradients);
  return hopper::runBackward(problem, gradients,
                             streamOfCaller(problem.device.index),
                             allocateForCaller);
}

GDN_FUNCTION(backward) {
  return guarded([&] {
    Problem problem;
    Gradients gradients;
    Array *written[] = {&gradients.q,      &gradients.k,
                        &gradients.v,      &gradients.gate,
                        &gradients.beta,   &gradients.aLog,
                        &gradients.dtBias, &gradients.initialState};
    constexpr int numWritten = std::size(written);
    constexpr int numTensors = kNumArrays + numWritten;
    if (count != numTensors + kNumOptions)
      return wrongCount("backward", numTensors + kNumOptions, count);
    std::array<Array *, kNumArrays> arrays = arraysOf(problem);
    if (Error error = readOptions(args + numTensors, problem))
      return raise(error);
    for (int i = 0; i < kNumArrays; ++i)
      if (Error error = readArray(args[i], i, *arrays[i], problem))
        return raise(error);
    // The gradients are in the order of the inputs, whose names messages say.
    for (int i = 0; i < numWritten; ++i)
      if (Error error =
              readArray(args[kNumArrays + i], i, *written[i], problem))
        return raise(error);
    if (args[numTensors].type_index == kTVMFFINone)
      setDefaultScale(problem);
    if (Error error = run(problem, gradients))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(explain_backward) {
  if (count != 1 + kNumOptions)
    return wrongCount("explain_backward", 1 + kNumOptions, count);
  return guarded([&] {
    Problem problem;
    if (Error error = readDescribedCall(args, problem))
      return raise(error);
    if (Error error = checkArguments(problem))
      return raise(error);
    std::string facts;
    if (Error error = hopper::describeBackward(problem, facts))
      return raise(error);
    return returnString(facts, result);
  });
}
