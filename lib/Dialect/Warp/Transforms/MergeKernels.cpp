//===- MergeKernels.cpp - Equal kernels become one ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
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

/// Lets what names a key of `firsts` name its value, in a walk for all of them.
static LogicalResult
replaceUses(ModuleOp module, const DenseMap<StringAttr, StringAttr> &firsts) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(&module.getBodyRegion());
  if (!uses)
    return failure();
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](SymbolRefAttr use) -> std::optional<Attribute> {
    StringAttr first = firsts.lookup(use.getRootReference());
    if (!first)
      return std::nullopt;
    return SymbolRefAttr::get(first, use.getNestedReferences());
  });
  for (const SymbolTable::SymbolUse &use : *uses)
    if (firsts.contains(use.getSymbolRef().getRootReference()))
      replacer.replaceElementsIn(use.getUser());
  return success();
}

namespace {
struct MergeKernels : gdn::warp::impl::MergeKernelsPassBase<MergeKernels> {
  void runOnOperation() override {
    SmallVector<KernelOp> known, equal;
    DenseMap<StringAttr, StringAttr> firsts;
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      auto *first = llvm::find_if(
          known, [&](KernelOp one) { return areEqual(one, kernel); });
      if (first == known.end()) {
        known.push_back(kernel);
        continue;
      }
      equal.push_back(kernel);
      firsts[kernel.getSymNameAttr()] = first->getSymNameAttr();
    }
    if (equal.empty())
      return markAllAnalysesPreserved();
    if (failed(replaceUses(getOperation(), firsts))) {
      KernelOp kernel = equal.front();
      kernel.emitOpError("expected uses that can be found, to be those of ")
          << firsts[kernel.getSymNameAttr()] << ", which is equal";
      return signalPassFailure();
    }
    for (KernelOp kernel : equal)
      kernel.erase();
  }
};
} // namespace
