//===- Layouts.cpp - Where the values of a role live ----------------------===//
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

#include "RoleLayouts.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_INFERLAYOUTSPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

RankedTensorType RoleLayouts::withEncoding(RankedTensorType tile,
                                           Attribute encoding) {
  SmallVector<int64_t> shape(tile.getShape());
  if (isa<FragmentAttr, RowsAttr>(encoding))
    shape[0] = kSm90a.productRows;
  return RankedTensorType::get(shape, tile.getElementType(), encoding);
}

Type RoleLayouts::convertType(Type type) {
  if (isTile(type, 2))
    return withEncoding(cast<RankedTensorType>(type),
                        FragmentAttr::get(b.getContext()));
  if (isTile(type, 1))
    return withEncoding(cast<RankedTensorType>(type), lanesEncoding());
  return type;
}

Value RoleLayouts::constantLike(arith::ConstantOp constant,
                                RankedTensorType type) {
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  return arith::ConstantOp::create(
      b, constant.getLoc(),
      DenseElementsAttr::get(type, dense.getSplatValue<Attribute>()));
}

FailureOr<Value> RoleLayouts::value(Value old) {
  if (isTile(old.getType(), 2))
    return fragment(old);
  if (isTile(old.getType(), 1))
    return lanes(old);
  return map.lookupOrDefault(old);
}

FailureOr<SmallVector<Value>> RoleLayouts::values(ValueRange old) {
  SmallVector<Value> all;
  for (Value one : old) {
    FailureOr<Value> converted = value(one);
    if (failed(converted))
      return failure();
    all.push_back(*converted);
  }
  return all;
}

Value RoleLayouts::cloneOn(Operation *op, ValueRange operands,
                           RankedTensorType type) {
  OperationState state(op->getLoc(), op->getName(), operands, TypeRange(type),
                       op->getAttrs());
  state.attributes.erase(tile::TileDialect::getStepAttrName());
  state.attributes.erase(tile::TileDialect::getChunkAttrName());
  return b.create(state)->getResult(0);
}

FailureOr<Value> RoleLayouts::loadFragment(Value old, const InShared &place) {
  auto tile = cast<RankedTensorType>(old.getType());
  Value view = place.view;
  if (tile.getDimSize(0) != kSm90a.productRows) {
    if (!place.whole)
      return emitError(old.getLoc(), "expected a tile of ")
             << kSm90a.productRows << " rows to read from shared memory, got "
             << tile;
    view = place.whole;
    firstRow[old] = place.first;
  }
  // Tiles that lie in one fragment are read together.
  Value &known = loaded[view];
  if (!known || known.getParentBlock() != b.getInsertionBlock())
    known = FragmentLoadOp::create(b, old.getLoc(), convertType(tile), view,
                                   place.transposed);
  return known;
}

LogicalResult RoleLayouts::placeLike(Value result, ValueRange from) {
  for (Value value : from) {
    auto row = firstRow.find(value);
    if (row == firstRow.end())
      continue;
    auto [known, isNew] = firstRow.try_emplace(result, row->second);
    if (!isNew && known->second != row->second)
      return emitError(result.getLoc(),
                       "expected tiles in the same rows of a fragment, got one "
                       "from row ")
             << known->second << " and one from row " << row->second;
  }
  return success();
}

Attribute RoleLayouts::encodingOf(Value old) {
  if (!isGroup)
    return lanesEncoding();
  if (Value known = map.lookupOrNull(old))
    return cast<RankedTensorType>(known.getType()).getEncoding();
  Operation *op = old.getDefiningOp();
  Attribute rows = RowsAttr::get(b.getContext());
  if (op && !shared.contains(old))
    for (Value operand : op->getOperands())
      if (isTile(operand.getType(), 1) && encodingOf(operand) == rows)
        return rows;
  return lanesEncoding();
}

