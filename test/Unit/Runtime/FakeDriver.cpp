//===- FakeDriver.cpp - A CUDA driver that only takes notes ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

using namespace gdn::runtime;

/// The runtime is the library under test; this one exports what it asks for.
#define FAKE_EXPORT __attribute__((visibility("default")))

namespace {
/// The index of every function.
enum Function : int {
#define FAKE_INDEX(name, version, parameters) name##Index,
  GDN_DRIVER_FUNCTIONS(FAKE_INDEX) GDN_DRIVER_OPTIONAL_FUNCTIONS(FAKE_INDEX)
#undef FAKE_INDEX
      numFunctions
};

constexpr int maxFakeDevices = 8;
constexpr uint64_t deviceMemory = uint64_t(1) << 44;
} // namespace

static const char *const functionNames[] = {
#define FAKE_NAME(name, version, parameters) #name,
    GDN_DRIVER_FUNCTIONS(FAKE_NAME) GDN_DRIVER_OPTIONAL_FUNCTIONS(FAKE_NAME)
#undef FAKE_NAME
};

static std::atomic<int> counts[numFunctions];
static std::atomic<int> failures[numFunctions];
static std::atomic<void (*)(const char *, void **)> watcher;
static std::mutex recordMutex;
static FakeLaunch lastLaunch;
static FakeMap lastMap;
static const char *launched[64];
static int numLaunched;
static FakeParam params[64];
static size_t numParams;
static char contexts[maxFakeDevices];
static thread_local CUcontext stack[8];
static thread_local int depth;

/// Counts a call and gives the result that the test asked for.
static int note(Function function) {
  counts[function].fetch_add(1);
  return failures[function].load();
}

/// The devices' chips from FAKE_CUDA_DEVICES.
static int chips(int *list) {
  const char *text = getenv("FAKE_CUDA_DEVICES");
  int count = 0;
  for (text = text ? text : "90,90"; *text && count < maxFakeDevices;) {
    char *end;
    list[count++] = static_cast<int>(strtol(text, &end, 10));
    text = *end ? end + 1 : end;
  }
  return count;
}

static CUcontext contextOf(int device) {
  return reinterpret_cast<CUcontext>(contexts + device);
}
static int deviceOf(CUcontext context) {
  return static_cast<int>(reinterpret_cast<char *>(context) - contexts);
}
static CUcontext current() { return depth ? stack[depth - 1] : nullptr; }

