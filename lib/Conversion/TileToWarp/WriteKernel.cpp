//===- WriteKernel.cpp - The kernel of a partitioned program --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"
#include "RoleWriter.h"
#include "WorkItemWriter.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The type of an input or output as a kernel takes it: an array as a pointer
/// to its first element, which keeps a dense layout; an index in 64 bits.
static Type getKernelType(Value argument) {
  if (argument.getType().isIndex())
    return IntegerType::get(argument.getContext(), 64);
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || type.getLayout().isIdentity())
    return argument.getType();
  auto [strides, offset] = type.getStridesAndOffset();
  return MemRefType::get(type.getShape(), type.getElementType(),
                         StridedLayoutAttr::get(type.getContext(), 0, strides));
}

static KernelOp createKernel(const Partition &partition, OpBuilder &b,
                             tile::LaunchOp launch) {
  tile::ProgramOp program = partition.program;
  ScheduleAttr schedule = partition.schedule;
  SmallVector<Type> types =
      llvm::map_to_vector(program.getArrays(), [](Value argument) {
        return getKernelType(argument);
      });
  types.push_back(b.getI64Type());
  if (Value bounds = launch.getCuSeqlens()) {
    // Any stride: boundaries of 64 bits are ones of 32 bits with a stride of 2.
    auto shaped = cast<ShapedType>(bounds.getType());
    types.push_back(MemRefType::get(
        shaped.getShape(), shaped.getElementType(),
        StridedLayoutAttr::get(b.getContext(), 0, ShapedType::kDynamic)));
  }
  auto kernel = KernelOp::create(
      b, program.getLoc(), program.getSymName(), types, schedule.getThreads(),
      /*shared_bytes=*/0, schedule.getMinCtas(), schedule.getCluster());
  kernel->setAttr(ScheduleAttr::kName, schedule);
  if (Attribute target = program->getAttr(TargetAttr::kName))
    kernel->setAttr(TargetAttr::kName, target);
  if (Attribute stage = program->getAttr(tile::TileDialect::getStageAttrName()))
    kernel->setAttr(WarpDialect::getStageAttrName(), stage);
  kernel.setPersistent(schedule.getPersistent());
  if (ArrayAttr names = program.getArgNamesAttr()) {
    SmallVector<Attribute> all(names.begin(), names.end());
    all.push_back(b.getStringAttr("tokens"));
    if (launch.getCuSeqlens())
      all.push_back(b.getStringAttr("cu_seqlens"));
    kernel.setArgNamesAttr(b.getArrayAttr(all));
  }
  return kernel;
}

/// The kernel's channels.
static SmallVector<Value> createChannels(const Partition &partition,
                                         OpBuilder &b) {
  SmallVector<Value> channels;
  for (auto [number, channel] : llvm::enumerate(partition.channels))
    channels.push_back(ChannelOp::create(
        b, partition.getProgram().getLoc(),
        ChannelType::get(b.getContext(), channel.fields),
        b.getStringAttr(channel.name),
        b.getI64IntegerAttr(partition.getDepth(number)),
        b.getI64IntegerAttr(partition.getChunksOfSlot(number)),
        partition.getTurn(number),
        /*offset=*/IntegerAttr(), /*barriers=*/IntegerAttr(),
        /*places=*/DenseI64ArrayAttr(), /*slot_bytes=*/IntegerAttr()));
  return channels;
}

/// The V tile of what runs, or the number of its turn, where a role divides by
/// it.
static Value createVTile(OpBuilder &b, Location loc, RoleSpecAttr spec,
                         int64_t firstWarp) {
  if (!spec.getWarpgroupPerVTile() && !spec.getRoundRobin())
    return {};
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value warp = IdOp::create(b, loc, IdKind::Warp);
  Value vTile = arith::SubIOp::create(b, loc, warp, constant(firstWarp));
  int64_t together = spec.getWarpgroupPerVTile() ? format::kWarpgroupWarps
                                                 : spec.getWarpsPerTurn();
  if (together != 1)
    vTile = arith::DivUIOp::create(b, loc, vTile, constant(together));
  return vTile;
}

/// Of a kernel in clusters that may run beside the one before it: waits if both
/// do not fit. While they do, each has pairs of multiprocessors of its own;
/// CTAs of both on one pair slow each other by more than a half.
static void waitUnlessBothFit(OpBuilder &b, Location loc,
                              tile::ProgramOp program) {
  int64_t half = getArch(program).multiprocessors / 2;
  Value isLarge = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ugt, IdOp::create(b, loc, IdKind::CTACount),
      arith::ConstantIndexOp::create(b, loc, half));
  auto branch = scf::IfOp::create(b, loc, isLarge, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  GridDependencyWaitOp::create(b, loc, /*then_launch=*/false,
                               /*launch_later=*/false, /*last_cta=*/false);
}

