//===- Launch.cpp - Planning and launching a kernel -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here allocates, takes a lock, synchronises or loads: parameters and
// tensor maps are written into a buffer on the stack, which the driver copies.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

#include <algorithm>
#include <cstring>

using namespace gdn::runtime;

/// CUtensorMapDataType of a GDN_DTYPE_*.
static int getMapType(int32_t dtype) {
  switch (dtype) {
  case GDN_DTYPE_BF16:
    return mapBfloat16;
  case GDN_DTYPE_F16:
    return mapFloat16;
  case GDN_DTYPE_F32:
    return mapFloat32;
  case GDN_DTYPE_I32:
    return mapInt32;
  case GDN_DTYPE_I64:
    return mapInt64;
  default:
    return mapUint8;
  }
}

/// Encodes a tensor map into the parameter buffer.
static GdnRuntimeStatus encodeMap(const Driver &driver,
                                  const GdnKernelDesc &desc,
                                  const GdnTensorMapDesc &map,
                                  const GdnArg *args, unsigned char *to) {
  const GdnTensor *tensor = args[map.arg].value.tensor;
  TensorMap encoded = {};
  if (!isEmpty(tensor)) {
    MapGeometry geometry;
    if (GdnRuntimeStatus status = getMapGeometry(desc, map, *tensor, geometry))
      return status;
    uint32_t box[maxMapRank], elementStrides[maxMapRank];
    for (int i = 0; i < map.rank; ++i) {
      box[i] = map.dims[i].box;
      elementStrides[i] = 1;
    }
    CUresult result = driver.cuTensorMapEncodeTiled(
        &encoded, getMapType(tensor->dtype), static_cast<uint32_t>(map.rank),
        tensor->data, geometry.extents, geometry.strides, box, elementStrides,
        /*interleave=*/0, map.swizzle, map.l2_promotion, /*oobFill=*/0);
    if (result != cudaSuccess)
      return failDriver(driver, result, "encoding the tensor map of %s",
                        desc.args[map.arg].name);
  }
  memcpy(to, &encoded, sizeof(encoded));
  return GDN_SUCCESS;
}

/// Writes an integer of 4 or 8 bytes. The host is little-endian, as the device.
static void writeInteger(unsigned char *to, int64_t value, uint32_t bytes) {
  memcpy(to, &value, bytes);
}

/// Writes one parameter; the arguments have been checked.
static GdnRuntimeStatus writeParam(const Driver &driver,
                                   const GdnKernelDesc &desc,
                                   const GdnParamDesc &param,
                                   const GdnArg *args, void *workspace,
                                   unsigned char *to) {
  if (param.kind == GDN_PARAM_TENSOR_MAP)
    return encodeMap(driver, desc, desc.tensor_maps[param.index], args, to);
  if (param.kind == GDN_PARAM_WORKSPACE) {
    memcpy(to, &workspace, sizeof(workspace));
    return GDN_SUCCESS;
  }
  const GdnArg &arg = args[param.index];
  if (param.kind == GDN_PARAM_SCALAR) {
    memcpy(to, &arg.value, arg.kind == GDN_ARG_I64 ? 8 : 4);
    return GDN_SUCCESS;
  }
  const GdnTensor *tensor = arg.value.tensor;
  if (param.kind == GDN_PARAM_POINTER) {
    void *data = tensor ? tensor->data : nullptr;
    memcpy(to, &data, sizeof(data));
    return GDN_SUCCESS;
  }
  int64_t value = 0;
  if (tensor)
    value = param.kind == GDN_PARAM_EXTENT ? tensor->shape[param.dim]
                                           : getStride(*tensor, param.dim);
  writeInteger(to, value, getElementBytes(param.dtype));
  return GDN_SUCCESS;
}

/// Asks the kernel's plan; without one the grid is empty and so is the
/// workspace.
static GdnRuntimeStatus askPlan(const GdnKernelDesc &desc, const GdnArg *args,
                                int32_t numArgs, const GdnDeviceInfo &device,
                                GdnPlan &plan) {
  plan = {};
  plan.struct_size = sizeof(plan);
  if (!desc.plan)
    return GDN_SUCCESS;
  return desc.plan(args, numArgs, &device, &plan);
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

static GdnRuntimeStatus checkPointers(const Driver &driver, int device,
                                      const GdnKernelDesc &desc,
                                      const GdnArg *args,
                                      const void *workspace) {
  for (int i = 0; i < desc.num_args; ++i) {
    if (args[i].kind != GDN_ARG_TENSOR || isEmpty(args[i].value.tensor))
      continue;
    if (GdnRuntimeStatus status = checkPointer(
            driver, device, desc.args[i].name, args[i].value.tensor->data))
      return status;
  }
  return workspace ? checkPointer(driver, device, "the workspace", workspace)
                   : GDN_SUCCESS;
}

static GdnRuntimeStatus checkWorkspace(const GdnKernelDesc &desc,
                                       const GdnPlan &plan,
                                       const void *workspace, size_t bytes) {
  if (bytes < plan.workspace_bytes || (plan.workspace_bytes && !workspace))
    return fail(GDN_ERROR_WORKSPACE_TOO_SMALL,
                "expected a workspace of %llu bytes for kernel '%s', got %zu",
                static_cast<unsigned long long>(plan.workspace_bytes),
                desc.symbol, workspace ? bytes : 0);
  if (reinterpret_cast<uintptr_t>(workspace) % GDN_WORKSPACE_ALIGNMENT)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a workspace aligned to %d bytes, got address %p",
                GDN_WORKSPACE_ALIGNMENT, workspace);
  return GDN_SUCCESS;
}

