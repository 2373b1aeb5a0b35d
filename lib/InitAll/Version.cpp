//===- Version.cpp - What --version prints --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Version.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

void mlir::gdn::setVersionPrinter() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &stream) {
    stream << "gdn " << GDN_VERSION_STRING << "\nLLVM " << LLVM_VERSION_STRING
           << '\n';
  });
}
