//===- states.c - States that are absent, or lie turned -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls a layer of three sequences with all forms of its states, which must
// give the same bits: [K, V], [V, K] in rows that may or may not be stored 16
// bytes at a time, and no state for zeros or for one that nobody reads.
//
//===----------------------------------------------------------------------===//

#include "states.h"

#include "inputs.h"

#include <stdio.h>
#include <string.h>

enum { tokens = 70, sequences = 3, heads = 2, width = 64 };
enum { state = width * width, states = sequences * heads * state };
enum { output = tokens * heads * width };

/// Room for rows that are one element longer.
enum { room = sequences * heads * width * (width + 1) };

/// What a call gives; states as [N, H, K, V].
typedef struct Result {
  uint16_t o[output];
  float state[states];
} Result;

/// How states lie: the strides of [N, H, K, V].
typedef struct Form {
  const char *name;
  int64_t strides[4];
  int hasInitial, hasFinal;
} Form;

static const int64_t shapeState[] = {sequences, heads, width, width};

static size_t placeOf(const Form *form, int number) {
  size_t place = 0;
  for (int d = 3; d >= 0; --d) {
    place += (size_t)(number % shapeState[d]) * (size_t)form->strides[d];
    number /= (int)shapeState[d];
  }
  return place;
}

static void call(const Form *form, const float *initial, Result *result) {
  static float host[room];
  static const int64_t shapeO[] = {1, tokens, heads, width};
  memset(host, 0xff, sizeof(host));
  GdnTensor h0 = {upload(host, sizeof(host)), GDN_DTYPE_F32, 4, shapeState,
                  form->strides};
  GdnTensor ht = {upload(host, sizeof(host)), GDN_DTYPE_F32, 4, shapeState,
                  form->strides};
  for (int i = 0; i < states; ++i)
    host[placeOf(form, i)] = initial[i];
  CHECK(gdnMemoryCopyToDevice(0, h0.data, host, sizeof(host)));
  GdnTensor o = {upload(result->o, sizeof(result->o)), GDN_DTYPE_BF16, 4,
                 shapeO, NULL};
  const GdnTensor *first = form->hasInitial ? &h0 : NULL,
                  *last = form->hasFinal ? &ht : NULL;
  CHECK(layer(&q, &k, &v, &beta, &gate, first, &cu, &o, last, NULL, 0, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, result->o, o.data, sizeof(result->o)));
  CHECK(gdnMemoryCopyFromDevice(0, host, ht.data, sizeof(host)));
  for (int i = 0; i < states; ++i)
    result->state[i] = host[placeOf(form, i)];
  CHECK(gdnMemoryFree(0, h0.data));
  CHECK(gdnMemoryFree(0, ht.data));
  CHECK(gdnMemoryFree(0, o.data));
}

int main(void) {
  static const int32_t bounds[] = {0, 33, 33, tokens};
  CHECK(layer_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  makeInputs(tokens, heads, width, bounds, sequences);

  const Form forms[] = {
      {"kv", {heads * state, state, width, 1}, 1, 1},
      {"vk", {heads * state, state, 1, width}, 1, 1},
      {"vk, longer rows",
       {heads * width * (width + 1), width * (width + 1), 1, width + 1},
       1,
       1},
      {"vk, no final state", {heads * state, state, 1, width}, 1, 0},
      {"kv, zeros", {heads * state, state, width, 1}, 1, 1},
      {"no initial state", {heads * state, state, width, 1}, 0, 1},
      {"no initial state, vk", {heads * state, state, 1, width}, 0, 1},
      {"neither", {heads * state, state, width, 1}, 0, 0}};
  static float initial[states];
  static Result results[8];
  for (int i = 0; i < states; ++i)
    initial[i] = next();
  // Calls 0 to 3 begin with the same numbers, 4 to 7 with zeros.
  for (int i = 0; i < 8; ++i) {
    if (i == 4)
      memset(initial, 0, sizeof(initial));
    call(&forms[i], initial, &results[i]);
    const Result *want = &results[i / 4 * 4];
    int isSame = memcmp(results[i].o, want->o, sizeof(want->o)) == 0;
    int hasState =
        memcmp(results[i].state, want->state, sizeof(want->state)) == 0;
    printf("%s: o %s, state %s\n", forms[i].name, isSame ? "same" : "differs",
           hasState            ? "same"
           : forms[i].hasFinal ? "differs"
                               : "not there");
  }
  printf("with and without a state: o %s\n",
         memcmp(results[0].o, results[4].o, sizeof(results[0].o)) ? "differs"
                                                                  : "same");
  // What is not there is not a shape either.
  const int64_t shapeWrong[] = {sequences + 1, heads, width, width};
  GdnTensor wrong = {q.data, GDN_DTYPE_F32, 4, shapeWrong, NULL};
  if (layer(&q, &k, &v, &beta, &gate, &wrong, &cu, &v, NULL, NULL, 0, NULL))
    printf("%s\n", gdnGetLastErrorMessage());
  if (layer(&q, &k, &v, &beta, NULL, NULL, &cu, &v, NULL, NULL, 0, NULL))
    printf("%s\n", gdnGetLastErrorMessage());
  return 0;
}
