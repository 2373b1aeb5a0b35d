//===- CPU.cpp - The CPU as a device --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <pthread.h>
#include <unistd.h>

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

/// Levels of x86-64, in ascending order.
static constexpr const char *levels[] = {"x86-64-v3", "x86-64-v4",
                                         "x86-64-v4+avx512bf16"};

/// How many levels the CPU has, from the lowest one on, as far as they are
/// worth using or the environment variable GDN_CPU_ISA names them.
static int countLevels() {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool has[] = {__builtin_cpu_supports("x86-64-v3") != 0,
                      __builtin_cpu_supports("x86-64-v4") != 0,
                      __builtin_cpu_supports("avx512bf16") != 0};
  int all = static_cast<int>(std::find(has, std::end(has), false) - has);
  // Intel's CPUs issue vdpbf16ps at half the rate of fused multiply-adds: there
  // the conversion to float32 is the faster way (148 against 123 GFLOP/s per
  // core, docs/experiments/cpu.md).
  int count = all == 3 && !__builtin_cpu_is("amd") ? 2 : all;
  const char *wanted = std::getenv("GDN_CPU_ISA");
  for (int i = 0; wanted && i < all; ++i)
    if (std::strcmp(wanted, levels[i]) == 0)
      count = i + 1;
  return count;
#else
  return 0;
#endif
}

static GdnDeviceInfo makeInfo() {
  const int count = countLevels();
  GdnDeviceInfo info = {};
  info.device = GDN_DEVICE_CPU;
  info.compute_capability = -count;
  info.multiprocessors = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  std::strcpy(info.name, count ? levels[count - 1] : "none");
  return info;
}

/// Made when the library is loaded.
const GdnDeviceInfo gdn::runtime::cpuInfo = makeInfo();

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

struct GdnItems {
  int64_t count;
  GdnWorker worker;
  void *user;
  std::atomic<int64_t> next = 0;
  std::atomic<GdnRuntimeStatus> failure = GDN_SUCCESS;

  void work() {
    GdnRuntimeStatus status = worker(user, this);
    if (status == GDN_SUCCESS)
      return;
    failure = status;
    next = count;
  }
};

int64_t gdnItemsNext(GdnItems *items) {
  int64_t item = items->next++;
  return item < items->count ? item : -1;
}

GdnRuntimeStatus gdnItemsRun(int64_t count, int32_t threads, GdnWorker worker,
                             void *user) {
  constexpr int kMost = 1024;
  GdnItems items = {count, worker, user};
  pthread_t helpers[kMost];
  int started = 0,
      wanted =
          static_cast<int>(std::min<int64_t>({threads - 1, count - 1, kMost}));
  auto run = [](void *given) -> void * {
    static_cast<GdnItems *>(given)->work();
    return nullptr;
  };
  while (started < wanted &&
         pthread_create(&helpers[started], nullptr, run, &items) == 0)
    ++started;
  items.work();
  for (int i = 0; i < started; ++i)
    pthread_join(helpers[i], nullptr);
  return items.failure;
}
