//===- views.c - Call functions whose views ask for extents ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints what the functions of views.o say of arrays of [4, 8] and of others.
//
//===----------------------------------------------------------------------===//

#include "views.h"

#include <stdint.h>
#include <stdio.h>

static void print(const char *call, GdnRuntimeStatus status) {
  printf("%s: %s\n", call,
         status == GDN_SUCCESS ? "accepted" : gdnGetLastErrorMessage());
}

static GdnTensor makeArray(uintptr_t address, const int64_t *shape) {
  GdnTensor array = {(void *)address, GDN_DTYPE_F32, 2, shape, NULL};
  return array;
}

int main(void) {
  const int64_t shape[] = {4, 8}, turned[] = {8, 4}, small[] = {1, 2};
  GdnTensor x = makeArray(0x10000, shape), o = makeArray(0x20000, shape);
  GdnTensor other = makeArray(0x20000, turned), few = makeArray(0x20000, small);
  if (divide_prepare(0) || join_prepare(0) || write_prepare(0) ||
      gdnDeviceMakeCurrent(0)) {
    printf("%s\n", gdnGetLastErrorMessage());
    return 1;
  }
  print("divide into 4, 8", divide(&x, 4, 8, &o, NULL, 0, NULL));
  print("divide into 8, 4", divide(&x, 8, 4, &other, NULL, 0, NULL));
  print("join", join(&x, &o, NULL, 0, NULL));
  print("join into few", join(&x, &few, NULL, 0, NULL));
  print("write", write(&x, &o, NULL, 0, NULL));
  print("write into few", write(&x, &few, NULL, 0, NULL));
  return 0;
}
