//===- pool.c - States in a pool of any strides ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls a layer of four sequences, of which two have a row in the pool, with
// pools that lie differently. All must give the same bits.
//
//===----------------------------------------------------------------------===//

#include "pool.h"

#include "inputs.h"

enum { tokens = 70, sequences = 4, heads = 2, width = 64, rows = 5 };
enum { states = rows * heads * width * width };
enum { output = tokens * heads * width };

/// The first row of a pool that other rows keep far from its address: 2^31
/// elements lie between them.
enum { far = 1 << 18 };

/// How a pool lies: the strides of [P, H, K, V], and the number of its first
/// row that is in memory.
typedef struct Form {
  const char *name;
  int64_t strides[4];
  int firstRow;
} Form;

/// What a call gives; states as [P, H, K, V].
typedef struct Result {
  uint16_t o[output];
  float state[states];
} Result;

static const int32_t bounds[] = {0, 20, 33, 33, tokens};
/// Below the first state, in the middle, none of the pool, and the last one.
static const int32_t named[sequences] = {0, 3, rows, 1};

static size_t placeOf(const Form *form, int number) {
  static const int shape[] = {rows, heads, width, width};
  size_t place = 0;
  for (int d = 3; d >= 0; --d) {
    place += (size_t)(number % shape[d]) * (size_t)form->strides[d];
    number /= shape[d];
  }
  return place;
}

static void call(const Form *form, const float *initial, const uint8_t *flags,
                 Result *result) {
  static float host[2 * states];
  static const int64_t shapeO[] = {1, tokens, heads, width},
                       shapeRows[] = {sequences};
  for (int i = 0; i < states; ++i)
    host[placeOf(form, i)] = initial[i];
  void *memory = upload(host, sizeof(host));
  int64_t before = form->firstRow * form->strides[0];
  const int64_t shape[] = {form->firstRow + rows, heads, width, width};
  GdnTensor pool = {(float *)memory - before, GDN_DTYPE_F32, 4, shape,
                    form->strides};
  int32_t indices[sequences];
  for (int n = 0; n < sequences; ++n)
    indices[n] = named[n] + form->firstRow;
  GdnTensor index = {upload(indices, sizeof(indices)), GDN_DTYPE_I32, 1,
                     shapeRows, NULL};
  GdnTensor begins = {NULL, GDN_DTYPE_U8, 1, shapeRows, NULL};
  if (flags)
    begins.data = upload(flags, sequences);
  memset(result->o, 0xff, sizeof(result->o));
  GdnTensor o = {upload(result->o, sizeof(result->o)), GDN_DTYPE_BF16, 4,
                 shapeO, NULL};
  CHECK(layer(&q, &k, &v, &beta, &gate, &pool, &cu, &index, form->firstRow + 1,
              flags ? &begins : NULL, &o, NULL, 0, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, result->o, o.data, sizeof(result->o)));
  CHECK(gdnMemoryCopyFromDevice(0, host, memory, sizeof(host)));
  for (int i = 0; i < states; ++i)
    result->state[i] = host[placeOf(form, i)];
  CHECK(gdnMemoryFree(0, memory));
  CHECK(gdnMemoryFree(0, index.data));
  if (flags)
    CHECK(gdnMemoryFree(0, begins.data));
  CHECK(gdnMemoryFree(0, o.data));
}

/// Whether a sequence that begins with zeros gives the same over a row of zeros
/// and over one of NaN. The others begin with their rows.
static void checkFlags(const Form *form, const float *initial) {
  static float pools[2][states];
  static Result results[2];
  static const uint8_t all[sequences] = {1, 1, 1, 1}, some[] = {0, 1, 0, 0};
  const int state = states / rows, last = named[sequences - 1];
  for (int i = 0; i < 2; ++i) {
    memcpy(pools[i], initial, sizeof(pools[i]));
    memset(pools[i] + last * state, i ? 0xff : 0, state * sizeof(float));
    call(form, pools[i], i ? some : all, &results[i]);
  }
  printf("%s, from zeros: %s\n", form->name,
         memcmp(&results[0], &results[1], sizeof(Result)) ? "differs" : "same");
}

/// Says which rows of the pool a call has changed, and which tokens are zeros.
static void report(const float *initial, const Result *result) {
  const int state = states / rows, token = output / tokens;
  printf("changed rows:");
  for (int row = 0; row < rows; ++row)
    if (memcmp(initial + row * state, result->state + row * state,
               state * sizeof(float)) != 0)
      printf(" %d", row);
  printf("\nsequences of zeros:");
  for (int n = 0; n < sequences; ++n) {
    int zeros = 1;
    for (int i = bounds[n] * token; i < bounds[n + 1] * token; ++i)
      zeros &= result->o[i] == 0;
    if (zeros)
      printf(" %d", n);
  }
  printf("\n");
}

int main(void) {
  CHECK(layer_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  makeInputs(tokens, heads, width, bounds, sequences);

  enum { state = width * width, slot = heads * state };
  const Form forms[] = {{"kv", {slot, state, width, 1}, 0},
                        {"vk", {slot, state, 1, width}, 0},
                        {"kv, longer slots", {slot + 72, state, width, 1}, 0},
                        {"kv, far", {slot, state, width, 1}, far}};
  static float initial[states];
  static Result results[4];
  for (int i = 0; i < states; ++i)
    initial[i] = next();
  for (int i = 0; i < 4; ++i) {
    call(&forms[i], initial, NULL, &results[i]);
    printf("%s: %s\n", forms[i].name,
           memcmp(&results[i], &results[0], sizeof(Result)) ? "differs"
                                                            : "same");
  }
  checkFlags(&forms[0], initial);
  report(initial, &results[0]);
  return 0;
}
