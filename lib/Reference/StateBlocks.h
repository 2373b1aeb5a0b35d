//===- StateBlocks.h - Columns between arrays and lanes ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between the caller's arrays and the blocks of `lanes` columns that the
// recurrence runs on, and the order in which sequences are cut into chunks.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_REFERENCE_STATEBLOCKS_H
#define GDN_LIB_REFERENCE_STATEBLOCKS_H

#include "Recurrence.h"
#include "gdn/Reference/Reference.h"

#include <algorithm>

namespace gdn::reference {

/// Blocks of columns that cover V; the last one may be partly padding.
inline int64_t numBlocks(const Problem &p) { return (p.V + lanes - 1) / lanes; }

/// Doubles in one block of a state, and in the whole blocked state of a head.
inline int64_t blockSize(const Problem &p) { return p.K * lanes; }
inline int64_t stateSize(const Problem &p) {
  return numBlocks(p) * blockSize(p);
}

/// Columns of block `block` that exist.
inline int64_t blockColumns(const Problem &p, int64_t block) {
  return std::min(lanes, p.V - block * lanes);
}

/// Calls copy(index in the array, index in the blocks) for every element of the
/// state in row n and of head h.
template <typename Copy>
void forEachStateElement(const Problem &p, int64_t n, int64_t h, Copy copy) {
  int64_t base = (n * p.H + h) * p.K * p.V;
  bool keyFirst = p.stateLayout == StateLayout::KV;
  for (int64_t i = 0; i < p.K; ++i)
    for (int64_t j = 0; j < p.V; ++j)
      copy(base + (keyFirst ? i * p.V + j : j * p.K + i),
           (j / lanes) * blockSize(p) + i * lanes + j % lanes);
}

/// The blocked state of (n, h), padding zero; an empty array reads as zero.
inline void loadState(const Problem &p, const std::vector<double> &array,
                      int64_t n, int64_t h, std::vector<double> &blocks) {
  blocks.assign(stateSize(p), 0.0);
  if (!array.empty())
    forEachStateElement(
        p, n, h, [&](int64_t from, int64_t to) { blocks[to] = array[from]; });
}

inline void storeState(const Problem &p, const std::vector<double> &blocks,
                       int64_t n, int64_t h, std::vector<double> &array) {
  forEachStateElement(
      p, n, h, [&](int64_t to, int64_t from) { array[to] = blocks[from]; });
}

/// Copies rows of one block of columns of a [B, T, H, V] array to
/// [tokens, lanes]; the padding becomes zero.
inline void loadColumns(const Problem &p, const std::vector<double> &array,
                        int64_t head, int64_t first, int64_t tokens,
                        int64_t block, double *columns) {
  int64_t count = blockColumns(p, block);
  for (int64_t t = 0; t < tokens; ++t) {
    const double *from =
        &array[((first + t) * p.H + head) * p.V + block * lanes];
    std::fill_n(columns + t * lanes, lanes, 0.0);
    std::copy_n(from, count, columns + t * lanes);
  }
}

/// The inverse of loadColumns(), without the padding.
inline void storeColumns(const Problem &p, const double *columns, int64_t head,
                         int64_t first, int64_t tokens, int64_t block,
                         std::vector<double> &array) {
  int64_t count = blockColumns(p, block);
  for (int64_t t = 0; t < tokens; ++t)
    std::copy_n(columns + t * lanes, count,
                &array[((first + t) * p.H + head) * p.V + block * lanes]);
}

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_STATEBLOCKS_H
