//===- SpreadLayouts.cpp - The ops of a role whose tiles lie over lanes ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpreadLayouts.h"
#include "RoleLayouts.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Bytes of the widest access of a thread, and of a patch of 16-bit keys.
static constexpr int64_t kAccessBytes = 16, kKeys = 8;

//===----------------------------------------------------------------------===//
// The layout
//===----------------------------------------------------------------------===//

/// What a role's tiles and their arrays have in common.
namespace {
struct RoleTiles {
  /// The tile's dimension that is contiguous in memory, and bits of the widest
  /// elements there.
  int64_t axis = 1, bits = 32;
  bool hasArrays = false;
  /// Of all tiles, also those that no array holds: an update of a state that
  /// nobody passes in or wants back.
  SmallVector<SmallVector<int64_t, 2>> shapes;

  void addAccess(Value array, ArrayRef<int64_t> axes, Value tile) {
    if (!isTile(tile.getType(), 2))
      return;
    auto type = cast<MemRefType>(array.getType());
    int64_t width = type.getElementTypeBitWidth();
    bits = hasArrays ? std::max(bits, width) : width;
    axis = axes[0] == type.getRank() - 1 ? 0 : 1;
    hasArrays = true;
  }
  void addShapes(Operation *op) {
    for (Type type : op->getResultTypes())
      if (isTile(type, 2))
        shapes.emplace_back(cast<RankedTensorType>(type).getShape());
  }
  /// Of a role without tiles, whose vectors are rows.
  void addRows(Operation *op) {
    for (Type type : op->getResultTypes())
      if (isTile(type, 1) && cast<RankedTensorType>(type).getDimSize(0) > 1)
        shapes.push_back({1, cast<RankedTensorType>(type).getDimSize(0)});
  }
  bool fit(SpreadAttr spread, int64_t dim) const {
    return llvm::all_of(shapes, [&](ArrayRef<int64_t> shape) {
      return shape[dim] % spread.getBlock(dim) == 0;
    });
  }
};
} // namespace

