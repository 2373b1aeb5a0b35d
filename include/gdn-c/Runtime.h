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

#include "gdn-c/Runtime/Function.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of this interface. Libraries of one major version keep what
/// earlier minor versions declared; while the major version is 0, each minor
/// version stands alone. The library's SOVERSION follows the same numbers.
#define GDN_RUNTIME_VERSION_MAJOR 0
#define GDN_RUNTIME_VERSION_MINOR 7
#define GDN_RUNTIME_VERSION                                                    \
  (GDN_RUNTIME_VERSION_MAJOR * 1000 + GDN_RUNTIME_VERSION_MINOR)

/// GDN_RUNTIME_VERSION of the loaded library.
GDN_RUNTIME_EXPORT uint32_t gdnRuntimeGetVersion(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_H
