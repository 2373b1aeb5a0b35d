//===- Kernel.h - Loaded kernels and their checks ---------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_KERNEL_H
#define GDN_LIB_RUNTIME_KERNEL_H

#include "Driver.h"
#include "KnownCalls.h"

#include <atomic>

namespace gdn::runtime {

/// A loaded image, shared by the kernels in it. The library belongs to no
/// context: the driver brings it to each device.
struct Image {
  const void *data;
  CUlibrary library;
  int uses;
  Image *next;
};

/// The arguments of cuTensorMapEncodeTiled that come from an array.
struct MapGeometry {
  uint64_t extents[maxMapRank];
  /// In bytes; the innermost dimension has none.
  uint64_t strides[maxMapRank - 1];
};

/// Bytes of a GDN_DTYPE_*, or 0 for none of them.
uint32_t getElementBytes(int32_t dtype);

/// Bytes of a parameter of a description whose arguments have been checked.
uint32_t getParamBytes(const GdnKernelDesc &desc, const GdnParamDesc &param);

/// Checks the lists of a description and what it says of its arguments.
GdnRuntimeStatus checkArgDescs(const GdnKernelDesc &desc);
/// Checks what does not need the image.
GdnRuntimeStatus checkDescription(const GdnKernelDesc &desc);
/// Copies a description that has been checked as far as this goes without the
/// image.
GdnRuntimeStatus copyDescription(const GdnKernelDesc *source,
                                 GdnKernelDesc &desc);
/// Checks a function's description but for its kernels'.
GdnRuntimeStatus checkFunction(const GdnFunctionDesc *function);
/// The function's arguments as those of a kernel, whose checks are the same.
GdnKernelDesc asKernel(const GdnFunctionDesc &function);
/// Says where a launch gathers the parameters of a checked description.
GdnRuntimeStatus layoutParams(const GdnKernelDesc &desc, uint16_t *offsets);

/// What the copy engine asks of an address.
inline constexpr uint32_t mapAlignment = 16;
/// What an array's address must be a multiple of, tensor maps aside.
uint32_t getAlignment(const GdnArgDesc &arg);
/// Stride of a dimension in elements.
int64_t getStride(const GdnTensor &tensor, int dim);
/// An integer that a caller passes.
int64_t getInteger(const GdnArg &arg);
/// True for an absent array and for one with an extent of 0.
bool isEmpty(const GdnTensor *tensor);
/// Checks the arguments against the description, completely: what passes can
/// be encoded.
GdnRuntimeStatus checkArguments(const GdnKernelDesc &desc, const GdnArg *args,
                                int32_t numArgs);
/// The geometry of a tensor map over an array that is not empty.
GdnRuntimeStatus getMapGeometry(const GdnKernelDesc &desc,
                                const GdnTensorMapDesc &map,
                                const GdnTensor &tensor, MapGeometry &geometry);

/// Enters the stream's context and finds its device, which is `wanted` unless
/// that is negative.
GdnRuntimeStatus enterStream(const Driver &driver, CUstream stream,
                             int32_t wanted, ScopedContext &scope, int &device);
/// Says no to a kernel that is not prepared on the device.
GdnRuntimeStatus checkReady(const GdnKernel &kernel, int32_t device);
/// The blocks of a launch on a device, of those that are asked for.
GdnRuntimeStatus chooseGrid(const GdnKernelDesc &desc,
                            const GdnDeviceInfo &device, GdnGrid &grid);
/// Asks the kernel's plan; without one the grid is empty and so is the
/// workspace.
GdnRuntimeStatus askLaunchConfig(const GdnKernelDesc &desc, const GdnArg *args,
                                 int32_t numArgs, const GdnDeviceInfo &device,
                                 GdnLaunchConfig &config);
/// Checks the workspace of a function, or of a kernel, whose `kind` is
/// "kernel ".
GdnRuntimeStatus checkWorkspace(const char *kind, const char *name,
                                uint64_t wanted, const void *workspace,
                                size_t bytes);
/// GDN_RUNTIME_CHECK: says no to arrays that are not on the device.
GdnRuntimeStatus checkPointers(const Driver &driver, int device,
                               const GdnKernelDesc &desc, const GdnArg *args,
                               const void *workspace);
/// Launches with parameters that have been written. A grid with a 0 launches
/// nothing.
GdnRuntimeStatus submit(const Driver &driver, const GdnKernel &kernel,
                        const Parameters &parameters, const GdnGrid &grid,
                        CUstream stream);

} // namespace gdn::runtime

/// Everything but the counter, the link and what launches remember is constant
/// after gdnKernelLoad, so that a launch takes no lock.
struct GdnKernel {
  GdnKernelDesc desc;
  /// The caller's description, which identifies the kernel.
  const GdnKernelDesc *source;
  /// Where a launch gathers the parameters for the driver, which puts them
  /// where the entry wants them: that place depends on more than sizes and
  /// alignments (a tensor map in front is at offset 48 on an H200).
  uint16_t offsets[gdn::runtime::maxParams];
  gdn::runtime::Image *image;
  gdn::runtime::CUkernel handle;
  /// Set once a device is ready, and never unset.
  std::atomic<bool> prepared[gdn::runtime::Driver::maxDevices];
  int uses;
  GdnKernel *next;
  gdn::runtime::KnownCalls *known;
};

#endif // GDN_LIB_RUNTIME_KERNEL_H
