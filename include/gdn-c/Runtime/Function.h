//===- gdn-c/Runtime/Function.h - Kernels in a row ----------------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions: kernels in a row, over the caller's arrays and the workspace.
// Include gdn-c/Runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_FUNCTION_H
#define GDN_C_RUNTIME_FUNCTION_H

#include "gdn-c/Runtime/Kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The steps by which a host computes extents and grids from the arguments'
/// extents and from scalars. `left` and `right` are earlier steps unless said
/// otherwise.
enum {
  /// `value`.
  GDN_INDEX_CONSTANT = 1,
  /// Extent `right` of array argument `left`; 0 if it is absent.
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
  GDN_INDEX_MAXIMUM = 10,
  /// The value of scalar argument `left`, of 32 or 64 bits.
  GDN_INDEX_SCALAR = 11
};

/// One of these steps.
typedef struct GdnIndexStep {
  /// GDN_INDEX_*.
  int32_t kind;
  int32_t left;
  int32_t right;
  int64_t value;
} GdnIndexStep;

/// Extent `dim` of array argument `arg` must be what step `step` gives, if the
/// array is there.
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

/// A dimension of a view: the base's dimensions `first` to `last` as one, which
/// must lie one behind the other, or one of extent 1 if `last` is below
/// `first`. `offset`, `extent` and `stride` are steps: it begins at that entry,
/// and has so many, each so many behind the one before it; -1 stands for 0, for
/// all and for 1.
typedef struct GdnViewDim {
  int32_t first;
  int32_t last;
  int32_t offset;
  int32_t extent;
  int32_t stride;
} GdnViewDim;

enum {
  /// Argument `index` of the function, an array or a scalar of the same kind.
  GDN_OPERAND_ARGUMENT = 1,
  /// Temporary `index`.
  GDN_OPERAND_TEMPORARY = 2,
  /// What step `index` gives, for a scalar argument of the kernel.
  GDN_OPERAND_INDEX = 3,
  /// View `index`.
  GDN_OPERAND_VIEW = 4
};

/// An argument of a kernel in a function.
typedef struct GdnOperand {
  /// GDN_OPERAND_*.
  int32_t kind;
  int32_t index;
} GdnOperand;

/// An array of the function with other dimensions.
typedef struct GdnViewDesc {
  /// An argument or a temporary. The view of an absent array is absent.
  GdnOperand base;
  int32_t rank;
  /// `rank` of them, which name the base's dimensions in order.
  const GdnViewDim *dims;
} GdnViewDesc;

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
  /// Inputs, then outputs. Outputs are arrays, an input may be a scalar. An
  /// input array may be written too. Arrays with GDN_ARG_FLAG_OPTIONAL may be
  /// absent: their tensor is null.
  int32_t num_inputs;
  int32_t num_args;
  int32_t num_symbols;
  int32_t num_steps;
  int32_t num_rules;
  int32_t num_temporaries;
  int32_t num_views;
  int32_t num_launches;
  int32_t num_results;
  const GdnArgDesc *args;
  const char *const *symbols;
  const GdnIndexStep *steps;
  const GdnExtentRule *rules;
  const GdnTemporaryDesc *temporaries;
  const GdnViewDesc *views;
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

#endif // GDN_C_RUNTIME_FUNCTION_H
