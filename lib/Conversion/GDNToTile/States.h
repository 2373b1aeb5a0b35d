//===- States.h - Rows of arrays of states ----------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STATES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STATES_H

#include "Program.h"

namespace mlir::gdn {

/// Offsets and axes of S^T in a row of an array of states.
std::pair<SmallVector<Value>, SmallVector<int64_t>> stateAccess(Program &p,
                                                                Value row);

/// Whether a call may be without the array `name`.
bool isOptional(const Program &p, StringRef name);
/// What `read` gives of the array `name`, or `otherwise` in a call without it.
Value readIfThere(Program &p, StringRef name, Value otherwise,
                  function_ref<Value()> read);

/// Whether `row` is one of `count` that a sequence may name.
Value isRow(Program &p, Value row, Value count);
/// The rows that a sequence names for states that are kept.
Value countSteps(Program &p);
/// The array that has them.
Value stepArray(Program &p);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STATES_H
