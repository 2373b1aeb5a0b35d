//===- Call.h - Calls of functions ------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_RUNTIME_CALL_H
#define GDN_RUNTIME_CALL_H

#include "Kernel.h"

namespace gdn::runtime {

/// What a call knows once its arguments are checked. The lists are written as
/// far as the function has elements of them.
struct Call {
  Call(const GdnFunctionDesc &function, const GdnArg *args)
      : function(function), args(args) {}

  const GdnFunctionDesc &function;
  const GdnArg *args;
  int64_t steps[maxSteps];
  /// Steps that the arguments at hand are enough for.
  bool known[maxSteps];
  uint64_t workspaceBytes = 0;
  /// Where the temporaries begin in the workspace.
  uint64_t offsets[maxTemporaries];
};

/// Checks the arguments and computes all that follows from them.
GdnRuntimeStatus prepareCall(Call &call, int32_t numArgs);

/// The arguments of one kernel. Temporaries and views are described here, so
/// the object stays where it is.
struct KernelCall {
  GdnArg args[maxArgs];
  ValueOrigin origins[maxArgs];
  GdnTensor tensors[maxArgs];
  int64_t shapes[maxArgs][maxRank];
  int64_t strides[maxArgs][maxRank];
  uint32_t blocks;
};

/// Puts the arguments of a launch together.
GdnRuntimeStatus prepareLaunch(const Call &call, const GdnLaunchDesc &launch,
                               void *workspace, KernelCall &kernel);
/// What is wrong with the arguments of any launch. `blocks` are those that the
/// launches ask for, `kernel` has the arguments of the last one.
GdnRuntimeStatus checkLaunches(const Call &call, void *workspace,
                               uint32_t *blocks, KernelCall &kernel);

/// A function whose description has been checked and whose kernels are loaded.
struct LoadedFunction {
  CallLaunch launches[maxLaunches];
  /// Null for a function whose calls are not alike.
  KnownCalls *known;
};

/// What gdnFunctionPrepare has loaded; null before.
const LoadedFunction *getLoaded(const GdnFunctionDesc &function);

} // namespace gdn::runtime

#endif // GDN_RUNTIME_CALL_H
