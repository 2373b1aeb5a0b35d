//===- CallLaunch.cpp - Launching a function's kernels --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is wrong with any launch is said before the first one runs. A call like
// an earlier one has only addresses to check and to write. A call works in
// fixed buffers, of the function or on the stack, as a launch does.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Error.h"

using namespace gdn::runtime;

namespace {
/// What a caller passes.
struct Request {
  const GdnFunctionDesc &function;
  const LoadedFunction &loaded;
  const GdnArg *args;
  int32_t numArgs;
  void *workspace;
  size_t workspaceBytes;
  void *stream;
  /// Where the launches must be; negative for the stream's device.
  int32_t device;
};

/// Where the launches are, in whose context the thread is meanwhile.
struct Place {
  explicit Place(const Driver &driver) : driver(driver), scope(driver) {}

  const Driver &driver;
  ScopedContext scope;
  int device = -1;
  GdnGrid grids[maxLaunches];
};
} // namespace

/// Enters the stream's context and chooses the grids, from the blocks that the
/// launches ask for. Says no if a kernel is not ready on the device.
static GdnRuntimeStatus enter(const Request &request, const uint32_t *blocks,
                              uint64_t workspaceBytes, Place &place) {
  const Driver &driver = place.driver;
  GDN_TRY(enterStream(driver, static_cast<CUstream>(request.stream),
                      request.device, place.scope, place.device));
  for (int i = 0; i < request.function.num_launches; ++i) {
    const GdnKernel &kernel = *request.loaded.launches[i].kernel;
    GDN_TRY(checkReady(kernel, place.device));
    place.grids[i] = {blocks[i], 1, 1};
    GDN_TRY(chooseGrid(kernel.desc, driver.devices[place.device].info,
                       place.grids[i]));
  }
  if (!driver.checkMore)
    return GDN_SUCCESS;
  return checkPointers(driver, place.device, asKernel(request.function),
                       request.args,
                       workspaceBytes ? request.workspace : nullptr);
}

/// Launches with the parameters of a known call.
static GdnRuntimeStatus submit(const Request &request, const KnownCall &known,
                               const Place &place) {
  for (int i = 0; i < request.function.num_launches; ++i)
    GDN_TRY(submit(place.driver, *request.loaded.launches[i].kernel,
                   known.launches[i].parameters, place.grids[i],
                   static_cast<CUstream>(request.stream)));
  return GDN_SUCCESS;
}

/// Launches if the arguments are those of a known call but for addresses.
/// Otherwise `known` is null, and nothing has begun.
static GdnRuntimeStatus launchKnown(const Request &request,
                                    const Driver &driver, KnownCall *&known) {
  GDN_TRY(checkWorkspace("", request.function.name, known->workspaceBytes,
                         request.workspace, request.workspaceBytes));
  uint32_t blocks[maxLaunches];
  for (int i = 0; i < request.function.num_launches; ++i)
    blocks[i] = known->launches[i].blocks;
  Place place(driver);
  GDN_TRY(enter(request, blocks, known->workspaceBytes, place));
  if (known->rewrite(driver, request.args, request.workspace))
    return submit(request, *known, place);
  known = nullptr;
  return GDN_SUCCESS;
}

/// Asks the plans of kernels that have one. It is the function that has a grid
/// and a workspace.
static GdnRuntimeStatus askPlans(const Request &request, const Call &call,
                                 const Place &place) {
  for (int i = 0; i < request.function.num_launches; ++i) {
    const GdnKernelDesc &desc = request.loaded.launches[i].kernel->desc;
    if (!desc.configure)
      continue;
    KernelCall kernel;
    GDN_TRY(prepareLaunch(call, request.function.launches[i], request.workspace,
                          kernel));
    GdnLaunchConfig config;
    GDN_TRY(askLaunchConfig(desc, kernel.args, desc.num_args,
                            place.driver.devices[place.device].info, config));
    GDN_TRY(checkWorkspace("kernel ", desc.symbol, config.workspace_bytes,
                           nullptr, 0));
  }
  return GDN_SUCCESS;
}

