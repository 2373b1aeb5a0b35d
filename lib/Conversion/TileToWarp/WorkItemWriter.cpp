//===- WorkItemWriter.cpp - Which sequence and head a CTA works on --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItemWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

static Value createIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value gdn::toI32(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
}

Value gdn::toIndex(OpBuilder &b, Location loc, Value number) {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
}

WorkItemWriter::WorkItemWriter(tile::ProgramOp program, tile::LaunchOp launch,
                               KernelOp kernel)
    : program(program), launch(launch), kernel(kernel), loc(program.getLoc()) {
  Block &body = kernel.getBody().front();
  unsigned next = program.getArrays().size();
  tokens = body.getArgument(next);
  if (body.getNumArguments() > next + 1)
    bounds = body.getArgument(next + 1);
}

LogicalResult WorkItemWriter::prepare(OpBuilder &b, ScheduleAttr schedule) {
  std::optional<int64_t> all = getConstantIntValue(launch.getGrid()[2]);
  if (!all)
    return launch.emitOpError("expected a constant number of V tiles in the "
                              "grid");
  if (schedule.getVTiles() != 1 && schedule.getVTiles() != *all)
    return launch.emitOpError("expected ")
           << schedule.getVTiles()
           << " V tiles in the grid, as the schedule folds, got " << *all;
  if (*all % schedule.getCluster() != 0)
    return launch.emitOpError("expected a multiple of ")
           << schedule.getCluster()
           << " V tiles in the grid, as the schedule makes clusters of them, "
              "got "
           << *all;
  isInOrder = schedule.getInOrder() ||
              launch->hasAttr(tile::TileDialect::getInOrderAttrName());
  isFolded = schedule.getVTiles() != 1;
  allVTiles = *all;
  vTiles = isFolded ? 1 : allVTiles;
  if (!(heads = writeExtent(b, launch.getGrid()[1])))
    return launch.emitOpError("expected a number of heads in the grid that is "
                              "a constant or made from extents of inputs");
  for (Value size :
       launch.getGrid().drop_front(tile::ProgramOp::kMinGridRank)) {
    more.push_back(writeExtent(b, size));
    if (!more.back())
      return launch.emitOpError("expected sizes of the grid that are constants "
                                "or made from extents of inputs");
  }
  mapShared(b);
  if (failed(checkTurns(schedule)))
    return failure();
  if (bounds && launch->hasAttr(tile::TileDialect::getInTurnsAttrName()))
    sequences =
        arith::SubIOp::create(b, loc, memref::DimOp::create(b, loc, bounds, 0),
                              createIndex(b, loc, 1));
  if (!schedule.getPersistent())
    return success();
  Value launched = writeExtent(b, launch.getGrid()[0]);
  if (!launched)
    return launch.emitOpError("expected a number of sequences in the grid that "
                              "is a constant or made from extents of inputs");
  Value workItems = arith::MulIOp::create(b, loc, launched, heads);
  for (Value size : more)
    workItems = arith::MulIOp::create(b, loc, workItems, size);
  if (vTiles > 1)
    workItems =
        arith::MulIOp::create(b, loc, workItems, createIndex(b, loc, vTiles));
  count = toI32(b, loc, workItems);
  return success();
}

void WorkItemWriter::mapShared(OpBuilder &b) {
  for (auto [from, to] :
       llvm::zip(program.getArrays(), kernel.getBody().getArguments()))
    shared.map(from, writeScalar(b, to, from.getType()));
  names = {program.getSequence(), program.getHead()};
  if (!isFolded)
    names.push_back(program.getVTile());
  llvm::append_range(names,
                     program.getCoordinates().drop_front(program.kMinGridRank));
  Value zero = createIndex(b, loc, 0);
  if (bounds) {
    shared.map(program.getBatch(), zero);
    names.append({program.getBegin(), program.getEnd()});
    return;
  }
  names.push_back(program.getBatch());
  shared.map(program.getBegin(), zero);
  shared.map(program.getEnd(), Value(arith::IndexCastOp::create(
                                   b, loc, b.getIndexType(), tokens)));
}

