//===- prefix.c - Tokens have the bits of any prefix ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls a forward on all tokens of a sequence, on the first ones, and on those
// behind a multiple of 64 from the state there: o must have the same bits.
//
//===----------------------------------------------------------------------===//

#include "prefix.h"

#include "inputs.h"

#include <stdio.h>
#include <string.h>

enum { tokens = 137, heads = 2, width = 128, cut = 64, row = heads * width };
enum { state = heads * width * width };

typedef struct Result {
  uint16_t o[tokens * row];
  float state[state];
} Result;

/// The tokens of an array from `begin` to `end`.
static GdnTensor part(GdnTensor of, int begin, int end, int64_t *shape) {
  int64_t bytes = GDN_DTYPE_BYTES(of.dtype);
  for (int d = 0; d < of.rank; ++d) {
    shape[d] = of.shape[d];
    bytes *= d > 1 ? of.shape[d] : 1;
  }
  shape[1] = end - begin;
  return (GdnTensor){(char *)of.data + begin * bytes, of.dtype, of.rank, shape,
                     NULL};
}

/// Calls the layer on the tokens from `begin` to `end`.
static void call(int begin, int end, const float *initial, Result *result) {
  static const int64_t shapeState[] = {1, heads, width, width}, two[] = {2};
  const int64_t shapeSaved[] = {(end - begin) / 128 + 1, heads, width, width};
  int64_t shapes[6][4];
  const int32_t bounds[] = {0, end - begin};
  memset(result, 0xff, sizeof(*result));
  GdnTensor o = {upload(result->o, sizeof(result->o)), GDN_DTYPE_BF16, 4,
                 v.shape, NULL};
  GdnTensor writes = {upload(result->o, sizeof(result->o)), GDN_DTYPE_BF16, 4,
                      v.shape, NULL};
  GdnTensor h0 = {upload(initial, sizeof(result->state)), GDN_DTYPE_F32, 4,
                  shapeState, NULL};
  GdnTensor ht = {upload(result->state, sizeof(result->state)), GDN_DTYPE_F32,
                  4, shapeState, NULL};
  GdnTensor saved = {uploadBF16((size_t)shapeSaved[0] * state, 1),
                     GDN_DTYPE_BF16, 4, shapeSaved, NULL};
  GdnTensor ends = {upload(bounds, sizeof(bounds)), GDN_DTYPE_I32, 1, two,
                    NULL};
  GdnTensor parts[6];
  const GdnTensor whole[6] = {q, k, v, beta, gate, writes};
  for (int i = 0; i < 6; ++i)
    parts[i] = part(whole[i], begin, end, shapes[i]);
  int64_t shapeO[4];
  GdnTensor out = part(o, begin, end, shapeO);
  uint64_t bytes = 0;
  void *workspace = NULL;
  CHECK(layer_workspace_bytes(&parts[0], &parts[1], &parts[2], &parts[3],
                              &parts[4], &h0, &ends, &out, &ht, &parts[5],
                              &saved, &bytes));
  if (bytes)
    CHECK(gdnMemoryAllocate(0, bytes, &workspace));
  CHECK(layer(&parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &h0, &ends,
              &out, &ht, &parts[5], &saved, workspace, bytes, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, result->o, o.data, sizeof(result->o)));
  CHECK(gdnMemoryCopyFromDevice(0, result->state, ht.data,
                                sizeof(result->state)));
}

/// Whether o of the tokens from `begin` to `end` has other bits.
static int differ(const Result *a, const Result *b, int begin, int end) {
  return memcmp(a->o + begin * row, b->o + begin * row,
                (size_t)(end - begin) * row * sizeof(uint16_t)) != 0;
}

int main(void) {
  static const int32_t bounds[] = {0, tokens};
  static float initial[state];
  static Result whole, prefix, rest;
  CHECK(layer_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  makeInputs(tokens, heads, width, bounds, 1);
  // Gates of which no two chunks have the same range, some strong.
  GdnTensor strong = {uploadF32(tokens * heads, -3, 0), GDN_DTYPE_F32, 3,
                      gate.shape, NULL};
  for (int i = 0; i < state; ++i)
    initial[i] = next();
  int compared = 0, faults = 0;
  for (int pass = 0; pass < 2; ++pass) {
    call(0, tokens, initial, &whole);
    static const int ends[] = {1, 15, 17, 32, 50, cut, 100, tokens - 1};
    for (int i = 0; i < 8; ++i) {
      call(0, ends[i], initial, &prefix);
      faults += differ(&prefix, &whole, 0, ends[i]);
      ++compared;
      if (ends[i] != cut)
        continue;
      call(cut, tokens, prefix.state, &rest);
      faults += differ(&rest, &whole, cut, tokens) ||
                memcmp(rest.state, whole.state, sizeof(whole.state));
      ++compared;
    }
    gate = strong;
  }
  printf("%d comparisons, %d differ\n", compared, faults);
  return 0;
}
