//===- Files.h - What gdn-compile writes
//--------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_COMPILE_FILES_H
#define GDN_TOOLS_GDN_COMPILE_FILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::gdn::tools {

/// Writes a file, or stdout if the path is "-". An error names the path.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

/// The SHA-256 of a PTX text or an object, as 64 hexadecimal digits. The names
/// of a text's kernels do not count.
std::string fingerprint(llvm::StringRef code);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_GDN_COMPILE_FILES_H
