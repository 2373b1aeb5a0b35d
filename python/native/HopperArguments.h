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

/// A state [K, V] of each sequence and head as one [V, K], and the other way
/// round.
cpu::Array turnState(cpu::Array state);

/// The arguments of a launch: arrays that are there, in the order in which they
/// are added. The arrays outlive it.
class Arguments {
public:
  Arguments() = default;
  /// Those of a kernel of chunks or token by token.
  Arguments(const Problem &p, const GdnFunctionDesc &function) {
    addAll(p, function);
  }
  Arguments(const Arguments &) = delete;

  void add(const cpu::Array &array);
  void addAll(const Problem &p, const GdnFunctionDesc &function);

  const GdnArg *data() const { return args; }
  int32_t size() const { return count; }

private:
  /// Those of a call; its gradients are eight more, sizes, and what was saved.
  static constexpr int kMaxCount = 11
#define GDN_HOPPER_ARGUMENT(...) +1
#include "Manifest.inc"
      ;

  void addOf(const GdnFunctionDesc &function, const char *name,
             const cpu::Array &array, bool isTurned);

  int64_t boundaryStride = 0;
  /// States as a kernel sees them that takes [K, V] alone.
  cpu::Array turned[2];
  int numTurned = 0;
  GdnTensor tensors[kMaxCount];
  GdnArg args[kMaxCount];
  int32_t count = 0;
};

/// Launches a function that is ready on the device, with a workspace of the
/// caller's if it wants one.
Error launch(const GdnFunctionDesc &function, int32_t device,
             const Arguments &arguments, void *stream, Allocate allocate);

/// Checks the arguments of the launches of a call, whose `addArguments` and
/// `functionOf` take the number of a launch.
template <typename Call> Error checkLaunches(const Call &call) {
  for (int number = 0; number < Call::count; ++number) {
    Arguments arguments;
    call.addArguments(number, arguments);
    if (Error error = errorOf(gdnFunctionCheck(
            call.functionOf(number), arguments.data(), arguments.size())))
      return error;
  }
  return {};
}

/// Checks them, and launches functions that are ready on the device and take no
/// workspace of their own.
template <typename Call>
Error runLaunches(const Call &call, int32_t device, void *stream) {
  if (Error error = checkLaunches(call))
    return error;
  for (int number = 0; number < Call::count; ++number) {
    Arguments arguments;
    call.addArguments(number, arguments);
    if (Error error = errorOf(gdnFunctionLaunchOn(
            call.functionOf(number), device, arguments.data(), arguments.size(),
            nullptr, 0, stream)))
      return error;
  }
  return {};
}

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_HOPPERARGUMENTS_H
