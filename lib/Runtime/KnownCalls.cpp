//===- KnownCalls.cpp - Calls like earlier ones ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownCalls.h"
#include "Kernel.h"

#include <algorithm>
#include <cstring>
#include <new>

using namespace gdn::runtime;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// Parts of one allocation, which are only counted before it is there.
struct Parts {
  unsigned char *memory;
  size_t bytes = 0;

  template <typename T> T *take(size_t count) {
    bytes = (bytes + alignof(T) - 1) / alignof(T) * alignof(T);
    size_t offset = bytes;
    bytes += count * sizeof(T);
    return memory ? reinterpret_cast<T *>(memory + offset) : nullptr;
  }
};

/// Parameters lie as they do in a ParameterBuffer.
struct alignas(64) ParameterLine {
  unsigned char bytes[64];
};
} // namespace

static constexpr std::align_val_t lineAlignment{alignof(ParameterLine)};

/// Values of a key: of an array whether it is there, extents and strides, of a
/// scalar itself.
static size_t getKeyLength(const GdnArgDesc *args, int32_t numArgs) {
  size_t length = 0;
  for (int i = 0; i < numArgs; ++i)
    length += args[i].kind == GDN_ARG_TENSOR
                  ? 1 + 2 * static_cast<size_t>(args[i].rank)
                  : 1;
  return length;
}

static uint32_t getParametersBytes(const GdnKernel &kernel) {
  const GdnKernelDesc &desc = kernel.desc;
  if (desc.num_params == 0)
    return 0;
  int last = desc.num_params - 1;
  return kernel.offsets[last] + getParamBytes(desc, desc.params[last]);
}

/// Gives a call its part.
static void lay(KnownCall &call, Parts &parts, const GdnArgDesc *args,
                int32_t numArgs, const CallLaunch *launches, int numLaunches) {
  call.key = parts.take<int64_t>(getKeyLength(args, numArgs));
  call.hasElements = parts.take<bool>(static_cast<size_t>(numArgs));
  call.launches = parts.take<KnownLaunch>(static_cast<size_t>(numLaunches));
  size_t numValues = 0;
  for (int i = 0; i < numLaunches; ++i) {
    const GdnKernel &kernel = *launches[i].kernel;
    auto numParams = static_cast<size_t>(kernel.desc.num_params);
    numValues += numParams;
    auto *lines = parts.take<ParameterLine>(
        (getParametersBytes(kernel) + sizeof(ParameterLine) - 1) /
        sizeof(ParameterLine));
    void **places = parts.take<void *>(numParams);
    if (parts.memory)
      call.launches[i].parameters = {lines->bytes, places};
  }
  call.values = parts.take<KnownValue>(numValues);
}

/// The argument of the call that has the memory of a kernel's; -1 for none.
static int32_t getArgument(const CallLaunch &launch, int32_t arg) {
  if (!launch.operands)
    return arg;
  GdnOperand operand = launch.operands[arg];
  if (operand.kind == GDN_OPERAND_VIEW)
    operand = launch.views[operand.index].base;
  return operand.kind == GDN_OPERAND_ARGUMENT ? operand.index : -1;
}

/// The alignment in bytes that a kernel asks of an array.
static uint32_t getAskedAlignment(const GdnKernelDesc &desc, int32_t arg) {
  uint32_t alignment = getAlignment(desc.args[arg]);
  for (int map = 0; map < desc.num_tensor_maps; ++map)
    if (desc.tensor_maps[map].arg == arg)
      alignment = std::max(alignment, mapAlignment);
  return alignment;
}

