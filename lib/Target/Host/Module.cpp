//===- Module.cpp - The tables of a module --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Error.h"

#include <map>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// What functions call the arguments of kernels: by kernel and argument.
using CallersNames =
    std::map<std::pair<unsigned, size_t>, llvm::SmallSetVector<StringRef, 1>>;

/// Takes note of what a function calls the arguments of its kernels. A kernel
/// takes no array that may be absent in a call of the function, unless it may
/// be absent for the kernel.
static void noteArguments(const FunctionTable &function,
                          MutableArrayRef<KernelTable> kernels,
                          CallersNames &names) {
  for (const LaunchTable &launch : function.launches)
    for (auto [number, operand] : llvm::enumerate(launch.operands)) {
      GdnOperand base = operand.kind == GDN_OPERAND_VIEW
                            ? function.views[operand.index].base
                            : operand;
      auto &known = names[{launch.kernel, number}];
      if (base.kind != GDN_OPERAND_ARGUMENT) {
        known.insert(StringRef());
        continue;
      }
      const ArgumentTable &own = function.arguments[base.index];
      known.insert(own.name);
      kernels[launch.kernel].arguments[number].flags |=
          own.flags & GDN_ARG_FLAG_OPTIONAL;
    }
}

/// Calls the arguments of a kernel what all that launch it call them.
static void nameArguments(MutableArrayRef<KernelTable> kernels,
                          const CallersNames &names) {
  for (const auto &[place, known] : names)
    if (known.size() == 1 && !known.front().empty())
      kernels[place.first].arguments[place.second].name = known.front().str();
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
    table.functions.push_back(std::move(*result));
  }
  for (auto entry : module.getOps<EntryOp>()) {
    FailureOr<EntryTable> result = describeEntry(entry, table.functions);
    if (failed(result))
      return llvm::createStringError("expected an entry of functions of the "
                                     "module, got @" +
                                     entry.getSymName());
    table.entries.push_back(std::move(*result));
  }
  CallersNames names;
  for (const FunctionTable &function : table.functions)
    noteArguments(function, table.kernels, names);
  nameArguments(table.kernels, names);
  if (table.functions.empty())
    return llvm::createStringError(
        "expected a public function that launches kernels, got none");
  return std::move(table);
}
