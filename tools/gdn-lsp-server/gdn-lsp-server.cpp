//===- gdn-lsp-server.cpp - Language server for modules of any level ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"
#include "gdn/Version.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::gdn::setVersionPrinter();
  mlir::DialectRegistry registry;
  mlir::gdn::registerAllDialects(registry);
  mlir::gdn::registerAllExtensions(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry)) ? 1 : 0;
}
