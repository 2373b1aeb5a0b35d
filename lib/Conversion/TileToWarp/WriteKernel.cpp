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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The heads of the grid as the kernel knows them: a constant, or an extent of
/// one of its arrays. Null if they are neither.
static Value writeHeads(tile::LaunchOp launch, KernelOp kernel, OpBuilder &b) {
  Value heads = launch.getGrid()[1];
  if (std::optional<int64_t> known = getConstantIntValue(heads))
    return arith::ConstantIndexOp::create(b, launch.getLoc(), *known);
  auto dim = heads.getDefiningOp<tensor::DimOp>();
  auto input = dim ? llvm::find(launch.getInputs(), dim.getSource())
                   : launch.getInputs().end();
  if (input == launch.getInputs().end() || !dim.getConstantIndex())
    return {};
  Value array = kernel.getBody().getArgument(
      std::distance(launch.getInputs().begin(), input));
  return memref::DimOp::create(b, launch.getLoc(), array,
                               *dim.getConstantIndex());
}

/// A quotient and a rest of numbers below 2^32: a GPU divides those alone, and
/// by a constant anything.
static std::pair<Value, Value> writeDivision(OpBuilder &b, Location loc,
                                             Value number, Value divisor) {
  if (getConstantIntValue(divisor)) {
    Value rest = arith::RemUIOp::create(b, loc, number, divisor);
    return {arith::DivUIOp::create(b, loc, number, divisor), rest};
  }
  auto cast = [&](Value value, Type type) -> Value {
    return arith::IndexCastUIOp::create(b, loc, type, value);
  };
  number = cast(number, b.getI32Type());
  divisor = cast(divisor, b.getI32Type());
  Value quotient = arith::DivUIOp::create(b, loc, number, divisor);
  Value rest = arith::RemUIOp::create(b, loc, number, divisor);
  return {cast(quotient, b.getIndexType()), cast(rest, b.getIndexType())};
}

/// The item of this CTA: the program's last block arguments. Parts are next to
/// each other in the grid, then heads, so that neighbours share keys.
static IRMapping writeItem(Partition &partition, KernelOp kernel, OpBuilder &b,
                           Value heads, int64_t parts) {
  tile::ProgramOp program = partition.program;
  Location loc = program.getLoc();
  IRMapping item;
  for (auto [from, to] :
       llvm::zip(program.getArrays(), kernel.getBody().getArguments()))
    item.map(from, to);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value index = IdOp::create(b, loc, IdKind::CTA);
  if (parts > 1 && partition.schedule.getParts() == 1) {
    item.map(program.getPart(),
             Value(arith::RemUIOp::create(b, loc, index, constant(parts))));
    index = arith::DivUIOp::create(b, loc, index, constant(parts));
  } else if (partition.schedule.getParts() == 1) {
    item.map(program.getPart(), constant(0));
  }
  auto [sequence, head] = writeDivision(b, loc, index, heads);
  unsigned next = program.getArrays().size();
  bool isPacked = kernel.getBody().getNumArguments() > next + 1;
  // A long sequence that began last would keep the others waiting.
  if (isPacked)
    sequence = LongestOp::create(b, loc, kernel.getBody().getArgument(next + 1),
                                 sequence);
  item.map(program.getHead(), head);
  item.map(program.getSequence(), sequence);
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  };
  Value tokens = kernel.getBody().getArgument(next);
  if (!isPacked) {
    item.map(program.getBatch(), sequence);
    item.map(program.getBegin(), constant(0));
    item.map(program.getEnd(), toIndex(tokens));
    return item;
  }
  Value bounds = kernel.getBody().getArgument(next + 1);
  auto bound = [&](Value at) {
    return toIndex(memref::LoadOp::create(b, loc, bounds, at));
  };
  item.map(program.getBatch(), constant(0));
  item.map(program.getBegin(), bound(sequence));
  item.map(program.getEnd(),
           bound(arith::AddIOp::create(b, loc, sequence, constant(1))));
  return item;
}

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
                       schedule.getThreads(), /*shared_bytes=*/0);
  kernel->setAttr(ScheduleAttr::kName, schedule);
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
  std::optional<int64_t> parts = getConstantIntValue(launch.getGrid()[2]);
  if (!parts)
    return launch.emitOpError("expected a constant number of parts in the "
                              "grid");
  if (schedule.getParts() != 1 && schedule.getParts() != *parts)
    return launch.emitOpError("expected ")
           << schedule.getParts()
           << " parts in the grid, as the schedule folds, got " << *parts;
  if (schedule.getParts() != 1) {
    // A CTA takes all parts of a head.
    OpBuilder host(launch);
    launch.getGridMutable()[2].set(
        arith::ConstantIndexOp::create(host, launch.getLoc(), 1));
  }
  KernelOp kernel = createKernel(b, launch);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  Location loc = program.getLoc();
  Value heads = writeHeads(launch, kernel, b);
  if (!heads)
    return launch.emitOpError("expected a number of heads in the grid that is "
                              "a constant or the extent of an input");
  IRMapping item = writeItem(*this, kernel, b, heads, *parts);
  for (auto [number, types] : llvm::enumerate(fieldTypes)) {
    ChannelPlanAttr plan = schedule.getChannels()[number];
    channels.emplace_back();
    if (!types.empty())
      channels.back() = ChannelOp::create(
          b, loc, ChannelType::get(b.getContext(), types),
          b.getStringAttr(plan.getName()), b.getI64IntegerAttr(plan.getDepth()),
          b.getI64IntegerAttr(getChunksOfSlot(number)),
          /*offset=*/IntegerAttr(),
          /*barriers=*/IntegerAttr(),
          /*places=*/DenseI64ArrayAttr(), /*slot_bytes=*/IntegerAttr());
  }
  int64_t first = 0;
  for (auto [number, plan] : llvm::enumerate(schedule.getRoles())) {
    auto role = RoleOp::create(b, loc, plan.getName(), first, plan.getWarps(),
                               b.getI64IntegerAttr(plan.getRegisters()));
    if (plan.getRotate())
      role->setAttr(WarpDialect::getAloneAttrName(), b.getUnitAttr());
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(&role.getBody().emplaceBlock());
    Value part;
    if (plan.getSplit() || plan.getRotate()) {
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value warp = IdOp::create(b, loc, IdKind::Warp);
      part = arith::SubIOp::create(b, loc, warp, constant(first));
      if (plan.getSplit())
        part = arith::DivUIOp::create(b, loc, part,
                                      constant(kSm90a.warpgroupWarps));
    }
    if (failed(writeRole(number, b, item, part)))
      return failure();
    first += plan.getWarps();
  }
  return success();
}
