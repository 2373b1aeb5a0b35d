//===- Kernel.cpp - Loading kernels and preparing devices -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "Error.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

using namespace gdn::runtime;

namespace {
/// The loaded images and kernels. The lock guards the lists and serialises
/// loading; a launch never takes it.
struct Registry {
  std::mutex mutex;
  Image *images = nullptr;
  GdnKernel *kernels = nullptr;
};
} // namespace

/// Never destroyed: kernels may be launched while the process exits.
static Registry &registry() {
  alignas(Registry) static unsigned char storage[sizeof(Registry)];
  static Registry *instance = new (storage) Registry();
  return *instance;
}

/// Unlinks an element of a list.
template <typename T> static void unlink(T *&head, T *element) {
  T **link = &head;
  while (*link != element)
    link = &(*link)->next;
  *link = element->next;
}

GdnRuntimeStatus gdn::runtime::copyDescription(const GdnKernelDesc *source,
                                               GdnKernelDesc &desc) {
  GDN_TRY(checkGiven(source, "a kernel description"));
  if (source->version != GDN_RUNTIME_VERSION ||
      source->struct_size < sizeof(desc))
    return fail(GDN_ERROR_VERSION,
                "expected a description of version %u and %zu bytes, got "
                "version %u and %u bytes",
                GDN_RUNTIME_VERSION, sizeof(desc), source->version,
                source->struct_size);
  memcpy(&desc, source, sizeof(desc));
  return checkDescription(desc);
}

static GdnRuntimeStatus failCapability(const GdnKernelDesc &desc,
                                       const GdnDeviceInfo &info) {
  return fail(GDN_ERROR_UNSUPPORTED_DEVICE,
              "expected a device of compute capability %d.%d for kernel '%s', "
              "got %d.%d (device %d, %s)",
              desc.compute_capability / 10, desc.compute_capability % 10,
              desc.symbol, info.compute_capability / 10,
              info.compute_capability % 10, info.device, info.name);
}

/// Refuses a kernel that no device here can run, before the driver does so with
/// fewer words.
static GdnRuntimeStatus checkAnyDevice(const Driver &driver,
                                       const GdnKernelDesc &desc) {
  for (int i = 0; i < driver.numDevices; ++i)
    if (driver.devices[i].info.compute_capability == desc.compute_capability)
      return GDN_SUCCESS;
  return failCapability(desc, driver.devices[0].info);
}

/// Finds or loads the image; the caller holds the lock.
static GdnRuntimeStatus useImage(const Driver &driver,
                                 const GdnKernelDesc &desc, Image *&image) {
  Registry &all = registry();
  for (image = all.images; image; image = image->next)
    if (image->data == desc.image) {
      ++image->uses;
      return GDN_SUCCESS;
    }
  image = new (std::nothrow) Image{desc.image, nullptr, 1, all.images};
  if (!image)
    return fail(GDN_ERROR_OUT_OF_MEMORY, "expected memory for an image");
  CUresult result = driver.cuLibraryLoadData(
      &image->library, desc.image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != cudaSuccess) {
    delete image;
    return checkDriver(driver, result, "loading the image of kernel '%s'",
                       desc.symbol);
  }
  all.images = image;
  return GDN_SUCCESS;
}

/// Gives an image back; the caller holds the lock.
static GdnRuntimeStatus releaseImage(const Driver &driver, Image *image) {
  if (--image->uses)
    return GDN_SUCCESS;
  CUresult result = driver.cuLibraryUnload(image->library);
  unlink(registry().images, image);
  delete image;
  return checkDriver(driver, result, "unloading an image");
}

/// Loads the kernel of a new handle; the caller holds the lock.
static GdnRuntimeStatus loadKernel(const Driver &driver, GdnKernel &kernel) {
  GDN_TRY(useImage(driver, kernel.desc, kernel.image));
  CUresult result = driver.cuLibraryGetKernel(
      &kernel.handle, kernel.image->library, kernel.desc.symbol);
  if (result == cudaSuccess)
    return GDN_SUCCESS;
  GdnRuntimeStatus status =
      checkDriver(driver, result, "finding kernel '%s'", kernel.desc.symbol);
  Message message;
  message.add("%s", gdnGetLastErrorMessage());
  releaseImage(driver, kernel.image);
  return fail(status, message);
}

static void deleteKernel(GdnKernel *kernel) {
  KnownCalls::destroy(kernel->known);
  delete kernel;
}

/// Checks the description of a new handle and loads it; the caller holds the
/// lock.
static GdnRuntimeStatus load(const GdnKernelDesc *desc, GdnKernel &loaded) {
  GDN_TRY(copyDescription(desc, loaded.desc));
  GDN_TRY(layoutParams(loaded.desc, loaded.offsets));
  CallLaunch launch = {&loaded, nullptr, nullptr};
  loaded.known = KnownCalls::create(loaded.desc.args, loaded.desc.num_args,
                                    &launch, 1, /*isOfFunction=*/false);
  if (!loaded.known)
    return fail(GDN_ERROR_OUT_OF_MEMORY, "expected memory for a kernel");
  const Driver *driver;
  GDN_TRY(openDriver(driver));
  GDN_TRY(checkAnyDevice(*driver, loaded.desc));
  return loadKernel(*driver, loaded);
}

