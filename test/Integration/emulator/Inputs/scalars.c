//===- scalars.c - Pass scalars to a compiled function --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints where pieces begin: scalars TOKENS LENGTH.
//
//===----------------------------------------------------------------------===//

#include "scalars.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  int64_t tokens = atoll(argv[1]), length = atoll(argv[2]);
  GdnArg args[4] = {{.kind = GDN_ARG_I64, .value.i64 = tokens},
                    {.kind = GDN_ARG_I64, .value.i64 = length},
                    {.kind = GDN_ARG_I32, .value.i32 = 3},
                    {.kind = GDN_ARG_F32, .value.f32 = 0.5f}};
  int64_t shape[1];
  CHECK(gdnFunctionGetOutputShape(&pieces_function, args, 4, 0, shape));
  float host[64];
  if (shape[0] > 64)
    return 2;
  GdnTensor starts = {NULL, GDN_DTYPE_F32, 1, shape, NULL};
  CHECK(pieces_prepare(0));
  CHECK(gdnDeviceMakeCurrent(0));
  CHECK(gdnMemoryAllocate(0, sizeof(host), &starts.data));
  uint64_t bytes;
  CHECK(pieces_workspace_bytes(tokens, length, 3, 0.5f, &starts, &bytes));
  CHECK(pieces(tokens, length, 3, 0.5f, &starts, NULL, bytes, NULL));
  CHECK(gdnMemoryCopyFromDevice(0, host, starts.data, sizeof(host)));
  for (int64_t i = 0; i < shape[0]; ++i)
    printf("%g%s", (double)host[i], i + 1 < shape[0] ? " " : "\n");
  CHECK(gdnMemoryFree(0, starts.data));
  return 0;
}
