//===- OrderConstants.cpp - Constants in the order of their uses ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "gdn-tile-order-constants"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_ORDERCONSTANTSPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

namespace {
struct OrderConstants
    : gdn::tile::impl::OrderConstantsPassBase<OrderConstants> {
  void runOnOperation() override;
};
} // namespace

/// Whether nobody outside of the module, or who writes, knows the array.
static bool isConstant(memref::GlobalOp global) {
  return global && global.isPrivate() && global.getConstant() &&
         !global.isExternal();
}

void OrderConstants::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  SetVector<memref::GlobalOp> constants;
  SmallVector<memref::GetGlobalOp> uses;
  module.walk([&](memref::GetGlobalOp use) {
    auto global = symbols.lookup<memref::GlobalOp>(use.getName());
    if (!isConstant(global))
      return;
    constants.insert(global);
    uses.push_back(use);
  });
  // No name is free before all are.
  DenseMap<StringRef, memref::GlobalOp> owners;
  SmallVector<std::string> names;
  for (memref::GlobalOp constant : constants)
    names.push_back(constant.getSymName().str());
  for (auto [name, constant] : llvm::zip(names, constants)) {
    owners[name] = constant;
    symbols.remove(constant);
    constant->remove();
  }
  Block::iterator place = module.getBody()->begin();
  for (memref::GlobalOp constant : constants) {
    constant.setSymName("__constant");
    symbols.insert(constant, place);
  }
  for (memref::GetGlobalOp use : uses)
    use.setName(owners.lookup(use.getName()).getSymName());
}
