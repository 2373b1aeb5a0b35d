//===- AttachTarget.cpp - Which chip programs and kernels are for ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_ATTACHTARGETPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
struct AttachTarget : gdn::impl::AttachTargetPassBase<AttachTarget> {
  using AttachTargetPassBase::AttachTargetPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto *dialect = getContext().getLoadedDialect<warp::WarpDialect>();
    if (!dialect->findArch(chip)) {
      module.emitError("expected a chip of ")
          << dialect->listArchs() << ", got " << chip;
      return signalPassFailure();
    }
    for (auto program : module.getOps<tile::ProgramOp>())
      if (!warp::format::isName(program.getSymName())) {
        program.emitOpError("expected a name that PTX can have (")
            << warp::format::kNames << "), got '" << program.getSymName()
            << "'; it begins with that of its function";
        return signalPassFailure();
      }
    auto target = warp::TargetAttr::get(&getContext(), chip);
    StringRef name = warp::TargetAttr::kName;
    for (Operation &op : *module.getBody())
      if (isa<tile::ProgramOp, warp::KernelOp>(op) && !op.hasAttr(name))
        op.setAttr(name, target);
  }
};
} // namespace
