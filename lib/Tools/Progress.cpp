//===- Progress.cpp - Signs of life on long runs --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Progress.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir::gdn::tools;

Progress::Progress(llvm::StringRef tool, llvm::StringRef task)
    : text((tool + ": " + task).str()), watcher([this] { watch(); }) {}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    finished = true;
  }
  wake.notify_one();
  watcher.join();
}

void Progress::watch() {
  using namespace std::chrono;
  bool isTerminal = llvm::sys::Process::StandardErrIsDisplayed();
  auto start = steady_clock::now();
  auto next = start + seconds(1);
  bool hasPrinted = false;
  std::unique_lock<std::mutex> lock(mutex);
  while (!wake.wait_until(lock, next, [this] { return finished; })) {
    double elapsed = duration<double>(steady_clock::now() - start).count();
    // One string and one write: the compiled function may print as well.
    std::string line;
    llvm::raw_string_ostream os(line);
    os << (isTerminal ? "\r" : "") << text << llvm::format(", %.0f s", elapsed);
    if (done >= 0)
      os << llvm::format(", %.0f%%", 100 * done.load());
    os << (isTerminal ? "  " : "\n");
    llvm::errs() << line;
    hasPrinted = true;
    next += seconds(2);
  }
  if (isTerminal && hasPrinted)
    llvm::errs() << "\n";
}
