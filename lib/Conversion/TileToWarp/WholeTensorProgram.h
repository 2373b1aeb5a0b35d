//===- WholeTensorProgram.h - The program of work on tensors ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORPROGRAM_H
#define GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORPROGRAM_H

#include "WholeTensorOp.h"

namespace mlir::gdn {

/// The step of the programs, which names the role that runs an op.
inline constexpr StringLiteral kRowStep = "state";

/// What a program has besides the group's arrays: the most chunks that a work
/// item has, and how many work items there are of a batch row and head.
inline constexpr unsigned kNumScalars = 2;

/// Writes the program of a group whose inputs are `arrays` and behind them its
/// scalars. It has an output for each op that somebody reads; that of a sum
/// over tokens is the sum of each work item, [1, items of a head, H], or with
/// columns one a column, [1, items of a head, H, K].
void writeProgram(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                  tile::ProgramOp program);

/// Writes the program that adds up what the work items of each head have
/// summed, `arrays`, in their order.
void writeTotals(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                 tile::ProgramOp program);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORPROGRAM_H
