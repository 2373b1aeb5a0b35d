//===- steps.c - States after tokens in rows of any numbers ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies speculated tokens of four sequences: as chains over a pool, with
// numbers of accepted tokens that there are and that are none, and as trees.
//
//===----------------------------------------------------------------------===//

#include "steps.h"

#include "inputs.h"

enum {
  tokens = 12,
  sequences = 4,
  heads = 2,
  width = 64,
  rows = 20,
  steps = 4
};
enum { state = heads * width * width, states = rows * state };
enum { output = tokens * heads * width };

/// What a call gives.
typedef struct Result {
  uint16_t o[output];
  float states[states];
} Result;

static const int32_t bounds[] = {0, 4, 4, 10, tokens};
/// Of each sequence those of its tokens; some are none.
static const int32_t slots[sequences][steps] = {
    {1, 2, 3, 4}, {5, 6, 7, 8}, {9, 0, -1, 10}, {11, INT32_MAX, 12, 13}};
static const int32_t begins[sequences] = {1, 5, 9, 11};
static float initial[states];

static GdnTensor integers(const int32_t *from, int32_t rank) {
  static const int64_t shape[] = {sequences, steps};
  size_t count = rank == 1 ? sequences : sequences * steps;
  return (GdnTensor){upload(from, count * sizeof(*from)), GDN_DTYPE_I32, rank,
                     shape, NULL};
}

/// Calls a chain, or a tree if there are parents. The slots of the pool are
/// `gap` elements longer than states.
static void call(const int32_t *accepted, const int32_t *parents, int gap,
                 Result *result) {
  static float host[states + 64 * rows];
  static const int64_t shapeO[] = {1, tokens, heads, width},
                       shapeP[] = {rows, heads, width, width};
  const int64_t slot = state + gap;
  const int64_t strides[] = {slot, width * width, width, 1};
  for (int i = 0; i < states; ++i)
    host[i / state * slot + i % state] = initial[i];
  GdnTensor pool = {upload(host, sizeof(host)), GDN_DTYPE_F32, 4, shapeP,
                    strides};
  GdnTensor kept = {upload(host, sizeof(host)), GDN_DTYPE_F32, 4, shapeP,
                    strides};
  memset(result->o, 0xff, sizeof(result->o));
  GdnTensor o = {upload(result->o, sizeof(result->o)), GDN_DTYPE_BF16, 4,
                 shapeO, NULL};
  GdnTensor first = integers(begins, 1), table = integers(&slots[0][0], 2);
  GdnTensor other = parents ? integers(parents, 2) : integers(accepted, 1);
  if (parents)
    CHECK(tree(&q, &k, &v, &beta, &gate, &pool, &cu, &first, 1, &kept, &table,
               &other, &o, NULL, 0, NULL));
  else
    CHECK(chain(&q, &k, &v, &beta, &gate, &pool, &cu, &first, 1, &table, &other,
                &o, NULL, 0, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, result->o, o.data, sizeof(result->o)));
  CHECK(gdnMemoryCopyFromDevice(0, host, parents ? kept.data : pool.data,
                                sizeof(host)));
  for (int i = 0; i < states; ++i)
    result->states[i] = host[i / state * slot + i % state];
}

static void compare(const char *name, const Result *result,
                    const Result *expected) {
  int differs = memcmp(result, expected, sizeof(*result));
  printf("%s: %s\n", name, differs ? "differs" : "same");
}

int main(void) {
  CHECK(chain_prepare(0));
  CHECK(tree_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  makeInputs(tokens, heads, width, bounds, sequences);
  for (int i = 0; i < states; ++i)
    initial[i] = next();
  static Result expected, result;
  static const int32_t ones[] = {1, 1, 1, 1}, some[] = {3, 2, 4, 1},
                       wrong[] = {0, INT32_MIN, -1, -7}, most[] = {4, 4, 4, 1},
                       more[] = {5, 99, INT32_MAX, 1};
  call(ones, NULL, 0, &expected);
  printf("changed rows:");
  for (int row = 0; row < rows; ++row)
    if (memcmp(initial + row * state, expected.states + row * state,
               state * sizeof(float)) != 0)
      printf(" %d", row);
  printf("\n");
  call(ones, NULL, 64, &result);
  compare("longer slots", &result, &expected);
  call(wrong, NULL, 0, &result);
  compare("less than one accepted", &result, &expected);
  call(some, NULL, 0, &result);
  compare("others accepted", &result, &expected);

  // A tree whose tokens follow one another is a chain; what is no token before
  // the one before is not looked at.
  static const int32_t line[sequences][steps] = {
      {-1, 0, 1, 2}, {0, 0, 0, 0}, {7, 1, INT32_MAX, 3}, {INT32_MIN, 5, 2, 2}};
  static const int32_t fork[sequences][steps] = {
      {-1, 0, 0, 1}, {0, 0, 0, 0}, {-1, 0, 0, 0}, {-1, 0, 0, 0}};
  call(NULL, &line[0][0], 0, &result);
  compare("a line of a tree", &result, &expected);
  call(NULL, &fork[0][0], 0, &result);
  compare("a tree", &result, &expected);
  printf("its last leaf: %s\n", memcmp(result.states + slots[0][0] * state,
                                       expected.states + slots[0][0] * state,
                                       2 * state * sizeof(float))
                                    ? "differs"
                                    : "follows the same tokens");
  call(most, NULL, 0, &expected);
  call(more, NULL, 0, &result);
  compare("more than there are accepted", &result, &expected);
  return 0;
}
