//===- MergeKernels.cpp - Equal kernels become one ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_MERGEKERNELSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// What a kernel says but for its name.
static std::string printWithoutName(KernelOp kernel) {
  std::string text, name = kernel.getSymName().str();
  kernel.setSymName("kernel");
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
  kernel.setSymName(name);
  return text;
}

namespace {
struct MergeKernels : gdn::warp::impl::MergeKernelsPassBase<MergeKernels> {
  void runOnOperation() override {
    llvm::StringMap<KernelOp> known;
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      auto [first, isNew] = known.try_emplace(printWithoutName(kernel), kernel);
      if (isNew)
        continue;
      if (failed(SymbolTable::replaceAllSymbolUses(
              kernel, first->second.getSymNameAttr(), getOperation())))
        return signalPassFailure();
      kernel.erase();
    }
  }
};
} // namespace
