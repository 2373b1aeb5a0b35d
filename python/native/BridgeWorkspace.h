//===- BridgeWorkspace.h - The stream and memory of a caller ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_BRIDGEWORKSPACE_H
#define GDN_PYTHON_NATIVE_BRIDGEWORKSPACE_H

#include "Workspace.h"

namespace gdn::bridge {

/// The stream that TVM-FFI found current where it read the tensors: torch's.
void *streamOfCaller(int32_t device);

/// Memory by the allocator that TVM-FFI found beside the tensors: torch's,
/// whose memory follows the stream that is current, as the launches do. Without
/// one the library's own.
cpu::Error allocateForCaller(int32_t device, void *stream, uint64_t bytes,
                             std::unique_ptr<hopper::Workspace> &workspace);

} // namespace gdn::bridge

#endif // GDN_PYTHON_NATIVE_BRIDGEWORKSPACE_H
