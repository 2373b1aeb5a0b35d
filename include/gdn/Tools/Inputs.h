//===- Inputs.h - Sizes and values of a function's inputs -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_INPUTS_H
#define GDN_TOOLS_INPUTS_H

#include "gdn/Tools/HostArray.h"
#include "gdn/Tools/Random.h"
#include <map>
#include <set>

namespace mlir::gdn::tools {

/// What the user said about the inputs.
struct InputOptions {
  /// .npy files by argument.
  std::map<unsigned, std::string> files;
  /// Shapes by argument.
  std::map<unsigned, llvm::SmallVector<int64_t>> shapes;
  /// Optional arguments that the call is without: arrays whose first extent is
  /// 0.
  std::set<unsigned> absent;
  /// Values of scalars by argument.
  std::map<unsigned, double> scalars;
  /// Sizes by the name of the dimension, for all ops.
  std::map<std::string, int64_t> dims;
  /// Lengths of the packed sequences; absent: one sequence, or equal ones where
  /// their number is known.
  std::optional<std::vector<int64_t>> lengths;
  RandomOptions random;
};

/// Reads or draws every argument; all sizes are known and fit together, and
/// cu_seqlens is sorted from 0 to T, so the function may run on the result.
llvm::Expected<std::vector<HostArray>> makeInputs(func::FuncOp func,
                                                  const InputOptions &options);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_INPUTS_H
