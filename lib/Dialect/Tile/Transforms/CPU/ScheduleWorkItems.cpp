//===- ScheduleWorkItems.cpp - Threads take items as they become free -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/OpenMP/OpenMPDialect.h"

#define DEBUG_TYPE "gdn-tile-schedule-work-items"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_SCHEDULEWORKITEMSPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;

namespace {
struct ScheduleWorkItems
    : gdn::tile::impl::ScheduleWorkItemsPassBase<ScheduleWorkItems> {
  void runOnOperation() override {
    getOperation()->walk([](omp::WsloopOp loop) {
      loop.setScheduleKind(omp::ClauseScheduleKind::Dynamic);
    });
  }
};
} // namespace
