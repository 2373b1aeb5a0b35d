//===- VerifyTileForm.cpp - Check that a module is at the tile level ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#define DEBUG_TYPE "gdn-tile-verify-form"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_VERIFYTILEFORMPASS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// Dialects of which a program may hold every op.
static constexpr StringLiteral kProgramDialects[] = {"arith", "gdn_tile",
                                                     "math", "scf", "tensor"};
/// Further ops that a program may hold: products and shapes, and scratch memory
/// of one work item.
static constexpr StringLiteral kProgramOps[] = {
    "linalg.broadcast", "linalg.contract",  "linalg.fill",  "linalg.generic",
    "linalg.reduce",    "linalg.transpose", "linalg.yield", "memref.alloc",
    "memref.dealloc",   "memref.dim",       "memref.load"};
/// The ops of gdn_tile that stand outside programs.
static constexpr StringLiteral kTopLevelOps[] = {"gdn_tile.launch",
                                                 "gdn_tile.program"};

/// Checks that a program may hold `op`.
static LogicalResult verifyIsAllowed(Operation *op) {
  StringRef name = op->getName().getStringRef();
  bool allowed =
      llvm::is_contained(kProgramDialects, op->getName().getDialectNamespace());
  if (llvm::is_contained(kProgramOps, name) ||
      (allowed && !llvm::is_contained(kTopLevelOps, name)))
    return success();
  return op->emitOpError("expected an op of the tile level in a program (")
         << llvm::join(ArrayRef(kProgramDialects), ", ") << "; "
         << llvm::join(ArrayRef(kProgramOps), ", ") << "), got " << name;
}

/// Checks that `op` names its step if it has one.
static LogicalResult verifyStep(Operation *op) {
  if (!TileDialect::needsStep(op))
    return success();
  StringRef attribute = TileDialect::getStepAttrName();
  auto step = op->getAttrOfType<StringAttr>(attribute);
  if (step && llvm::is_contained(TileDialect::getSteps(), step.getValue()))
    return success();
  InFlightDiagnostic error = op->emitOpError("expected ")
                             << attribute << " to be one of "
                             << llvm::join(TileDialect::getSteps(), ", ")
                             << ", got ";
  if (Attribute value = op->getAttr(attribute))
    return error << value;
  return error << "none";
}

/// Whether the C library has a function of this name, which the code that is
/// made calls, or others in the process do.
static bool isInCLibrary(StringRef name) {
  static const llvm::TargetLibraryInfoImpl library{
      llvm::Triple(llvm::sys::getProcessTriple())};
  llvm::LibFunc function;
  return name == "abort" || library.getLibFunc(name, function);
}

/// Checks an op outside programs: launches and upstream ops.
static LogicalResult verifyOutside(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (function && !function.isExternal() && isInCLibrary(function.getName()))
    return op->emitOpError("expected a name that no function of the C library "
                           "has, got '")
           << function.getName() << "'";
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "gdn" && !isa<gdn::EntryOp, gdn::VariantOp>(op))
    return op->emitOpError("expected no op of gdn at the tile level, got one; "
                           "run gdn-plan-stages and convert-gdn-to-tile first");
  if (dialect == TileDialect::getDialectNamespace() &&
      !llvm::is_contained(kTopLevelOps, op->getName().getStringRef()))
    return op->emitOpError("expected to be in a program, got parent ")
           << op->getParentOp()->getName();
  return success();
}

namespace {
struct VerifyTileForm
    : gdn::tile::impl::VerifyTileFormPassBase<VerifyTileForm> {
  void runOnOperation() override {
    bool failed = false;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<ProgramOp>(op)) {
        op->walk([&](Operation *inner) {
          if (inner != op)
            failed |= !(succeeded(verifyIsAllowed(inner)) &&
                        succeeded(verifyStep(inner)));
        });
        return WalkResult::skip();
      }
      failed |= !succeeded(verifyOutside(op));
      return WalkResult::advance();
    });
    if (failed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
