//===- Call.cpp - Calls of functions --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is a constant table, and this file its interpreter: index steps
// give extents and grids, temporaries lie one behind the other in the
// workspace. A call works in fixed buffers on the stack, as a launch does.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

#include <algorithm>

using namespace gdn::runtime;

namespace {
/// What a call knows once its arguments are checked.
struct Call {
  const GdnFunctionDesc &function;
  const GdnArg *args;
  int64_t steps[maxSteps];
  /// Steps that the arguments at hand are enough for.
  bool known[maxSteps];
  uint64_t workspaceBytes;
  /// Where the temporaries begin in the workspace.
  uint64_t offsets[maxTemporaries];
};

/// The arguments of one kernel. Temporaries are described here, so the object
/// stays where it is.
struct KernelCall {
  GdnArg args[maxArgs];
  GdnTensor tensors[maxArgs];
  int64_t shapes[maxArgs][maxRank];
  GdnGrid grid;
};
} // namespace

/// Computes `left op right`; false where the result does not fit or a divisor
/// is not above 0.
static bool compute(int32_t kind, int64_t left, int64_t right,
                    int64_t &result) {
  bool divides = kind == GDN_INDEX_DIVIDE || kind == GDN_INDEX_DIVIDE_UP ||
                 kind == GDN_INDEX_REMAINDER;
  if (divides && right <= 0)
    return false;
  int64_t rest = divides ? (left % right + right) % right : 0;
  switch (kind) {
  case GDN_INDEX_ADD:
    return !__builtin_add_overflow(left, right, &result);
  case GDN_INDEX_SUBTRACT:
    return !__builtin_sub_overflow(left, right, &result);
  case GDN_INDEX_MULTIPLY:
    return !__builtin_mul_overflow(left, right, &result);
  case GDN_INDEX_DIVIDE:
  case GDN_INDEX_DIVIDE_UP:
    result = left / right - (left % right < 0);
    result += kind == GDN_INDEX_DIVIDE_UP && rest;
    return true;
  case GDN_INDEX_REMAINDER:
    result = rest;
    return true;
  case GDN_INDEX_MINIMUM:
    result = std::min(left, right);
    return true;
  default:
    result = std::max(left, right);
    return true;
  }
}

/// Computes the steps that the first `numArgs` arguments are enough for.
static GdnRuntimeStatus computeSteps(Call &call, int32_t numArgs) {
  const GdnFunctionDesc &function = call.function;
  for (int i = 0; i < function.num_steps; ++i) {
    const GdnIndexStep &step = function.steps[i];
    int64_t &result = call.steps[i];
    bool isConstant = step.kind == GDN_INDEX_CONSTANT;
    bool isExtent = step.kind == GDN_INDEX_EXTENT;
    call.known[i] = isConstant || (isExtent && step.left < numArgs) ||
                    (!isConstant && !isExtent && call.known[step.left] &&
                     call.known[step.right]);
    if (!call.known[i])
      result = 0;
    else if (isConstant)
      result = step.value;
    else if (isExtent)
      result = call.args[step.left].value.tensor->shape[step.right];
    else if (!compute(step.kind, call.steps[step.left], call.steps[step.right],
                      result))
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected sizes of '%s' that can be computed in 64 bits, got "
                  "%lld and %lld",
                  function.name, static_cast<long long>(call.steps[step.left]),
                  static_cast<long long>(call.steps[step.right]));
  }
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkRules(const Call &call) {
  const GdnFunctionDesc &function = call.function;
  for (int i = 0; i < function.num_rules; ++i) {
    const GdnExtentRule &rule = function.rules[i];
    int64_t extent = call.args[rule.arg].value.tensor->shape[rule.dim];
    if (extent != call.steps[rule.step])
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected extent %d of %s to be %lld, got %lld", rule.dim,
                  function.args[rule.arg].name,
                  static_cast<long long>(call.steps[rule.step]),
                  static_cast<long long>(extent));
  }
  return GDN_SUCCESS;
}

