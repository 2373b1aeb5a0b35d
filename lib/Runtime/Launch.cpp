//===- Launch.cpp - Planning and launching a kernel -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here allocates, waits for a lock, synchronises or loads: parameters
// and tensor maps are written into a buffer of the kernel, or on the stack if
// another thread has that. The driver copies them before a launch returns.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

#include <algorithm>
#include <cstring>

using namespace gdn::runtime;

GdnRuntimeStatus gdn::runtime::askLaunchConfig(const GdnKernelDesc &desc,
                                               const GdnArg *args,
                                               int32_t numArgs,
                                               const GdnDeviceInfo &device,
                                               GdnLaunchConfig &config) {
  config = {};
  config.struct_size = sizeof(config);
  if (!desc.configure)
    return GDN_SUCCESS;
  return desc.configure(args, numArgs, &device, &config);
}

/// GDN_RUNTIME_CHECK: asks the driver where an array lies.
static GdnRuntimeStatus checkPointer(const Driver &driver, int device,
                                     const char *name, const void *data) {
  int ordinal = -1;
  CUresult result = driver.cuPointerGetAttribute(
      &ordinal, pointerDeviceOrdinal, reinterpret_cast<CUdeviceptr>(data));
  if (result != cudaSuccess || ordinal < 0)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s in device memory, got address %p", name, data);
  if (ordinal != device)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s on device %d, got device %d", name, device,
                ordinal);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkPointers(const Driver &driver, int device,
                                             const GdnKernelDesc &desc,
                                             const GdnArg *args,
                                             const void *workspace) {
  for (int i = 0; i < desc.num_args; ++i) {
    if (args[i].kind != GDN_ARG_TENSOR || isEmpty(args[i].value.tensor))
      continue;
    GDN_TRY(checkPointer(driver, device, desc.args[i].name,
                         args[i].value.tensor->data));
  }
  return workspace ? checkPointer(driver, device, "the workspace", workspace)
                   : GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkWorkspace(const char *kind,
                                              const char *name, uint64_t wanted,
                                              const void *workspace,
                                              size_t bytes) {
  if (wanted && (bytes < wanted || !workspace))
    return fail(GDN_ERROR_WORKSPACE_TOO_SMALL,
                "expected a workspace of %llu bytes for %s'%s', got %zu",
                static_cast<unsigned long long>(wanted), kind, name,
                workspace ? bytes : 0);
  if (reinterpret_cast<uintptr_t>(workspace) % GDN_WORKSPACE_ALIGNMENT)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a workspace aligned to %d bytes, got address %p",
                GDN_WORKSPACE_ALIGNMENT, workspace);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::chooseGrid(const GdnKernelDesc &desc,
                                          const GdnDeviceInfo &device,
                                          GdnGrid &grid) {
  uint32_t cluster = std::max(desc.cluster_size, 1u);
  uint32_t resident =
      desc.resident_blocks * static_cast<uint32_t>(device.multiprocessors);
  if (resident)
    grid.x = std::min(grid.x, resident / cluster * cluster);
  if (grid.x % cluster)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a grid in clusters of %u blocks along x, got %u",
                cluster, grid.x);
  return GDN_SUCCESS;
}

/// Enters the context that a default stream belongs to: the current one, unless
/// it is not on the device that the caller wants.
static GdnRuntimeStatus enterDefault(const Driver &driver, int32_t wanted,
                                     ScopedContext &scope, int &device) {
  CUdevice handle = 0;
  bool hasContext = driver.cuCtxGetDevice(&handle) == cudaSuccess;
  device = hasContext ? driver.findDevice(handle) : -1;
  if (wanted >= 0 && device != wanted) {
    CUcontext context;
    device = wanted;
    GDN_TRY(getPrimaryContext(driver, wanted, context));
    return scope.enter(context);
  }
  if (!hasContext)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a current CUDA context or a stream that names one, "
                "got neither");
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::enterStream(const Driver &driver,
                                           CUstream stream, int32_t wanted,
                                           ScopedContext &scope, int &device) {
  // Handles 0 to 2 are the default streams, which every context has.
  if (reinterpret_cast<uintptr_t>(stream) <= 2) {
    GDN_TRY(enterDefault(driver, wanted, scope, device));
  } else {
    CUcontext context = nullptr;
    CUresult result = driver.cuStreamGetCtx(stream, &context);
    GDN_TRY(checkDriver(driver, result, "asking for the stream's context"));
    GDN_TRY(scope.enter(context));
    CUdevice handle = 0;
    result = driver.cuCtxGetDevice(&handle);
    GDN_TRY(checkDriver(driver, result, "asking for the stream's device"));
    device = driver.findDevice(handle);
  }
  if (device < 0)
    return fail(GDN_ERROR_UNSUPPORTED_DEVICE,
                "expected one of the first %d devices, got another",
                driver.numDevices);
  if (wanted >= 0 && device != wanted)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a stream of device %d, got one of device %d", wanted,
                device);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::submit(const Driver &driver,
                                      const GdnKernel &kernel,
                                      const Parameters &parameters,
                                      const GdnGrid &grid, CUstream stream) {
  const GdnKernelDesc &desc = kernel.desc;
  if (!grid.x || !grid.y || !grid.z)
    return GDN_SUCCESS;
  LaunchAttribute attributes[2] = {};
  uint32_t numAttributes = 0;
  if (desc.cluster_size > 1) {
    LaunchAttribute &cluster = attributes[numAttributes++];
    cluster.id = LaunchAttribute::clusterDimension;
    cluster.cluster[0] = desc.cluster_size;
    cluster.cluster[1] = cluster.cluster[2] = 1;
  }
  if (desc.follows) {
    LaunchAttribute &follows = attributes[numAttributes++];
    follows.id = LaunchAttribute::programmaticStreamSerialization;
    follows.allowed = 1;
  }
  LaunchConfig config = {{grid.x, grid.y, grid.z},
                         {desc.threads, 1, 1},
                         desc.shared_bytes,
                         stream,
                         attributes,
                         numAttributes};
  // A kernel handle stands for the function in the current context.
  CUresult result = driver.cuLaunchKernelEx(
      &config, reinterpret_cast<CUfunction>(kernel.handle), parameters.places,
      nullptr);
  return checkDriver(driver, result,
                     "launching kernel '%s' (grid %u x %u x %u)", desc.symbol,
                     grid.x, grid.y, grid.z);
}

