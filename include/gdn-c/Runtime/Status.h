//===- gdn-c/Runtime/Status.h - What a call returns ---------------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The status and the message of a call. Include gdn-c/Runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_STATUS_H
#define GDN_C_RUNTIME_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GDN_RUNTIME_EXPORT __attribute__((visibility("default")))
#else
#define GDN_RUNTIME_EXPORT
#endif

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
  /// Memory of the host ran out, or there is none for a workspace.
  GDN_ERROR_OUT_OF_MEMORY = 9,
  /// A call of the CUDA driver failed; the message has its error.
  GDN_ERROR_DRIVER = 10,
  /// No compiled function serves the call (gdn-c/Calls.h).
  GDN_ERROR_NOT_SERVED = 11,
  /// An array of a call has a type that none of its kind has, or is missing.
  GDN_ERROR_INVALID_TYPE = 12
} GdnRuntimeStatus;

/// A short text for a status, never null.
GDN_RUNTIME_EXPORT const char *gdnStatusGetString(GdnRuntimeStatus status);

/// What the calling thread's last failed call expected and what it got; empty
/// before the first failure. Valid until the thread's next call.
GDN_RUNTIME_EXPORT const char *gdnGetLastErrorMessage(void);

/// Sets the calling thread's message and returns `status`: the way for a
/// function to say why it refuses.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnSetLastErrorMessage(GdnRuntimeStatus status, const char *message);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_STATUS_H