IRMapping WorkItemWriter::write(OpBuilder &b, Value number) {
  IRMapping workItem = shared;
  auto divide = [&](Value divisor) -> Value {
    divisor = toI32(b, loc, divisor);
    Value rest = arith::RemUIOp::create(b, loc, number, divisor);
    number = arith::DivUIOp::create(b, loc, number, divisor);
    return toIndex(b, loc, rest);
  };
  // Parts are next to each other, then further coordinates, then heads, so that
  // neighbours share keys.
  if (!isFolded)
    workItem.map(program.getVTile(), divide(createIndex(b, loc, vTiles)));
  auto further = program.getCoordinates().drop_front(program.kMinGridRank);
  for (auto [coordinate, size] : llvm::zip(further, more))
    if (!sequences || coordinate != further.back())
      workItem.map(coordinate, divide(size));
  Value head = divide(heads);
  Value sequence = sequences ? divide(sequences) : Value();
  if (sequence)
    workItem.map(further.back(), toIndex(b, loc, number));
  else
    sequence = toIndex(b, loc, number);
  workItem.map(program.getHead(), head);
  if (!bounds) {
    workItem.map(program.getSequence(), sequence);
    workItem.map(program.getBatch(), sequence);
    return workItem;
  }
  // A long sequence that began last would keep the others waiting.
  Value all = arith::IndexCastOp::create(b, loc, b.getIndexType(), tokens);
  auto longest =
      SequenceByRankOp::create(b, loc, bounds, sequence, all, isInOrder);
  workItem.map(program.getSequence(), longest.getSequence());
  Value end = longest.getEnd();
  workItem.map(program.getBegin(),
               arith::MinSIOp::create(b, loc, longest.getBegin(), end));
  workItem.map(program.getEnd(), end);
  return workItem;
}

/// What sums and products of constants make, as unrolling leaves them.
static std::optional<int64_t> evaluate(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> lhs = evaluate(op->getOperand(0)),
                         rhs = evaluate(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? *lhs + *rhs : *lhs * *rhs;
}

bool gdn::isEachToken(Value offset, Value end) {
  if (auto sum = offset.getDefiningOp<arith::AddIOp>();
      sum && evaluate(sum.getRhs()) == 0)
    offset = sum.getLhs();
  auto argument = dyn_cast<BlockArgument>(offset);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  return loop && argument == loop.getInductionVar() &&
         loop.getUpperBound() == end && evaluate(loop.getStep()) == 1;
}

/// The dimension along which the array of a store has the tokens up to `end`,
/// where the store ends at the latest: one for each of them, in a loop over
/// them, needs no end of its own.
static std::optional<int64_t> findTokenDim(tile::StoreOp store, Value end) {
  auto nearer = store.getEnd() ? store.getEnd().getDefiningOp<arith::MinSIOp>()
                               : arith::MinSIOp();
  if (store.getEnd() == end || (nearer && nearer.getLhs() == end))
    return store.getDim();
  if (store.getEnd())
    return std::nullopt;
  for (auto [dim, offset] : llvm::enumerate(store.getOffsets()))
    if (isEachToken(offset, end))
      return dim;
  return std::nullopt;
}

/// Whether two stores write the same columns of an array, at other tokens of
/// dimension `tokenDim`: those of the chunks of an iteration do.
static bool areAlike(tile::StoreOp one, tile::StoreOp other, int64_t tokenDim) {
  if (one.getTarget() != other.getTarget() || one.getDim() != other.getDim() ||
      one.getAxes() != other.getAxes() ||
      one.getTile().getType() != other.getTile().getType())
    return false;
  auto dim = static_cast<size_t>(tokenDim);
  for (auto [number, offset] : llvm::enumerate(one.getOffsets()))
    if (number != dim && offset != other.getOffsets()[number])
      return false;
  return true;
}

/// `value` as ops behind the program's arguments make it; null if a loop does.
static Value copyPlace(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 0 || !isPure(op))
    return {};
  for (Value operand : op->getOperands())
    if (!copyPlace(b, operand, map))
      return {};
  return b.clone(*op, map)->getResult(0);
}

