//===- Call.cpp - The arguments of a function's kernels -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is a constant table, from which the arguments of each kernel are
// put together here, and checked.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Error.h"

#include <utility>

using namespace gdn::runtime;

/// Describes a temporary as argument `index` of a kernel.
static void describeTemporary(const Call &call, int32_t number, int index,
                              void *workspace, KernelCall &kernel) {
  const GdnTemporaryDesc &temporary = call.function.temporaries[number];
  for (int d = 0; d < temporary.rank; ++d)
    kernel.shapes[index][d] = call.steps[temporary.shape[d]];
  auto *data = static_cast<char *>(workspace) + call.offsets[number];
  kernel.tensors[index] = {data, temporary.dtype, temporary.rank,
                           kernel.shapes[index], nullptr};
  kernel.args[index].kind = GDN_ARG_TENSOR;
  kernel.args[index].value.tensor = &kernel.tensors[index];
  kernel.origins[index] = {ValueOrigin::workspace, call.offsets[number]};
}

/// Puts an argument of the call, or a temporary, where a kernel's argument
/// `index` is.
static void describeBase(const Call &call, const GdnOperand &operand, int index,
                         void *workspace, KernelCall &kernel) {
  if (operand.kind == GDN_OPERAND_TEMPORARY)
    return describeTemporary(call, operand.index, index, workspace, kernel);
  kernel.args[index] = call.args[operand.index];
  kernel.origins[index] = {operand.index, 0};
}

/// Joins dimensions of an array to `dim`, which has the extent and the stride
/// of nothing so far.
static GdnRuntimeStatus joinDims(const char *name, const GdnTensor &base,
                                 const int64_t *strides, const GdnViewDim &dim,
                                 int64_t &extent, int64_t &stride) {
  extent = 1;
  stride = dim.last < dim.first ? 1 : strides[dim.last];
  bool isFirst = true;
  for (int d = dim.last; d >= dim.first; --d) {
    // What strides a dimension of one entry is of no account.
    if (base.shape[d] == 1)
      continue;
    if (std::exchange(isFirst, false))
      stride = strides[d];
    else if (base.shape[d] != 0 && extent != 0 && strides[d] != extent * stride)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected dimensions %d to %d of %s to lie one behind the "
                  "other, got a stride of %lld for %lld",
                  dim.first, dim.last, name, static_cast<long long>(strides[d]),
                  static_cast<long long>(extent * stride));
    extent *= base.shape[d];
  }
  return GDN_SUCCESS;
}

/// Describes a view as argument `index` of a kernel.
static GdnRuntimeStatus describeView(const Call &call, const GdnViewDesc &view,
                                     int index, void *workspace,
                                     KernelCall &kernel) {
  describeBase(call, view.base, index, workspace, kernel);
  const GdnTensor *found = kernel.args[index].value.tensor;
  if (!found)
    return GDN_SUCCESS;
  const GdnTensor base = *found;
  int64_t shape[maxRank], dense[maxRank];
  for (int64_t d = base.rank - 1, stride = 1; d >= 0; --d) {
    shape[d] = base.shape[d];
    dense[d] = stride;
    stride *= shape[d];
  }
  const char *name = view.base.kind == GDN_OPERAND_ARGUMENT
                         ? call.function.args[view.base.index].name
                         : "a temporary";
  int64_t offset = 0;
  auto step = [&](int32_t number, int64_t otherwise) {
    return number < 0 ? otherwise : call.steps[number];
  };
  GdnTensor whole = base;
  whole.shape = shape;
  for (int d = 0; d < view.rank; ++d) {
    const GdnViewDim &dim = view.dims[d];
    int64_t extent, stride;
    GDN_TRY(joinDims(name, whole, base.strides ? base.strides : dense, dim,
                     extent, stride));
    int64_t first = step(dim.offset, 0), every = step(dim.stride, 1);
    int64_t count = step(dim.extent, extent), last = 0;
    bool overflows =
        count > 0 && (__builtin_mul_overflow(count - 1, every, &last) ||
                      __builtin_add_overflow(first, last, &last));
    if (first < 0 || every < 1 || count < 0 ||
        (count > 0 && (overflows || last >= extent)))
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected a part of the %lld entries along dimension %d of "
                  "%s, got %lld from %lld on, every %lld",
                  static_cast<long long>(extent), dim.first, name,
                  static_cast<long long>(count), static_cast<long long>(first),
                  static_cast<long long>(every));
    kernel.shapes[index][d] = count;
    // Where no entry, or no second one is, these may be of any size.
    kernel.strides[index][d] = count > 1 ? every * stride : stride;
    offset += count > 0 ? first * stride : 0;
  }
  uint64_t bytes = static_cast<uint64_t>(offset) * getElementBytes(base.dtype);
  kernel.tensors[index] = {static_cast<char *>(base.data) + bytes, base.dtype,
                           view.rank, kernel.shapes[index],
                           kernel.strides[index]};
  kernel.args[index].value.tensor = &kernel.tensors[index];
  kernel.origins[index].offset += bytes;
  return GDN_SUCCESS;
}

