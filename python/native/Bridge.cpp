//===- Bridge.cpp - The library's functions for TVM-FFI -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// TVM-FFI finds a function f of a library as the symbol __tvm_ffi_f, a plain C
// function of tagged values; tensors arrive as DLPack's DLTensor. Nothing of
// libtvm_ffi is linked: its functions that are called are weak, and Python has
// loaded the library by then.
//
//   forward(q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out,
//           final_state, scale, options, num_threads, max_seqlen)
//   forward_objects(exchange_api, tensors, scale, options, num_threads,
//           max_seqlen): the same for a tuple of tensors that have DLPack's
//           exchange functions; both are addresses, and the GIL is held
//   backward(q, ..., cu_seqlens, gradients of out and final_state, gradients of
//           q, k, v, g, beta, A_log, dt_bias and initial_state to be written,
//           scale, options, num_threads, max_seqlen): on a GPU in the form that
//           its kernels have (HopperBackward.h)
//   backward_saved(q, ..., gradients, writes, states, scale, ...): the same
//           on a GPU from what forward_saving wrote; v is not read
//   forward_saving(q, ..., final_state, writes, states, scale, options,
//           num_threads, max_seqlen): a forward on a GPU that writes these two
//           for its gradients (HopperBackward.h)
//   reads_objects(exchange_api) -> bool: whether it can
//   explain(descriptions, scale, options, num_threads, max_seqlen) -> JSON
//   explain_backward(descriptions, scale, options, num_threads, max_seqlen) ->
//           JSON: the kernels of gradients on a GPU
//   saving_pays(device, sequences, tokens, key_heads, heads, has_segments,
//           options) -> bool: whether a call that saves for its gradients is
//           predicted to take less time with them than one that does not
//   check_boundaries(cu_seqlens, tokens): the CPU's check of a call's
//           boundaries, for a copy of those that lie on a GPU
//   check_state_indices(state_indices, first_state, count): the same of the
//           rows of a pool
//   kernels() -> JSON
//
// A tensor may be None, and the scale, which is then K^(-1/2). `options` has a
// bit field each for the gate domain, the domain of beta and the switches, as
// the manifest (gdn/kernels.json) lists them; the order of the tensors is there
// too. `descriptions` are the tensors as 64-bit integers: the rank (or -1),
// DLPack's type code and bits, the device's type and index, the address (0
// where nobody knows it), extents and strides.
//
//===----------------------------------------------------------------------===//

#include "BridgeArguments.h"
#include "BridgeFunction.h"
#include "BridgeWorkspace.h"
#include "Check.h"
#include "Hopper.h"
#include "HopperBackward.h"
#include "HopperCall.h"
#include "KernelChoice.h"
#include "PythonObjects.h"

#include <algorithm>
#include <tvm/ffi/c_api.h>

using namespace gdn;
using namespace gdn::bridge;
using namespace gdn::cpu;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// What a call's arrays and options must be, wherever it runs.
static Error checkCall(Problem &problem) {
  if (Error error = check(problem))
    return error;
  return checkDevice(problem.device);
}

static Error runOnCPU(Problem &problem) {
  if (Error error = checkCall(problem))
    return error;
  if (Error error = checkAddresses(problem))
    return error;
  if (isCut(problem))
    return runInSegments(problem);
  KernelChoice chosen;
  if (Error error = chooseKernel(problem, chosen))
    return error;
  cpu::run(problem, chosen);
  return {};
}

static Error runOnGPU(Problem &problem) {
  const hopper::HopperCall call(problem, hopper::Kind::Forward);
  const GdnCallPlan *known = call.recall();
  if (Error error = known ? checkOverlaps(problem) : checkCall(problem))
    return error;
  if (Error error = checkAddresses(problem))
    return error;
  return hopper::run(call, known, streamOfCaller(problem.device.index),
                     allocateForCaller);
}

/// Runs a call whose arrays and options have been read.
static Error run(Problem &problem, const TVMFFIAny &scale) {
  if (scale.type_index == kTVMFFINone)
    setDefaultScale(problem);
  if (!problem.o.isPresent())
    return {"TypeError", "out: expected a tensor, got None"};
  bool isCPU = problem.device.type == Device::CPU;
  return isCPU ? runOnCPU(problem) : runOnGPU(problem);
}