#define FAKE(name)                                                             \
  if (int failure = note(name##Index))                                         \
  return failure

static CUresult cuInit(unsigned) {
  FAKE(cuInit);
  const char *answer = getenv("FAKE_CUDA_INIT");
  return answer ? atoi(answer) : 0;
}
static CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER";
  return note(cuGetErrorNameIndex);
}
static CUresult cuGetErrorString(CUresult result, const char **text) {
  *text = result == 719 ? "unspecified launch failure" : "other failure";
  return note(cuGetErrorStringIndex);
}
static CUresult cuDeviceGetCount(int *count) {
  int list[maxFakeDevices];
  *count = chips(list);
  return note(cuDeviceGetCountIndex);
}
static CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return note(cuDeviceGetIndex);
}
static CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return note(cuDeviceGetNameIndex);
}
static CUresult cuDeviceGetAttribute(int *value, int attribute,
                                     CUdevice device) {
  int list[maxFakeDevices];
  chips(list);
  *value = attribute == attributeCapabilityMajor    ? list[device] / 10
           : attribute == attributeCapabilityMinor  ? list[device] % 10
           : attribute == attributeMultiprocessors  ? 132
           : attribute == attributeSharedBytesOptIn ? 232448
                                                    : 62914560;
  return note(cuDeviceGetAttributeIndex);
}
static CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  FAKE(cuDevicePrimaryCtxRetain);
  *context = contextOf(device);
  return 0;
}
static CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = current();
  return note(cuCtxGetCurrentIndex);
}
static CUresult cuCtxSetCurrent(CUcontext context) {
  depth = std::max(depth, 1);
  stack[depth - 1] = context;
  return note(cuCtxSetCurrentIndex);
}
static CUresult cuCtxPushCurrent(CUcontext context) {
  stack[depth++] = context;
  return note(cuCtxPushCurrentIndex);
}
static CUresult cuCtxPopCurrent(CUcontext *context) {
  *context = stack[--depth];
  return note(cuCtxPopCurrentIndex);
}
static CUresult cuCtxGetDevice(CUdevice *device) {
  FAKE(cuCtxGetDevice);
  if (!current())
    return 201; // CUDA_ERROR_INVALID_CONTEXT
  *device = deviceOf(current());
  return 0;
}
static CUresult cuCtxSynchronize() { return note(cuCtxSynchronizeIndex); }
static CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  *context = contextOf(
      static_cast<int>(reinterpret_cast<uintptr_t>(stream) / 0x1000 - 1));
  return note(cuStreamGetCtxIndex);
}
/// Where the next array lies: behind those before it.
static std::atomic<uint64_t> allocated;
static CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  constexpr size_t kPage = 1 << 21;
  uint64_t offset = allocated.fetch_add((bytes + kPage - 1) / kPage * kPage);
  *pointer = reinterpret_cast<CUdeviceptr>(
      fakeAddress(deviceOf(current()), offset % (deviceMemory / 2)));
  return note(cuMemAllocIndex);
}
static CUresult cuMemFree(CUdeviceptr) { return note(cuMemFreeIndex); }
static CUresult cuMemcpyHtoD(CUdeviceptr, const void *, size_t) {
  return note(cuMemcpyHtoDIndex);
}
static CUresult cuMemcpyDtoH(void *, CUdeviceptr, size_t) {
  return note(cuMemcpyDtoHIndex);
}
static CUresult cuPointerGetAttribute(void *value, int, CUdeviceptr pointer) {
  FAKE(cuPointerGetAttribute);
  int device = static_cast<int>(pointer / deviceMemory) - 1;
  if (device < 0 || device >= maxFakeDevices)
    return 1; // CUDA_ERROR_INVALID_VALUE
  *static_cast<int *>(value) = device;
  return 0;
}
static CUresult cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(contexts);
  return note(cuEventCreateIndex);
}
static CUresult cuEventDestroy(CUevent) { return note(cuEventDestroyIndex); }
static CUresult cuEventRecord(CUevent, CUstream) {
  return note(cuEventRecordIndex);
}
static CUresult cuEventSynchronize(CUevent) {
  return note(cuEventSynchronizeIndex);
}
static CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  *milliseconds = 0.25;
  return note(cuEventElapsedTimeIndex);
}
static CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *,
                                  void **, unsigned, int *, void **, unsigned) {
  FAKE(cuLibraryLoadData);
  *library = reinterpret_cast<CUlibrary>(const_cast<void *>(image));
  return 0;
}
static CUresult cuLibraryUnload(CUlibrary) {
  return note(cuLibraryUnloadIndex);
}
static CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary,
                                   const char *name) {
  FAKE(cuLibraryGetKernel);
  *kernel = reinterpret_cast<CUkernel>(const_cast<char *>(name));
  return strcmp(name, "missing") == 0 ? 500 : 0; // CUDA_ERROR_NOT_FOUND
}
static CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = reinterpret_cast<CUfunction>(kernel);
  return note(cuKernelGetFunctionIndex);
}
static CUresult cuKernelSetAttribute(int, int, CUkernel, CUdevice) {
  return note(cuKernelSetAttributeIndex);
}
static CUresult
cuTensorMapEncodeTiled(TensorMap *map, int type, uint32_t rank, void *address,
                       const uint64_t *extents, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  FAKE(cuTensorMapEncodeTiled);
  std::lock_guard<std::mutex> lock(recordMutex);
  lastMap = {};
  lastMap.type = type;
  lastMap.rank = rank;
  lastMap.address = address;
  std::copy_n(extents, rank, lastMap.extents);
  std::copy_n(strides, rank - 1, lastMap.strides);
  std::copy_n(box, rank, lastMap.box);
  std::copy_n(elementStrides, rank, lastMap.elementStrides);
  lastMap.interleave = interleave;
  lastMap.swizzle = swizzle;
  lastMap.promotion = promotion;
  lastMap.fill = fill;
  memset(map, 0xab, sizeof(*map));
  return 0;
}
static CUresult cuTensorMapReplaceAddress(TensorMap *map, void *address) {
  FAKE(cuTensorMapReplaceAddress);
  std::lock_guard<std::mutex> lock(recordMutex);
  lastMap.address = address;
  memset(map, 0xcd, sizeof(*map));
  return 0;
}
static CUresult cuLaunchKernelEx(const LaunchConfig *config,
                                 CUfunction function, void **parameters,
                                 void **extra) {
  FAKE(cuLaunchKernelEx);
  if (auto *watch = watcher.load())
    watch(reinterpret_cast<const char *>(function), parameters);
  std::lock_guard<std::mutex> lock(recordMutex);
  lastLaunch = {};
  lastLaunch.config = *config;
  for (uint32_t i = 0; i < config->numAttributes; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == LaunchAttribute::clusterDimension)
      std::copy_n(attribute.cluster, 3, lastLaunch.cluster);
    if (attribute.id == LaunchAttribute::programmaticStreamSerialization)
      lastLaunch.follows = attribute.allowed != 0;
  }
  lastLaunch.function = function;
  // A function is its kernel, and a kernel its name.
  launched[numLaunched++ % std::size(launched)] =
      reinterpret_cast<const char *>(function);
  lastLaunch.device = deviceOf(current());
  if (extra)
    return 1; // CUDA_ERROR_INVALID_VALUE
  if (getenv("FAKE_CUDA_TRACE"))
    fprintf(stderr, "launch of %u x %u x %u blocks\n", config->grid[0],
            config->grid[1], config->grid[2]);
  for (size_t i = 0; i < numParams; ++i)
    memcpy(lastLaunch.parameters + params[i].offset, parameters[i],
           params[i].bytes);
  return 0;
}
static CUresult cuFuncLoad(CUfunction) { return note(cuFuncLoadIndex); }
static CUresult cuKernelGetParamInfo(CUkernel, size_t index, size_t *offset,
                                     size_t *bytes) {
  FAKE(cuKernelGetParamInfo);
  if (index >= numParams)
    return 1; // CUDA_ERROR_INVALID_VALUE
  *offset = params[index].offset;
  *bytes = params[index].bytes;
  return 0;
}

