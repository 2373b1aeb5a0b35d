//===- Arguments.h - A call's arrays as a function takes them ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_ARGUMENTS_H
#define GDN_LIB_CALLS_ARGUMENTS_H

#include "Choice.h"

#include <array>

namespace gdn::calls {

using Strides = std::array<int64_t, kMaxRank>;

/// The strides of an array, those of a dense one if it names none.
Strides stridesOf(const GdnTensor &array);

/// An array with extents and strides of its own.
struct View {
  GdnTensor tensor;
  Strides shape, strides;

  View() = default;
  explicit View(const GdnTensor &array);
  View(const View &other) { *this = other; }
  View &operator=(const View &other);

  bool isPresent() const { return tensor.dtype != 0; }
  char *at(int64_t index) const {
    return static_cast<char *>(tensor.data) + index * sizeOf(tensor.dtype);
  }
  /// Entry i of a list of integers, or that of a table in column j.
  int64_t integerAt(int64_t i, int64_t j = 0) const;
};

/// The arguments of a plan's function, made of a call's arrays.
class Arguments {
public:
  Arguments(const Call &call, const GdnCallPlan &plan);
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  const GdnArg *data() const { return args; }
  int32_t size() const { return count; }
  const GdnArgDesc &describe(int32_t index) const {
    return function.args[index];
  }
  /// The array of an argument; null if it is absent or a scalar.
  const GdnTensor *get(int32_t index) const {
    return args[index].kind == GDN_ARG_TENSOR ? args[index].value.tensor
                                              : nullptr;
  }
  /// The array of an argument, which is there, to be changed for the function.
  View &change(int32_t index);
  /// One for an argument that the call has no array for, at no address: gates,
  /// beta, parameters, states, or an array of the value heads.
  View &make(int32_t index, const Call &call);
  /// Gives arrays of which nobody knows where they lie some address. Nothing is
  /// launched with it.
  void inventAddresses();
  /// The number of the argument of that name; -1 for none.
  int32_t find(std::string_view name) const;

private:
  const GdnFunctionDesc &function;
  int32_t count;
  /// Of arguments that are changed: most calls have none.
  View views[GDN_CALL_MAX_ARGUMENTS];
  GdnArg args[GDN_CALL_MAX_ARGUMENTS];
};

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_ARGUMENTS_H
