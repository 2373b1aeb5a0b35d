//===- Module.cpp - The tables of a module --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "llvm/Support/Error.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// Calls the arguments of a function's kernels what the function calls them. A
/// kernel takes no array that may be absent in a call of the function, unless
/// it may be absent for the kernel.
static void noteArguments(const FunctionTable &function,
                          MutableArrayRef<KernelTable> kernels) {
  for (const LaunchTable &launch : function.launches)
    for (auto [argument, operand] :
         llvm::zip(kernels[launch.kernel].arguments, launch.operands)) {
      GdnOperand base = operand.kind == GDN_OPERAND_VIEW
                            ? function.views[operand.index].base
                            : operand;
      if (base.kind != GDN_OPERAND_ARGUMENT)
        continue;
      const ArgumentTable &own = function.arguments[base.index];
      argument.name = own.name;
      argument.flags |= own.flags & GDN_ARG_FLAG_OPTIONAL;
    }
}

llvm::Expected<ModuleTable> host::describeModule(ModuleOp module) {
  ModuleTable table;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto launch = function->getAttrOfType<warp::LaunchAttr>(
        warp::WarpDialect::getLaunchAttrName());
    if (!launch)
      continue;
    FailureOr<KernelTable> kernel = describeKernel(function, launch);
    if (failed(kernel))
      return llvm::createStringError("expected kernels that the runtime can "
                                     "launch, got @" +
                                     function.getSymName());
    table.kernels.push_back(std::move(*kernel));
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    FailureOr<FunctionTable> result = describeFunction(function, table.kernels);
    if (failed(result))
      return llvm::createStringError("expected a function that only launches "
                                     "kernels, got @" +
                                     function.getSymName());
    noteArguments(*result, table.kernels);
    table.functions.push_back(std::move(*result));
  }
  if (table.functions.empty())
    return llvm::createStringError(
        "expected a public function that launches kernels, got none");
  return std::move(table);
}
