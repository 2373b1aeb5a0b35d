//===- Random.h - Random inputs of a layer function -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_RANDOM_H
#define GDN_TOOLS_RANDOM_H

#include "gdn/Tools/Arguments.h"

namespace mlir::gdn::tools {

/// How random inputs are drawn.
struct RandomOptions {
  uint64_t seed = 0;
  /// Mean of the log gate, at most 0.
  double meanGate = -0.05;
  /// Cosine between the keys of a head; 0 draws them independently.
  double keyCosine = 0;
  /// Directions that the keys of a head are sums of; 0 draws all channels.
  int64_t keyRank = 0;
};

/// Values for one argument of the given shape. `lengths` is read for
/// Role::CuSeqlens alone.
std::vector<double> drawRandom(const Argument &argument,
                               llvm::ArrayRef<int64_t> shape,
                               llvm::ArrayRef<int64_t> lengths,
                               const RandomOptions &options);

/// Different rows of a pool of `states` for `count` sequences. One may be
/// `states`, which names no row, as -1 does, which those have that are too
/// many.
std::vector<double> drawStateIndices(const Argument &argument, int64_t count,
                                     int64_t states,
                                     const RandomOptions &options);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_RANDOM_H
