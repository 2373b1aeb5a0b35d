//===- HopperLaunch.cpp - Launch the kernels of a call --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

using namespace gdn::hopper;
using gdn::cpu::Array;

static int32_t dtypeOf(Element element) {
  switch (element) {
#define GDN_TYPE(key, ...)                                                     \
  case Element::key:                                                           \
    return GDN_DTYPE_##key;
#include "Manifest.inc"
  case Element::Other:
    break;
  }
  return 0;
}

Error gdn::hopper::errorOf(GdnRuntimeStatus status) {
  if (status == GDN_SUCCESS)
    return {};
  bool isArgument = status == GDN_ERROR_INVALID_ARGUMENT;
  return {isArgument ? "ValueError" : "RuntimeError",
          std::string("gdn: ") + gdnGetLastErrorMessage()};
}

void Arguments::add(const Array &array) {
  if (!array.isPresent())
    return;
  Element element = array.element;
  const int64_t *strides = array.strides.data();
  // Boundaries of 64 bits are their lower halves, with a stride of 2.
  if (element == Element::I64) {
    element = Element::I32;
    boundaryStride = array.strides[0] * 2;
    strides = &boundaryStride;
  }
  tensors[count] = {array.data, dtypeOf(element), array.rank,
                    array.sizes.data(), strides};
  args[count].kind = GDN_ARG_TENSOR;
  args[count].value.tensor = &tensors[count];
  ++count;
}

/// A state [K, V] of each sequence and head as one [V, K], and the other way
/// round.
static Array turnState(Array state) {
  std::swap(state.sizes[2], state.sizes[3]);
  std::swap(state.strides[2], state.strides[3]);
  return state;
}

/// What a call gives the argument of that word of gdn.cut.
static int64_t valueOf(const char *name, const CallCut &cut) {
  if (std::strcmp(name, "segment_length") == 0)
    return cut.length;
  if (std::strcmp(name, "segment_parts") == 0)
    return cut.parts;
  assert(std::strcmp(name, "longer_segment_length") == 0 &&
         "the manifest's functions have no other scalars");
  return cut.longerLength;
}

void Arguments::addCut(const GdnFunctionDesc &function, const CallCut &cut) {
  for (; count < function.num_args && function.args[count].kind == GDN_ARG_I64;
       ++count) {
    args[count].kind = GDN_ARG_I64;
    args[count].value.i64 = valueOf(function.args[count].name, cut);
  }
}

void Arguments::addNamed(const GdnFunctionDesc &function, const char *name,
                         const Array &array, bool isTurned) {
  const GdnArgDesc *arg =
      count < function.num_args ? &function.args[count] : nullptr;
  if (!arg || !(arg->flags & GDN_ARG_FLAG_OPTIONAL) ||
      std::strcmp(arg->name, name) != 0)
    return add(array);
  if (array.isPresent())
    return add(isTurned ? turned[numTurned++] = turnState(array) : array);
  args[count].kind = GDN_ARG_TENSOR;
  args[count].value.tensor = nullptr;
  ++count;
}

void Arguments::addAll(const Problem &p, const GdnFunctionDesc &function,
                       StateLayout states, const CallCut &cut) {
  bool isTurned = p.stateVFirst != (states == StateLayout::VK);
#define GDN_HOPPER_ARGUMENT(field, name)                                       \
  addCut(function, cut);                                                       \
  addNamed(function, name, p.field, isTurned);
#include "Manifest.inc"
}

Error gdn::hopper::prepareKernel(const Kernel &kernel, int32_t device) {
  static const auto ready =
      std::make_unique<ReadyDevices[]>(allKernels().size());
  return ready[&kernel - allKernels().data()].prepare(kernel.function, device);
}

/// Bytes of device memory that the launches of a call want besides its arrays.
static Error countWorkspace(const GdnFunctionDesc &function,
                            const Arguments &args, uint64_t &bytes) {
  bytes = 0;
  if (function.num_temporaries == 0)
    return {};
  return errorOf(gdnFunctionGetWorkspaceBytes(&function, args.data(),
                                              args.size(), &bytes));
}

Error gdn::hopper::launch(const GdnFunctionDesc &function, int32_t device,
                          const Arguments &arguments, void *stream,
                          Allocate allocate) {
  uint64_t bytes = 0;
  if (Error error = countWorkspace(function, arguments, bytes))
    return error;
  std::unique_ptr<Workspace> workspace;
  if (bytes)
    if (Error error = allocate(device, stream, bytes, workspace))
      return error;
  return errorOf(gdnFunctionLaunchOn(
      &function, device, arguments.data(), arguments.size(),
      workspace ? workspace->data : nullptr, bytes, stream));
}

static void addAll(const Problem &p, const Plan &plan, Arguments &arguments) {
  const Kernel &kernel = *plan.kernel;
  // A function for whole sequences takes states of any strides as [K, V],
  // whatever form of a call it is listed for.
  StateLayout states =
      kernel.cut == Cut::None ? StateLayout::KV : kernel.traits.stateLayout;
  arguments.addAll(p, *kernel.function, states, plan.cut);
}

Error gdn::hopper::checkLaunch(const Problem &p, KernelChoice &chosen) {
  const Kernel &kernel = *chosen.plan.kernel;
  Arguments arguments;
  addAll(p, chosen.plan, arguments);
  if (Error error = errorOf(gdnFunctionCheck(kernel.function, arguments.data(),
                                             arguments.size())))
    return error;
  return countWorkspace(*kernel.function, arguments, chosen.workspaceBytes);
}

Error gdn::hopper::run(const Problem &p, const Plan &plan, void *stream,
                       Allocate allocate) {
  const Kernel &kernel = *plan.kernel;
  if (Error error = prepareKernel(kernel, p.device.index))
    return error;
  Arguments arguments;
  addAll(p, plan, arguments);
  return launch(*kernel.function, p.device.index, arguments, stream, allocate);
}
