//===- inputs.h - What a layer of packed sequences reads --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_EMULATOR_INPUTS_INPUTS_H
#define GDN_TEST_INTEGRATION_EMULATOR_INPUTS_INPUTS_H

#include "upload.h"

static GdnTensor q, k, v, beta, gate, cu;

/// Makes them of random numbers: one q/k head, K = V = `width`, and the
/// boundaries of so many sequences.
static void makeInputs(int64_t tokens, int64_t heads, int64_t width,
                       const int32_t *bounds, int64_t sequences) {
  static int64_t shapeK[4], shapeV[4], shapeB[3], shapeCu[1];
  const int64_t shape[] = {1, tokens, heads, width};
  memcpy(shapeK, shape, sizeof(shapeK));
  memcpy(shapeV, shape, sizeof(shapeV));
  memcpy(shapeB, shape, sizeof(shapeB));
  shapeK[2] = 1;
  shapeCu[0] = sequences + 1;
  size_t rows = (size_t)(tokens * heads);
  size_t keys = (size_t)(tokens * width), values = rows * (size_t)width;
  size_t bytes = (size_t)shapeCu[0] * sizeof(*bounds);
  q = (GdnTensor){uploadBF16(keys, 0.2f), GDN_DTYPE_BF16, 4, shapeK, NULL};
  k = (GdnTensor){uploadBF16(keys, 0.2f), GDN_DTYPE_BF16, 4, shapeK, NULL};
  v = (GdnTensor){uploadBF16(values, 1), GDN_DTYPE_BF16, 4, shapeV, NULL};
  beta = (GdnTensor){uploadF32(rows, 0, 1), GDN_DTYPE_F32, 3, shapeB, NULL};
  gate = (GdnTensor){uploadF32(rows, -1, 0), GDN_DTYPE_F32, 3, shapeB, NULL};
  cu = (GdnTensor){upload(bounds, bytes), GDN_DTYPE_I32, 1, shapeCu, NULL};
}

#endif // GDN_TEST_INTEGRATION_EMULATOR_INPUTS_INPUTS_H
