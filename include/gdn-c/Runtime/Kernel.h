//===- gdn-c/Runtime/Kernel.h - Kernels and their launches --------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernel descriptions, which are constant tables that the compiler writes, and
// the calls that load and launch them. Include gdn-c/Runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_KERNEL_H
#define GDN_C_RUNTIME_KERNEL_H

#include "gdn-c/Runtime/Device.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An extent that every array with the same symbol must share.
#define GDN_SYMBOL(index) (-1 - (int64_t)(index))

enum {
  /// The array may be absent; its pointer, extents and strides are then 0.
  GDN_ARG_FLAG_OPTIONAL = 1,
  /// The last dimension has stride 1.
  GDN_ARG_FLAG_LAST_CONTIGUOUS = 2,
  /// The array is contiguous in row-major order.
  GDN_ARG_FLAG_CONTIGUOUS = 4,
  /// Of a function's states: they may have any strides (gdn.strided), so that
  /// those that lie as [N, H, V, K] are views [N, H, K, V].
  GDN_ARG_FLAG_STRIDED = 8
};

/// What an argument must be.
typedef struct GdnArgDesc {
  /// The name in messages.
  const char *name;
  /// GDN_ARG_*.
  int32_t kind;
  /// An array's GDN_DTYPE_*; 0 for scalars.
  int32_t dtype;
  int32_t rank;
  /// GDN_ARG_FLAG_*.
  uint32_t flags;
  /// `rank` entries: an extent, or GDN_SYMBOL(index into the symbols).
  const int64_t *shape;
  /// Alignment of the data in bytes; 0 for that of an element. An array with a
  /// tensor map is always checked for what the copy engine asks (16 bytes).
  uint32_t alignment;
} GdnArgDesc;

/// The step of a dimension that takes back rows: 2^34 elements less one of the
/// array's dimension. A map with one has three dimensions along the array's:
/// the first two, of any extent, in steps of 1. With coordinate 2^30 in the
/// third one the addresses wrap around, which takes back 2^30 steps, so the
/// extent of the first one ends rows anywhere in the array.
#define GDN_STEP_BACK (-1)

/// One dimension of a tensor map.
typedef struct GdnTensorMapDim {
  /// The dimension of the array that this one steps along.
  int32_t dim;
  /// Elements of the box along it, 1 to 256.
  uint32_t box;
  /// Steps along it; 0 for the array's extent over the step, rounded up.
  int64_t extent;
  /// Elements of the array's dimension in one step, at least 1: 64 for the
  /// panels of 64 columns of a row. Or GDN_STEP_BACK.
  int64_t step;
} GdnTensorMapDim;

enum {
  GDN_SWIZZLE_NONE = 0,
  GDN_SWIZZLE_32B = 1,
  GDN_SWIZZLE_64B = 2,
  GDN_SWIZZLE_128B = 3
};

enum {
  GDN_L2_PROMOTION_NONE = 0,
  GDN_L2_PROMOTION_64B = 1,
  GDN_L2_PROMOTION_128B = 2,
  GDN_L2_PROMOTION_256B = 3
};

/// A tensor map over an array argument. Elements outside the array read as 0.
/// The map over an array without elements, or over an absent one, is all zero
/// bytes, and the kernel must not use it.
typedef struct GdnTensorMapDesc {
  /// Index of the array argument.
  int32_t arg;
  /// 1 to 5.
  int32_t rank;
  /// GDN_SWIZZLE_*.
  int32_t swizzle;
  /// GDN_L2_PROMOTION_*.
  int32_t l2_promotion;
  /// `rank` entries, innermost first; the first one is the array's last
  /// dimension in steps of 1.
  const GdnTensorMapDim *dims;
} GdnTensorMapDesc;

enum {
  /// The data pointer of array argument `index`: 8 bytes.
  GDN_PARAM_POINTER = 1,
  /// Extent, or stride in elements, of dimension `dim` of array `index`.
  GDN_PARAM_EXTENT = 2,
  GDN_PARAM_STRIDE = 3,
  /// Scalar argument `index`.
  GDN_PARAM_SCALAR = 4,
  /// Tensor map `index`: 128 bytes, aligned to 64 (byval, __grid_constant__).
  GDN_PARAM_TENSOR_MAP = 5,
  /// The workspace pointer: 8 bytes.
  GDN_PARAM_WORKSPACE = 6
};