static void *functions[] = {
#define FAKE_ADDRESS(name, version, parameters) reinterpret_cast<void *>(&name),
    GDN_DRIVER_FUNCTIONS(FAKE_ADDRESS)
        GDN_DRIVER_OPTIONAL_FUNCTIONS(FAKE_ADDRESS)
#undef FAKE_ADDRESS
};

static int indexOf(const char *name) {
  for (int i = 0; i < numFunctions; ++i)
    if (strcmp(functionNames[i], name) == 0)
      return i;
  return -1;
}

extern "C" {
FAKE_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int,
                                         uint64_t, int *) {
  const char *missing = getenv("FAKE_CUDA_MISSING");
  int index = indexOf(name);
  if (index < 0 || (missing && strcmp(missing, name) == 0))
    return 500; // CUDA_ERROR_NOT_FOUND
  *function = functions[index];
  return 0;
}

FAKE_EXPORT void fakeReset() {
  std::fill(std::begin(counts), std::end(counts), 0);
  std::fill(std::begin(failures), std::end(failures), 0);
  allocated = 0;
  lastLaunch = {};
  lastMap = {};
  numLaunched = 0;
  numParams = 0;
  watcher = nullptr;
  depth = 0;
}
FAKE_EXPORT int fakeCount(const char *name) {
  int index = indexOf(name);
  return index < 0 ? -1 : counts[index].load();
}
FAKE_EXPORT void fakeFail(const char *name, int result) {
  failures[indexOf(name)] = result;
}
FAKE_EXPORT void fakeReplace(const char *name, void *function) {
  functions[indexOf(name)] = function;
}
FAKE_EXPORT void fakeWatch(void (*watch)(const char *, void **)) {
  watcher = watch;
}
FAKE_EXPORT void fakeSetParams(const FakeParam *list, size_t count) {
  std::copy_n(list, count, params);
  numParams = count;
}
FAKE_EXPORT const FakeLaunch *fakeLastLaunch() { return &lastLaunch; }
FAKE_EXPORT const FakeMap *fakeLastMap() { return &lastMap; }
FAKE_EXPORT const char *fakeLaunchedKernel(int back) {
  constexpr int kept = std::size(launched);
  bool isKept = back >= 0 && back < std::min(numLaunched, kept);
  return isKept ? launched[(numLaunched - 1 - back) % kept] : nullptr;
}
FAKE_EXPORT void *fakeStream(int device) {
  return reinterpret_cast<void *>((uintptr_t(device) + 1) * 0x1000);
}
FAKE_EXPORT void *fakeAddress(int device, uint64_t offset) {
  return reinterpret_cast<void *>((uint64_t(device) + 1) * deviceMemory +
                                  offset);
}
FAKE_EXPORT int fakeCurrentDevice() {
  return current() ? deviceOf(current()) : -1;
}
}
