//===- PrepareBarriers.cpp - Barriers before roles begin ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareBarriers.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::gdn::warp;

static Value isBelow(OpBuilder &b, Location loc, Value number, int64_t limit) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, number,
                               arith::ConstantIndexOp::create(b, loc, limit));
}

/// The first thread of a warp prepares the warp's part of the barriers. Their
/// addresses are constants. Computed from the number of a thread, they took a
/// register of every role, and kernels spilled.
static void prepareInWarp(OpBuilder &b, Location loc,
                          ArrayRef<PreparedBarrier> barriers) {
  for (const PreparedBarrier &barrier : barriers) {
    Value at = arith::ConstantIndexOp::create(b, loc, barrier.offset);
    BarrierInitOp::create(b, loc, BarrierOp::create(b, loc, at),
                          barrier.arrivals);
  }
}

/// Shares barriers among warps [first, end). Each branch halves the warps: LLVM
/// would turn a chain of comparisons into a switch on a 64-bit number.
static void prepareInWarps(OpBuilder &b, Location loc, Value thread,
                           int64_t first, int64_t end,
                           ArrayRef<PreparedBarrier> barriers) {
  if (end - first == 1)
    return prepareInWarp(b, loc, barriers);
  int64_t middle = (first + end) / 2;
  size_t before = barriers.size() * (middle - first) / (end - first);
  Value isBefore = isBelow(b, loc, thread, middle * format::kWarpThreads);
  auto halves = scf::IfOp::create(b, loc, isBefore, /*withElseRegion=*/true);
  OpBuilder below = halves.getThenBodyBuilder(),
            above = halves.getElseBodyBuilder();
  prepareInWarps(below, loc, thread, first, middle,
                 barriers.take_front(before));
  prepareInWarps(above, loc, thread, middle, end, barriers.drop_front(before));
}

void gdn::warp::addBarriers(ClusterSendOp sum,
                            SmallVectorImpl<PreparedBarrier> &barriers) {
  // The first one has them for all sums of its role.
  if (!sum.getPlace() || (*sum.getPlace())[2] != 0)
    return;
  int64_t offset = (*sum.getPlace())[1], others = sum.getItems() - 1;
  barriers.push_back({offset, 1});
  barriers.push_back(
      {offset + format::kBarrierBytes, others * format::kWarpgroupWarps});
}

void gdn::warp::prepareBarriers(KernelOp kernel,
                                ArrayRef<PreparedBarrier> barriers) {
  Location loc = kernel.getLoc();
  auto b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  int64_t warps = llvm::bit_floor(static_cast<uint64_t>(std::min<int64_t>(
      format::kWarpgroupWarps, kernel.getThreads() / format::kWarpThreads)));
  Value thread = IdOp::create(b, loc, IdKind::Thread);
  // Threads 0, 32, 64 and 96 have no bits set but those of the warp's number.
  int64_t otherBits = ~((warps - 1) * format::kWarpThreads);
  Value others = arith::AndIOp::create(
      b, loc, thread, arith::ConstantIndexOp::create(b, loc, otherBits));
  Value prepares = isBelow(b, loc, others, 1);
  auto branch = scf::IfOp::create(b, loc, prepares, /*withElseRegion=*/false);
  b = branch.getThenBodyBuilder();
  prepareInWarps(b, loc, thread, 0, warps, barriers);
  FenceOp::create(b, loc, FenceKind::BarrierInit);
}
