//===- gdn-translate.cpp - Kernels to PTX and machine code ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"
#include "gdn/Target/PTX.h"
#include "gdn/Version.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// Writes the text of `result`, or reports its error at the module.
static LogicalResult write(ModuleOp module, llvm::raw_ostream &stream,
                           llvm::Expected<std::string> result) {
  if (!result)
    return module.emitError(llvm::toString(result.takeError()));
  stream << *result;
  return success();
}

static llvm::Expected<std::string> assemble(ModuleOp module) {
  auto ptx = gdn::ptx::emitPTX(module);
  if (!ptx)
    return ptx.takeError();
  auto assembled = gdn::ptx::assemble(*ptx);
  if (!assembled)
    return assembled.takeError();
  for (const gdn::ptx::KernelUsage &usage : assembled->kernels)
    llvm::errs() << usage.name << ": " << usage.registers << " registers, "
                 << usage.stackBytes << " bytes of stack, "
                 << usage.spillStores + usage.spillLoads
                 << " bytes of spills\n";
  return std::move(assembled->cubin);
}

int main(int argc, char **argv) {
  gdn::setVersionPrinter();
  TranslateFromMLIRRegistration toPTX(
      "gdn-to-ptx", "LLVM and nvvm dialects to PTX",
      [](ModuleOp module, llvm::raw_ostream &stream) {
        return write(module, stream, gdn::ptx::emitPTX(module));
      },
      gdn::registerAllDialects);
  TranslateFromMLIRRegistration toCubin(
      "gdn-to-cubin",
      "LLVM and nvvm dialects to machine code, by ptxas; fails on its remarks, "
      "a stack or spills",
      [](ModuleOp module, llvm::raw_ostream &stream) {
        return write(module, stream, assemble(module));
      },
      gdn::registerAllDialects);
  TranslateFromMLIRRegistration toLaunch(
      "gdn-to-launch-json", "How to launch the kernels of a module",
      [](ModuleOp module, llvm::raw_ostream &stream) {
        return write(module, stream, gdn::ptx::describeKernels(module));
      },
      gdn::registerAllDialects);
  uint64_t printed = llvm::errs().tell();
  if (succeeded(mlirTranslateMain(argc, argv, "gdn translation driver")))
    return EXIT_SUCCESS;
  // MLIR's reader of bytecode refuses some files without a diagnostic.
  if (llvm::errs().tell() == printed)
    llvm::WithColor::error(llvm::errs(), "gdn-translate")
        << "expected MLIR's text or bytecode, got what its reader refuses "
           "without a diagnostic; bytecode with wrong bytes does this\n";
  return EXIT_FAILURE;
}
