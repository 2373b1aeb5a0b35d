//===- Driver.cpp - The CUDA driver, opened at run time -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include "Error.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <new>

using namespace gdn::runtime;

namespace {
/// cuGetProcAddress_v2, the way to every other function.
using GetProcAddress = CUresult (*)(const char *symbol, void **function,
                                    int cudaVersion, uint64_t flags,
                                    int *symbolStatus);

/// The outcome of opening the driver, kept for all threads.
struct Opened {
  std::once_flag once;
  Driver driver;
  GdnRuntimeStatus status;
  Message message;
};
} // namespace

/// Never destroyed: kernels may be launched while the process exits.
static Opened &opened() {
  alignas(Opened) static unsigned char storage[sizeof(Opened)];
  static Opened *instance = new (storage) Opened();
  return *instance;
}

/// Looks up every function of the driver.
static GdnRuntimeStatus
findFunctions(const char *path, GetProcAddress getProcAddress, Driver &driver) {
  int symbolStatus = 0;
#define GDN_FIND(name, version, parameters)                                    \
  if (getProcAddress(#name, reinterpret_cast<void **>(&driver.name), version,  \
                     0, &symbolStatus) != cudaSuccess)                         \
    driver.name = nullptr;
#define GDN_REQUIRE(name, version, parameters)                                 \
  GDN_FIND(name, version, parameters)                                          \
  if (!driver.name)                                                            \
    return fail(GDN_ERROR_NO_DRIVER,                                           \
                "expected a driver of CUDA 12.0 or newer, got '%s' without "   \
                "%s",                                                          \
                path, #name);
  GDN_DRIVER_FUNCTIONS(GDN_REQUIRE)
  GDN_DRIVER_OPTIONAL_FUNCTIONS(GDN_FIND)
#undef GDN_REQUIRE
#undef GDN_FIND
  return GDN_SUCCESS;
}

/// Reads the facts of one device.
static GdnRuntimeStatus describeDevice(const Driver &driver, int ordinal,
                                       DeviceEntry &entry) {
  int major = 0, minor = 0;
  GdnDeviceInfo &info = entry.info;
  info.struct_size = sizeof(info);
  info.device = ordinal;
  CUresult result = driver.cuDeviceGet(&entry.handle, ordinal);
  auto read = [&](int attribute, int32_t &value) {
    if (result == cudaSuccess)
      result = driver.cuDeviceGetAttribute(&value, attribute, entry.handle);
  };
  read(attributeCapabilityMajor, major);
  read(attributeCapabilityMinor, minor);
  read(attributeMultiprocessors, info.multiprocessors);
  read(attributeSharedBytesOptIn, info.shared_bytes);
  read(attributeL2Bytes, info.l2_bytes);
  if (result == cudaSuccess)
    result = driver.cuDeviceGetName(info.name, sizeof(info.name), entry.handle);
  info.compute_capability = 10 * major + minor;
  return checkDriver(driver, result, "reading device %d", ordinal);
}

/// Opens the library, its functions and its devices.
static GdnRuntimeStatus open(Driver &driver) {
  const char *path = getenv("GDN_CUDA_DRIVER");
  if (!path || !*path)
    path = "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(GDN_ERROR_NO_DRIVER, "expected a CUDA driver, got: %s",
                dlerror());
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    return fail(GDN_ERROR_NO_DRIVER,
                "expected a driver of CUDA 12.0 or newer, got '%s' without "
                "cuGetProcAddress_v2",
                path);
  GDN_TRY(findFunctions(path, getProcAddress, driver));

  CUresult result = driver.cuInit(0);
  if (result == cudaSuccess)
    result = driver.cuDeviceGetCount(&driver.numDevices);
  if (result == cudaErrorNoDevice ||
      (result == cudaSuccess && driver.numDevices == 0))
    return fail(GDN_ERROR_NO_DEVICE, "expected a CUDA device, got none");
  GDN_TRY(checkDriver(driver, result, "initialising the driver '%s'", path));
  if (driver.numDevices > Driver::maxDevices)
    driver.numDevices = Driver::maxDevices;
  for (int i = 0; i < driver.numDevices; ++i)
    GDN_TRY(describeDevice(driver, i, driver.devices[i]));
  const char *check = getenv("GDN_RUNTIME_CHECK");
  driver.checkMore = check && strcmp(check, "1") == 0;
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::openDriver(const Driver *&driver) {
  Opened &state = opened();
  std::call_once(state.once, [&] {
    state.status = open(state.driver);
    if (state.status)
      state.message.add("%s", gdnGetLastErrorMessage());
  });
  driver = &state.driver;
  return state.status ? fail(state.status, state.message) : GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::openDevice(int32_t device,
                                          const Driver *&driver) {
  GDN_TRY(openDriver(driver));
  if (device < 0 || device >= driver->numDevices)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a device from 0 to %d, got %d",
                driver->numDevices - 1, device);
  return GDN_SUCCESS;
}

int Driver::findDevice(CUdevice handle) const {
  for (int i = 0; i < numDevices; ++i)
    if (devices[i].handle == handle)
      return i;
  return -1;
}

GdnRuntimeStatus gdn::runtime::checkDriver(const Driver &driver,
                                           CUresult result, const char *what,
                                           ...) {
  if (result == cudaSuccess)
    return GDN_SUCCESS;
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(result, &name) != cudaSuccess || !name)
    name = "unknown error";
  if (driver.cuGetErrorString(result, &text) != cudaSuccess || !text)
    text = "no text";
  Message message;
  va_list values;
  va_start(values, what);
  message.addList(what, values);
  va_end(values);
  message.add(" failed: %s (%d), %s", name, result, text);
  return fail(GDN_ERROR_DRIVER, message);
}

GdnRuntimeStatus gdn::runtime::getPrimaryContext(const Driver &driver,
                                                 int32_t device,
                                                 CUcontext &context) {
  static std::mutex mutex;
  static CUcontext contexts[Driver::maxDevices];
  std::lock_guard<std::mutex> lock(mutex);
  CUcontext &kept = contexts[device];
  if (!kept) {
    CUresult result =
        driver.cuDevicePrimaryCtxRetain(&kept, driver.devices[device].handle);
    if (result != cudaSuccess) {
      kept = nullptr;
      return checkDriver(driver, result,
                         "retaining the primary context of device %d", device);
    }
  }
  context = kept;
  return GDN_SUCCESS;
}

GdnRuntimeStatus ScopedContext::enter(CUcontext context) {
  CUcontext current = nullptr;
  CUresult result = driver.cuCtxGetCurrent(&current);
  if (result == cudaSuccess && current != context) {
    result = driver.cuCtxPushCurrent(context);
    pushed = result == cudaSuccess;
  }
  return checkDriver(driver, result, "making a context current");
}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  if (pushed)
    driver.cuCtxPopCurrent(&popped);
}