GdnRuntimeStatus gdnKernelLoad(const GdnKernelDesc *desc, GdnKernel **kernel) {
  GDN_TRY(checkGiven(kernel, "a place for the handle"));
  *kernel = nullptr;
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (GdnKernel *known = all.kernels; known; known = known->next)
    if (known->source == desc) {
      ++known->uses;
      *kernel = known;
      return GDN_SUCCESS;
    }

  auto *loaded = new (std::nothrow) GdnKernel();
  if (!loaded)
    return fail(GDN_ERROR_OUT_OF_MEMORY, "expected memory for a kernel");
  if (GdnRuntimeStatus status = load(desc, *loaded)) {
    deleteKernel(loaded);
    return status;
  }
  loaded->source = desc;
  loaded->uses = 1;
  loaded->next = all.kernels;
  all.kernels = *kernel = loaded;
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdnKernelUnload(GdnKernel *kernel) {
  if (!kernel)
    return GDN_SUCCESS;
  const Driver *driver;
  GDN_TRY(openDriver(driver));
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const GdnKernel *known = all.kernels;
  while (known && known != kernel)
    known = known->next;
  if (!known)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected a loaded kernel, got one that is not");
  if (--kernel->uses)
    return GDN_SUCCESS;
  unlink(all.kernels, kernel);
  GdnRuntimeStatus status = releaseImage(*driver, kernel->image);
  deleteKernel(kernel);
  return status;
}

/// Compares the parameters with the image's, where the driver can tell: a wrong
/// table would make the driver read other bytes than we wrote.
static GdnRuntimeStatus checkParams(const Driver &driver,
                                    const GdnKernel &kernel) {
  const GdnKernelDesc &desc = kernel.desc;
  if (!driver.cuKernelGetParamInfo)
    return GDN_SUCCESS;
  // One more than described is not there: compute-sanitizer counts the question
  // as an error, so it is asked on demand only.
  int asked = desc.num_params + (driver.checkMore ? 1 : 0);
  int count = 0;
  size_t offset, bytes;
  while (count < asked &&
         driver.cuKernelGetParamInfo(kernel.handle, static_cast<size_t>(count),
                                     &offset, &bytes) == cudaSuccess) {
    int index = count++;
    if (index == desc.num_params)
      break;
    uint32_t expected = getParamBytes(desc, desc.params[index]);
    if (bytes != expected)
      return fail(GDN_ERROR_INVALID_KERNEL,
                  "expected parameter %d of kernel '%s' of %u bytes, got %zu "
                  "in its image",
                  index, desc.symbol, expected, bytes);
  }
  if (count != desc.num_params)
    return fail(GDN_ERROR_INVALID_KERNEL,
                "expected %d parameters of kernel '%s', got %d in its image",
                desc.num_params, desc.symbol, count);
  return GDN_SUCCESS;
}

/// The calling thread's context if it is on the device, else the primary one.
static GdnRuntimeStatus chooseContext(const Driver &driver, int32_t device,
                                      CUcontext &context) {
  CUdevice current = 0;
  CUresult result = driver.cuCtxGetCurrent(&context);
  if (result == cudaSuccess && context)
    result = driver.cuCtxGetDevice(&current);
  GDN_TRY(checkDriver(driver, result, "asking for the current context"));
  if (context && driver.findDevice(current) == device)
    return GDN_SUCCESS;
  return getPrimaryContext(driver, device, context);
}

/// Brings the code of a kernel to the device of the current context.
static GdnRuntimeStatus bringTo(const Driver &driver, const GdnKernel &kernel,
                                const DeviceEntry &device) {
  CUresult result = cudaSuccess;
  if (kernel.desc.shared_bytes)
    result =
        driver.cuKernelSetAttribute(functionMaxDynamicSharedBytes,
                                    static_cast<int>(kernel.desc.shared_bytes),
                                    kernel.handle, device.handle);
  CUfunction function = nullptr;
  if (result == cudaSuccess)
    result = driver.cuKernelGetFunction(&function, kernel.handle);
  // With CUDA_MODULE_LOADING=LAZY the handle alone loads nothing.
  if (result == cudaSuccess && driver.cuFuncLoad)
    result = driver.cuFuncLoad(function);
  GDN_TRY(checkDriver(driver, result, "preparing kernel '%s' on device %d",
                      kernel.desc.symbol, device.info.device));
  return checkParams(driver, kernel);
}

GdnRuntimeStatus gdnKernelPrepare(GdnKernel *kernel, int32_t device) {
  GDN_TRY(checkGiven(kernel, "a kernel"));
  const Driver *driver;
  GDN_TRY(openDevice(device, driver));
  if (kernel->prepared[device].load(std::memory_order_acquire))
    return GDN_SUCCESS;
  std::lock_guard<std::mutex> lock(registry().mutex);
  if (kernel->prepared[device].load(std::memory_order_relaxed))
    return GDN_SUCCESS;

  const DeviceEntry &entry = driver->devices[device];
  if (entry.info.compute_capability != kernel->desc.compute_capability)
    return failCapability(kernel->desc, entry.info);
  auto available = static_cast<uint32_t>(entry.info.shared_bytes);
  if (kernel->desc.shared_bytes > available)
    return fail(GDN_ERROR_UNSUPPORTED_DEVICE,
                "expected %u bytes of shared memory for kernel '%s', got a "
                "device with %u",
                kernel->desc.shared_bytes, kernel->desc.symbol, available);
  CUcontext context;
  GDN_TRY(chooseContext(*driver, device, context));
  ScopedContext scope(*driver);
  GDN_TRY(scope.enter(context));
  GDN_TRY(bringTo(*driver, *kernel, entry));
  kernel->prepared[device].store(true, std::memory_order_release);
  return GDN_SUCCESS;
}
