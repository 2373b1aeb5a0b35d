//===- HopperArguments.h - Arrays as arguments of a launch ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_HOPPERARGUMENTS_H
#define GDN_PYTHON_NATIVE_HOPPERARGUMENTS_H

#include "Hopper.h"

namespace gdn::hopper {

/// How a call cuts its sequences: the arguments of a function that does.
struct CallCut {
  /// Tokens of a segment; 0 where sequences are not cut.
  int64_t length = 0;
};

/// GDN_DTYPE_* of an element type.
int32_t dtypeOf(Element element);

/// The arguments of a launch: arrays that are there, in the order in which they
/// are added. The arrays outlive it.
class Arguments {
public:
  Arguments() = default;
  Arguments(const Arguments &) = delete;

  void add(const cpu::Array &array);
  /// How sequences are cut, as the function takes it next.
  void addCut(const GdnFunctionDesc &function, const CallCut &cut);
  /// An array of a call as the function takes it. What it calls `name`, and
  /// optional, is a state of any strides: null if the call has none.
  void addNamed(const GdnFunctionDesc &function, const char *name,
                const cpu::Array &array, bool isTurned);
  /// Those of a call, for a function whose states are [K, V] of any strides.
  void addAll(const Problem &p, const GdnFunctionDesc &function,
              const CallCut &cut);

  const GdnArg *data() const { return args; }
  int32_t size() const { return count; }

private:
  /// Those of a call; its gradients are eight more, a cut, and what was saved.
  static constexpr int kMaxCount = 13
#define GDN_HOPPER_ARGUMENT(...) +1
#include "Manifest.inc"
      ;

  int64_t boundaryStride = 0;
  /// States as a kernel sees them that takes one layout alone.
  cpu::Array turned[3];
  int numTurned = 0;
  GdnTensor tensors[kMaxCount];
  GdnArg args[kMaxCount];
  int32_t count = 0;
};

/// Launches a function that is ready on the device, with a workspace of the
/// caller's if it wants one.
Error launch(const GdnFunctionDesc &function, int32_t device,
             const Arguments &arguments, void *stream, Allocate allocate);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERARGUMENTS_H
