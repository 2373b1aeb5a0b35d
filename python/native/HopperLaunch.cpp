//===- HopperLaunch.cpp - Launch the kernels of a call --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

using namespace gdn::hopper;
using gdn::cpu::Array;

int32_t gdn::hopper::dtypeOf(Element element) {
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

Error gdn::hopper::readChip(int32_t device, cost::Chip &chip) {
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (Error error = errorOf(gdnDeviceGetInfo(device, &info)))
    return {"RuntimeError", error.message};
  chip = *cost::findChip("sm_90a", std::max(info.multiprocessors, 1));
  return {};
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

void Arguments::addCut(const GdnFunctionDesc &function, const CallCut &cut) {
  for (; count < function.num_args && function.args[count].kind == GDN_ARG_I64;
       ++count) {
    args[count].kind = GDN_ARG_I64;
    args[count].value.i64 = cut.length;
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
                       const CallCut &cut) {
#define GDN_HOPPER_ARGUMENT(field, operand, name)                              \
  addCut(function, cut);                                                       \
  addNamed(function, operand, p.field, p.stateVFirst);
#include "Manifest.inc"
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
