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

using namespace gdn;
using namespace gdn::bridge;
using namespace gdn::cpu;

static Error runOnCPU(Problem &problem, const Gradients &gradients) {
  if (problem.device.type != Device::CPU)
    return {"NotImplementedError",
            "gdn: expected tensors on the CPU, where alone there are kernels "
            "for gradients in this version, got tensors on " +
                nameOf(problem.device)};
  if (Error error = checkArguments(problem))
    return error;
  if (Error error = checkAddresses(problem))
    return error;
  return runBackward(problem, gradients);
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
    if (Error error = runOnCPU(problem, gradients))
      return raise(error);
    return returnNothing(result);
  });
}
