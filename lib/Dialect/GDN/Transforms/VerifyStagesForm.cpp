//===- VerifyStagesForm.cpp - Check that a module is at the stages level --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

#define DEBUG_TYPE "gdn-verify-stages-form"

namespace mlir::gdn {
#define GEN_PASS_DEF_VERIFYSTAGESFORMPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
struct VerifyStagesForm
    : gdn::impl::VerifyStagesFormPassBase<VerifyStagesForm> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (!isa<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp,
               ChunkGatedDeltaRuleBwdOp>(op))
        return WalkResult::advance();
      op->emitOpError("expected only stage ops of gdn at the stages level, got "
                      "a layer op; run gdn-plan-stages first");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