GDN_FUNCTION(forward) {
  if (count != kNumArrays + kNumOptions)
    return wrongCount("forward", kNumArrays + kNumOptions, count);
  return guarded([&] {
    Problem problem;
    if (Error error = readCall(args, kNumArrays, problem))
      return raise(error);
    if (Error error = run(problem, args[kNumArrays]))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(forward_objects) {
  constexpr int numAddresses = 2;
  if (count != numAddresses + kNumOptions)
    return wrongCount("forward_objects", numAddresses + kNumOptions, count);
  return guarded([&] {
    if (args[0].type_index != kTVMFFIInt || args[1].type_index != kTVMFFIInt)
      return raise({"TypeError", "tensors: expected addresses"});
    const auto *api =
        reinterpret_cast<const DLPackExchangeAPI *>(args[0].v_int64);
    Problem problem;
    if (Error error = readOptions(args + numAddresses, problem))
      return raise(error);
    if (Error error = readObjects(
            *api, reinterpret_cast<void *>(args[1].v_int64), problem))
      return raise(error);
    WithoutGIL others;
    CallersEnvironment environment(*api, problem.device);
    if (Error error = run(problem, args[numAddresses]))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(reads_objects) {
  if (count != 1 || args[0].type_index != kTVMFFIInt)
    return raise({"TypeError", "exchange_api: expected an address"});
  result->type_index = kTVMFFIBool;
  result->v_int64 = canReadObjects(
      *reinterpret_cast<const DLPackExchangeAPI *>(args[0].v_int64));
  return 0;
}

static Error describeOnCPU(const Problem &problem, std::string &facts) {
  KernelChoice chosen;
  if (Error error = chooseKernel(problem, chosen))
    return error;
  facts = toJson(problem, chosen);
  return {};
}

GDN_FUNCTION(explain) {
  return explainCall("explain", args, count, result,
                     [](Problem &problem, std::string &facts) -> Error {
                       if (Error error = checkCall(problem))
                         return error;
                       bool isCPU = problem.device.type == Device::CPU;
                       return isCPU ? describeOnCPU(problem, facts)
                                    : hopper::describeForward(problem, facts);
                     });
}

/// Reads one array of a problem, which is a list of integers on the CPU, and
/// the integers behind it.
static Error readIntegers(const char *name, const TVMFFIAny *args,
                          int32_t count, Problem &problem, Array &list) {
  std::array<Array *, kNumArrays> arrays = arraysOf(problem);
  int index = std::find(arrays.begin(), arrays.end(), &list) - arrays.begin();
  if (Error error = readArray(args[0], index, list, problem))
    return error;
  bool isReadable =
      problem.device.type == Device::CPU && list.rank == 1 &&
      (list.element == Element::I32 || list.element == Element::I64);
  for (int32_t i = 1; i < count; ++i)
    isReadable &= args[i].type_index == kTVMFFIInt;
  if (isReadable)
    return {};
  return {"TypeError", std::string(name) +
                           ": expected a list of int32 or int64 on the CPU, "
                           "and integers"};
}

GDN_FUNCTION(check_boundaries) {
  if (count != 2)
    return wrongCount("check_boundaries", 2, count);
  return guarded([&] {
    Problem problem;
    Array &list = problem.cuSeqlens;
    if (Error error = readIntegers("cu_seqlens", args, count, problem, list))
      return raise(error);
    if (Error error = checkBoundaries(list, args[1].v_int64))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(check_state_indices) {
  if (count != 3)
    return wrongCount("check_state_indices", 3, count);
  return guarded([&] {
    Problem problem;
    Array &list = problem.stateIndices;
    if (Error error = readIntegers("state_indices", args, count, problem, list))
      return raise(error);
    int64_t first = args[1].v_int64, states = args[2].v_int64;
    if (Error error = checkStateRange(list, states))
      return raise(error);
    if (Error error = checkStateIndices(list, first, states))
      return raise(error);
    return returnNothing(result);
  });
}

GDN_FUNCTION(kernels) {
  return guarded([&] {
    const Isa *host = getHostIsa();
    std::string text = std::string("{\"isa\": \"") +
                       (host ? nameOf(*host) : "none") + "\", \"kernels\": [";
    const char *separator = "";
    for (const KernelSet &set : allKernels()) {
      text += std::string(separator) + "\"" + set.name + "\"";
      separator = ", ";
    }
    text += "], \"backward_kernels\": [";
    separator = "";
    for (const BackwardKernelSet &set : allBackwardKernels()) {
      text += std::string(separator) + "\"" + set.name + "\"";
      separator = ", ";
    }
    text += "], \"gpu_kernels\": [";
    separator = "";
    const GdnCallTable &table = hopper::allFunctions();
    for (int32_t i = 0; i < table.num_entries; ++i)
      for (int32_t j = 0; j < table.entries[i]->num_variants; ++j) {
        text += std::string(separator) + "\"" +
                table.entries[i]->variants[j].function->name + "\"";
        separator = ", ";
      }
    return returnString(text + "]}", result);
  });
}
