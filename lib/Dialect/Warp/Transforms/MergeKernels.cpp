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
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_MERGEKERNELSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// Whether two kernels are equal but for their names and locations.
static bool areEqual(KernelOp one, KernelOp other) {
  StringAttr name = other.getSymNameAttr();
  other.setSymNameAttr(one.getSymNameAttr());
  bool isEqual = OperationEquivalence::isEquivalentTo(
      one, other, OperationEquivalence::IgnoreLocations);
  other.setSymNameAttr(name);
  return isEqual;
}

namespace {
struct MergeKernels : gdn::warp::impl::MergeKernelsPassBase<MergeKernels> {
  void runOnOperation() override {
    SmallVector<KernelOp> known;
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      auto *first = llvm::find_if(
          known, [&](KernelOp one) { return areEqual(one, kernel); });
      if (first == known.end()) {
        known.push_back(kernel);
        continue;
      }
      if (failed(SymbolTable::replaceAllSymbolUses(
              kernel, first->getSymNameAttr(), getOperation()))) {
        kernel.emitOpError("expected uses that can be found, to be those of ")
            << first->getSymNameAttr() << ", which is equal";
        return signalPassFailure();
      }
      kernel.erase();
    }
  }
};
} // namespace
