//===- Progress.h - Signs of life on long runs ------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_PROGRESS_H
#define GDN_TOOLS_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace mlir::gdn::tools {

/// While it lives, tells stderr every other second what is going on, once the
/// task has taken a second: in place on a terminal, as lines elsewhere. A
/// thread of its own does so, because a compiled function calls nobody back.
class Progress {
public:
  Progress(llvm::StringRef tool, llvm::StringRef task);
  ~Progress();

  /// Fraction of the task that is done.
  void update(double fraction) { done = fraction; }

private:
  void watch();

  std::string text;
  std::atomic<double> done = -1;
  std::mutex mutex;
  std::condition_variable wake;
  bool finished = false;
  std::thread watcher;
};

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_PROGRESS_H
