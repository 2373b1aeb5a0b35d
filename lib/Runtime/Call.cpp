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
    if (operand.kind == GDN_OPERAND_ARGUMENT) {
      kernel.args[i] = call.args[operand.index];
      continue;
    }
    if (operand.kind == GDN_OPERAND_TEMPORARY) {
      describeTemporary(call, operand.index, i, workspace, kernel);
      continue;
    }
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
    if (GdnRuntimeStatus status =
            prepareLaunch(call, launch, workspace, kernel))
      return status;
    if (GdnRuntimeStatus status =
            checkArguments(*launch.kernel, kernel.args, launch.num_operands))
      return status;
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
  if (GdnRuntimeStatus status = checkFunction(function))
    return status;
  for (int i = 0; i < function->num_launches; ++i) {
    GdnKernelDesc desc;
    if (GdnRuntimeStatus status =
            copyDescription(function->launches[i].kernel, desc))
      return status;
  }
  Call call(*function, args);
  if (GdnRuntimeStatus status = prepareCall(call, num_args))
    return status;
  // Any workspace does: only its alignment is looked at.
  alignas(GDN_WORKSPACE_ALIGNMENT) static char workspace[1];
  uint32_t blocks[maxLaunches];
  KernelCall kernel;
  return checkLaunches(call, workspace, blocks, kernel);
}