static GdnRuntimeStatus
countBlocks(const Call &call, const GdnLaunchDesc &launch, uint32_t &count) {
  int64_t blocks = 1;
  bool fits = true;
  for (int32_t step : launch.grid)
    fits = fits && call.steps[step] >= 0 &&
           !__builtin_mul_overflow(blocks, call.steps[step], &blocks);
  if (!fits || blocks > INT32_MAX)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a grid of 0 to 2^31 - 1 blocks for kernel '%s', got "
                "%lld x %lld x %lld",
                launch.kernel->symbol,
                static_cast<long long>(call.steps[launch.grid[0]]),
                static_cast<long long>(call.steps[launch.grid[1]]),
                static_cast<long long>(call.steps[launch.grid[2]]));
  count = static_cast<uint32_t>(blocks);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::prepareLaunch(const Call &call,
                                             const GdnLaunchDesc &launch,
                                             void *workspace,
                                             KernelCall &kernel) {
  for (int i = 0; i < launch.num_operands; ++i) {
    const GdnOperand &operand = launch.operands[i];
    if (operand.kind == GDN_OPERAND_VIEW) {
      GDN_TRY(describeView(call, call.function.views[operand.index], i,
                           workspace, kernel));
      continue;
    }
    if (operand.kind != GDN_OPERAND_INDEX) {
      describeBase(call, operand, i, workspace, kernel);
      continue;
    }
    kernel.origins[i] = {ValueOrigin::size, 0};
    int64_t value = call.steps[operand.index];
    kernel.args[i].kind = launch.kernel->args[i].kind;
    kernel.args[i].value.i64 = value;
    if (kernel.args[i].kind == GDN_ARG_I64)
      continue;
    if (value != static_cast<int32_t>(value))
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected %s of kernel '%s' to fit 32 bits, got %lld",
                  launch.kernel->args[i].name, launch.kernel->symbol,
                  static_cast<long long>(value));
    kernel.args[i].value.i32 = static_cast<int32_t>(value);
  }
  return countBlocks(call, launch, kernel.blocks);
}

GdnRuntimeStatus gdn::runtime::checkLaunches(const Call &call, void *workspace,
                                             uint32_t *blocks,
                                             KernelCall &kernel) {
  for (int i = 0; i < call.function.num_launches; ++i) {
    const GdnLaunchDesc &launch = call.function.launches[i];
    GDN_TRY(prepareLaunch(call, launch, workspace, kernel));
    GDN_TRY(checkArguments(*launch.kernel, kernel.args, launch.num_operands));
    blocks[i] = kernel.blocks;
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnFunctionCheck(const GdnFunctionDesc *function,
                                  const GdnArg *args, int32_t num_args) {
  const LoadedFunction *loaded = function ? getLoaded(*function) : nullptr;
  if (loaded) {
    HeldCall held;
    if (held.find(loaded->known, args, num_args))
      return GDN_SUCCESS;
  }
  GDN_TRY(checkFunction(function));
  for (int i = 0; i < function->num_launches; ++i) {
    GdnKernelDesc desc;
    GDN_TRY(copyDescription(function->launches[i].kernel, desc));
  }
  Call call(*function, args);
  GDN_TRY(prepareCall(call, num_args));
  // Any workspace does: only its alignment is looked at.
  alignas(GDN_WORKSPACE_ALIGNMENT) static char workspace[1];
  uint32_t blocks[maxLaunches];
  KernelCall kernel;
  return checkLaunches(call, workspace, blocks, kernel);
}