FailureOr<Value> RoleLayouts::fragment(Value old) {
  if (Value known = map.lookupOrNull(old))
    return known;
  auto type = cast<RankedTensorType>(convertType(old.getType()));
  if (auto place = shared.find(old); place != shared.end())
    return loadFragment(old, place->second);
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat())
      return constantLike(constant, type);
  if (auto widen = dyn_cast_or_null<arith::ExtFOp>(op)) {
    FailureOr<Value> narrow = fragment(widen.getIn());
    if (failed(narrow) || failed(placeLike(old, widen.getIn())))
      return failure();
    return cloneOn(op, *narrow, type);
  }
  return emitError(old.getLoc(), "expected a tile whose layout is known");
}

/// True for [0, 1, 2, ...] of i32.
static bool isNumbers(arith::ConstantOp constant) {
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  if (!dense.getElementType().isSignlessInteger(32))
    return false;
  for (auto [index, value] : llvm::enumerate(dense.getValues<int32_t>()))
    if (value != static_cast<int32_t>(index))
      return false;
  return true;
}

FailureOr<Value> RoleLayouts::vector(Value old, Attribute encoding) {
  RankedTensorType type =
      withEncoding(cast<RankedTensorType>(old.getType()), encoding);
  if (Value known = map.lookupOrNull(old)) {
    if (known.getType() != type)
      return emitError(old.getLoc(), "expected a vector ")
             << type << ", got " << known.getType()
             << ": what other threads hold goes through a channel";
    return known;
  }
  auto place = shared.find(old);
  if (place != shared.end())
    return Value(
        VectorLoadOp::create(b, old.getLoc(), type, place->second.view));
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat())
      return constantLike(constant, type);
    if (isNumbers(constant) && isa<LanesAttr>(encoding))
      return Value(IotaOp::create(b, old.getLoc(), type, 0));
    return constant.emitOpError(
        "expected a vector of one value or of the numbers from 0");
  }
  if (!op || op->getNumRegions() || op->getNumResults() != 1 ||
      !isMemoryEffectFree(op))
    return emitError(old.getLoc(), "expected a vector whose layout is known");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> converted = isTile(operand.getType(), 1)
                                     ? vector(operand, encoding)
                                     : value(operand);
    if (failed(converted))
      return failure();
    operands.push_back(*converted);
  }
  if (failed(placeLike(old, op->getOperands())))
    return failure();
  return cloneOn(op, operands, type);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult RoleLayouts::convertSlice(tensor::ExtractSliceOp slice) {
  ArrayRef<int64_t> offsets = slice.getStaticOffsets(),
                    sizes = slice.getStaticSizes();
  Value source = slice.getSource();
  auto place = shared.find(source);
  if (place != shared.end()) {
    InShared from = place->second;
    bool turn = from.transposed;
    InShared part = {sliceView(from.view, offsets[turn], offsets[!turn],
                               sizes[turn], sizes[!turn]),
                     turn};
    RankedTensorType tile = slice.getSourceType();
    if (!from.whole && tile.getDimSize(0) == kSm90a.productRows)
      from.whole = from.view;
    if (sizes[1] == tile.getDimSize(1)) {
      part.whole = from.whole;
      part.first = from.first + offsets[0];
    }
    shared[slice] = part;
    return success();
  }
  FailureOr<Value> tile = fragment(source);
  if (failed(tile))
    return failure();
  if (offsets[1] != 0 || sizes[1] != slice.getSourceType().getDimSize(1))
    return slice.emitOpError("expected whole rows of a fragment");
  map.map(slice.getResult(), *tile);
  firstRow[slice] = firstRow.lookup(source) + offsets[0];
  return success();
}

