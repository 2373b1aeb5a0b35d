//===- segments.c - Let the library choose how a layer is computed --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gdn-compile segments.mlir --target=sm_90a --side-by-side --emit=obj
//   cc segments.c segments.o -lgdn-calls -lgdn-runtime && ./a.out
//
// A sequence of few heads is too long a way for a GPU, so it is cut into
// segments; many short sequences stay whole. All keys and queries are one
// vector of length 1, and nothing decays: the first token writes v = 1 to the
// state, and every token reads 1 / sqrt(128).
//
//===----------------------------------------------------------------------===//

#include "segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus failure = (call);                                         \
    if (failure != GDN_SUCCESS) {                                              \
      printf("%s: %s\n", gdnStatusGetString(failure),                          \
             gdnGetLastErrorMessage());                                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { Hq = 4, H = 8, D = 128 };

/// What this program has compiled.
static const GdnEntryDesc *const entries[] = {&long_layer_entry};
static void *room = NULL;
static const GdnCallTable table = {.struct_size = sizeof(GdnCallTable),
                                   .num_entries = 1,
                                   .entries = entries,
                                   .index = &room};

/// Allocates an array and sets all of it to `value`.
static GdnTensor make(int32_t dtype, int32_t rank, const int64_t *shape,
                      float value) {
  GdnTensor tensor = {NULL, dtype, rank, shape, NULL};
  size_t count = 1, bytes = dtype == GDN_DTYPE_BF16 ? 2 : 4;
  for (int i = 0; i < rank; ++i)
    count *= (size_t)shape[i];
  char *host = malloc(count * bytes), element[4];
  memcpy(element, &value, 4); // A bf16 is the upper half of a float.
  for (size_t i = 0; i < count; ++i)
    memcpy(host + i * bytes, element + 4 - bytes, bytes);
  CHECK(gdnMemoryAllocate(0, count * bytes, &tensor.data));
  CHECK(gdnMemoryCopyToDevice(0, tensor.data, host, count * bytes));
  free(host);
  return tensor;
}

/// Computes `batch` sequences of `tokens` tokens without states before them.
static void run(int64_t batch, int64_t tokens) {
  const int64_t keys[] = {batch, tokens, Hq, D}, gates[] = {batch, tokens, H};
  const int64_t values[] = {batch, tokens, H, D};
  GdnTensor q = make(GDN_DTYPE_BF16, 4, keys, 0.08838835f);
  GdnTensor k = make(GDN_DTYPE_BF16, 4, keys, 0.08838835f);
  GdnTensor v = make(GDN_DTYPE_BF16, 4, values, 1);
  GdnTensor beta = make(GDN_DTYPE_F32, 3, gates, 1);
  GdnTensor gate = make(GDN_DTYPE_F32, 3, gates, 0);
  GdnTensor o = make(GDN_DTYPE_BF16, 4, values, -1);
  const GdnCallArray arrays[] = {{"q", &q},       {"k", &k},
                                 {"v", &v},       {"beta", &beta},
                                 {"gate", &gate}, {"initial_state", NULL},
                                 {"o", &o},       {"final_state", NULL}};
  const GdnFact facts[] = {{"op", "gdn.chunk_gated_delta_rule"},
                           {"gate_domain", "log"},
                           {"beta_domain", "value"}};
  GdnCall call;
  memset(&call, 0, sizeof(call));
  call.struct_size = sizeof(call);
  call.num_facts = sizeof(facts) / sizeof(*facts);
  call.num_arrays = sizeof(arrays) / sizeof(*arrays);
  call.facts = facts;
  call.arrays = arrays;
  call.state_layout = "kv";

  GdnCallPlan plan;
  uint64_t bytes;
  void *workspace;
  CHECK(gdnCallPlan(&table, &call, &plan));
  CHECK(gdnCallPrepare(&plan, &call));
  CHECK(gdnCallGetWorkspaceBytes(&plan, &call, &bytes));
  CHECK(gdnMemoryAllocate(0, bytes ? bytes : 1, &workspace));
  CHECK(gdnCallLaunch(&plan, &call, workspace, bytes, NULL));

  float last = 0;
  size_t count = (size_t)(batch * tokens * H * D);
  const char *place = (const char *)o.data + 2 * (count - 1);
  CHECK(gdnMemoryCopyFromDevice(0, (char *)&last + 2, place, 2));
  printf("%lld x %lld tokens: %s, segments of %lld tokens, %llu bytes of "
         "workspace; the last output is %.3f\n",
         (long long)batch, (long long)tokens, plan.variant->function->name,
         (long long)plan.segment_length, (unsigned long long)bytes, last);
  GdnTensor *made[] = {&q, &k, &v, &beta, &gate, &o};
  for (size_t i = 0; i < sizeof(made) / sizeof(*made); ++i)
    CHECK(gdnMemoryFree(0, made[i]->data));
  CHECK(gdnMemoryFree(0, workspace));
}

int main(void) {
  CHECK(gdnDeviceMakeCurrent(0));
  run(1, 32768);
  run(64, 512);
  return 0;
}
