//===- Array.cpp - Memory for the arrays of programs ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/CPU.h"

#include "llvm/Support/MathExtras.h"
#include <cstdio>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/// Bytes of a large page of x86-64, and of AArch64 with pages of 4 KiB.
static constexpr size_t kLargePage = size_t(2) << 20;

/// Memory of `bytes`, or null.
static void *allocate(size_t bytes) {
#if defined(__linux__)
  if (bytes >= kLargePage) {
    size_t size = llvm::alignTo(bytes, kLargePage);
    if (size < bytes)
      return nullptr;
    void *memory = std::aligned_alloc(kLargePage, size);
    // A wish: a system without such pages gives others.
    if (memory)
      (void)madvise(memory, size, MADV_HUGEPAGE);
    return memory;
  }
#endif
  return std::malloc(bytes);
}

void *mlir::gdn::cpu::allocateArray(size_t bytes) {
  void *memory = allocate(bytes);
  if (memory || bytes == 0)
    return memory;
  // Compiled code takes what it gets, in any thread.
  std::fprintf(stderr,
               "error: expected memory for an array of %zu bytes, got none\n",
               bytes);
  std::_Exit(EXIT_FAILURE);
}
