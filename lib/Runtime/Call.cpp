//===- Call.cpp - Calls of functions --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is a constant table, and this file its interpreter: it puts the
// arguments of each kernel together and launches it. A call works in fixed
// buffers on the stack, as a launch does.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Error.h"

using namespace gdn::runtime;

namespace {
/// The arguments of one kernel. Temporaries are described here, so the object
/// stays where it is.
struct KernelCall {
  GdnArg args[maxArgs];
  GdnTensor tensors[maxArgs];
  int64_t shapes[maxArgs][maxRank];
  GdnGrid grid;
};
} // namespace

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
chooseBlocks(const Call &call, const GdnLaunchDesc &launch, GdnGrid &grid) {
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
  grid = {static_cast<uint32_t>(blocks), 1, 1};
  return GDN_SUCCESS;
}

/// Puts the arguments of a launch together.
static GdnRuntimeStatus prepareLaunch(const Call &call,
                                      const GdnLaunchDesc &launch,
                                      void *workspace, KernelCall &kernel) {
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
  return chooseBlocks(call, launch, kernel.grid);
}

static GdnRuntimeStatus checkWorkspace(const Call &call, const void *workspace,
                                       size_t bytes) {
  if (call.workspaceBytes && (bytes < call.workspaceBytes || !workspace))
    return fail(GDN_ERROR_WORKSPACE_TOO_SMALL,
                "expected a workspace of %llu bytes for '%s', got %zu",
                static_cast<unsigned long long>(call.workspaceBytes),
                call.function.name, workspace ? bytes : 0);
  if (reinterpret_cast<uintptr_t>(workspace) % GDN_WORKSPACE_ALIGNMENT)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a workspace aligned to %d bytes, got address %p",
                GDN_WORKSPACE_ALIGNMENT, workspace);
  return GDN_SUCCESS;
}

/// Says no to a function whose description nobody has checked yet: a kernel in
/// its place says that gdnFunctionPrepare has. Without kernels it is done here.
static GdnRuntimeStatus checkPrepared(const GdnFunctionDesc &function) {
  if (function.version != GDN_RUNTIME_VERSION ||
      function.struct_size < sizeof(function) || function.num_launches <= 0 ||
      !function.kernels)
    return checkFunction(&function);
  for (int i = 0; i < function.num_launches; ++i)
    if (!__atomic_load_n(&function.kernels[i], __ATOMIC_ACQUIRE))
      return fail(GDN_ERROR_NOT_PREPARED,
                  "expected function '%s' to be prepared, got no "
                  "gdnFunctionPrepare for it",
                  function.name);
  return GDN_SUCCESS;
}

/// What is wrong with the arguments of any launch.
static GdnRuntimeStatus checkLaunches(const Call &call, void *workspace) {
  for (int i = 0; i < call.function.num_launches; ++i) {
    const GdnLaunchDesc &launch = call.function.launches[i];
    KernelCall kernel;
    if (GdnRuntimeStatus status =
            prepareLaunch(call, launch, workspace, kernel))
      return status;
    if (GdnRuntimeStatus status =
            checkArguments(*launch.kernel, kernel.args, launch.num_operands))
      return status;
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnFunctionCheck(const GdnFunctionDesc *function,
                                  const GdnArg *args, int32_t num_args) {
  if (GdnRuntimeStatus status = checkFunction(function))
    return status;
  for (int i = 0; i < function->num_launches; ++i) {
    GdnKernelDesc desc;
    if (GdnRuntimeStatus status =
            copyDescription(function->launches[i].kernel, desc))
      return status;
  }
  Call call = {*function, args, {}, {}, 0, {}};
  if (GdnRuntimeStatus status = prepareCall(call, num_args))
    return status;
  // Any workspace does: only its alignment is looked at.
  alignas(GDN_WORKSPACE_ALIGNMENT) static char workspace[1];
  return checkLaunches(call, workspace);
}

static const GdnKernel *getKernel(const GdnFunctionDesc &function, int index) {
  return static_cast<const GdnKernel *>(
      __atomic_load_n(&function.kernels[index], __ATOMIC_ACQUIRE));
}

/// Finds the device of the launches, and says no if a kernel is not ready
/// there.
static GdnRuntimeStatus checkReady(const GdnFunctionDesc &function,
                                   void *stream, int32_t &device) {
  const Driver *driver;
  if (GdnRuntimeStatus status = openDriver(driver))
    return status;
  if (device < 0) {
    ScopedContext scope(*driver);
    if (GdnRuntimeStatus status = enterStream(
            *driver, static_cast<CUstream>(stream), device, scope, device))
      return status;
  }
  for (int i = 0; i < function.num_launches; ++i)
    if (GdnRuntimeStatus status = checkReady(*getKernel(function, i), device))
      return status;
  return GDN_SUCCESS;
}

/// gdnFunctionLaunch, on a device unless it is negative.
static GdnRuntimeStatus launch(const GdnFunctionDesc *function, int32_t device,
                               const GdnArg *args, int32_t num_args,
                               void *workspace, size_t workspace_bytes,
                               void *stream) {
  if (!function)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a function description, got null");
  if (GdnRuntimeStatus status = checkPrepared(*function))
    return status;
  Call call = {*function, args, {}, {}, 0, {}};
  if (GdnRuntimeStatus status = prepareCall(call, num_args))
    return status;
  if (GdnRuntimeStatus status =
          checkWorkspace(call, workspace, workspace_bytes))
    return status;
  // What is wrong with any launch is said before the first one runs; a single
  // launch checks itself.
  if (function->num_launches > 1) {
    if (GdnRuntimeStatus status = checkLaunches(call, workspace))
      return status;
    if (GdnRuntimeStatus status = checkReady(*function, stream, device))
      return status;
  }
  for (int i = 0; i < function->num_launches; ++i) {
    const GdnLaunchDesc &launch = function->launches[i];
    KernelCall kernel;
    if (GdnRuntimeStatus status =
            prepareLaunch(call, launch, workspace, kernel))
      return status;
    if (GdnRuntimeStatus status = launchKernel(
            getKernel(*function, i), kernel.args, launch.num_operands, nullptr,
            0, &kernel.grid, stream, device))
      return status;
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnFunctionLaunch(const GdnFunctionDesc *function,
                                   const GdnArg *args, int32_t num_args,
                                   void *workspace, size_t workspace_bytes,
                                   void *stream) {
  return launch(function, /*device=*/-1, args, num_args, workspace,
                workspace_bytes, stream);
}

GdnRuntimeStatus gdnFunctionLaunchOn(const GdnFunctionDesc *function,
                                     int32_t device, const GdnArg *args,
                                     int32_t num_args, void *workspace,
                                     size_t workspace_bytes, void *stream) {
  const Driver *driver;
  if (GdnRuntimeStatus status = openDevice(device, driver))
    return status;
  return launch(function, device, args, num_args, workspace, workspace_bytes,
                stream);
}