/// One parameter of the kernel's entry, in the entry's order.
typedef struct GdnParamDesc {
  /// GDN_PARAM_*.
  int32_t kind;
  int32_t index;
  int32_t dim;
  /// GDN_DTYPE_I32 or GDN_DTYPE_I64 of an extent or stride; else 0.
  int32_t dtype;
} GdnParamDesc;

/// Blocks of a launch. A grid with a 0 launches nothing.
typedef struct GdnGrid {
  uint32_t x, y, z;
} GdnGrid;

/// What a launch needs.
typedef struct GdnLaunchConfig {
  /// sizeof(GdnLaunchConfig).
  uint32_t struct_size;
  GdnGrid grid;
  /// Bytes of device memory, aligned to GDN_WORKSPACE_ALIGNMENT.
  uint64_t workspace_bytes;
} GdnLaunchConfig;

#define GDN_WORKSPACE_ALIGNMENT 256

/// Sizes grid and workspace from the shapes and the device; it runs inside
/// gdnKernelConfigure and gdnKernelLaunch after the arguments have been
/// checked, and must neither allocate nor call the driver. It refuses arguments
/// with what gdnSetLastErrorMessage returns.
typedef GdnRuntimeStatus (*GdnConfigureFunction)(const GdnArg *args,
                                                 int32_t num_args,
                                                 const GdnDeviceInfo *device,
                                                 GdnLaunchConfig *config);

/// A compiled kernel. The description and all it points to stay unchanged until
/// the kernel is unloaded.
typedef struct GdnKernelDesc {
  /// sizeof(GdnKernelDesc).
  uint32_t struct_size;
  /// GDN_RUNTIME_VERSION.
  uint32_t version;
  /// The entry's name in the image.
  const char *symbol;
  /// A cubin, or PTX text that ends in a 0 byte. Kernels with one image share
  /// its load.
  const void *image;
  uint64_t image_bytes;
  /// The one chip that runs it: 90 for sm_90a.
  int32_t compute_capability;
  /// Threads of a block, dynamic shared memory, blocks of a cluster along x.
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t cluster_size;
  /// Not 0 if blocks do their work in turn, with any number of them: as many as
  /// a multiprocessor runs at a time, and no more are launched.
  uint32_t resident_blocks;
  /// Not 0 if the kernel waits itself, before it touches global memory, for the
  /// one before it in the stream (griddepcontrol.wait): it is launched before
  /// that has ended.
  uint32_t follows;
  int32_t num_args;
  int32_t num_params;
  int32_t num_tensor_maps;
  int32_t num_symbols;
  const GdnArgDesc *args;
  const GdnParamDesc *params;
  const GdnTensorMapDesc *tensor_maps;
  /// Names of the symbolic extents, for messages.
  const char *const *symbols;
  /// Null if every launch brings its grid and no workspace is needed.
  GdnConfigureFunction configure;
} GdnKernelDesc;

//===----------------------------------------------------------------------===//
// Loading and launching
//===----------------------------------------------------------------------===//

/// A loaded kernel.
typedef struct GdnKernel GdnKernel;

/// Checks a description and loads its image. Loading a description again gives
/// the same handle; each load wants its own gdnKernelUnload.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnKernelLoad(const GdnKernelDesc *desc,
                                                  GdnKernel **kernel);
/// Gives a handle back; null is ignored. The image leaves the devices with its
/// last kernel.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnKernelUnload(GdnKernel *kernel);

/// Makes a kernel ready on a device: checks the chip, brings the code there and
/// reserves shared memory. Cheap when done before.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnKernelPrepare(GdnKernel *kernel,
                                                     int32_t device);

/// Checks the arguments and says what a launch with them needs. Pure host work.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnKernelConfigure(const GdnKernel *kernel,
                                                       int32_t device,
                                                       const GdnArg *args,
                                                       int32_t num_args,
                                                       GdnLaunchConfig *config);

/// Checks the arguments and launches the kernel on `stream` (a CUstream or
/// cudaStream_t; null is the default stream of the current context) and on the
/// stream's device, which the kernel must have been prepared for. `workspace`
/// belongs to the launch until the stream has passed it. `grid`: null for the
/// plan's.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnKernelLaunch(
    const GdnKernel *kernel, const GdnArg *args, int32_t num_args,
    void *workspace, size_t workspace_bytes, const GdnGrid *grid, void *stream);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_KERNEL_H
