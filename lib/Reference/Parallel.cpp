//===- Parallel.cpp - Independent tasks on threads --------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parallel.h"

#include <algorithm>

using namespace gdn::reference;

Progress::Progress(const RunOptions &options, int64_t total)
    : callback(options.progress), owner(std::this_thread::get_id()),
      total(total) {}

void Progress::add(int64_t units) {
  int64_t now = done += units;
  // A whole percent between two reports keeps a slow callback, such as a
  // terminal line, out of the inner loops. finish() reports the end.
  if (!callback || std::this_thread::get_id() != owner || now >= total ||
      now - reported < total / 100)
    return;
  reported = now;
  callback(static_cast<double>(now) / static_cast<double>(total));
}

void Progress::finish() {
  if (callback)
    callback(1.0);
}

void gdn::reference::parallelFor(int64_t count, const RunOptions &options,
                                 const std::function<void(int64_t)> &task) {
  int64_t workers = options.threads != 0
                        ? options.threads
                        : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t i = next++; i < count; i = next++)
      task(i);
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < std::min(workers, count); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}
