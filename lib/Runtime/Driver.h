//===- Driver.h - The CUDA driver, opened at run time -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few declarations of the CUDA driver that the runtime needs, so that it
// builds without CUDA's headers. Values and layouts are those of cuda.h, whose
// ABI is stable; each function is looked up for the version that introduced it.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_DRIVER_H
#define GDN_LIB_RUNTIME_DRIVER_H

#include "gdn-c/Runtime.h"

namespace gdn::runtime {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUstream = struct CUstream_st *;
using CUlibrary = struct CUlib_st *;
using CUkernel = struct CUkern_st *;
using CUfunction = struct CUfunc_st *;
using CUevent = struct CUevent_st *;

/// CUresult.
enum : int { cudaSuccess = 0, cudaErrorNoDevice = 100 };

/// CUdevice_attribute.
enum : int {
  attributeMultiprocessors = 16,
  attributeL2Bytes = 38,
  attributeCapabilityMajor = 75,
  attributeCapabilityMinor = 76,
  attributeSharedBytesOptIn = 97
};

/// CUfunction_attribute.
enum : int { functionMaxDynamicSharedBytes = 8 };

/// CUpointer_attribute.
enum : int { pointerDeviceOrdinal = 9 };

/// CUtensorMapDataType; the swizzles and L2 promotions of gdn-c/Runtime.h have
/// the driver's values.
enum : int {
  mapUint8 = 0,
  mapInt32 = 3,
  mapInt64 = 5,
  mapFloat16 = 6,
  mapFloat32 = 7,
  mapBfloat16 = 9
};

/// CUtensorMap. The driver fills it on the host, at this alignment.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

/// CUlaunchAttribute with the attributes that are used.
struct LaunchAttribute {
  static constexpr uint32_t clusterDimension = 4,
                            programmaticStreamSerialization = 6;
  uint32_t id;
  uint32_t unused;
  union {
    uint32_t cluster[3];
    uint32_t allowed;
    uint64_t size[8];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t sharedBytes;
  CUstream stream;
  LaunchAttribute *attributes;
  uint32_t numAttributes;
};
static_assert(sizeof(LaunchConfig) == 56);

/// X(name, first CUDA version, parameter types). All are required.
#define GDN_DRIVER_FUNCTIONS(X)                                                \
  X(cuInit, 2000, (unsigned))                                                  \
  X(cuGetErrorName, 6000, (CUresult, const char **))                           \
  X(cuGetErrorString, 6000, (CUresult, const char **))                         \
  X(cuDeviceGetCount, 2000, (int *))                                           \
  X(cuDeviceGet, 2000, (CUdevice *, int))                                      \
  X(cuDeviceGetName, 2000, (char *, int, CUdevice))                            \
  X(cuDeviceGetAttribute, 2000, (int *, int, CUdevice))                        \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                   \
  X(cuCtxGetCurrent, 4000, (CUcontext *))                                      \
  X(cuCtxSetCurrent, 4000, (CUcontext))                                        \
  X(cuCtxPushCurrent, 4000, (CUcontext))                                       \
  X(cuCtxPopCurrent, 4000, (CUcontext *))                                      \
  X(cuCtxGetDevice, 2000, (CUdevice *))                                        \
  X(cuCtxSynchronize, 2000, ())                                                \
  X(cuStreamGetCtx, 9020, (CUstream, CUcontext *))                             \
  X(cuMemAlloc, 3020, (CUdeviceptr *, size_t))                                 \
  X(cuMemFree, 3020, (CUdeviceptr))                                            \
  X(cuMemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t))                   \
  X(cuMemcpyDtoH, 3020, (void *, CUdeviceptr, size_t))                         \
  X(cuPointerGetAttribute, 4000, (void *, int, CUdeviceptr))                   \
  X(cuEventCreate, 2000, (CUevent *, unsigned))                                \
  X(cuEventDestroy, 4000, (CUevent))                                           \
  X(cuEventRecord, 2000, (CUevent, CUstream))                                  \
  X(cuEventSynchronize, 2000, (CUevent))                                       \
  X(cuEventElapsedTime, 2000, (float *, CUevent, CUevent))                     \
  X(cuLibraryLoadData, 12000,                                                  \
    (CUlibrary *, const void *, int *, void **, unsigned, int *, void **,      \
     unsigned))                                                                \
  X(cuLibraryUnload, 12000, (CUlibrary))                                       \
  X(cuLibraryGetKernel, 12000, (CUkernel *, CUlibrary, const char *))          \
  X(cuKernelGetFunction, 12000, (CUfunction *, CUkernel))                      \
  X(cuKernelSetAttribute, 12000, (int, int, CUkernel, CUdevice))               \
  X(cuTensorMapEncodeTiled, 12000,                                             \
    (TensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *,   \
     const uint32_t *, const uint32_t *, int, int, int, int))                  \
  X(cuLaunchKernelEx, 11060,                                                   \
    (const LaunchConfig *, CUfunction, void **, void **))

/// The same for functions that older drivers lack; null there.
#define GDN_DRIVER_OPTIONAL_FUNCTIONS(X)                                       \
  X(cuFuncLoad, 12040, (CUfunction))                                           \
  X(cuTensorMapReplaceAddress, 12000, (TensorMap *, void *))                   \
  X(cuKernelGetParamInfo, 12040, (CUkernel, size_t, size_t *, size_t *))

/// One device as the driver names it.
struct DeviceEntry {
  CUdevice handle;
  GdnDeviceInfo info;
};

/// What gdnDeviceGetInfo says of the CPU, which needs no driver.
extern const GdnDeviceInfo cpuInfo;

/// The opened driver: its functions and its devices. Constant once open.
struct Driver {
  static constexpr int maxDevices = 64;

#define GDN_DECLARE(name, version, parameters) CUresult(*name) parameters;
  GDN_DRIVER_FUNCTIONS(GDN_DECLARE)
  GDN_DRIVER_OPTIONAL_FUNCTIONS(GDN_DECLARE)
#undef GDN_DECLARE

  int numDevices;
  DeviceEntry devices[maxDevices];
  /// GDN_RUNTIME_CHECK=1: what costs time, or an error that tools would report,
  /// is checked as well.
  bool checkMore;

  /// The ordinal of a device handle, or -1.
  int findDevice(CUdevice handle) const;
};

/// Opens the driver on the first call and gives the same answer ever after.
GdnRuntimeStatus openDriver(const Driver *&driver);

/// Opens the driver and checks that it has the device.
GdnRuntimeStatus openDevice(int32_t device, const Driver *&driver);

/// Reports a driver call if it failed: "<what> failed: <error>, <its text>".
[[gnu::format(printf, 3, 4)]] GdnRuntimeStatus
checkDriver(const Driver &driver, CUresult result, const char *what, ...);

/// The device's primary context, retained once and kept for the life of the
/// process: to release it could end it under somebody's feet.
GdnRuntimeStatus getPrimaryContext(const Driver &driver, int32_t device,
                                   CUcontext &context);

/// Makes a context current for the life of the object, if it is not already.
class ScopedContext {
public:
  explicit ScopedContext(const Driver &driver) : driver(driver) {}
  ~ScopedContext();
  ScopedContext(const ScopedContext &) = delete;
  ScopedContext &operator=(const ScopedContext &) = delete;

  GdnRuntimeStatus enter(CUcontext context);

private:
  const Driver &driver;
  bool pushed = false;
};

} // namespace gdn::runtime

#endif // GDN_LIB_RUNTIME_DRIVER_H