LogicalResult RoleLayouts::convertBroadcast(linalg::BroadcastOp broadcast) {
  // A warp alone holds no tile.
  if (!isGroup)
    return success();
  Location loc = broadcast.getLoc();
  Attribute encoding = ColumnsAttr::get(b.getContext());
  if (broadcast.getDimensions()[0] != 0)
    encoding = RowsAttr::get(b.getContext());
  FailureOr<Value> source = vector(broadcast.getInput(), encoding);
  if (failed(source))
    return failure();
  auto type =
      cast<RankedTensorType>(convertType(broadcast.getInit().getType()));
  Value empty = tensor::EmptyOp::create(
      b, loc, type.getShape(), type.getElementType(), type.getEncoding());
  map.map(broadcast->getResult(0),
          linalg::BroadcastOp::create(b, loc, *source, empty,
                                      broadcast.getDimensionsAttr())
              ->getResult(0));
  return isa<RowsAttr>(encoding)
             ? placeLike(broadcast->getResult(0), broadcast.getInput())
             : success();
}

LogicalResult RoleLayouts::convertCausal(tile::CausalOp causal) {
  FailureOr<Value> source = fragment(causal.getSource());
  if (failed(source))
    return failure();
  // Wherever the tile lies in the fragment: its rows repeat.
  map.map(
      causal.getResult(),
      Value(CausalOp::create(b, causal.getLoc(), *source, causal.getStrict())));
  return placeLike(causal.getResult(), causal.getSource());
}

LogicalResult RoleLayouts::convertDiagonal(tile::DiagonalOp diagonal) {
  FailureOr<Value> source = fragment(diagonal.getSource());
  if (failed(source))
    return failure();
  auto type = withEncoding(diagonal.getType(), RowsAttr::get(b.getContext()));
  int64_t first = firstRow.lookup(diagonal.getSource());
  map.map(
      diagonal.getResult(),
      Value(DiagonalOp::create(b, diagonal.getLoc(), type, *source, first)));
  firstRow[diagonal] = first;
  return success();
}

