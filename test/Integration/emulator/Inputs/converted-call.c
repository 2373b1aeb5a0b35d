//===- converted-call.c - A call that no function takes as it is ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a call with heads of 40 channels, gates in bfloat16, no beta, another
// scale, and outputs and values of other strides, and the call of 64 channels
// that the library makes of it: numbers are equal.
//
//===----------------------------------------------------------------------===//

#include "check.h"
#include "kernels.h"

#include <string.h>

enum { B = 2, T = 3, H = 2, Narrow = 40, Wide = 64, Factor = 2 };

static const GdnEntryDesc *const entries[] = {&ENTRY};
static const GdnConversionDesc conversions[] = {
    {"cast", GDN_DTYPE_BF16, GDN_DTYPE_BF16, 1,
     &gdn_hopper_cast_bf16_bf16_function},
    {"cast", GDN_DTYPE_BF16, GDN_DTYPE_F32, 1,
     &gdn_hopper_cast_bf16_f32_function},
    {"cast", GDN_DTYPE_F32, GDN_DTYPE_F32, 1,
     &gdn_hopper_cast_f32_f32_function},
    {"fill", 0, GDN_DTYPE_F32, 1, &gdn_hopper_fill_f32_function}};
static void *room = NULL;
static const GdnCallTable table = {.struct_size = sizeof(GdnCallTable),
                                   .num_entries = 1,
                                   .num_conversions = sizeof(conversions) /
                                                      sizeof(*conversions),
                                   .entries = entries,
                                   .conversions = conversions,
                                   .index = &room};

/// An array on the device, with its extents and strides.
typedef struct Array {
  GdnTensor tensor;
  int64_t shape[4], strides[4], count;
} Array;

/// Allocates an array whose dimensions lie in this order, the last one densely.
/// The element at an index is a small fraction of 64 that follows from the
/// index and the seed, 0 from channel `used` on; one of the type bfloat16 has
/// it exactly.
static Array *make(int32_t dtype, int32_t rank, const int64_t *shape,
                   const int *order, int64_t used, int seed, float unit) {
  Array *array = calloc(1, sizeof(Array));
  int64_t count = 1;
  for (int i = rank - 1; i >= 0; --i) {
    array->strides[order[i]] = count;
    array->shape[i] = shape[i];
    count *= shape[order[i]];
  }
  array->count = count;
  size_t bytes = dtype == GDN_DTYPE_BF16 ? 2 : 4;
  char *host = calloc((size_t)count, bytes);
  int64_t index[4] = {0};
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0, rest = i, mixed = seed;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
      place += index[d] * array->strides[d];
    }
    for (int d = 0; d < rank; ++d)
      mixed = mixed * 31 + 7 * index[d] + 3;
    int isUsed = index[rank - 1] < used;
    // States have rows of key channels, too.
    if (dtype == GDN_DTYPE_F32 && rank == 4)
      isUsed &= index[2] < used;
    float value = isUsed ? (float)(mixed % 13 - 6) * unit : 0;
    memcpy(host + (size_t)place * bytes, (char *)&value + 4 - bytes, bytes);
  }
  array->tensor.dtype = dtype;
  array->tensor.rank = rank;
  array->tensor.shape = array->shape;
  array->tensor.strides = array->strides;
  CHECK(gdnMemoryAllocate(0, (size_t)count * bytes, &array->tensor.data));
  CHECK(gdnMemoryCopyToDevice(0, array->tensor.data, host,
                              (size_t)count * bytes));
  free(host);
  return array;
}

/// The element of an array at an index of four.
static float read(const Array *array, const int64_t *index) {
  size_t bytes = array->tensor.dtype == GDN_DTYPE_BF16 ? 2 : 4;
  int64_t place = 0;
  for (int d = 0; d < array->tensor.rank; ++d)
    place += index[d] * array->strides[d];
  float value = 0;
  CHECK(gdnMemoryCopyFromDevice(
      0, (char *)&value + 4 - bytes,
      (const char *)array->tensor.data + (size_t)place * bytes, bytes));
  return value;
}