/// Writes the parameters of checked arguments, which may be known, and
/// launches.
static GdnRuntimeStatus submit(const Driver &driver, const GdnKernel &kernel,
                               HeldCall &held, KnownCall *known,
                               const GdnArg *args, void *workspace,
                               const GdnGrid &grid, CUstream stream) {
  if (known && known->rewrite(driver, args, workspace))
    return submit(driver, kernel, known->launches[0].parameters, grid, stream);
  ParameterBuffer here;
  known = held.note(kernel.known, args);
  Parameters parameters = known ? known->launches[0].parameters : here.get();
  GDN_TRY(writeParameters(driver, kernel, args, workspace, parameters));
  if (known) {
    known->addLaunch(0, kernel, args, nullptr);
    known->isKnown = true;
  }
  return submit(driver, kernel, parameters, grid, stream);
}

GdnRuntimeStatus gdnKernelConfigure(const GdnKernel *kernel, int32_t device,
                                    const GdnArg *args, int32_t num_args,
                                    GdnLaunchConfig *config) {
  if (!kernel || !config || config->struct_size < sizeof(config->struct_size))
    return fail(
        GDN_ERROR_INVALID_ARGUMENT,
        "expected a kernel and a GdnLaunchConfig with its struct_size, got "
        "neither or one");
  const Driver *driver;
  GDN_TRY(openDevice(device, driver));
  GDN_TRY(checkArguments(kernel->desc, args, num_args));
  GdnLaunchConfig known;
  GDN_TRY(askLaunchConfig(kernel->desc, args, num_args,
                          driver->devices[device].info, known));
  known.struct_size =
      std::min(config->struct_size, static_cast<uint32_t>(sizeof(known)));
  memcpy(config, &known, known.struct_size);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkReady(const GdnKernel &kernel,
                                          int32_t device) {
  if (!kernel.prepared[device].load(std::memory_order_acquire))
    return fail(GDN_ERROR_NOT_PREPARED,
                "expected kernel '%s' to be prepared on device %d, got no "
                "gdnKernelPrepare for it",
                kernel.desc.symbol, device);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnKernelLaunch(const GdnKernel *kernel, const GdnArg *args,
                                 int32_t num_args, void *workspace,
                                 size_t workspace_bytes, const GdnGrid *grid,
                                 void *stream) {
  GDN_TRY(checkGiven(kernel, "a kernel"));
  const GdnKernelDesc &desc = kernel->desc;
  HeldCall held;
  KnownCall *known = held.find(kernel->known, args, num_args);
  if (!known)
    GDN_TRY(checkArguments(desc, args, num_args));
  const Driver *driver;
  GDN_TRY(openDriver(driver));
  ScopedContext scope(*driver);
  auto *handle = static_cast<CUstream>(stream);
  int device = 0;
  GDN_TRY(enterStream(*driver, handle, /*wanted=*/-1, scope, device));
  GDN_TRY(checkReady(*kernel, device));

  const GdnDeviceInfo &info = driver->devices[device].info;
  GdnLaunchConfig config;
  GDN_TRY(askLaunchConfig(desc, args, num_args, info, config));
  GDN_TRY(checkWorkspace("kernel ", desc.symbol, config.workspace_bytes,
                         workspace, workspace_bytes));
  if (!grid && !desc.configure)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a grid for kernel '%s', which has no plan, got null",
                desc.symbol);
  GdnGrid chosen = grid ? *grid : config.grid;
  GDN_TRY(chooseGrid(desc, info, chosen));
  if (driver->checkMore)
    GDN_TRY(checkPointers(*driver, device, desc, args, workspace));
  // Nothing is known of tensor maps that only such launches have had.
  if (!chosen.x || !chosen.y || !chosen.z)
    return GDN_SUCCESS;
  return submit(*driver, *kernel, held, known, args, workspace, chosen, handle);
}