LogicalResult RoleLayouts::convertOther(Operation *op) {
  auto makes = [&](int64_t rank) {
    return op->getNumResults() == 1 && isTile(op->getResult(0).getType(), rank);
  };
  // In a warpgroup a vector's layout is that of its use; a warp alone holds no
  // tile, and takes what it is made of where it uses it.
  if (isGroup ? makes(1) : makes(2))
    return success();
  FailureOr<SmallVector<Value>> operands = values(op->getOperands());
  if (failed(operands))
    return failure();
  if (op->getNumRegions())
    return op->emitOpError("expected an op that a warp can run");
  IRMapping all;
  for (auto [from, to] : llvm::zip(op->getOperands(), *operands))
    all.map(from, to);
  Operation *copy = b.clone(*op, all);
  copy->removeAttr(tile::TileDialect::getStepAttrName());
  copy->removeAttr(tile::TileDialect::getChunkAttrName());
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults())) {
    to.setType(convertType(from.getType()));
    map.map(from, to);
    if (isTile(from.getType(), 2) && failed(placeLike(from, op->getOperands())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult RoleLayouts::convertBranch(scf::IfOp from, scf::IfOp to,
                                         bool isThen) {
  Block *source = isThen ? from.thenBlock() : from.elseBlock();
  Block *target = isThen ? to.thenBlock() : to.elseBlock();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(target);
  if (failed(convertBlock(*source)))
    return failure();
  if (from.getNumResults() == 0)
    return success();
  Operation *yield = source->getTerminator();
  FailureOr<SmallVector<Value>> yielded = values(yield->getOperands());
  if (failed(yielded))
    return failure();
  scf::YieldOp::create(b, yield->getLoc(), *yielded);
  for (auto [result, operand] :
       llvm::zip(from.getResults(), yield->getOperands()))
    if (failed(placeLike(result, operand)))
      return failure();
  return success();
}

LogicalResult RoleLayouts::convertIf(scf::IfOp branch) {
  SmallVector<Type> types = llvm::map_to_vector(
      branch.getResultTypes(), [&](Type type) { return convertType(type); });
  bool hasElse = branch.elseBlock() != nullptr;
  auto copy =
      scf::IfOp::create(b, branch.getLoc(), types,
                        map.lookupOrDefault(branch.getCondition()), hasElse);
  if (Attribute likely =
          branch->getAttr(tile::TileDialect::getLikelyAttrName()))
    copy->setAttr(WarpDialect::getLikelyAttrName(), likely);
  if (failed(convertBranch(branch, copy, /*isThen=*/true)) ||
      (hasElse && failed(convertBranch(branch, copy, /*isThen=*/false))))
    return failure();
  map.map(branch.getResults(), copy.getResults());
  return success();
}

LogicalResult RoleLayouts::convertFor(scf::ForOp loop) {
  FailureOr<SmallVector<Value>> inits = values(loop.getInits());
  if (failed(inits))
    return failure();
  auto copy = scf::ForOp::create(b, loop.getLoc(),
                                 map.lookupOrDefault(loop.getLowerBound()),
                                 map.lookupOrDefault(loop.getUpperBound()),
                                 map.lookupOrDefault(loop.getStep()), *inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  map.map(loop.getInductionVar(), copy.getInductionVar());
  for (auto [from, to] :
       llvm::zip(loop.getRegionIterArgs(), copy.getRegionIterArgs()))
    map.map(from, to);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    if (failed(convertBlock(*loop.getBody())))
      return failure();
    FailureOr<SmallVector<Value>> yielded = values(loop.getYieldedValues());
    if (failed(yielded))
      return failure();
    if (!inits->empty())
      scf::YieldOp::create(b, loop.getLoc(), *yielded);
  }
  for (auto [from, to] : llvm::zip(loop.getResults(), copy.getResults()))
    map.map(from, to);
  return success();
}

LogicalResult RoleLayouts::convert(Operation *op) {
  if (auto get = dyn_cast<GetOp>(op))
    return convertGet(get);
  if (auto put = dyn_cast<PutOp>(op))
    return convertPut(put);
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return convertLoad(load);
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return convertStore(store);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return convertSlice(slice);
  if (auto contract = dyn_cast<linalg::ContractOp>(op))
    return convertContract(contract);
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op))
    return convertBroadcast(broadcast);
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return convertReduce(reduce);
  if (auto causal = dyn_cast<tile::CausalOp>(op))
    return convertCausal(causal);
  if (auto diagonal = dyn_cast<tile::DiagonalOp>(op))
    return convertDiagonal(diagonal);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return convertIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertFor(loop);
  // Made where they are used: constants and empty tiles, stacks of loads, what
  // a put takes from a solve, and what is only wider in registers.
  bool isTileConstant = op->hasTrait<OpTrait::ConstantLike>() &&
                        isa<RankedTensorType>(op->getResult(0).getType());
  if (isTileConstant ||
      isa<tensor::EmptyOp, tensor::ConcatOp, tile::TriInverseOp>(op))
    return success();
  if (auto round = dyn_cast<arith::TruncFOp>(op);
      round && findSolve(round.getResult()))
    return success();
  if (isOfRowDots(op))
    return success();
  if (auto difference = dyn_cast<arith::SubFOp>(op);
      difference && isOfNegated(difference))
    return convertDifference(difference);
  if (auto widen = dyn_cast<arith::ExtFOp>(op);
      widen && shared.contains(widen.getIn()))
    return success();
  return convertOther(op);
}

LogicalResult RoleLayouts::convertBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (failed(convert(&op)))
      return failure();
  }
  return success();
}

LogicalResult RoleLayouts::run() {
  Block &old = role.getBody().front();
  auto *block = new Block();
  role.getBody().push_back(block);
  b.setInsertionPointToStart(block);
  LogicalResult converted = convertBlock(old);
  // What stays of a failed role would have two blocks.
  old.dropAllDefinedValueUses();
  old.erase();
  return converted;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

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

namespace {
struct InferLayouts : gdn::impl::InferLayoutsPassBase<InferLayouts> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // Without a schedule a kernel is in the explicit form already.
    if (!kernel->hasAttr(ScheduleAttr::kName) || hasLayouts(kernel))
      return;
    FieldLayouts fields(kernel);
    for (auto role : kernel.getBody().getOps<RoleOp>())
      if (failed(RoleLayouts(role, fields).run()))
        return signalPassFailure();
    fields.apply();
  }
};
} // namespace
