//===- gdn-c/Runtime/Device.h - Arrays and devices ----------------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Views of arrays in device memory, and what tools and tests need of a device.
// Include gdn-c/Runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_DEVICE_H
#define GDN_C_RUNTIME_DEVICE_H

#include "gdn-c/Runtime/Status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GDN_DTYPE_BF16 = 1,
  GDN_DTYPE_F16 = 2,
  GDN_DTYPE_F32 = 3,
  GDN_DTYPE_I32 = 4,
  GDN_DTYPE_I64 = 5,
  GDN_DTYPE_U8 = 6
};

/// Bytes of an element; 0 of a number that is none of these.
#define GDN_DTYPE_BYTES(dtype)                                                 \
  ((dtype) == GDN_DTYPE_U8                                 ? 1                 \
   : (dtype) == GDN_DTYPE_BF16 || (dtype) == GDN_DTYPE_F16 ? 2                 \
   : (dtype) == GDN_DTYPE_F32 || (dtype) == GDN_DTYPE_I32  ? 4                 \
   : (dtype) == GDN_DTYPE_I64                              ? 8                 \
                                                           : 0)

/// Another type, as DLPack names it: no function takes it, and messages have
/// its name.
#define GDN_DTYPE_FOREIGN(code, bits) (-((code) << 8 | (bits)))

/// A view of an array in device memory. It is read during the call only.
typedef struct GdnTensor {
  void *data;
  /// GDN_DTYPE_*.
  int32_t dtype;
  int32_t rank;
  /// `rank` extents.
  const int64_t *shape;
  /// `rank` strides in elements; null for a contiguous row-major array.
  const int64_t *strides;
} GdnTensor;

enum { GDN_ARG_TENSOR = 1, GDN_ARG_I32 = 2, GDN_ARG_I64 = 3, GDN_ARG_F32 = 4 };

/// One argument of a launch.
typedef struct GdnArg {
  /// GDN_ARG_*.
  int32_t kind;
  union {
    /// Null where an optional array is absent.
    const GdnTensor *tensor;
    int32_t i32;
    int64_t i64;
    float f32;
  } value;
} GdnArg;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// The device that stands for the CPU of this machine. gdnDeviceGetInfo knows
/// it, and libgdn-calls runs calls on it; no CUDA driver is asked.
#define GDN_DEVICE_CPU (-1)

/// What a launch configuration may depend on.
typedef struct GdnDeviceInfo {
  /// sizeof(GdnDeviceInfo), set by the caller: no more than this is written.
  uint32_t struct_size;
  /// The driver's ordinal, as cudaSetDevice takes it.
  int32_t device;
  /// 10 * major + minor: 90 for Hopper. Of the CPU the negative number of the
  /// fastest of its levels that is worth using, which `name` names: -1 of
  /// x86-64-v3, -2 of x86-64-v4, -3 of x86-64-v4+avx512bf16, 0 ("none") of an
  /// older one. GDN_CPU_ISA may name one of its levels instead.
  int32_t compute_capability;
  /// Of the CPU its processors.
  int32_t multiprocessors;
  /// Shared memory that one block may use.
  int32_t shared_bytes;
  int32_t l2_bytes;
  char name[64];
} GdnDeviceInfo;

GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnDeviceGetCount(int32_t *count);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnDeviceGetInfo(int32_t device,
                                                     GdnDeviceInfo *info);

/// Plain device memory for tools, tests and examples; a serving engine brings
/// its own. These calls use the device's primary context, which is the one that
/// the CUDA runtime and PyTorch use, and they synchronise.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnMemoryAllocate(int32_t device,
                                                      size_t bytes,
                                                      void **memory);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnMemoryFree(int32_t device, void *memory);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnMemoryCopyToDevice(int32_t device,
                                                          void *to,
                                                          const void *from,
                                                          size_t bytes);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnMemoryCopyFromDevice(int32_t device,
                                                            void *to,
                                                            const void *from,
                                                            size_t bytes);
/// Makes the device's primary context current on the calling thread, as
/// cudaSetDevice does. A launch on the default stream needs a current context.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnDeviceMakeCurrent(int32_t device);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnDeviceSynchronize(int32_t device);

/// Points in time of a stream (CUevents), for tools that measure; create and
/// destroy are not for the middle of a capture.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnEventCreate(int32_t device,
                                                   void **event);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnEventDestroy(int32_t device,
                                                    void *event);
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnEventRecord(int32_t device, void *event,
                                                   void *stream);
/// Waits for `end` and gives the time from `start` to it.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnEventGetSeconds(int32_t device,
                                                       void *start, void *end,
                                                       double *seconds);

//===----------------------------------------------------------------------===//
// Work on the CPU
//===----------------------------------------------------------------------===//

/// Items of work, numbers from 0 on, that threads share.
typedef struct GdnItems GdnItems;

/// The next item, which no other thread gets; -1 if none is left.
GDN_RUNTIME_EXPORT int64_t gdnItemsNext(GdnItems *items);

/// What a thread does: it takes items until none is left. If it fails, all
/// threads find none left.
typedef GdnRuntimeStatus (*GdnWorker)(void *user, GdnItems *items);

/// Runs `worker` on up to `threads` threads, this one among them, and returns
/// what one of those that failed returned. Threads live as long as the call:
/// nothing is left behind that a fork, or another library's threads, could trip
/// over. If no further thread can be had, those that exist do the work.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnItemsRun(int64_t count, int32_t threads,
                                                GdnWorker worker, void *user);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_DEVICE_H
