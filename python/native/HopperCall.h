//===- HopperCall.h - Calls for the library of calls ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPERCALL_H
#define GDN_PYTHON_NATIVE_HOPPERCALL_H

#include "Backward.h"
#include "Hopper.h"

namespace gdn::hopper {

/// A problem as the library of calls takes it. The problem outlives it.
class HopperCall {
public:
  HopperCall(const Problem &problem, Kind kind);
  HopperCall(const HopperCall &) = delete;
  HopperCall &operator=(const HopperCall &) = delete;

  void add(const cpu::Gradients &gradients);
  void add(const Saved &saved);

  /// Gives arrays whose addresses nobody knows those of allocations, none of
  /// which is read.
  void inventAddresses();
  const GdnCall *get() const { return &call; }
  /// The plan of a call that was like this one but for addresses: it has been
  /// checked, and asked for the same. Null if this thread made none lately.
  const GdnCallPlan *recall() const {
    return gdnCallRecall(&allFunctions(), &call);
  }

private:
  void add(const char *name, const cpu::Array &array);
  /// Makes an array the same as that of a name.
  void share(std::string_view name, std::string_view other);

  /// Those of a forward or a backward, its gradients, and what is saved.
  static constexpr int kMaxArrays = 10
#define GDN_HOPPER_ARGUMENT(...) +1
#include "Manifest.inc"
      ;
  int numInputs = 0;
  GdnTensor tensors[kMaxArrays];
  GdnCallArray arrays[kMaxArrays];
  GdnFact facts[6];
  GdnCall call = {};
};

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERCALL_H
