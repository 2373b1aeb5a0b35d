//===- gdn-c/Runtime.h - Launch compiled kernels ------------------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of libgdn-runtime: it loads compiled kernels and launches
// them on a CUDA stream. The library needs neither MLIR nor Python, and CUDA
// only at run time: it opens the driver (libcuda.so.1) on the first call that
// asks for a device. docs/Runtime.md explains the use; the rules in short:
//
// - Every function returns a status; gdnGetLastErrorMessage has the details of
//   the calling thread's last failure. Nothing aborts, nothing throws.
// - Every function may be called from any thread at any time, except that a
//   kernel must not be unloaded while another thread still uses it.
// - gdnKernelLoad and gdnKernelPrepare do all loading. gdnKernelLaunch neither
//   allocates, loads nor synchronises, and may be captured in a CUDA graph.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_H
#define GDN_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GDN_RUNTIME_EXPORT __attribute__((visibility("default")))
#else
#define GDN_RUNTIME_EXPORT
#endif

/// The version of this interface. Libraries of one major version keep what
/// earlier minor versions declared; while the major version is 0, each minor
/// version stands alone. The library's SOVERSION follows the same numbers.
#define GDN_RUNTIME_VERSION_MAJOR 0
#define GDN_RUNTIME_VERSION_MINOR 5
#define GDN_RUNTIME_VERSION                                                    \
  (GDN_RUNTIME_VERSION_MAJOR * 1000 + GDN_RUNTIME_VERSION_MINOR)

/// GDN_RUNTIME_VERSION of the loaded library.
GDN_RUNTIME_EXPORT uint32_t gdnRuntimeGetVersion(void);

//===----------------------------------------------------------------------===//
// Status
//===----------------------------------------------------------------------===//

/// In C++ of type int, so that any number from a C caller is a value of it.
typedef enum GdnRuntimeStatus
#ifdef __cplusplus
    : int
#endif
{
  /// The call did what it says.
  GDN_SUCCESS = 0,
  /// An argument of the call breaks a rule that the message names.
  GDN_ERROR_INVALID_ARGUMENT = 1,
  /// A kernel description contradicts itself or the image.
  GDN_ERROR_INVALID_KERNEL = 2,
  /// The description was compiled against another version of this interface.
  GDN_ERROR_VERSION = 3,
  /// No usable CUDA driver: not installed, or too old.
  GDN_ERROR_NO_DRIVER = 4,
  /// The driver sees no device.
  GDN_ERROR_NO_DEVICE = 5,
  /// The device is not of the chip that the kernel was compiled for.
  GDN_ERROR_UNSUPPORTED_DEVICE = 6,
  /// gdnKernelPrepare has not been called for the device of the launch.
  GDN_ERROR_NOT_PREPARED = 7,
  /// The workspace is smaller than the plan asks for.
  GDN_ERROR_WORKSPACE_TOO_SMALL = 8,
  /// Host memory ran out.
  GDN_ERROR_OUT_OF_MEMORY = 9,
  /// A call of the CUDA driver failed; the message has its error.
  GDN_ERROR_DRIVER = 10
} GdnRuntimeStatus;

/// A short text for a status, never null.
GDN_RUNTIME_EXPORT const char *gdnStatusGetString(GdnRuntimeStatus status);

/// What the calling thread's last failed call expected and what it got; empty
/// before the first failure. Valid until the thread's next call.
GDN_RUNTIME_EXPORT const char *gdnGetLastErrorMessage(void);

/// Sets the calling thread's message and returns `status`: the way for a plan
/// function to say why it refuses.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnSetLastErrorMessage(GdnRuntimeStatus status, const char *message);

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

enum {
  GDN_DTYPE_BF16 = 1,
  GDN_DTYPE_F16 = 2,
  GDN_DTYPE_F32 = 3,
  GDN_DTYPE_I32 = 4,
  GDN_DTYPE_I64 = 5,
  GDN_DTYPE_U8 = 6
};

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