KnownCalls *KnownCalls::create(const GdnArgDesc *args, int32_t numArgs,
                               const CallLaunch *launches, int numLaunches,
                               bool isOfFunction) {
  Parts counted = {nullptr};
  counted.take<KnownCalls>(1);
  KnownCall any = {};
  for (unsigned i = 0; i < size; ++i)
    lay(any, counted, args, numArgs, launches, numLaunches);
  void *memory = operator new(counted.bytes, lineAlignment, std::nothrow);
  if (!memory)
    return nullptr;
  memset(memory, 0, counted.bytes);
  Parts parts = {static_cast<unsigned char *>(memory)};
  auto *calls = new (parts.take<KnownCalls>(1)) KnownCalls();
  calls->args = args;
  calls->numArgs = numArgs;
  calls->isOfFunction = isOfFunction;
  for (KnownCall &call : calls->list)
    lay(call, parts, args, numArgs, launches, numLaunches);

  for (int i = 0; i < numArgs; ++i)
    calls->addressMasks[i] =
        args[i].kind == GDN_ARG_TENSOR ? getAlignment(args[i]) - 1 : 0;
  for (int i = 0; i < numLaunches; ++i) {
    const GdnKernelDesc &desc = launches[i].kernel->desc;
    for (int arg = 0; arg < desc.num_args; ++arg) {
      int32_t own = getArgument(launches[i], arg);
      if (own >= 0 && desc.args[arg].kind == GDN_ARG_TENSOR)
        calls->addressMasks[own] |= getAskedAlignment(desc, arg) - 1;
    }
  }
  return calls;
}

