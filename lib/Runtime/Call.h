//===- Call.h - What a call of a function knows of its sizes ----*- C++ -*-===//
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

/// What a call knows once its arguments are checked.
struct Call {
  const GdnFunctionDesc &function;
  const GdnArg *args;
  int64_t steps[maxSteps];
  /// Steps that the arguments at hand are enough for.
  bool known[maxSteps];
  uint64_t workspaceBytes;
  /// Where the temporaries begin in the workspace.
  uint64_t offsets[maxTemporaries];
};

/// Checks the arguments and computes all that follows from them.
GdnRuntimeStatus prepareCall(Call &call, int32_t numArgs);

} // namespace gdn::runtime

#endif // GDN_RUNTIME_CALL_H
