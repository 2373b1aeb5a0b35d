//===- KernelChoice.h - What a call will run --------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_PLAN_H
#define GDN_PYTHON_NATIVE_PLAN_H

#include "Kernels.h"
#include "Problem.h"

#include <vector>

namespace gdn::cpu {

/// What a call runs and what that costs.
struct KernelChoice {
  const KernelSet *kernel = nullptr;
  /// Arrays are copied to the kernel's number of channels and type.
  bool padded = false;
  int threads = 1;
  /// Sequences times value heads.
  int64_t items = 0;
  /// FLOP of the recurrence in chunks of 64, the measure that kernels of all
  /// kinds are compared by; bytes of all arrays, read or written once.
  double flop = 0, bytes = 0;
  /// Memory that the call allocates while it runs.
  int64_t workspaceBytes = 0;
  double seconds = 0;
  /// Predicted seconds of both algorithms.
  double chunkSeconds = 0, recurrentSeconds = 0;
};

/// Tokens that a padded copy holds at a time.
inline constexpr int64_t kSegmentTokens = 2048;

/// Threads that are worth starting for so many items, which take one thread
/// `seconds`.
int countThreads(const Problem &problem, int64_t items, double seconds);

/// Decides for a problem that `check` accepts.
Error chooseKernel(const Problem &problem, KernelChoice &chosen);

/// The plan as a JSON object.
std::string toJson(const Problem &problem, const KernelChoice &chosen);

/// Does what the plan says.
void run(const Problem &problem, const KernelChoice &chosen);

/// The same of these sequences alone.
void runSequences(const Problem &problem, const KernelChoice &chosen,
                  const std::vector<int64_t> &sequences);

/// Whether the caller wants sequences cut. On a CPU nothing else cuts them.
bool isCut(const Problem &problem);

/// Computes segments of the sequences side by side.
Error runInSegments(const Problem &problem);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_PLAN_H
