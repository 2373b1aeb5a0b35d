//===- Device.cpp - Devices and plain device memory -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace gdn::runtime;

GdnRuntimeStatus gdnDeviceGetCount(int32_t *count) {
  GDN_TRY(checkGiven(count, "a place for the count"));
  *count = 0;
  const Driver *driver;
  GDN_TRY(openDriver(driver));
  *count = driver->numDevices;
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnDeviceGetInfo(int32_t device, GdnDeviceInfo *info) {
  if (!info || info->struct_size < sizeof(info->struct_size))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a GdnDeviceInfo with its struct_size, got %s",
                info ? "struct_size 0" : "null");
  GdnDeviceInfo known;
  if (device == GDN_DEVICE_CPU) {
    known = cpuInfo;
  } else {
    const Driver *driver;
    GDN_TRY(openDevice(device, driver));
    known = driver->devices[device].info;
  }
  known.struct_size =
      std::min(info->struct_size, static_cast<uint32_t>(sizeof(known)));
  memcpy(info, &known, known.struct_size);
  return GDN_SUCCESS;
}

/// Runs a driver call in the primary context of a device and reports its
/// failure.
template <typename Call>
static GdnRuntimeStatus callOn(int32_t device, const char *what, Call call) {
  const Driver *driver;
  CUcontext context;
  GDN_TRY(openDevice(device, driver));
  GDN_TRY(getPrimaryContext(*driver, device, context));
  ScopedContext scope(*driver);
  GDN_TRY(scope.enter(context));
  return checkDriver(*driver, call(*driver), "%s on device %d", what, device);
}

static CUdeviceptr address(const void *memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

GdnRuntimeStatus gdnMemoryAllocate(int32_t device, size_t bytes,
                                   void **memory) {
  GDN_TRY(checkGiven(memory, "a place for the pointer"));
  *memory = nullptr;
  return callOn(device, "allocating memory", [&](const Driver &driver) {
    CUdeviceptr pointer = 0;
    // The driver refuses 0 bytes, which is what an empty array needs.
    CUresult result = driver.cuMemAlloc(&pointer, std::max(bytes, size_t(1)));
    *memory = reinterpret_cast<void *>(pointer);
    return result;
  });
}

GdnRuntimeStatus gdnMemoryFree(int32_t device, void *memory) {
  if (!memory)
    return GDN_SUCCESS;
  return callOn(device, "freeing memory", [&](const Driver &driver) {
    return driver.cuMemFree(address(memory));
  });
}

GdnRuntimeStatus gdnMemoryCopyToDevice(int32_t device, void *to,
                                       const void *from, size_t bytes) {
  return callOn(device, "copying to memory", [&](const Driver &driver) {
    return driver.cuMemcpyHtoD(address(to), from, bytes);
  });
}

GdnRuntimeStatus gdnMemoryCopyFromDevice(int32_t device, void *to,
                                         const void *from, size_t bytes) {
  return callOn(device, "copying from memory", [&](const Driver &driver) {
    return driver.cuMemcpyDtoH(to, address(from), bytes);
  });
}

GdnRuntimeStatus gdnEventCreate(int32_t device, void **event) {
  GDN_TRY(checkGiven(event, "a place for the event"));
  *event = nullptr;
  return callOn(device, "creating an event", [&](const Driver &driver) {
    return driver.cuEventCreate(reinterpret_cast<CUevent *>(event), 0);
  });
}

GdnRuntimeStatus gdnEventDestroy(int32_t device, void *event) {
  if (!event)
    return GDN_SUCCESS;
  return callOn(device, "destroying an event", [&](const Driver &driver) {
    return driver.cuEventDestroy(static_cast<CUevent>(event));
  });
}

GdnRuntimeStatus gdnEventRecord(int32_t device, void *event, void *stream) {
  return callOn(device, "recording an event", [&](const Driver &driver) {
    return driver.cuEventRecord(static_cast<CUevent>(event),
                                static_cast<CUstream>(stream));
  });
}

GdnRuntimeStatus gdnEventGetSeconds(int32_t device, void *start, void *end,
                                    double *seconds) {
  GDN_TRY(checkGiven(seconds, "a place for the seconds"));
  return callOn(device, "measuring time", [&](const Driver &driver) {
    float milliseconds = 0;
    CUresult result = driver.cuEventSynchronize(static_cast<CUevent>(end));
    if (result == cudaSuccess)
      result =
          driver.cuEventElapsedTime(&milliseconds, static_cast<CUevent>(start),
                                    static_cast<CUevent>(end));
    *seconds = milliseconds * 1e-3;
    return result;
  });
}

GdnRuntimeStatus gdnDeviceSynchronize(int32_t device) {
  return callOn(device, "synchronising",
                [](const Driver &driver) { return driver.cuCtxSynchronize(); });
}

GdnRuntimeStatus gdnDeviceMakeCurrent(int32_t device) {
  const Driver *driver;
  CUcontext context;
  GDN_TRY(openDevice(device, driver));
  GDN_TRY(getPrimaryContext(*driver, device, context));
  return checkDriver(*driver, driver->cuCtxSetCurrent(context),
                     "making device %d current", device);
}
