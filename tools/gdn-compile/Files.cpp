//===- Files.cpp - What gdn-compile writes
//------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir::gdn;

llvm::Error tools::writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code failure;
  llvm::ToolOutputFile file(path, failure, llvm::sys::fs::OpenFlags());
  if (!failure) {
    file.os() << bytes;
    file.os().flush();
    failure = file.os().error();
    file.os().clear_error();
  }
  if (failure)
    return llvm::createStringError(llvm::formatv(
        "{0}: expected a writable file, got '{1}'", path, failure.message()));
  file.keep();
  return llvm::Error::success();
}

/// The names of a PTX text's kernels; an object has none.
static llvm::SmallVector<llvm::StringRef> getKernelNames(llvm::StringRef ptx) {
  llvm::SmallVector<llvm::StringRef> names;
  for (llvm::StringRef rest = ptx.split(".entry ").second; !rest.empty();
       rest = rest.split(".entry ").second)
    names.push_back(rest.take_until([](char c) { return c == '('; }));
  return names;
}

std::string tools::fingerprint(llvm::StringRef code) {
  llvm::SmallVector<llvm::StringRef> names = getKernelNames(code);
  // A name may begin with another one.
  llvm::sort(names, [](llvm::StringRef a, llvm::StringRef b) {
    return a.size() > b.size();
  });
  std::string text = code.str();
  for (llvm::StringRef name : names)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
      text.replace(at, name.size(), "kernel");
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}