static GdnRuntimeStatus allocate(void *user, int32_t device, uint64_t bytes,
                                 void *stream, void **memory) {
  (void)stream;
  *(uint64_t *)user = bytes;
  return gdnMemoryAllocate(device, bytes, memory);
}

/// Computes a call and returns o and the final states.
static void run(int isConverted, Array **o, Array **state) {
  const int dense[] = {0, 1, 2, 3}, tokensLast[] = {0, 2, 3, 1};
  int64_t D = isConverted ? Narrow : Wide;
  const int64_t keys[] = {B, T, 1, D}, values[] = {B, T, H, D},
                gates[] = {B, T, H}, states[] = {B, H, D, D};
  const int *order = isConverted ? tokensLast : dense;
  int32_t gateType = isConverted ? GDN_DTYPE_BF16 : GDN_DTYPE_F32;
  const float eighth = 0.125F, part = 0.015625F;
  Array *q = make(GDN_DTYPE_BF16, 4, keys, dense, Narrow, 1, eighth),
        *k = make(GDN_DTYPE_BF16, 4, keys, dense, Narrow, 2, part),
        *v = make(GDN_DTYPE_BF16, 4, values, order, Narrow, 3, eighth),
        *gate = make(gateType, 3, gates, dense, H, 4, part),
        *beta = make(GDN_DTYPE_F32, 3, gates, dense, 0, 0, 0),
        *before = make(GDN_DTYPE_F32, 4, states, dense, Narrow, 5, part);
  for (int64_t i = 0; i < beta->count; ++i) {
    const float one = 1;
    CHECK(gdnMemoryCopyToDevice(0, (float *)beta->tensor.data + i, &one, 4));
  }
  *o = make(GDN_DTYPE_BF16, 4, values, order, 0, 0, 0);
  *state = make(GDN_DTYPE_F32, 4, states, dense, 0, 0, 0);
  const GdnCallArray arrays[] = {
      {"q", &q->tensor},       {"k", &k->tensor},
      {"v", &v->tensor},       {"beta", isConverted ? NULL : &beta->tensor},
      {"gate", &gate->tensor}, {"initial_state", &before->tensor},
      {"o", &(*o)->tensor},    {"final_state", &(*state)->tensor}};
  const GdnFact facts[] = {{"op", "gdn.recurrent_gated_delta_rule"},
                           {"gate_domain", "log"},
                           {"beta_domain", "value"}};
  GdnCall call;
  memset(&call, 0, sizeof(call));
  call.struct_size = sizeof(call);
  call.num_facts = sizeof(facts) / sizeof(*facts);
  call.num_arrays = sizeof(arrays) / sizeof(*arrays);
  call.facts = facts;
  call.arrays = arrays;
  // 64^(-1/2) of the function.
  call.scale = isConverted ? Factor * 0.125 : 0.125;
  GdnCallPlan plan;
  uint64_t bytes = 0;
  CHECK(gdnCallPlan(&table, &call, &plan));
  CHECK(gdnCallRun(&plan, &call, allocate, &bytes, NULL));
  printf("%s: %s, %llu bytes of workspace\n",
         isConverted ? "converted" : "as it is", plan.variant->function->name,
         (unsigned long long)bytes);
}

int main(void) {
  CHECK(gdnDeviceMakeCurrent(0));
  Array *o, *state, *wideO, *wideState;
  run(1, &o, &state);
  run(0, &wideO, &wideState);
  int differ = 0;
  float largest = 0;
  for (int64_t i = 0; i < B * T * H * Narrow; ++i) {
    const int64_t at[] = {i / (T * H * Narrow), i / (H * Narrow) % T,
                          i / Narrow % H, i % Narrow};
    float got = read(o, at);
    differ += got != Factor * read(wideO, at);
    largest = got > largest ? got : largest;
  }
  for (int64_t i = 0; i < B * H * Narrow * Narrow; ++i) {
    const int64_t at[] = {i / (H * Narrow * Narrow), i / (Narrow * Narrow) % H,
                          i / Narrow % Narrow, i % Narrow};
    differ += read(state, at) != read(wideState, at);
  }
  printf("%d elements differ, outputs up to %.2f\n", differ, largest);
  return 0;
}
