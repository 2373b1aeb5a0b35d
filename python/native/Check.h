//===- Check.h - What the checks of a call share ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_CHECK_H
#define GDN_PYTHON_NATIVE_CHECK_H

#include "Problem.h"

namespace gdn::cpu {

/// An array with its name in messages.
struct Named {
  const char *name;
  const Array *array;
};

/// "<name>: expected <rule>, got <got>" as an exception of `kind`.
Error fail(const char *kind, const char *name, const std::string &rule,
           const std::string &got);

inline int64_t countElements(const Array &array) {
  int64_t count = 1;
  for (int i = 0; i < array.rank; ++i)
    count *= array.sizes[i];
  return count;
}

/// Boundaries that lie on the host: they ascend from 0 to at most `tokens`.
Error checkBoundaries(const Array &boundaries, int64_t tokens);

/// Rows of a pool of `count` states that lie on the host: of those from `first`
/// on no two are equal.
Error checkStateIndices(const Array &rows, int64_t first, int64_t count);
/// The same rows: each is one of the pool, or -1, which engines write for none.
Error checkStateRange(const Array &rows, int64_t count);

/// Whether two arrays are one.
inline bool isSameView(const Array &a, const Array &b) {
  bool same = a.data == b.data && a.element == b.element && a.sizes == b.sizes;
  // Nothing steps along an extent of 1, so its stride says nothing.
  for (int i = 0; i < a.rank && same; ++i)
    same = a.sizes[i] == 1 || a.strides[i] == b.strides[i];
  return same;
}

/// The elements of an output have memory apart from one another.
Error checkSpread(Named output);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_CHECK_H
