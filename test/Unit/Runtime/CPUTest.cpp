//===- CPUTest.cpp - The CPU as a device ----------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Runtime.h"

#include "gtest/gtest.h"

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

/// No driver is asked: this test has none.
TEST(CPU, HasALevel) {
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(gdnDeviceGetInfo(GDN_DEVICE_CPU, &info), GDN_SUCCESS);
  EXPECT_EQ(info.device, GDN_DEVICE_CPU);
  const std::string names[] = {"none", "x86-64-v3", "x86-64-v4",
                               "x86-64-v4+avx512bf16"};
  ASSERT_LE(info.compute_capability, 0);
  ASSERT_GE(info.compute_capability, -3);
  EXPECT_EQ(info.name, names[-info.compute_capability]);
  EXPECT_GE(info.multiprocessors, 1);
}

namespace {
/// Items that were done, and by how many workers.
struct Work {
  std::vector<std::atomic<int>> done = std::vector<std::atomic<int>>(1000);
  std::atomic<int> workers = 0;
  int64_t failing = -1;

  GdnRuntimeStatus run(int32_t threads) {
    auto work = [](void *user, GdnItems *items) -> GdnRuntimeStatus {
      Work &work = *static_cast<Work *>(user);
      ++work.workers;
      for (int64_t i; (i = gdnItemsNext(items)) >= 0;) {
        ++work.done[i];
        if (i == work.failing)
          return GDN_ERROR_OUT_OF_MEMORY;
      }
      return GDN_SUCCESS;
    };
    return gdnItemsRun(static_cast<int64_t>(done.size()), threads, work, this);
  }
  int count() const { return std::accumulate(done.begin(), done.end(), 0); }
};
} // namespace

TEST(CPU, EachItemIsDoneOnce) {
  for (int32_t threads : {-1, 0, 1, 2, 16, 5000}) {
    Work work;
    EXPECT_EQ(work.run(threads), GDN_SUCCESS);
    for (const std::atomic<int> &done : work.done)
      ASSERT_EQ(done, 1);
    EXPECT_EQ(work.workers, std::min(std::max(threads, 1), 1000));
  }
}

TEST(CPU, AFailureEndsTheWork) {
  Work work;
  work.failing = 10;
  EXPECT_EQ(work.run(1), GDN_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(work.count(), 11);
  Work shared;
  shared.failing = 10;
  EXPECT_EQ(shared.run(8), GDN_ERROR_OUT_OF_MEMORY);
}
