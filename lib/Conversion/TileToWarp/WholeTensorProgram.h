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

/// Steps of the programs, which name the role that runs an op.
inline constexpr StringLiteral kVectorStep = "gates", kRowStep = "state",
                               kStoreStep = "store";

/// Work items that share the tokens of a head: few heads fill a machine.
int64_t countParts(const WholeTensorGroup &group);

/// Writes the program of a group whose inputs are `arrays`. It has an output
/// for each op that somebody reads; that of a sum over tokens is the sum of
/// each work item, [1, items of a head, H], or with columns one a column,
/// [1, items of a head, H, K].
void writeProgram(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                  tile::ProgramOp program);

/// Writes the program that adds up what the work items of each head have
/// summed, `arrays`, in their order.
void writeTotals(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                 tile::ProgramOp program);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORPROGRAM_H
