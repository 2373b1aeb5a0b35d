//===- AllocationTest.cpp - A launch takes no memory ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// This program's malloc counts the calls of every library in the process. The
// sanitizers bring their own malloc, so with them the test is not built.
//
//===----------------------------------------------------------------------===//

#include "TestFunction.h"

#include <atomic>
#include <cstdlib>

static std::atomic<int> allocations;

extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void *calloc(size_t count,
                                                    size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void *realloc(void *memory,
                                                     size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
}

using Allocation = RuntimeTest;

TEST_F(Allocation, NoneInALaunch) {
  TestDesc test;
  int before = allocations;
  GdnKernel *kernel = prepare(test);
  EXPECT_GT(allocations, before) << "the counter misses the runtime's memory";
  TestArgs args;
  before = allocations;
  GdnRuntimeStatus status = args.launch(kernel, fakeStream(0));
  int after = allocations;
  EXPECT_EQ(status, GDN_SUCCESS) << message();
  EXPECT_EQ(after, before);

  // Neither does a refusal: memory may be what is short.
  args.q.dtype = GDN_DTYPE_F32;
  before = allocations;
  status = args.launch(kernel, fakeStream(0));
  after = allocations;
  EXPECT_EQ(status, GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(after, before);
}

TEST_F(Allocation, NoneInACall) {
  TestFunction function;
  int before = allocations;
  prepareBoth(function);
  EXPECT_GT(allocations, before) << "the counter misses the runtime's memory";
  TestCall call;
  // A new call, one like it, and one that is refused.
  for (int round = 0; round < 3; ++round) {
    call.y.data = fakeAddress(0, round == 2 ? 0x9004 : 0x9000);
    before = allocations;
    GdnRuntimeStatus status = call.launch(function);
    int after = allocations;
    EXPECT_EQ(status, round == 2 ? GDN_ERROR_INVALID_ARGUMENT : GDN_SUCCESS)
        << message();
    EXPECT_EQ(after, before) << "round " << round;
  }
}
