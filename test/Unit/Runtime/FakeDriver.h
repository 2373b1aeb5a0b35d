//===- FakeDriver.h - Questions to the fake CUDA driver ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that looks like libcuda.so.1 to the runtime, records what it is
// asked and fails where a test wants it to. The environment sets what the
// runtime reads once: FAKE_CUDA_DEVICES=90,80 (the devices' chips),
// FAKE_CUDA_MISSING=name (a function that the driver lacks) and
// FAKE_CUDA_INIT=100 (what cuInit answers).
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define GDN_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "Driver.h"

/// A launch as the driver saw it.
struct FakeLaunch {
  gdn::runtime::LaunchConfig config;
  uint32_t cluster[3];
  /// Whether it may begin before the launch before it has ended.
  bool follows;
  gdn::runtime::CUfunction function;
  int device;
  /// Each parameter at the offset that fakeSetParams gave it.
  unsigned char parameters[4096];
};

/// A call of cuTensorMapEncodeTiled.
struct FakeMap {
  int type;
  uint32_t rank;
  void *address;
  uint64_t extents[5];
  uint64_t strides[4];
  uint32_t box[5];
  uint32_t elementStrides[5];
  int interleave, swizzle, promotion, fill;
};

/// A parameter of the kernel as cuKernelGetParamInfo tells it.
struct FakeParam {
  size_t offset, bytes;
};

extern "C" {
/// Forgets all calls, failures and parameters.
void fakeReset();
/// How often a function has been called.
int fakeCount(const char *function);
/// Makes every call of a function answer `result`.
void fakeFail(const char *function, int result);
/// Puts a function of a test in the place of one of the driver's, before the
/// runtime opens the driver.
void fakeReplace(const char *name, void *function);
/// Shows every launch's kernel and parameters to a function of a test, in the
/// thread that launches; null for nobody.
void fakeWatch(void (*watcher)(const char *kernel, void **parameters));
void fakeSetParams(const FakeParam *params, size_t count);
/// The last launch, and the last map.
const FakeLaunch *fakeLastLaunch();
const FakeMap *fakeLastMap();
/// The name of the kernel of the last launch (0), of the one before it (1) and
/// so on; null beyond 64 launches.
const char *fakeLaunchedKernel(int back);
/// A stream of a device, and an address in its memory.
void *fakeStream(int device);
void *fakeAddress(int device, uint64_t offset);
/// The calling thread's current device, or -1.
int fakeCurrentDevice();
}

#endif // GDN_TEST_UNIT_RUNTIME_FAKEDRIVER_H