/// The grid of a launch.
static GdnRuntimeStatus chooseGrid(const GdnKernelDesc &desc,
                                   const GdnDeviceInfo &device,
                                   const GdnPlan &plan, const GdnGrid *asked,
                                   GdnGrid &grid) {
  if (!asked && !desc.plan)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a grid for kernel '%s', which has no plan, got null",
                desc.symbol);
  grid = asked ? *asked : plan.grid;
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

/// Enters the stream's context and finds its device.
static GdnRuntimeStatus enterStream(const Driver &driver, CUstream stream,
                                    ScopedContext &scope, int &device) {
  CUcontext context = nullptr;
  // Handles 0 to 2 are the default streams, which every context has.
  bool isDefault = reinterpret_cast<uintptr_t>(stream) <= 2;
  CUresult result = isDefault ? driver.cuCtxGetCurrent(&context)
                              : driver.cuStreamGetCtx(stream, &context);
  if (result != cudaSuccess)
    return failDriver(driver, result, "asking for the stream's context");
  if (!context)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a current CUDA context or a stream that names one, "
                "got neither");
  if (GdnRuntimeStatus status = scope.enter(context))
    return status;
  CUdevice handle = 0;
  result = driver.cuCtxGetDevice(&handle);
  if (result != cudaSuccess)
    return failDriver(driver, result, "asking for the stream's device");
  device = driver.findDevice(handle);
  if (device < 0)
    return fail(GDN_ERROR_UNSUPPORTED_DEVICE,
                "expected one of the first %d devices, got another",
                driver.numDevices);
  return GDN_SUCCESS;
}

/// Writes the parameters and launches.
static GdnRuntimeStatus submit(const Driver &driver, const GdnKernel &kernel,
                               const GdnArg *args, void *workspace,
                               const GdnGrid &grid, CUstream stream) {
  const GdnKernelDesc &desc = kernel.desc;
  alignas(128) unsigned char buffer[maxParamBytes];
  void *parameters[maxParams];
  for (int i = 0; i < desc.num_params; ++i) {
    unsigned char *place = buffer + kernel.offsets[i];
    parameters[i] = place;
    if (GdnRuntimeStatus status =
            writeParam(driver, desc, desc.params[i], args, workspace, place))
      return status;
  }

  LaunchAttribute cluster = {};
  cluster.id = LaunchAttribute::clusterDimension;
  cluster.cluster[0] = desc.cluster_size;
  cluster.cluster[1] = cluster.cluster[2] = 1;
  LaunchConfig config = {{grid.x, grid.y, grid.z},
                         {desc.threads, 1, 1},
                         desc.shared_bytes,
                         stream,
                         &cluster,
                         desc.cluster_size > 1};
  // A kernel handle stands for the function in the current context.
  CUresult result = driver.cuLaunchKernelEx(
      &config, reinterpret_cast<CUfunction>(kernel.handle), parameters,
      nullptr);
  if (result != cudaSuccess)
    return failDriver(driver, result,
                      "launching kernel '%s' (grid %u x %u x %u)", desc.symbol,
                      grid.x, grid.y, grid.z);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnKernelPlan(const GdnKernel *kernel, int32_t device,
                               const GdnArg *args, int32_t num_args,
                               GdnPlan *plan) {
  if (!kernel || !plan || plan->struct_size < sizeof(plan->struct_size))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a kernel and a GdnPlan with its struct_size, got "
                "neither or one");
  const Driver *driver;
  if (GdnRuntimeStatus status = openDevice(device, driver))
    return status;
  if (GdnRuntimeStatus status = checkArguments(kernel->desc, args, num_args))
    return status;
  GdnPlan known;
  if (GdnRuntimeStatus status = askPlan(kernel->desc, args, num_args,
                                        driver->devices[device].info, known))
    return status;
  known.struct_size =
      std::min(plan->struct_size, static_cast<uint32_t>(sizeof(known)));
  memcpy(plan, &known, known.struct_size);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnKernelLaunch(const GdnKernel *kernel, const GdnArg *args,
                                 int32_t num_args, void *workspace,
                                 size_t workspace_bytes, const GdnGrid *grid,
                                 void *stream) {
  if (!kernel)
    return fail(GDN_ERROR_INVALID_ARGUMENT, "expected a kernel, got null");
  const GdnKernelDesc &desc = kernel->desc;
  if (GdnRuntimeStatus status = checkArguments(desc, args, num_args))
    return status;
  const Driver *driver;
  if (GdnRuntimeStatus status = openDriver(driver))
    return status;
  ScopedContext scope(*driver);
  auto *handle = static_cast<CUstream>(stream);
  int device = 0;
  if (GdnRuntimeStatus status = enterStream(*driver, handle, scope, device))
    return status;
  if (!kernel->prepared[device].load(std::memory_order_acquire))
    return fail(GDN_ERROR_NOT_PREPARED,
                "expected kernel '%s' to be prepared on device %d, got no "
                "gdnKernelPrepare for it",
                desc.symbol, device);

  GdnPlan plan;
  GdnGrid chosen;
  if (GdnRuntimeStatus status =
          askPlan(desc, args, num_args, driver->devices[device].info, plan))
    return status;
  if (GdnRuntimeStatus status =
          checkWorkspace(desc, plan, workspace, workspace_bytes))
    return status;
  if (GdnRuntimeStatus status =
          chooseGrid(desc, driver->devices[device].info, plan, grid, chosen))
    return status;
  if (driver->checkMore)
    if (GdnRuntimeStatus status =
            checkPointers(*driver, device, desc, args, workspace))
      return status;
  if (!chosen.x || !chosen.y || !chosen.z)
    return GDN_SUCCESS;
  return submit(*driver, *kernel, args, workspace, chosen, handle);
}