/// A warp accesses whole lines of memory, 16 bytes a lane. Where these lie
/// along the rows of tiles, few lanes are left for a row, and the warps share
/// it.
void SpreadLayouts::chooseSpread() {
  RoleTiles tiles;
  role.walk([&](tile::LoadOp op) {
    tiles.addAccess(op.getSource(), op.getAxes(), op.getResult());
  });
  role.walk([&](tile::StoreOp op) {
    tiles.addAccess(op.getTarget(), op.getAxes(), op.getTile());
  });
  role.walk([&](Operation *op) { tiles.addShapes(op); });
  if (tiles.shapes.empty())
    role.walk([&](Operation *op) { tiles.addRows(op); });
  int64_t warps = role.getCount(), lanes = lanesPerRow, columnWarps = 1;
  if (tiles.axis == 0) {
    int64_t line = getArch(role).cacheLineBytes / kAccessBytes;
    lanes = std::min(lanesPerRow, format::kWarpThreads / line);
    columnWarps = std::gcd(lanesPerRow / lanes, warps);
  }
  int64_t run = kAccessBytes * 8 / tiles.bits,
          other = tiles.axis == 0 ? kKeys : 1;
  auto make = [&] {
    bool isAlongRows = tiles.axis == 1;
    spread = SpreadAttr::get(b.getContext(), isAlongRows ? other : run,
                             isAlongRows ? run : other, tiles.axis, lanes,
                             warps, columnWarps);
    return spread;
  };
  // Fewer where a tile has no room for that many on all lanes.
  while (!tiles.fit(make(), tiles.axis) && run > 1)
    run /= 2;
  while (!tiles.fit(make(), 1 - tiles.axis) && other > 1)
    other /= 2;
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

SmallVector<Value> SpreadLayouts::mapAll(ValueRange values) {
  return llvm::map_to_vector(
      values, [&](Value value) { return map.lookupOrDefault(value); });
}

/// Whole rows of tiles may lie past the end, where lanes have runs of a row,
/// and elements of vectors.
LogicalResult SpreadLayouts::checkEnd(Operation *access, Value end,
                                      std::optional<int64_t> dim,
                                      ArrayRef<int64_t> axes) {
  if (!end || (axes[0] == dim && spread.getAxis() == 1))
    return success();
  return access->emitOpError("expected an access that an end cuts between the "
                             "rows of a tile, or none, in a role whose tiles "
                             "lie over lanes");
}

LogicalResult SpreadLayouts::convertLoad(tile::LoadOp load) {
  if (failed(checkEnd(load, load.getEnd(), load.getDim(), load.getAxes())))
    return failure();
  Encodings encodings;
  if (isTile(load.getType(), 2))
    encodings.insert(spread);
  else
    encodings = getWanted(load);
  for (Attribute encoding : encodings) {
    if (failed(checkSize(load, encoding)))
      return failure();
    vectors[{load, encoding}] = ArrayLoadOp::create(
        b, load.getLoc(), typeOf(load, encoding),
        map.lookupOrDefault(load.getSource()), mapAll(load.getOffsets()),
        load.getAxesAttr(), lookupEnd(load.getEnd()), load.getDimAttr(),
        DenseI64ArrayAttr());
  }
  return success();
}

LogicalResult SpreadLayouts::convertStore(tile::StoreOp store) {
  if (failed(checkEnd(store, store.getEnd(), store.getDim(), store.getAxes())))
    return failure();
  FailureOr<Value> tile = lookup(store.getTile());
  if (failed(tile))
    return failure();
  ArrayStoreOp::create(b, store.getLoc(), *tile,
                       map.lookupOrDefault(store.getTarget()),
                       mapAll(store.getOffsets()), store.getAxesAttr(),
                       lookupEnd(store.getEnd()), store.getDimAttr(),
                       /*sum_end=*/Value(), DenseI64ArrayAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// Rows and columns
//===----------------------------------------------------------------------===//

LogicalResult SpreadLayouts::convertBroadcast(linalg::BroadcastOp broadcast) {
  if (broadcast.getDimensions().size() != 1)
    return broadcast.emitOpError("expected a broadcast of a vector along one "
                                 "dimension of a tile");
  int64_t added = broadcast.getDimensions()[0];
  Value result = broadcast->getResult(0);
  FailureOr<Value> source = lookup(broadcast.getInput(), alongAxis(1 - added));
  if (failed(source) || failed(checkSize(result, spread)))
    return failure();
  RankedTensorType type = typeOf(result, spread);
  Value empty =
      tensor::EmptyOp::create(b, broadcast.getLoc(), type.getShape(),
                              type.getElementType(), type.getEncoding());
  vectors[{result, spread}] =
      linalg::BroadcastOp::create(b, broadcast.getLoc(), *source, empty,
                                  broadcast.getDimensionsAttr())
          ->getResult(0);
  return success();
}

/// Along the rows of a tile, or of a vector along its columns: the lanes of a
/// row have all of it. Or along the columns of a tile, whose warps leave what
/// each has.
LogicalResult SpreadLayouts::convertReduce(linalg::ReduceOp reduce) {
  if (reduce.getInputs().size() != 1 || reduce.getDimensions().size() != 1)
    return reduce.emitOpError("expected a reduction of one tile along one "
                              "dimension");
  Value input = reduce.getInputs().front(), init = reduce.getInits().front(),
        result = reduce->getResult(0);
  bool isOfTile = isTile(input.getType(), 2);
  if (!cast<RankedTensorType>(result.getType()).getElementType().isF32())
    return reduce.emitOpError("expected sums of f32, got one along [")
           << reduce.getDimensions() << "] of " << input.getType();
  int64_t dim = reduce.getDimensions()[0];
  Attribute encoding = isOfTile ? alongAxis(1 - dim) : uniform();
  FailureOr<Value> source =
      lookup(input, isOfTile ? Attribute(spread) : alongAxis(1));
  FailureOr<Value> first = lookup(init, encoding);
  if (failed(source) || failed(first))
    return failure();
  IRMapping operands;
  operands.map(input, *source);
  operands.map(init, *first);
  Operation *copy = b.clone(*reduce, operands);
  copy->removeAttr(tile::TileDialect::getStepAttrName());
  copy->removeAttr(tile::TileDialect::getChunkAttrName());
  copy->getResult(0).setType(typeOf(result, encoding));
  // Each warp leaves what it has of all results.
  int64_t warps = spread.getWarpsAlong(isOfTile ? dim : 1);
  if (warps > 1)
    copy->setAttr(
        WarpDialect::getScratchBytesAttrName(),
        b.getI64IntegerAttr(
            warps * cast<RankedTensorType>(result.getType()).getNumElements() *
            4));
  vectors[{result, encoding}] = copy->getResult(0);
  return success();
}

/// An element of what every thread holds, or many of one scalar.
LogicalResult SpreadLayouts::convertExtract(Operation *op) {
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    FailureOr<Value> tensor = lookup(extract.getTensor(), uniform());
    if (failed(tensor))
      return failure();
    map.map(extract.getResult(),
            Value(tensor::ExtractOp::create(b, op->getLoc(), *tensor,
                                            mapAll(extract.getIndices()))));
    return success();
  }
  auto splat = cast<tensor::SplatOp>(op);
  Encodings encodings;
  if (isTile(splat.getType(), 2))
    encodings.insert(spread);
  else
    encodings = getWanted(splat);
  for (Attribute encoding : encodings) {
    if (failed(checkSize(splat, encoding)))
      return failure();
    vectors[{splat, encoding}] = tensor::SplatOp::create(
        b, op->getLoc(), typeOf(splat, encoding),
        map.lookupOrDefault(splat.getInput()), ValueRange());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>>
SpreadLayouts::lookupAll(ValueRange values, ArrayRef<Attribute> encodings) {
  SmallVector<Value> found;
  for (auto [value, encoding] : llvm::zip(values, encodings)) {
    FailureOr<Value> converted = lookup(value, encoding);
    if (failed(converted))
      return failure();
    found.push_back(*converted);
  }
  return found;
}

/// Notes that `made` stand for `old`, each in its own encoding.
void SpreadLayouts::define(ValueRange old, ValueRange made) {
  for (auto [from, to] : llvm::zip(old, made)) {
    if (auto type = dyn_cast<RankedTensorType>(to.getType()))
      vectors[{from, type.getEncoding()}] = to;
    else
      map.map(from, to);
  }
}

LogicalResult SpreadLayouts::convertFor(scf::ForOp loop) {
  SmallVector<Attribute> encodings =
      llvm::map_to_vector(loop.getRegionIterArgs(),
                          [&](Value carried) { return getCarried(carried); });
  FailureOr<SmallVector<Value>> inits = lookupAll(loop.getInits(), encodings);
  if (failed(inits))
    return failure();
  auto copy = scf::ForOp::create(b, loop.getLoc(),
                                 map.lookupOrDefault(loop.getLowerBound()),
                                 map.lookupOrDefault(loop.getUpperBound()),
                                 map.lookupOrDefault(loop.getStep()), *inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  map.map(loop.getInductionVar(), copy.getInductionVar());
  define(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    if (failed(convertBlock(*loop.getBody())))
      return failure();
    FailureOr<SmallVector<Value>> yielded =
        lookupAll(loop.getYieldedValues(), encodings);
    if (failed(yielded))
      return failure();
    if (!inits->empty())
      scf::YieldOp::create(b, loop.getLoc(), *yielded);
  }
  define(loop.getResults(), copy.getResults());
  return success();
}

/// All threads take the same branch, whose tiles lie as those of loops.
LogicalResult SpreadLayouts::convertIf(scf::IfOp branch) {
  SmallVector<Attribute> encodings = llvm::map_to_vector(
      branch.getResults(), [&](Value result) { return getCarried(result); });
  SmallVector<Type> types;
  for (auto [result, encoding] : llvm::zip(branch.getResults(), encodings))
    types.push_back(encoding ? typeOf(result, encoding) : result.getType());
  auto copy = scf::IfOp::create(b, branch.getLoc(), types,
                                map.lookupOrDefault(branch.getCondition()),
                                /*withElseRegion=*/branch.elseBlock());
  copy->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to] : {std::pair(branch.thenBlock(), copy.thenBlock()),
                          {branch.elseBlock(), copy.elseBlock()}}) {
    if (!from)
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(to);
    // What a branch makes is no value behind it.
    auto outside = vectors;
    if (failed(convertBlock(*from)))
      return failure();
    FailureOr<SmallVector<Value>> yielded =
        lookupAll(from->getTerminator()->getOperands(), encodings);
    if (failed(yielded))
      return failure();
    if (!types.empty())
      scf::YieldOp::create(b, branch.getLoc(), *yielded);
    vectors = std::move(outside);
  }
  define(branch.getResults(), copy.getResults());
  return success();
}

LogicalResult SpreadLayouts::convert(Operation *op) {
  if (isa<GetOp, PutOp>(op))
    return op->emitOpError("expected no channels in a role whose tiles lie "
                           "over lanes: it has all steps that they need");
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return convertLoad(load);
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return convertStore(store);
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op))
    return convertBroadcast(broadcast);
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return convertReduce(reduce);
  if (isa<tensor::ExtractOp, tensor::SplatOp>(op))
    return convertExtract(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return convertIf(branch);
  // Made where they are used.
  bool isTileConstant = op->hasTrait<OpTrait::ConstantLike>() &&
                        isa<RankedTensorType>(op->getResult(0).getType());
  if (isTileConstant || isa<tensor::EmptyOp>(op))
    return success();
  return convertOther(op);
}

LogicalResult SpreadLayouts::convertBlock(Block &block) {
  return convertOps(block, [&](Operation *op) { return convert(op); });
}

LogicalResult SpreadLayouts::run() {
  if (role.getFirst() % role.getCount() != 0)
    return role.emitOpError("expected a role whose tiles lie over lanes to "
                            "begin at a multiple of its ")
           << role.getCount() << " warps, got warp " << role.getFirst();
  chooseSpread();
  return convertBody(role, b, [&](Operation *op) { return convert(op); });
}
