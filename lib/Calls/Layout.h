//===- Layout.h - How arrays lie in memory ----------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_LAYOUT_H
#define GDN_LIB_CALLS_LAYOUT_H

#include "Arguments.h"
#include "Call.h"

namespace gdn::calls {

/// What the copy engine asks of addresses and strides, in bytes.
inline constexpr int64_t kUnit = 16;

bool hasElements(const GdnTensor &array);
/// Whether the last dimension has a stride of 1, or steps nowhere.
bool hasLastStride1(const GdnTensor &array);
/// Whether a tensor map can be made of an array.
bool isMapped(const GdnTensor &array);

/// Whether both are one view of the same memory.
bool areOne(const View &a, const View &b);

/// Whether an array has an argument's type and the extents that it fixes.
bool hasForm(const GdnTensor &array, const GdnArgDesc &arg);

/// Gives a view the type of an argument, and the extents that this fixes.
void setForm(View &view, const GdnArgDesc &arg);
/// Whether final states replace the initial ones early: of segments that do not
/// wait for others, the last of a sequence may be done before the first has
/// read its state.
bool isReplacedEarly(const Call &call, const GdnCallPlan &plan);

uint64_t roundUp(uint64_t value, uint64_t unit);

// Of views [B, T, H, C]:

/// Makes heads that follow one another channels of one head.
void mergeHeads(View &view);
/// Gives a view rows of all heads' channels, each on a multiple of 16 bytes.
/// Returns the bytes of all.
uint64_t setRows(View &rows);
/// Whether `next` has the channels that follow those of `first`.
bool follows(const View &first, const View &next);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_LAYOUT_H