/// Lays the temporaries out, each at the alignment that an allocation has.
static GdnRuntimeStatus layoutWorkspace(Call &call) {
  const GdnFunctionDesc &function = call.function;
  uint64_t end = 0;
  for (int i = 0; i < function.num_temporaries; ++i) {
    const GdnTemporaryDesc &temporary = function.temporaries[i];
    uint64_t bytes = getElementBytes(temporary.dtype);
    bool overflows = false;
    for (int d = 0; d < temporary.rank; ++d) {
      int64_t extent = call.steps[temporary.shape[d]];
      overflows |=
          extent < 0 ||
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes);
    }
    call.offsets[i] = end;
    // A kernel's tensor map may not begin where another array ends.
    overflows |= bytes > INT64_MAX - GDN_WORKSPACE_ALIGNMENT - end;
    if (overflows)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected a workspace of '%s' below 2^63 bytes, got more",
                  function.name);
    end += (bytes + GDN_WORKSPACE_ALIGNMENT - 1) / GDN_WORKSPACE_ALIGNMENT *
           GDN_WORKSPACE_ALIGNMENT;
  }
  call.workspaceBytes = end;
  return GDN_SUCCESS;
}

/// Checks the arguments and computes all that follows from them.
static GdnRuntimeStatus prepareCall(Call &call, int32_t numArgs) {
  if (GdnRuntimeStatus status =
          checkArguments(asKernel(call.function), call.args, numArgs))
    return status;
  if (GdnRuntimeStatus status = computeSteps(call, numArgs))
    return status;
  if (GdnRuntimeStatus status = checkRules(call))
    return status;
  return layoutWorkspace(call);
}

GdnRuntimeStatus gdnFunctionGetWorkspaceBytes(const GdnFunctionDesc *function,
                                              const GdnArg *args,
                                              int32_t num_args,
                                              uint64_t *bytes) {
  if (GdnRuntimeStatus status = checkFunction(function))
    return status;
  if (!bytes)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a place for the bytes, got null");
  Call call = {*function, args, {}, {}, 0, {}};
  GdnRuntimeStatus status = prepareCall(call, num_args);
  *bytes = status ? 0 : call.workspaceBytes;
  return status;
}

/// The input's extent that fixes a symbol; null if no input that is there has
/// it.
static const int64_t *findSymbol(const Call &call, int64_t symbol) {
  for (int a = 0; a < call.function.num_inputs; ++a) {
    const GdnTensor *tensor = call.args[a].value.tensor;
    for (int d = 0; tensor && d < tensor->rank; ++d)
      if (call.function.args[a].shape[d] == symbol)
        return &tensor->shape[d];
  }
  return nullptr;
}

/// An extent of an output from those of the inputs.
static GdnRuntimeStatus inferExtent(const Call &call, int arg, int dim,
                                    int64_t &extent) {
  const GdnFunctionDesc &function = call.function;
  extent = function.args[arg].shape[dim];
  if (extent >= 0)
    return GDN_SUCCESS;
  for (int i = 0; i < function.num_rules; ++i) {
    const GdnExtentRule &rule = function.rules[i];
    if (rule.arg != arg || rule.dim != dim || !call.known[rule.step])
      continue;
    extent = call.steps[rule.step];
    return GDN_SUCCESS;
  }
  const int64_t *known = findSymbol(call, extent);
  extent = known ? *known : -1;
  if (extent < 0)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected inputs that give extent %d of %s a size, got none",
                dim, function.args[arg].name);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnFunctionGetOutputShape(const GdnFunctionDesc *function,
                                           const GdnArg *inputs,
                                           int32_t num_inputs, int32_t output,
                                           int64_t *shape) {
  if (GdnRuntimeStatus status = checkFunction(function))
    return status;
  int32_t numOutputs = function->num_args - function->num_inputs;
  if (output < 0 || output >= numOutputs || !shape)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a place for the shape of one of %d outputs, got "
                "output %d",
                numOutputs, output);
  int32_t arg = function->num_inputs + output;
  GdnKernelDesc head = asKernel(*function);
  head.num_args = function->num_inputs;
  if (GdnRuntimeStatus status = checkArguments(head, inputs, num_inputs))
    return status;
  Call call = {*function, inputs, {}, {}, 0, {}};
  if (GdnRuntimeStatus status = computeSteps(call, num_inputs))
    return status;
  for (int i = 0; i < function->args[arg].rank; ++i)
    if (GdnRuntimeStatus status = inferExtent(call, arg, i, shape[i]))
      return status;
  return GDN_SUCCESS;
}

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
