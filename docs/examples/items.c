//===- items.c - A layer on a CPU through the library of calls ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gdn-compile items.mlir --parallel=false --emit=obj
//   cc items.c items.o -lgdn-calls -lgdn-runtime -lm && ./a.out
//
// The compiled function computes a sequence and a head. The library calls it
// for the heads of two packed sequences. All keys and queries are one vector of
// length 1, and nothing decays: the first token of a sequence writes v to the
// state, and each later token of it reads v / sqrt(64).
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Calls.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus failure = (call);                                         \
    if (failure != GDN_SUCCESS) {                                              \
      printf("%s: %s\n", gdnStatusGetString(failure),                          \
             gdnGetLastErrorMessage());                                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { Tokens = 1000, H = 4, D = 64 };

/// What this program has compiled, for any x86-64-v3.
extern void _mlir_ciface_head(void);
static const GdnItemDesc items[] = {{.name = "head",
                                     .op = "gdn.chunk_gated_delta_rule",
                                     .dtype = GDN_DTYPE_F32,
                                     .channels = D,
                                     .level = -1,
                                     .isa = "x86-64-v3",
                                     .functions = {_mlir_ciface_head}}};
static void *room = NULL;
static const GdnCallTable table = {.struct_size = sizeof(GdnCallTable),
                                   .index = &room,
                                   .items = items,
                                   .num_items = 1};

static float keys[Tokens][H][D], values[Tokens][H][D], outputs[Tokens][H][D];
static float beta[Tokens][H], gate[Tokens][H];

int main(void) {
  const int32_t boundaries[] = {0, 300, Tokens};
  const int64_t tokens[] = {1, Tokens, H, D}, gates[] = {1, Tokens, H};
  const int64_t ends[] = {3};
  for (int t = 0; t < Tokens; ++t)
    for (int h = 0; h < H; ++h) {
      beta[t][h] = 1;
      for (int i = 0; i < D; ++i) {
        keys[t][h][i] = 0.125f;
        values[t][h][i] = t < 300 ? 8 : 16;
      }
    }
  const GdnTensor k = {keys, GDN_DTYPE_F32, 4, tokens, NULL},
                  v = {values, GDN_DTYPE_F32, 4, tokens, NULL},
                  o = {outputs, GDN_DTYPE_F32, 4, tokens, NULL},
                  b = {beta, GDN_DTYPE_F32, 3, gates, NULL},
                  g = {gate, GDN_DTYPE_F32, 3, gates, NULL},
                  cu = {(void *)boundaries, GDN_DTYPE_I32, 1, ends, NULL};
  const GdnCallArray arrays[] = {
      {"q", &k},    {"k", &k},           {"v", &v}, {"beta", &b},
      {"gate", &g}, {"cu_seqlens", &cu}, {"o", &o}};
  const GdnFact facts[] = {{"op", "gdn.chunk_gated_delta_rule"},
                           {"gate_domain", "log"},
                           {"beta_domain", "value"}};
  const GdnCall call = {.struct_size = sizeof(GdnCall),
                        .device = GDN_DEVICE_CPU,
                        .num_facts = 3,
                        .num_arrays = 7,
                        .facts = facts,
                        .arrays = arrays};
  CHECK(gdnCallExecute(&table, &call, NULL, NULL, NULL));
  printf("the last outputs are %.3f and %.3f\n", outputs[299][H - 1][D - 1],
         outputs[Tokens - 1][H - 1][D - 1]);

  char text[2048];
  size_t size;
  CHECK(gdnCallDescribe(&table, &call, text, sizeof(text), &size));
  puts(text);
  return 0;
}
