//===- WriteKernel.cpp - The kernel of a partitioned program --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The array's type as a kernel takes it: a pointer to the first element.
static Type withoutOffset(Value array) {
  auto type = cast<MemRefType>(array.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), 0, strides));
}

KernelOp Partition::createKernel(OpBuilder &b, tile::LaunchOp launch) {
  SmallVector<Type> types = llvm::map_to_vector(
      program.getArrays(), [](Value array) { return withoutOffset(array); });
  types.push_back(b.getI64Type());
  if (Value bounds = launch.getCuSeqlens()) {
    // Any stride: boundaries of 64 bits are ones of 32 bits with a stride of 2.
    auto shaped = cast<ShapedType>(bounds.getType());
    types.push_back(MemRefType::get(
        shaped.getShape(), shaped.getElementType(),
        StridedLayoutAttr::get(b.getContext(), 0, ShapedType::kDynamic)));
  }
  auto kernel =
      KernelOp::create(b, program.getLoc(), program.getSymName(), types,
                       schedule.getThreads(), /*shared_bytes=*/0,
                       /*min_ctas=*/1, schedule.getCluster());
  kernel->setAttr(ScheduleAttr::kName, schedule);
  kernel.setPersistent(schedule.getPersistent());
  if (schedule.getCloneLikelyPath())
    kernel->setAttr(WarpDialect::getCloneLikelyPathAttrName(), b.getUnitAttr());
  if (ArrayAttr names = program.getArgNamesAttr()) {
    SmallVector<Attribute> all(names.begin(), names.end());
    all.push_back(b.getStringAttr("tokens"));
    if (launch.getCuSeqlens())
      all.push_back(b.getStringAttr("cu_seqlens"));
    kernel.setArgNamesAttr(b.getArrayAttr(all));
  }
  return kernel;
}

LogicalResult Partition::write(OpBuilder &b, tile::LaunchOp launch) {
  KernelOp kernel = createKernel(b, launch);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  Location loc = program.getLoc();
  // What follows reads arrays, cu_seqlens first.
  GridDependencyWaitOp::create(b, loc);
  WorkItemWriter workItems(program, launch, kernel);
  if (failed(workItems.prepare(b, schedule)))
    return failure();
  if (schedule.getVTiles() != 1) {
    // A CTA takes all parts of a head.
    OpBuilder host(launch);
    launch.getGridMutable()[2].set(
        arith::ConstantIndexOp::create(host, launch.getLoc(), 1));
  }
  // Without a loop over work items all roles have the same one.
  IRMapping workItem =
      schedule.getPersistent()
          ? workItems.getShared()
          : workItems.write(b,
                            toI32(b, loc, IdOp::create(b, loc, IdKind::CTA)));
  for (auto [number, types] : llvm::enumerate(fieldTypes)) {
    ChannelSpecAttr spec = schedule.getChannels()[number];
    channels.emplace_back();
    if (!types.empty())
      channels.back() = ChannelOp::create(
          b, loc, ChannelType::get(b.getContext(), types),
          b.getStringAttr(spec.getName()), b.getI64IntegerAttr(spec.getDepth()),
          b.getI64IntegerAttr(getChunksOfSlot(number)), getTurn(number),
          /*offset=*/IntegerAttr(),
          /*barriers=*/IntegerAttr(),
          /*places=*/DenseI64ArrayAttr(), /*slot_bytes=*/IntegerAttr());
  }
  for (auto [number, spec] : llvm::enumerate(schedule.getRoles())) {
    int64_t first = getFirstWarp(number);
    auto role = RoleOp::create(b, loc, spec.getName(), first, spec.getWarps(),
                               b.getI64IntegerAttr(spec.getRegisters()));
    if (spec.getRoundRobin())
      role->setAttr(WarpDialect::getRoundRobinAttrName(), b.getUnitAttr());
    if (spec.getAlternateCtas())
      role->setAttr(WarpDialect::getAlternateCtasAttrName(), b.getUnitAttr());
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(&role.getBody().emplaceBlock());
    Value vTile;
    if (spec.getWarpgroupPerVTile() || spec.getRoundRobin()) {
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value warp = IdOp::create(b, loc, IdKind::Warp);
      vTile = arith::SubIOp::create(b, loc, warp, constant(first));
      if (spec.getWarpgroupPerVTile())
        vTile = arith::DivUIOp::create(b, loc, vTile,
                                       constant(kSm90a.warpgroupWarps));
    }
    writeRole(number, b, workItems, workItem, vTile);
  }
  return success();
}
