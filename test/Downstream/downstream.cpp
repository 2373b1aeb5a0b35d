//===- downstream.cpp - What an embedding program does --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

/// Runs a pipeline, given as text, over a file and prints the result.
int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::gdn::registerAllDialects(registry);
  mlir::gdn::registerAllExtensions(registry);
  mlir::gdn::registerAllPasses();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  mlir::PassManager manager(&context);
  if (!module || failed(mlir::parsePassPipeline(argv[2], manager)) ||
      failed(manager.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
