//===- Layout.cpp - How arrays lie in memory ------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout.h"

#include <algorithm>

using namespace gdn::calls;

bool gdn::calls::hasElements(const GdnTensor &array) {
  return std::find(array.shape, array.shape + array.rank, 0) ==
         array.shape + array.rank;
}

// Nothing steps along an extent of 1, so its stride says nothing.
bool gdn::calls::hasLastStride1(const GdnTensor &array) {
  int last = array.rank - 1;
  return !array.strides || array.shape[last] == 1 || array.strides[last] == 1;
}

bool gdn::calls::areOne(const View &a, const View &b) {
  bool same = a.tensor.data == b.tensor.data &&
              a.tensor.dtype == b.tensor.dtype &&
              a.tensor.rank == b.tensor.rank && a.shape == b.shape;
  // Nothing steps along an extent of 1, so its stride says nothing.
  for (int i = 0; i < a.tensor.rank && same; ++i)
    same = a.shape[i] == 1 || a.strides[i] == b.strides[i];
  return same;
}

bool gdn::calls::isMapped(const GdnTensor &array) {
  if (reinterpret_cast<uintptr_t>(array.data) % kUnit || !hasLastStride1(array))
    return false;
  Strides strides = stridesOf(array);
  for (int i = 0; i + 1 < array.rank; ++i)
    if (array.shape[i] > 1 &&
        (strides[i] <= 0 || strides[i] * sizeOf(array.dtype) % kUnit))
      return false;
  return true;
}

void gdn::calls::mergeHeads(View &view) {
  int64_t channels = view.shape[3];
  if (view.shape[2] != 1 && channels != 1 &&
      view.strides[2] != channels * view.strides[3])
    return;
  if (channels == 1)
    view.strides[3] = view.strides[2];
  view.shape[3] *= view.shape[2];
  view.shape[2] = 1;
}

uint64_t gdn::calls::roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t gdn::calls::setRows(View &rows) {
  const auto &sizes = rows.shape;
  int64_t bytes = sizeOf(rows.tensor.dtype);
  int64_t row = roundUp(sizes[2] * sizes[3], kUnit / bytes);
  rows.strides = {sizes[1] * row, row, sizes[3], 1};
  return sizes[0] * sizes[1] * row * bytes;
}

bool gdn::calls::follows(const View &first, const View &next) {
  int64_t bytes = sizeOf(first.tensor.dtype);
  bool alike = bytes == sizeOf(next.tensor.dtype) &&
               first.shape[0] == next.shape[0] &&
               first.shape[1] == next.shape[1] && first.shape[2] == 1 &&
               next.shape[2] == 1 && first.strides[0] == next.strides[0] &&
               first.strides[1] == next.strides[1] &&
               first.strides[3] == next.strides[3];
  int64_t reach = first.shape[3] * first.strides[3] * bytes;
  return alike && reinterpret_cast<uintptr_t>(first.tensor.data) + reach ==
                      reinterpret_cast<uintptr_t>(next.tensor.data);
}

bool gdn::calls::hasForm(const GdnTensor &array, const GdnArgDesc &arg) {
  if (array.dtype != arg.dtype)
    return false;
  for (int i = 0; i < std::min(array.rank, arg.rank); ++i)
    if (arg.shape[i] >= 0 && array.shape[i] != arg.shape[i])
      return false;
  return true;
}

bool gdn::calls::isReplacedEarly(const Call &call, const GdnCallPlan &plan) {
  if (!plan.segment_parts)
    return false;
  const GdnTensor *before = call.find("initial_state"),
                  *after = call.find("final_state");
  return before && after && before->data && before->data == after->data;
}

void gdn::calls::setForm(View &view, const GdnArgDesc &arg) {
  view.tensor.dtype = arg.dtype;
  for (int i = 0; i < std::min(view.tensor.rank, arg.rank); ++i)
    if (arg.shape[i] >= 0)
      view.shape[i] = arg.shape[i];
}
