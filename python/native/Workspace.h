//===- Workspace.h - Memory between the kernels of a call -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_WORKSPACE_H
#define GDN_PYTHON_NATIVE_WORKSPACE_H

#include "Problem.h"

#include <memory>

namespace gdn::hopper {

/// Device memory for the launches of one call. Launches made while the object
/// lives may use it, even if they run later: what comes next in their stream
/// comes behind them.
class Workspace {
public:
  virtual ~Workspace() = default;
  /// Aligned to GDN_WORKSPACE_ALIGNMENT.
  void *data = nullptr;
};

/// Gives a workspace for launches on a stream of a device.
using Allocate = cpu::Error (*)(int32_t device, void *stream, uint64_t bytes,
                                std::unique_ptr<Workspace> &workspace);

/// The library's own memory, for callers without an allocator: one piece for
/// each device and stream, which grows and stays, and one more for each time
/// that a call asks again. One call at a time has a piece. A piece that has
/// become too small stays too, for CUDA graphs that were captured with it.
cpu::Error allocateOwn(int32_t device, void *stream, uint64_t bytes,
                       std::unique_ptr<Workspace> &workspace);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_WORKSPACE_H