/// What a plan may depend on.
typedef struct GdnDeviceInfo {
  /// sizeof(GdnDeviceInfo), set by the caller: no more than this is written.
  uint32_t struct_size;
  /// The driver's ordinal, as cudaSetDevice takes it.
  int32_t device;
  /// 10 * major + minor: 90 for Hopper.
  int32_t compute_capability;
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
// Kernel descriptions: constant tables that the compiler writes
//===----------------------------------------------------------------------===//

/// An extent that every array with the same symbol must share.
#define GDN_SYMBOL(index) (-1 - (int64_t)(index))

enum {
  /// The array may be absent; its pointer, extents and strides are then 0.
  GDN_ARG_FLAG_OPTIONAL = 1,
  /// The last dimension has stride 1.
  GDN_ARG_FLAG_LAST_CONTIGUOUS = 2,
  /// The array is contiguous in row-major order.
  GDN_ARG_FLAG_CONTIGUOUS = 4
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
// Kernels
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

//===----------------------------------------------------------------------===//
// Functions: kernels in a row, over the caller's arrays and the workspace
//===----------------------------------------------------------------------===//

/// The steps by which a host computes extents and grids from the arguments'
/// extents. `left` and `right` are earlier steps unless said otherwise.
enum {
  /// `value`.
  GDN_INDEX_CONSTANT = 1,
  /// Extent `right` of array argument `left`.
  GDN_INDEX_EXTENT = 2,
  GDN_INDEX_ADD = 3,
  GDN_INDEX_SUBTRACT = 4,
  GDN_INDEX_MULTIPLY = 5,
  /// Rounded down; the divisor of this and the next two is above 0.
  GDN_INDEX_DIVIDE = 6,
  /// Divided, rounded up.
  GDN_INDEX_DIVIDE_UP = 7,
  GDN_INDEX_REMAINDER = 8,
  GDN_INDEX_MINIMUM = 9,
  GDN_INDEX_MAXIMUM = 10
};

/// One of these steps.
typedef struct GdnIndexStep {
  /// GDN_INDEX_*.
  int32_t kind;
  int32_t left;
  int32_t right;
  int64_t value;
} GdnIndexStep;

/// Extent `dim` of array argument `arg` must be what step `step` gives.
typedef struct GdnExtentRule {
  int32_t arg;
  int32_t dim;
  int32_t step;
} GdnExtentRule;

/// A contiguous array in the workspace, from one launch for another.
typedef struct GdnTemporaryDesc {
  /// GDN_DTYPE_*.
  int32_t dtype;
  int32_t rank;
  /// `rank` steps.
  const int32_t *shape;
} GdnTemporaryDesc;

enum {
  /// Argument `index` of the function.
  GDN_OPERAND_ARGUMENT = 1,
  /// Temporary `index`.
  GDN_OPERAND_TEMPORARY = 2,
  /// What step `index` gives, for a scalar argument of the kernel.
  GDN_OPERAND_INDEX = 3
};

/// An argument of a kernel in a function.
typedef struct GdnOperand {
  /// GDN_OPERAND_*.
  int32_t kind;
  int32_t index;
} GdnOperand;

/// One kernel of a function.
typedef struct GdnLaunchDesc {
  const GdnKernelDesc *kernel;
  /// One for each argument of the kernel.
  const GdnOperand *operands;
  int32_t num_operands;
  /// Steps: the kernel runs on as many blocks as their product.
  int32_t grid[3];
} GdnLaunchDesc;

/// A compiled function: its launches run in order on one stream. What the
/// description points to stays unchanged while the function is in use, but for
/// `kernels`.
typedef struct GdnFunctionDesc {
  /// sizeof(GdnFunctionDesc).
  uint32_t struct_size;
  /// GDN_RUNTIME_VERSION.
  uint32_t version;
  const char *name;
  /// What the function computes, as JSON for tools; null if nobody knows.
  const char *source;
  /// Inputs, then outputs: arrays all of them. An input may be written too.
  int32_t num_inputs;
  int32_t num_args;
  int32_t num_symbols;
  int32_t num_steps;
  int32_t num_rules;
  int32_t num_temporaries;
  int32_t num_launches;
  int32_t num_results;
  const GdnArgDesc *args;
  const char *const *symbols;
  const GdnIndexStep *steps;
  const GdnExtentRule *rules;
  const GdnTemporaryDesc *temporaries;
  const GdnLaunchDesc *launches;
  /// What the function gives back, in the order of its results: `num_results`
  /// arguments, outputs or inputs that are updated in place.
  const int32_t *results;
  /// Room for the runtime: a pointer for each launch, null at first.
  void **kernels;
} GdnFunctionDesc;

/// Checks a function's description, loads its kernels and makes them ready on a
/// device. Cheap when done before.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnFunctionPrepare(const GdnFunctionDesc *function, int32_t device);
/// Gives the function's kernels back. No thread may use it meanwhile.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnFunctionUnload(const GdnFunctionDesc *function);

/// Computes the shape of output `output` (from 0) from the inputs: as many
/// extents as its rank. Pure host work.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnFunctionGetOutputShape(const GdnFunctionDesc *function, const GdnArg *inputs,
                          int32_t num_inputs, int32_t output, int64_t *shape);

/// Checks the arguments and says how much workspace a launch with them needs:
/// bytes of device memory, aligned to GDN_WORKSPACE_ALIGNMENT. Pure host work.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnFunctionGetWorkspaceBytes(
    const GdnFunctionDesc *function, const GdnArg *args, int32_t num_args,
    uint64_t *bytes);

/// Checks the function's description and the arguments, for all kernels, as
/// gdnFunctionPrepare and gdnFunctionLaunch do, and launches nothing: neither
/// arrays nor device need be there, any address of the right alignment will do.
/// Pure host work.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnFunctionCheck(
    const GdnFunctionDesc *function, const GdnArg *args, int32_t num_args);

/// Checks the arguments, for all kernels, and launches these on `stream`. What
/// gdnKernelLaunch says of devices, streams and the workspace holds here too.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnFunctionLaunch(
    const GdnFunctionDesc *function, const GdnArg *args, int32_t num_args,
    void *workspace, size_t workspace_bytes, void *stream);

/// The same on a device that the caller names: a default stream is that of the
/// current context if it is on the device, else of the device's primary
/// context, so that no context need be current. Another stream must be the
/// device's.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnFunctionLaunchOn(
    const GdnFunctionDesc *function, int32_t device, const GdnArg *args,
    int32_t num_args, void *workspace, size_t workspace_bytes, void *stream);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_H