/// Checks everything, takes note of the call if there is a place for it, and
/// launches.
static GdnRuntimeStatus launchAnew(const Request &request, const Driver &driver,
                                   HeldCall &held) {
  const GdnFunctionDesc &function = request.function;
  Call call(function, request.args);
  GDN_TRY(prepareCall(call, request.numArgs));
  GDN_TRY(checkWorkspace("", function.name, call.workspaceBytes,
                         request.workspace, request.workspaceBytes));
  uint32_t blocks[maxLaunches];
  KernelCall kernel;
  GDN_TRY(checkLaunches(call, request.workspace, blocks, kernel));
  Place place(driver);
  GDN_TRY(enter(request, blocks, call.workspaceBytes, place));
  GDN_TRY(askPlans(request, call, place));

  KnownCall *known = held.note(request.loaded.known, request.args);
  ParameterBuffer here;
  for (int i = 0; i < function.num_launches; ++i) {
    const CallLaunch &launch = request.loaded.launches[i];
    if (known)
      known->launches[i].blocks = blocks[i];
    if (!blocks[i])
      continue;
    // Those of a single launch are still there.
    if (function.num_launches > 1)
      GDN_TRY(
          prepareLaunch(call, function.launches[i], request.workspace, kernel));
    Parameters parameters = known ? known->launches[i].parameters : here.get();
    GDN_TRY(writeParameters(driver, *launch.kernel, kernel.args,
                            /*workspace=*/nullptr, parameters));
    if (known)
      known->addLaunch(i, *launch.kernel, kernel.args, kernel.origins);
    else
      GDN_TRY(submit(driver, *launch.kernel, parameters, place.grids[i],
                     static_cast<CUstream>(request.stream)));
  }
  if (!known)
    return GDN_SUCCESS;
  known->workspaceBytes = call.workspaceBytes;
  known->isKnown = known->mayMove;
  return submit(request, *known, place);
}

/// Says no to a function without kernels that it would have to launch. One that
/// launches nothing has its arguments checked.
static GdnRuntimeStatus checkUnloaded(const GdnFunctionDesc &function,
                                      const GdnArg *args, int32_t numArgs,
                                      const void *workspace, size_t bytes) {
  GDN_TRY(checkFunction(&function));
  if (function.num_launches > 0)
    return fail(GDN_ERROR_NOT_PREPARED,
                "expected function '%s' to be prepared, got no "
                "gdnFunctionPrepare for it",
                function.name);
  Call call(function, args);
  GDN_TRY(prepareCall(call, numArgs));
  return checkWorkspace("", function.name, call.workspaceBytes, workspace,
                        bytes);
}

/// gdnFunctionLaunch, on a device unless it is negative.
static GdnRuntimeStatus launch(const GdnFunctionDesc *function, int32_t device,
                               const GdnArg *args, int32_t numArgs,
                               void *workspace, size_t workspaceBytes,
                               void *stream) {
  GDN_TRY(checkGiven(function, "a function description"));
  const LoadedFunction *loaded = getLoaded(*function);
  if (!loaded)
    return checkUnloaded(*function, args, numArgs, workspace, workspaceBytes);
  const Driver *driver;
  GDN_TRY(openDriver(driver));
  Request request = {*function, *loaded,        args,   numArgs,
                     workspace, workspaceBytes, stream, device};
  HeldCall held;
  if (KnownCall *known = held.find(loaded->known, args, numArgs)) {
    GdnRuntimeStatus status = launchKnown(request, *driver, known);
    if (known)
      return status;
  }
  return launchAnew(request, *driver, held);
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
  GDN_TRY(openDevice(device, driver));
  return launch(function, device, args, num_args, workspace, workspace_bytes,
                stream);
}
