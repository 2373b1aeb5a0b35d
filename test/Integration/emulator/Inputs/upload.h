//===- upload.h - Arrays of random numbers on the device --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_EMULATOR_INPUTS_UPLOAD_H
#define GDN_TEST_INTEGRATION_EMULATOR_INPUTS_UPLOAD_H

#include "check.h"

#include <string.h>

static void *upload(const void *from, size_t bytes) {
  void *data;
  CHECK(gdnMemoryAllocate(0, bytes, &data));
  CHECK(gdnMemoryCopyToDevice(0, data, from, bytes));
  return data;
}

/// Numbers of about -1 to 1 times `scale`, as bf16 or float.
static float next(void) {
  static uint32_t seed = 1;
  seed = seed * 1664525 + 1013904223;
  return (float)(seed >> 8) / (1 << 23) - 1;
}
static void *uploadBF16(size_t count, float scale) {
  uint16_t *host = malloc(count * sizeof(uint16_t));
  for (size_t i = 0; i < count; ++i) {
    float value = scale * next();
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    host[i] = (uint16_t)(bits >> 16);
  }
  void *data = upload(host, count * sizeof(uint16_t));
  free(host);
  return data;
}
static void *uploadF32(size_t count, float from, float to) {
  float *host = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; ++i)
    host[i] = from + (to - from) * (next() + 1) / 2;
  void *data = upload(host, count * sizeof(float));
  free(host);
  return data;
}

#endif // GDN_TEST_INTEGRATION_EMULATOR_INPUTS_UPLOAD_H
