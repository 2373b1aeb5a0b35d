//===- Check.h - Results against float64 ------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_CHECK_H
#define GDN_TOOLS_CHECK_H

#include "gdn/Tools/Evaluate.h"

namespace mlir::gdn::tools {

/// What came out against what should have.
struct OutputCheck {
  /// o, final_state, dq, ..., or value for what no arithmetic has touched.
  std::string name;
  ::gdn::reference::Error error;
  ::gdn::reference::Tolerance tolerance;
  bool pass;
};

/// Compares a result with its float64 value at the tolerance of spec 9: that of
/// f32 where products take f32 operands and the result is f32 itself, that of
/// 16-bit operands otherwise. A value that no arithmetic has touched must be
/// equal.
OutputCheck checkOutput(const HostArray &actual, const Evaluated &expected,
                        llvm::StringRef operandType);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_CHECK_H
