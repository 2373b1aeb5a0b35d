//===- CallSizes.cpp - Sizes of a call, from its inputs -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index steps make extents and grids of the inputs' extents and of scalars,
// rules say which extents must agree, and temporaries lie one behind the other
// in the workspace.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Error.h"

#include <algorithm>

using namespace gdn::runtime;

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

/// An extent of an array, 0 if it is absent.
static int64_t getExtent(const GdnArg &arg, int32_t dim) {
  const GdnTensor *tensor = arg.value.tensor;
  return tensor ? tensor->shape[dim] : 0;
}

/// Computes the steps that the first `numArgs` arguments are enough for.
static GdnRuntimeStatus computeSteps(Call &call, int32_t numArgs) {
  const GdnFunctionDesc &function = call.function;
  for (int i = 0; i < function.num_steps; ++i) {
    const GdnIndexStep &step = function.steps[i];
    int64_t &result = call.steps[i];
    bool isConstant = step.kind == GDN_INDEX_CONSTANT;
    bool isExtent = step.kind == GDN_INDEX_EXTENT;
    bool isScalar = step.kind == GDN_INDEX_SCALAR;
    call.known[i] = isConstant || isExtent || isScalar
                        ? isConstant || step.left < numArgs
                        : call.known[step.left] && call.known[step.right];
    if (!call.known[i])
      result = 0;
    else if (isConstant)
      result = step.value;
    else if (isExtent)
      result = getExtent(call.args[step.left], step.right);
    else if (isScalar)
      result = getInteger(call.args[step.left]);
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
    if (!call.args[rule.arg].value.tensor)
      continue;
    int64_t extent = getExtent(call.args[rule.arg], rule.dim);
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

GdnRuntimeStatus gdn::runtime::prepareCall(Call &call, int32_t numArgs) {
  GDN_TRY(checkArguments(asKernel(call.function), call.args, numArgs));
  GDN_TRY(computeSteps(call, numArgs));
  GDN_TRY(checkRules(call));
  return layoutWorkspace(call);
}

GdnRuntimeStatus gdnFunctionGetWorkspaceBytes(const GdnFunctionDesc *function,
                                              const GdnArg *args,
                                              int32_t num_args,
                                              uint64_t *bytes) {
  GDN_TRY(checkFunction(function));
  GDN_TRY(checkGiven(bytes, "a place for the bytes"));
  if (const LoadedFunction *loaded = getLoaded(*function)) {
    HeldCall held;
    if (const KnownCall *known = held.find(loaded->known, args, num_args)) {
      *bytes = known->workspaceBytes;
      return GDN_SUCCESS;
    }
  }
  Call call(*function, args);
  GdnRuntimeStatus status = prepareCall(call, num_args);
  *bytes = status ? 0 : call.workspaceBytes;
  return status;
}

/// The input's extent that fixes a symbol; null if no input that is there has
/// it.
static const int64_t *findSymbol(const Call &call, int64_t symbol) {
  for (int a = 0; a < call.function.num_inputs; ++a) {
    bool isArray = call.function.args[a].kind == GDN_ARG_TENSOR;
    const GdnTensor *tensor = isArray ? call.args[a].value.tensor : nullptr;
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
  GDN_TRY(checkFunction(function));
  int32_t numOutputs = function->num_args - function->num_inputs;
  if (output < 0 || output >= numOutputs || !shape)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a place for the shape of one of %d outputs, got "
                "output %d",
                numOutputs, output);
  int32_t arg = function->num_inputs + output;
  GdnKernelDesc head = asKernel(*function);
  head.num_args = function->num_inputs;
  GDN_TRY(checkArguments(head, inputs, num_inputs));
  Call call(*function, inputs);
  GDN_TRY(computeSteps(call, num_inputs));
  for (int i = 0; i < function->args[arg].rank; ++i)
    GDN_TRY(inferExtent(call, arg, i, shape[i]));
  return GDN_SUCCESS;
}
