//===- Function.cpp - Functions: checks and loading -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Error.h"

#include <new>

using namespace gdn::runtime;

/// Reports a contradiction in a description: "function '<name>': <rule>".
[[gnu::format(printf, 2, 3)]] static GdnRuntimeStatus
failFunction(const GdnFunctionDesc &function, const char *rule, ...) {
  Message message;
  message.add("function '%s': ", function.name);
  va_list values;
  va_start(values, rule);
  message.addList(rule, values);
  va_end(values);
  return fail(GDN_ERROR_INVALID_KERNEL, message);
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

GdnKernelDesc gdn::runtime::asKernel(const GdnFunctionDesc &function) {
  GdnKernelDesc desc = {};
  desc.symbol = function.name;
  desc.num_args = function.num_args;
  desc.num_symbols = function.num_symbols;
  desc.args = function.args;
  desc.symbols = function.symbols;
  return desc;
}

static GdnRuntimeStatus checkCount(const GdnFunctionDesc &function,
                                   const char *what, int32_t count,
                                   int32_t bound, const void *list) {
  if (count >= 0 && count <= bound && (count == 0 || list))
    return GDN_SUCCESS;
  return failFunction(function, "expected 0 to %d %s, got %d", bound, what,
                      list ? count : 0);
}

static GdnRuntimeStatus checkLists(const GdnFunctionDesc &function) {
  struct {
    const char *what;
    int32_t count, bound;
    const void *list;
  } const lists[] = {
      {"arguments", function.num_args, maxArgs, function.args},
      {"inputs", function.num_inputs, function.num_args, function.args},
      {"steps", function.num_steps, maxSteps, function.steps},
      {"rules", function.num_rules, maxArgs * maxRank, function.rules},
      {"temporaries", function.num_temporaries, maxTemporaries,
       function.temporaries},
      {"views", function.num_views, maxViews, function.views},
      {"launches", function.num_launches, maxLaunches, function.launches},
      {"results", function.num_results, maxArgs, function.results},
      {"places for kernels", function.num_launches, maxLaunches,
       function.kernels}};
  for (const auto &list : lists)
    GDN_TRY(checkCount(function, list.what, list.count, list.bound, list.list));
  return GDN_SUCCESS;
}

/// True for a dimension of an array argument.
static bool isExtent(const GdnFunctionDesc &function, int32_t arg,
                     int32_t dim) {
  return arg >= 0 && arg < function.num_args && dim >= 0 &&
         function.args[arg].kind == GDN_ARG_TENSOR &&
         dim < function.args[arg].rank;
}

/// True for a scalar argument that sizes can be made of.
static bool isInteger(const GdnFunctionDesc &function, int32_t arg) {
  return arg >= 0 && arg < function.num_inputs &&
         (function.args[arg].kind == GDN_ARG_I32 ||
          function.args[arg].kind == GDN_ARG_I64);
}

static bool isStep(const GdnFunctionDesc &function, int32_t step) {
  return step >= 0 && step < function.num_steps;
}

static GdnRuntimeStatus checkSteps(const GdnFunctionDesc &function) {
  for (int i = 0; i < function.num_steps; ++i) {
    const GdnIndexStep &step = function.steps[i];
    bool valid = step.kind == GDN_INDEX_CONSTANT;
    if (step.kind == GDN_INDEX_EXTENT)
      valid = isExtent(function, step.left, step.right);
    if (step.kind == GDN_INDEX_SCALAR)
      valid = isInteger(function, step.left);
    if (step.kind >= GDN_INDEX_ADD && step.kind <= GDN_INDEX_MAXIMUM)
      valid =
          step.left >= 0 && step.left < i && step.right >= 0 && step.right < i;
    if (!valid)
      return failFunction(function,
                          "expected step %d to name earlier ones, an extent or "
                          "an integer, got kind %d, left %d, right %d",
                          i, step.kind, step.left, step.right);
  }
  for (int i = 0; i < function.num_rules; ++i) {
    const GdnExtentRule &rule = function.rules[i];
    if (!isExtent(function, rule.arg, rule.dim) || !isStep(function, rule.step))
      return failFunction(function,
                          "expected rule %d to name an extent and a step, got "
                          "argument %d, dimension %d, step %d",
                          i, rule.arg, rule.dim, rule.step);
  }
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkResults(const GdnFunctionDesc &function) {
  for (int i = 0; i < function.num_results; ++i)
    if (function.results[i] < 0 || function.results[i] >= function.num_args ||
        function.args[function.results[i]].kind != GDN_ARG_TENSOR)
      return failFunction(function,
                          "expected result %d to name an array, got argument "
                          "%d",
                          i, function.results[i]);
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkTemporaries(const GdnFunctionDesc &function) {
  for (int i = 0; i < function.num_temporaries; ++i) {
    const GdnTemporaryDesc &temporary = function.temporaries[i];
    bool valid = getElementBytes(temporary.dtype) && temporary.rank >= 0 &&
                 temporary.rank <= maxRank &&
                 (temporary.rank == 0 || temporary.shape);
    for (int d = 0; valid && d < temporary.rank; ++d)
      valid = isStep(function, temporary.shape[d]);
    if (!valid)
      return failFunction(function,
                          "expected temporary %d with a dtype and a shape of "
                          "steps, got dtype %d, rank %d",
                          i, temporary.dtype, temporary.rank);
  }
  return GDN_SUCCESS;
}

/// The rank of an array of the function; -1 for what is none.
static int32_t getRank(const GdnFunctionDesc &function,
                       const GdnOperand &operand) {
  if (operand.kind == GDN_OPERAND_ARGUMENT && operand.index >= 0 &&
      operand.index < function.num_args &&
      function.args[operand.index].kind == GDN_ARG_TENSOR)
    return function.args[operand.index].rank;
  if (operand.kind == GDN_OPERAND_TEMPORARY && operand.index >= 0 &&
      operand.index < function.num_temporaries)
    return function.temporaries[operand.index].rank;
  return -1;
}

static GdnRuntimeStatus checkViews(const GdnFunctionDesc &function) {
  for (int i = 0; i < function.num_views; ++i) {
    const GdnViewDesc &view = function.views[i];
    int32_t rank = getRank(function, view.base), next = 0;
    bool valid = rank >= 0 && view.rank >= 0 && view.rank <= maxRank &&
                 (view.rank == 0 || view.dims);
    for (int d = 0; valid && d < view.rank; ++d) {
      const GdnViewDim &dim = view.dims[d];
      const int32_t steps[] = {dim.offset, dim.extent, dim.stride};
      for (int32_t step : steps)
        valid = valid && (step == -1 || isStep(function, step));
      if (dim.last < dim.first)
        continue;
      valid = valid && dim.first >= next && dim.last < rank;
      next = dim.last + 1;
    }
    if (!valid)
      return failFunction(function,
                          "expected view %d to name dimensions of an argument "
                          "or a temporary in order, and steps, got rank %d",
                          i, view.rank);
  }
  return GDN_SUCCESS;
}

/// True for an operand that a kernel's argument of such a kind can have.
static bool isOperand(const GdnFunctionDesc &function,
                      const GdnOperand &operand, int32_t kind) {
  switch (operand.kind) {
  case GDN_OPERAND_VIEW:
    return kind == GDN_ARG_TENSOR && operand.index >= 0 &&
           operand.index < function.num_views;
  case GDN_OPERAND_ARGUMENT:
    return operand.index >= 0 && operand.index < function.num_args &&
           function.args[operand.index].kind == kind;
  case GDN_OPERAND_TEMPORARY:
    return kind == GDN_ARG_TENSOR && operand.index >= 0 &&
           operand.index < function.num_temporaries;
  case GDN_OPERAND_INDEX:
    return (kind == GDN_ARG_I32 || kind == GDN_ARG_I64) &&
           isStep(function, operand.index);
  }
  return false;
}

static GdnRuntimeStatus checkLaunch(const GdnFunctionDesc &function,
                                    int index) {
  const GdnLaunchDesc &launch = function.launches[index];
  bool valid =
      launch.kernel && launch.kernel->num_args <= maxArgs &&
      launch.kernel->num_args == launch.num_operands &&
      (launch.num_operands == 0 || (launch.operands && launch.kernel->args));
  for (int32_t step : launch.grid)
    valid = valid && isStep(function, step);
  for (int i = 0; valid && i < launch.num_operands; ++i)
    valid =
        isOperand(function, launch.operands[i], launch.kernel->args[i].kind);
  if (!valid)
    return failFunction(function,
                        "expected launch %d with a kernel, a grid of steps and "
                        "an operand for each argument of the kernel, got %d "
                        "operands",
                        index, launch.num_operands);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkFunction(const GdnFunctionDesc *function) {
  GDN_TRY(checkGiven(function, "a function description"));
  if (function->version != GDN_RUNTIME_VERSION ||
      function->struct_size < sizeof(*function))
    return fail(GDN_ERROR_VERSION,
                "expected a function of version %u and %zu bytes, got version "
                "%u and %u bytes",
                GDN_RUNTIME_VERSION, sizeof(*function), function->version,
                function->struct_size);
  if (!function->name)
    return fail(GDN_ERROR_INVALID_KERNEL, "expected a name, got null");
  GDN_TRY(checkLists(*function));
  GDN_TRY(checkArgDescs(asKernel(*function)));
  for (int i = function->num_inputs; i < function->num_args; ++i)
    if (function->args[i].kind != GDN_ARG_TENSOR)
      return failFunction(*function, "expected output '%s' to be an array",
                          function->args[i].name);
  GDN_TRY(checkSteps(*function));
  GDN_TRY(checkTemporaries(*function));
  GDN_TRY(checkViews(*function));
  GDN_TRY(checkResults(*function));
  for (int i = 0; i < function->num_launches; ++i)
    GDN_TRY(checkLaunch(*function, i));
  return GDN_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

const LoadedFunction *gdn::runtime::getLoaded(const GdnFunctionDesc &function) {
  if (function.version != GDN_RUNTIME_VERSION ||
      function.struct_size < sizeof(function) || function.num_launches <= 0 ||
      !function.kernels)
    return nullptr;
  return static_cast<const LoadedFunction *>(
      __atomic_load_n(&function.kernels[0], __ATOMIC_ACQUIRE));
}

/// True if a call follows from types, extents, strides, scalars, addresses, and
/// an alignment of arrays that any workspace gives temporaries. gdn-compile
/// makes no other functions.
static bool hasCallsAlike(const GdnFunctionDesc &function) {
  for (int i = 0; i < function.num_launches; ++i) {
    const GdnLaunchDesc &launch = function.launches[i];
    if (launch.kernel->configure)
      return false;
    for (int j = 0; j < launch.num_operands; ++j) {
      GdnOperand from = launch.operands[j];
      if (from.kind == GDN_OPERAND_VIEW)
        from = function.views[from.index].base;
      if (from.kind == GDN_OPERAND_TEMPORARY &&
          launch.kernel->args[j].alignment > GDN_WORKSPACE_ALIGNMENT)
        return false;
    }
  }
  return true;
}

/// Gives back what has been loaded of a function.
static GdnRuntimeStatus unload(const GdnFunctionDesc &function,
                               LoadedFunction *loaded) {
  GdnRuntimeStatus result = GDN_SUCCESS;
  for (int i = 0; loaded && i < function.num_launches; ++i)
    if (GdnRuntimeStatus status = gdnKernelUnload(loaded->launches[i].kernel))
      result = status;
  if (loaded)
    KnownCalls::destroy(loaded->known);
  delete loaded;
  return result;
}

/// Loads the kernels, and room for calls to come.
static GdnRuntimeStatus load(const GdnFunctionDesc &function,
                             LoadedFunction &loaded) {
  for (int i = 0; i < function.num_launches; ++i) {
    GdnKernel *kernel;
    const GdnLaunchDesc &launch = function.launches[i];
    GDN_TRY(gdnKernelLoad(launch.kernel, &kernel));
    loaded.launches[i] = {kernel, launch.operands, function.views};
  }
  if (!hasCallsAlike(function))
    return GDN_SUCCESS;
  loaded.known = KnownCalls::create(function.args, function.num_args,
                                    loaded.launches, function.num_launches,
                                    /*isOfFunction=*/true);
  if (!loaded.known)
    return fail(GDN_ERROR_OUT_OF_MEMORY, "expected memory for a function");
  return GDN_SUCCESS;
}

/// Puts what a function's calls need into the first place, once.
static GdnRuntimeStatus loadOnce(const GdnFunctionDesc &function) {
  auto *loaded = new (std::nothrow) LoadedFunction();
  if (!loaded)
    return fail(GDN_ERROR_OUT_OF_MEMORY, "expected memory for a function");
  if (GdnRuntimeStatus status = load(function, *loaded)) {
    // What has gone wrong is the message, whatever unloading says.
    Message message;
    message.add("%s", gdnGetLastErrorMessage());
    unload(function, loaded);
    return fail(status, message);
  }
  void *expected = nullptr;
  if (__atomic_compare_exchange_n(&function.kernels[0], &expected, loaded,
                                  /*weak=*/false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return GDN_SUCCESS;
  // Another thread was faster, so these uses of the kernels go back.
  return unload(function, loaded);
}

GdnRuntimeStatus gdnFunctionPrepare(const GdnFunctionDesc *function,
                                    int32_t device) {
  GDN_TRY(checkFunction(function));
  if (function->num_launches > 0 && !getLoaded(*function))
    GDN_TRY(loadOnce(*function));
  for (int i = 0; i < function->num_launches; ++i) {
    GdnKernel *kernel = getLoaded(*function)->launches[i].kernel;
    GDN_TRY(gdnKernelPrepare(kernel, device));
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnFunctionUnload(const GdnFunctionDesc *function) {
  GDN_TRY(checkFunction(function));
  if (function->num_launches == 0)
    return GDN_SUCCESS;
  return unload(*function,
                static_cast<LoadedFunction *>(__atomic_exchange_n(
                    &function->kernels[0], nullptr, __ATOMIC_ACQ_REL)));
}