void KnownCalls::destroy(KnownCalls *calls) {
  operator delete(calls, lineAlignment);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// What the key begins an array with.
static int64_t describe(const GdnTensor *tensor) {
  return !tensor ? 0 : tensor->strides ? 2 : 1;
}

/// A sum over what the key says of the first argument.
static uint64_t getHint(const GdnArg *args, int32_t numArgs) {
  if (numArgs <= 0 || !args || args[0].kind != GDN_ARG_TENSOR ||
      !args[0].value.tensor)
    return 0;
  const GdnTensor &tensor = *args[0].value.tensor;
  uint64_t sum = 0;
  int rank = tensor.shape && tensor.rank <= maxRank ? tensor.rank : 0;
  for (int d = 0; d < rank; ++d)
    sum = 31 * sum + static_cast<uint64_t>(tensor.shape[d]);
  for (int d = 0; d < rank && tensor.strides; ++d)
    sum = 31 * sum + static_cast<uint64_t>(tensor.strides[d]);
  return sum;
}

bool KnownCalls::isKey(int32_t arg) const {
  return isOfFunction && args[arg].kind != GDN_ARG_TENSOR &&
         args[arg].kind != GDN_ARG_F32;
}

bool KnownCalls::fits(const KnownCall &call, const GdnArg *given,
                      int32_t numGiven) const {
  if (!call.isKnown || numGiven != numArgs || (numGiven > 0 && !given))
    return false;
  const int64_t *next = call.key;
  for (int i = 0; i < numGiven; ++i) {
    if (given[i].kind != args[i].kind)
      return false;
    if (isKey(i) && *next++ != getInteger(given[i]))
      return false;
    if (given[i].kind != GDN_ARG_TENSOR)
      continue;
    const GdnTensor *tensor = given[i].value.tensor;
    if (*next++ != describe(tensor))
      return false;
    if (!tensor)
      continue;
    if (tensor->dtype != args[i].dtype || tensor->rank != args[i].rank ||
        (tensor->rank && !tensor->shape))
      return false;
    int64_t difference = 0;
    for (int d = 0; d < tensor->rank; ++d)
      difference |= *next++ ^ tensor->shape[d];
    for (int d = 0; d < tensor->rank && tensor->strides; ++d)
      difference |= *next++ ^ tensor->strides[d];
    auto address = reinterpret_cast<uintptr_t>(tensor->data);
    if (difference ||
        (call.hasElements[i] && (!address || address & addressMasks[i])))
      return false;
  }
  return true;
}

void KnownCalls::noteKey(KnownCall &call, const GdnArg *given) const {
  call.hint.store(getHint(given, numArgs), std::memory_order_relaxed);
  call.isKnown = false;
  call.mayMove = true;
  call.workspaceBytes = 0;
  call.numValues = 0;
  int64_t *next = call.key;
  for (int i = 0; i < numArgs; ++i) {
    if (isKey(i))
      *next++ = getInteger(given[i]);
    if (given[i].kind != GDN_ARG_TENSOR)
      continue;
    const GdnTensor *tensor = given[i].value.tensor;
    *next++ = describe(tensor);
    call.hasElements[i] = !isEmpty(tensor);
    if (!tensor)
      continue;
    for (int d = 0; d < tensor->rank; ++d)
      *next++ = tensor->shape[d];
    for (int d = 0; d < tensor->rank && tensor->strides; ++d)
      *next++ = tensor->strides[d];
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void KnownCall::addLaunch(int index, const GdnKernel &kernel,
                          const GdnArg *args, const ValueOrigin *origins) {
  const GdnKernelDesc &desc = kernel.desc;
  auto originOf = [&](int32_t arg) {
    return origins ? origins[arg] : ValueOrigin{arg, 0};
  };
  for (int i = 0; i < desc.num_args; ++i) {
    ValueOrigin from = originOf(i);
    if (from.arg >= 0 && desc.args[i].kind == GDN_ARG_TENSOR &&
        from.offset % getAskedAlignment(desc, i) != 0)
      mayMove = false;
  }
  void **places = launches[index].parameters.places;
  for (int i = 0; i < desc.num_params; ++i) {
    const GdnParamDesc &param = desc.params[i];
    auto *place = static_cast<unsigned char *>(places[i]);
    bool isMap = param.kind == GDN_PARAM_TENSOR_MAP;
    if (isMap || param.kind == GDN_PARAM_POINTER) {
      int arg = isMap ? desc.tensor_maps[param.index].arg : param.index;
      const GdnTensor *tensor = args[arg].value.tensor;
      // The zeros of what is absent stay, and those of a map over no elements.
      if (isMap ? isEmpty(tensor) : !tensor)
        continue;
      values[numValues++] = {
          isMap ? KnownValue::Kind::TensorMap : KnownValue::Kind::Address,
          originOf(arg), reinterpret_cast<uintptr_t>(tensor->data), place};
      continue;
    }
    // A function's kernels have no workspace of their own.
    if (param.kind == GDN_PARAM_WORKSPACE && !origins) {
      uintptr_t address;
      memcpy(&address, place, sizeof(address));
      values[numValues++] = {KnownValue::Kind::Address,
                             {ValueOrigin::workspace, 0},
                             address,
                             place};
    }
    if (param.kind != GDN_PARAM_SCALAR)
      continue;
    ValueOrigin from = originOf(param.index);
    if (from.arg != ValueOrigin::size)
      values[numValues++] = {getParamBytes(desc, param) == 8
                                 ? KnownValue::Kind::Scalar64
                                 : KnownValue::Kind::Scalar32,
                             from, 0, place};
  }
}

bool KnownCall::rewrite(const Driver &driver, const GdnArg *args,
                        void *workspace) {
  for (int i = 0; i < numValues; ++i) {
    KnownValue &value = values[i];
    if (value.kind >= KnownValue::Kind::Scalar32) {
      memcpy(value.place, &args[value.origin.arg].value,
             value.kind == KnownValue::Kind::Scalar64 ? 8 : 4);
      continue;
    }
    const ValueOrigin &origin = value.origin;
    void *base = origin.arg == ValueOrigin::workspace
                     ? workspace
                     : args[origin.arg].value.tensor->data;
    uintptr_t address = reinterpret_cast<uintptr_t>(base) + origin.offset;
    if (address == value.address)
      continue;
    if (value.kind == KnownValue::Kind::Address) {
      memcpy(value.place, &address, sizeof(address));
    } else if (!moveMap(driver, reinterpret_cast<void *>(address),
                        value.place)) {
      isKnown = false;
      return false;
    }
    value.address = address;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Holding
//===----------------------------------------------------------------------===//

bool HeldCall::hold(KnownCall &known) {
  if (known.isHeld.test_and_set(std::memory_order_acquire))
    return false;
  call = &known;
  return true;
}

void HeldCall::release() {
  if (call)
    call->isHeld.clear(std::memory_order_release);
  call = nullptr;
}

KnownCall *HeldCall::find(KnownCalls *calls, const GdnArg *args,
                          int32_t numArgs) {
  if (!calls)
    return nullptr;
  uint64_t hint = getHint(args, numArgs);
  for (KnownCall &known : calls->list) {
    if (known.hint.load(std::memory_order_relaxed) != hint || !hold(known))
      continue;
    if (calls->fits(known, args, numArgs))
      return call;
    release();
  }
  return nullptr;
}

KnownCall *HeldCall::note(KnownCalls *calls, const GdnArg *args) {
  if (!calls)
    return nullptr;
  if (!call) {
    unsigned place = calls->oldest.fetch_add(1, std::memory_order_relaxed);
    if (!hold(calls->list[place % KnownCalls::size]))
      return nullptr;
  }
  calls->noteKey(*call, args);
  return call;
}