/// Whether ops make `value` of `part`.
static bool dependsOn(Value value, Value part) {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value now = open.pop_back_val();
    if (now == part)
      return true;
    Operation *op = now.getDefiningOp();
    if (op && seen.insert(now).second)
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

Value WorkItemWriter::isFirstToClear(OpBuilder &b, tile::StoreOp store,
                                     const IRMapping &workItem, bool allHeads) {
  Value zero = createIndex(b, loc, 0), first;
  auto require = [&](Value coordinate) {
    Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                     workItem.lookup(coordinate), zero);
    first = first ? arith::AndIOp::create(b, loc, first, is) : is;
  };
  // Where tiles take tokens in turn, one has those of all.
  Value vTile = program.getVTile();
  int64_t dim = *findTokenDim(store, program.getEnd());
  bool isOfTile = false;
  for (auto [number, offset] : llvm::enumerate(store.getOffsets()))
    isOfTile |= static_cast<int64_t>(number) != dim && dependsOn(offset, vTile);
  if (vTiles > 1 && !isOfTile)
    require(vTile);
  if (allHeads)
    require(program.getHead());
  return first;
}

void WorkItemWriter::clear(OpBuilder &b, tile::StoreOp store,
                           IRMapping workItem, Value from, Value to) {
  int64_t dim = *findTokenDim(store, program.getEnd());
  int64_t last = store.getOffsets().size() - 1;
  if (dim == last)
    return;
  Value array = workItem.lookup(store.getTarget());
  SmallVector<Value> offsets;
  std::optional<int64_t> free;
  for (auto [number, offset] : llvm::enumerate(store.getOffsets())) {
    auto here = static_cast<int64_t>(number);
    offsets.push_back(here == dim ? from : copyPlace(b, offset, workItem));
    if (offsets.back())
      continue;
    if (free || llvm::is_contained(store.getAxes(), here))
      return;
    free = here;
  }
  // What a loop goes over: all of it, by one work item of the sequence.
  OpBuilder::InsertionGuard guard(b);
  if (Value first = isFirstToClear(b, store, workItem, free.has_value()))
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, first).thenBlock());
  if (free) {
    Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
    Value size = memref::DimOp::create(b, loc, array, *free);
    auto loop = scf::ForOp::create(b, loc, zero, size, one);
    b.setInsertionPointToStart(loop.getBody());
    offsets[*free] = loop.getInductionVar();
  }
  const auto *axis = llvm::find(store.getAxes(), last);
  bool hasRows = axis != store.getAxes().end();
  int64_t columns =
      hasRows
          ? store.getTile().getType().getDimSize(axis - store.getAxes().begin())
          : 1;
  ArrayClearOp::create(b, loc, array, offsets, to, dim, columns);
}

void WorkItemWriter::clearOutside(OpBuilder &b, const IRMapping &workItem) {
  if (!bounds)
    return;
  auto found =
      workItem.lookup(program.getSequence()).getDefiningOp<SequenceByRankOp>();
  Value zero = createIndex(b, loc, 0);
  Value last = arith::SubIOp::create(
      b, loc, memref::DimOp::create(b, loc, bounds, 0), createIndex(b, loc, 2));
  auto where = [&](Value number, Value place, Value otherwise) -> Value {
    Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                     found.getSequence(), number);
    return arith::SelectOp::create(b, loc, is, place, otherwise);
  };
  Value front = where(zero, found.getBegin(), zero),
        behind = where(last, found.getEnd(), found.getTokens());
  SmallVector<tile::StoreOp> stores;
  program.walk([&](tile::StoreOp store) {
    std::optional<int64_t> dim = findTokenDim(store, program.getEnd());
    if (dim && llvm::none_of(stores, [&](tile::StoreOp other) {
          return areAlike(store, other, *dim);
        }))
      stores.push_back(store);
  });
  if (stores.empty())
    return;
  // Seldom: its code is not to lie in front of the roles'.
  Value isOutside = arith::OrIOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, front, zero),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, behind,
                            found.getTokens()));
  auto branch = scf::IfOp::create(b, loc, isOutside);
  branch->setAttr(WarpDialect::getLikelyAttrName(), b.getBoolAttr(false));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (tile::StoreOp store : stores)
    for (int64_t vTile = 0; vTile < (isFolded ? allVTiles : 1); ++vTile) {
      IRMapping map = workItem;
      if (isFolded)
        map.map(program.getVTile(), createIndex(b, loc, vTile));
      clear(b, store, map, zero, front);
      clear(b, store, map, behind, found.getTokens());
    }
}
