//===- Parallel.cpp - Items on several threads ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

void gdn::cpu::forEachItem(
    int64_t count, int threads,
    const std::function<void(const std::function<int64_t()> &)> &work) {
  std::atomic<int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  auto take = [&] { return std::min(next.fetch_add(1), count); };
  auto run = [&] {
    try {
      work(take);
    } catch (...) {
      // Out of memory: the others stop at their next item.
      next = count;
      std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(threads);
  for (int i = 1; i < threads && i < count; ++i) {
    try {
      helpers.emplace_back(run);
    } catch (const std::system_error &) {
      break;
    }
  }
  run();
  for (std::thread &helper : helpers)
    helper.join();
  if (failure)
    std::rethrow_exception(failure);
}
