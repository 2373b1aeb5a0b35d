//===- Error.h - Errors of the tools ----------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_ERROR_H
#define GDN_TOOLS_ERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <utility>

namespace mlir::gdn::tools {

/// An error with the text of llvm::formatv.
template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str(),
      std::make_error_code(std::errc::invalid_argument));
}

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_ERROR_H
