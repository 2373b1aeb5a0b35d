//===- gdn-opt.cpp - Run passes over modules of any level -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"
#include "gdn/Version.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/WithColor.h"

int main(int argc, char **argv) {
  mlir::gdn::setVersionPrinter();
  mlir::DialectRegistry registry;
  mlir::gdn::registerAllDialects(registry);
  mlir::gdn::registerAllExtensions(registry);
  mlir::gdn::registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "gdn optimizer driver\n", registry);
  uint64_t printed = llvm::errs().tell();
  if (succeeded(mlir::MlirOptMain(argc, argv, input, output, registry)))
    return EXIT_SUCCESS;
  // MLIR's reader of bytecode refuses some files without a diagnostic.
  if (llvm::errs().tell() == printed)
    llvm::WithColor::error(llvm::errs(), "gdn-opt")
        << input
        << ": expected MLIR's text or bytecode, and passes that take it, got a "
           "failure without a diagnostic; bytecode with wrong bytes does "
           "this\n";
  return EXIT_FAILURE;
}
