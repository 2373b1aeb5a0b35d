//===- Parallel.h - Independent tasks on threads ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_REFERENCE_PARALLEL_H
#define GDN_LIB_REFERENCE_PARALLEL_H

#include "gdn/Reference/Reference.h"

#include <atomic>
#include <thread>

namespace gdn::reference {

/// Counts finished units of work and tells the caller's callback about them.
class Progress {
public:
  Progress(const RunOptions &options, int64_t total);

  /// Adds finished units, from any thread. Only the thread that made this
  /// object calls the callback, so a callback needs no lock.
  void add(int64_t units);

  /// Reports that everything is done.
  void finish();

private:
  const std::function<void(double)> &callback;
  const std::thread::id owner;
  const int64_t total;
  std::atomic<int64_t> done{0};
  /// Units at the last report; touched by the owner only.
  int64_t reported = 0;
};

/// Runs task(0) .. task(count - 1), each once, in any order, on the calling
/// thread and options.threads - 1 more, and returns when all have finished.
void parallelFor(int64_t count, const RunOptions &options,
                 const std::function<void(int64_t)> &task);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_PARALLEL_H