/// Whether a kernel in clusters that another one runs beside begins when the
/// one before it has ended. While that ends, multiprocessors are not free in
/// pairs, and CTAs of both come to lie on one. Segments are more than half of
/// the multiprocessors in most cases, and then run one after the other.
static bool beginsAlone(tile::LaunchOp launch, ScheduleAttr schedule) {
  if (!launch->hasAttr(tile::TileDialect::getFirstOfTwoAttrName()) ||
      schedule.getCluster() <= 1)
    return false;
  Value bounds = launch.getCuSeqlens();
  return !bounds || !bounds.getDefiningOp<tile::LaunchOp>();
}

LogicalResult gdn::writeKernel(const Partition &partition, OpBuilder &b,
                               tile::LaunchOp launch) {
  ScheduleAttr schedule = partition.schedule;
  KernelOp kernel = createKernel(partition, b, launch);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  Location loc = partition.getProgram().getLoc();
  // What follows reads arrays, cu_seqlens first.
  WorkItemWriter workItems(partition.program, launch, kernel);
  bool isBeside = launch->hasAttr(tile::TileDialect::getBesideAttrName());
  bool mayLeaveEarly = !schedule.getPersistent() && workItems.mayLeaveEarly(),
       waitsFirst = launch->hasAttr(tile::TileDialect::getFirstOfTwoAttrName()),
       mayHoldBack = mayLeaveEarly && !waitsFirst && workItems.mayHoldBack(),
       reports = waitsFirst && workItems.mayReport();
  // It would let others read the last call's reports.
  if (reports && isBeside)
    return partition.getProgram().emitOpError(
        "expected a program that reports not to run beside the one in front");
  auto wait = [&] {
    bool thenLaunch = !reports && (waitsFirst || mayHoldBack);
    if (!beginsAlone(launch, schedule))
      GridDependencyWaitOp::create(b, loc, thenLaunch, /*launch_later=*/reports,
                                   /*last_cta=*/false);
    else if (thenLaunch)
      LaunchDependentsOp::create(b, loc);
  };
  if (isBeside || (mayLeaveEarly && !waitsFirst && !mayHoldBack))
    LaunchDependentsOp::create(b, loc);
  if (isBeside && schedule.getCluster() > 1)
    waitUnlessBothFit(b, loc, partition.getProgram());
  if (!isBeside && !mayLeaveEarly)
    wait();
  if (failed(workItems.prepare(b, schedule)) ||
      failed(workItems.leaveUnread(b, isBeside)))
    return failure();
  if (schedule.getVTiles() != 1) {
    // A CTA takes all V tiles of a head.
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
  // Who reads them begins when each CTA has.
  if (reports) {
    if (failed(workItems.beginReports(b, workItem)))
      return failure();
    LaunchDependentsOp::create(b, loc);
  }
  if (mayLeaveEarly) {
    if ((mayHoldBack && failed(workItems.launchBeside(b, workItem))) ||
        failed(workItems.enter(b, workItem, isBeside, /*early=*/true)))
      return failure();
    if (!isBeside)
      wait();
  }
  if (!schedule.getPersistent())
    workItems.clearOutside(b, workItem);
  if (!schedule.getPersistent() &&
      failed(workItems.enter(b, workItem, isBeside)))
    return failure();
  SmallVector<Value> channels = createChannels(partition, b);
  for (auto [number, spec] : llvm::enumerate(schedule.getRoles())) {
    int64_t first = partition.getFirstWarp(number);
    auto role = RoleOp::create(b, loc, spec.getName(), first, spec.getWarps(),
                               b.getI64IntegerAttr(spec.getRegisters()));
    if (spec.getRoundRobin())
      role->setAttr(WarpDialect::getRoundRobinAttrName(),
                    spec.getWarpsPerTurn() == 1
                        ? Attribute(b.getUnitAttr())
                        : b.getI64IntegerAttr(spec.getWarpsPerTurn()));
    if (spec.getAlternateCtas())
      role->setAttr(WarpDialect::getAlternateCtasAttrName(), b.getUnitAttr());
    if (spec.getShareCode())
      role->setAttr(WarpDialect::getShareCodeAttrName(), b.getUnitAttr());
    if (spec.getLateAddresses())
      role->setAttr(WarpDialect::getLateAddressesAttrName(), b.getUnitAttr());
    if (spec.getLoopPieces())
      role->setAttr(WarpDialect::getLoopPiecesAttrName(), b.getUnitAttr());
    if (spec.getHandOnEarly())
      role->setAttr(WarpDialect::getHandOnEarlyAttrName(), b.getUnitAttr());
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(&role.getBody().emplaceBlock());
    Value vTile = createVTile(b, loc, spec, first);
    RoleWriter(partition, number, channels, b, workItems)
        .write(workItem, vTile);
  }
  workItems.leave(b);
  // The kernels behind this one wait for it alone. A CTA that waits keeps its
  // multiprocessor from CTAs that have not begun: so the last one does.
  if (isBeside)
    GridDependencyWaitOp::create(b, loc, /*then_launch=*/false,
                                 /*launch_later=*/false, /*last_cta=*/true);
  return success();
}
