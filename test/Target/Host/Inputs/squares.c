//===- squares.c - Call a compiled function from C ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller of squares.o: rows 0 to 69 and 70 to 99 of x are two sequences.
// The last argument of the program, if there is one, is a number of tokens of
// o.
//
//===----------------------------------------------------------------------===//

#include "squares.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus status = (call);                                          \
    if (status != GDN_SUCCESS) {                                               \
      printf("%s: %s\n", gdnStatusGetString(status),                           \
             gdnGetLastErrorMessage());                                        \
      return 1;                                                                \
    }                                                                          \
  } while (0)

enum { tokens = 100, width = 2 * 64, count = tokens * width };

int main(int argc, char **argv) {
  static float host[count];
  const int32_t boundaries[] = {0, 70, tokens};
  const int64_t shape[] = {1, tokens, 2, 64}, bounds[] = {3};
  const int64_t shapeO[] = {1, argc > 1 ? atoi(argv[1]) : tokens, 2, 64};
  GdnTensor x = {NULL, GDN_DTYPE_F32, 4, shape, NULL};
  GdnTensor o = {NULL, GDN_DTYPE_F32, 4, shapeO, NULL};
  GdnTensor cu = {NULL, GDN_DTYPE_I32, 1, bounds, NULL};
  CHECK(squares_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  CHECK(gdnMemoryAllocate(0, sizeof(host), &x.data));
  CHECK(gdnMemoryAllocate(0, sizeof(host), &o.data));
  CHECK(gdnMemoryAllocate(0, sizeof(boundaries), &cu.data));
  for (int i = 0; i < count; ++i)
    host[i] = (float)(i % 64);
  CHECK(gdnMemoryCopyToDevice(0, x.data, host, sizeof(host)));
  CHECK(gdnMemoryCopyToDevice(0, cu.data, boundaries, sizeof(boundaries)));

  void *workspace;
  uint64_t bytes;
  CHECK(squares_workspace_bytes(&x, &cu, &o, &bytes));
  printf("workspace: %llu bytes\n", (unsigned long long)bytes);
  CHECK(gdnMemoryAllocate(0, bytes, &workspace));
  CHECK(squares(&x, &cu, &o, workspace, bytes, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, host, o.data, sizeof(host)));

  int wrong = 0;
  for (int i = 0; i < count; ++i)
    wrong += host[i] != (float)(4 * (i % 64) * (i % 64));
  printf("squares: %d wrong\n", wrong);
  CHECK(gdnMemoryFree(0, workspace));
  CHECK(gdnMemoryFree(0, x.data));
  CHECK(gdnMemoryFree(0, o.data));
  CHECK(gdnMemoryFree(0, cu.data));
  CHECK(gdnFunctionUnload(&squares_function));
  return 0;
}
