//===- InferLayouts.cpp - Encodings and views for the values of a kernel -===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seeds: a product's result is a fragment, its right operand lies in shared
// memory; what a warp works on alone is a vector over its lanes. A field of a
// channel lies as the array does that it comes from or goes to, or as the op
// asks that takes it. The rest follows operand by operand. A value in a channel
// is read where it is used, as what the use asks for.
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "RoleLayouts.h"
#include "SpreadLayouts.h"

#include "gdn/Conversion/Passes.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_INFERLAYOUTSPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Whether values of the kernel have their layouts already.
static bool hasLayouts(KernelOp kernel) {
  auto hasLayout = [](Type type) {
    if (auto channel = dyn_cast<ChannelType>(type))
      return llvm::any_of(channel.getFields(), llvm::IsaPred<ViewType>);
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getEncoding();
  };
  return kernel
      .walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), hasLayout)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Lanes that share a row of the role's tiles; 0 where they are fragments.
static int64_t getLanesPerRow(KernelOp kernel, RoleOp role) {
  auto schedule = kernel->getAttrOfType<ScheduleAttr>(ScheduleAttr::kName);
  for (RoleSpecAttr spec : schedule.getRoles())
    if (spec.getName() == role.getName())
      return spec.getLanesPerRow();
  return 0;
}

namespace {
struct InferLayouts : gdn::impl::InferLayoutsPassBase<InferLayouts> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // Without a schedule a kernel is in the explicit form already.
    if (!kernel->hasAttr(ScheduleAttr::kName) || hasLayouts(kernel))
      return;
    FieldLayouts fields(kernel);
    for (auto role : kernel.getBody().getOps<RoleOp>()) {
      int64_t lanes = getLanesPerRow(kernel, role);
      if (failed(lanes ? SpreadLayouts(role, lanes).run()
                       : RoleLayouts(role, fields).run()))
        return signalPassFailure();
    }
    fields.apply();
    LayoutCounts counts = reportLayouts(kernel);
    numFragments += counts.fragments;
    numVectors += counts.vectors;
  }
};
} // namespace
