//===- layer.c - Call a compiled layer from C -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gdn-compile layer.mlir --target=sm_90a --emit=obj    # layer.o and layer.h
//   cc layer.c layer.o -lgdn-runtime && ./a.out
//
// All keys and queries are one vector of length 1, and nothing decays: the
// first token writes v = 1 to the state, and every token reads 1 / sqrt(128).
//
//===----------------------------------------------------------------------===//

#include "layer.h"

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

enum { T = 4096, Hq = 16, H = 32, D = 128 };

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

int main(void) {
  const int64_t keys[] = {1, T, Hq, D}, values[] = {1, T, H, D};
  const int64_t gates[] = {1, T, H}, states[] = {1, H, D, D};
  CHECK(layer_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  GdnTensor q = make(GDN_DTYPE_BF16, 4, keys, 0.08838835f);
  GdnTensor k = make(GDN_DTYPE_BF16, 4, keys, 0.08838835f);
  GdnTensor v = make(GDN_DTYPE_BF16, 4, values, 1);
  GdnTensor beta = make(GDN_DTYPE_F32, 3, gates, 1);
  GdnTensor gate = make(GDN_DTYPE_F32, 3, gates, 0);
  GdnTensor o = make(GDN_DTYPE_BF16, 4, values, -1);
  GdnTensor state = make(GDN_DTYPE_F32, 4, states, -1);

  uint64_t bytes;
  void *workspace;
  CHECK(layer_workspace_bytes(&q, &k, &v, &beta, &gate, &o, &state, &bytes));
  CHECK(gdnMemoryAllocate(0, bytes, &workspace));
  CHECK(layer(&q, &k, &v, &beta, &gate, &o, &state, workspace, bytes, NULL));

  float last = 0;
  const char *place = (const char *)o.data + 2 * ((size_t)T * H * D - 1);
  CHECK(gdnMemoryCopyFromDevice(0, (char *)&last + 2, place, 2));
  printf("the last output is %.3f\n", last);
  return 0;
}
