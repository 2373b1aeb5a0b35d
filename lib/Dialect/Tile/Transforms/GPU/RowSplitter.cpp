//===- RowSplitter.cpp - The pieces of tiles of many rows -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowSplitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn::tile;

SmallVector<RowSplitter::Range> RowSplitter::getRanges(int64_t rows) const {
  SmallVector<Range> ranges;
  for (int64_t first = 0; first < rows; first += maxRows)
    ranges.push_back({first, std::min(maxRows, rows - first)});
  return ranges;
}

Operation *RowSplitter::clone(Operation *op, const IRMapping &map, Type type) {
  IRMapping operands = map;
  Operation *copy = b.clone(*op, operands);
  if (type)
    copy->getResult(0).setType(type);
  return copy;
}

Value RowSplitter::slice(Value tile, ArrayRef<int64_t> offsets,
                         ArrayRef<int64_t> sizes, RankedTensorType type,
                         Operation *labels) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  auto made = tensor::ExtractSliceOp::create(
      b, tile.getLoc(), type, tile, ValueRange(), ValueRange(), ValueRange(),
      offsets, sizes, strides);
  made->setDiscardableAttrs(labels->getDiscardableAttrDictionary());
  return made;
}

Value RowSplitter::addOffset(Location loc, Value offset, int64_t distance) {
  if (distance == 0)
    return offset;
  return arith::AddIOp::create(
      b, loc, offset, arith::ConstantIndexOp::create(b, loc, distance));
}

void RowSplitter::setPieces(Value value, Pieces of, Operation *op) {
  pieces[value] = std::move(of);
  replaced.push_back(op);
}

/// The pieces of `value`, made here where it has none yet.
RowSplitter::Pieces RowSplitter::getPieces(Value value) {
  if (auto known = pieces.find(value); known != pieces.end())
    return known->second;
  RankedTensorType tile = getTile(value);
  Operation *op = value.getDefiningOp();
  OpBuilder::InsertionGuard guard(b);
  if (op)
    b.setInsertionPointAfter(op);
  Pieces made;
  // A vector of rows is made again, piece by piece.
  if (tile.getRank() == 1 && op && isElementwise(op)) {
    splitElementwise(op);
    return pieces[value];
  }
  auto load = dyn_cast_or_null<LoadOp>(op);
  if (tile.getRank() == 1 && load)
    return pieces[value] = splitLoad(load);
  for (Range range : getRanges(tile.getDimSize(0))) {
    RankedTensorType type = getPieceType(value, range);
    SmallVector<int64_t> offsets(tile.getRank(), 0), sizes(type.getShape());
    offsets[0] = range.first;
    auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                          : SplatElementsAttr();
    Operation *piece = nullptr;
    if (splat)
      piece =
          arith::ConstantOp::create(b, value.getLoc(), splat.resizeSplat(type));
    else if (isa_and_nonnull<tensor::EmptyOp>(op))
      piece = tensor::EmptyOp::create(b, value.getLoc(), type.getShape(),
                                      type.getElementType());
    else
      made.push_back(slice(value, offsets, sizes, type,
                           op ? op : b.getInsertionBlock()->getParentOp()));
    if (!piece)
      continue;
    piece->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    made.push_back(piece->getResult(0));
  }
  return pieces[value] = made;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// `values` with the pieces of the tall ones, and how many each has.
RowSplitter::Pieces RowSplitter::splitValues(ValueRange values,
                                             SmallVectorImpl<size_t> &counts) {
  Pieces all;
  for (Value value : values) {
    Pieces own = isTall(value) ? getPieces(value) : Pieces{value};
    counts.push_back(own.size());
    llvm::append_range(all, own);
  }
  return all;
}

void RowSplitter::mapPieces(ValueRange values, ArrayRef<size_t> counts,
                            ValueRange of) {
  for (auto [value, count] : llvm::zip(values, counts)) {
    if (count == 1)
      Value(value).replaceAllUsesWith(of.front());
    else
      pieces[value] = Pieces(of.take_front(count));
    of = of.drop_front(count);
  }
}

/// A loop with the body of `loop` that carries other values. The terminator is
/// the old one.
scf::ForOp RowSplitter::moveToLoop(scf::ForOp loop, ValueRange inits) {
  auto moved = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(),
                                  loop.getUpperBound(), loop.getStep(), inits);
  moved->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = moved.getBody();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(moved.getInductionVar());
  return moved;
}

void RowSplitter::visit(scf::ForOp loop) {
  if (llvm::none_of(loop.getInits(), [&](Value v) { return isTall(v); })) {
    visit(*loop.getBody());
    return splitVectors(loop);
  }
  SmallVector<size_t> counts, yields;
  Pieces inits = splitValues(loop.getInits(), counts);
  // The old arguments stay, without a use, until the body is visited.
  scf::ForOp split = moveToLoop(loop, inits);
  Block *body = split.getBody();
  mapPieces(loop.getRegionIterArgs(), counts, split.getRegionIterArgs());
  visit(*body);
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  b.setInsertionPoint(yield);
  Pieces yielded = splitValues(yield.getResults(), yields);
  yield->setOperands(yielded);
  mapPieces(loop.getResults(), counts, split.getResults());
  replaced.push_back(loop);
  splitVectors(split);
}

/// Carries the pieces of vectors that an iteration makes piece by piece.
void RowSplitter::splitVectors(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<size_t> counts;
  Pieces inits, yielded;
  b.setInsertionPoint(loop);
  for (auto [init, next] : llvm::zip(loop.getInits(), yield.getResults())) {
    auto vector = getTile(next);
    bool isSplit = vector && vector.getRank() == 1 && pieces.contains(next);
    llvm::append_range(inits, isSplit ? getPieces(init) : Pieces{init});
    llvm::append_range(yielded, isSplit ? getPieces(next) : Pieces{next});
    counts.push_back(isSplit ? pieces[next].size() : 1);
  }
  if (yielded.size() == counts.size())
    return;
  scf::ForOp split = moveToLoop(loop, inits);
  yield->setOperands(yielded);
  // Pieces that were cut out of the vector are what the loop carries now.
  ValueRange carried = split.getRegionIterArgs();
  for (auto [argument, count] : llvm::zip(loop.getRegionIterArgs(), counts)) {
    if (count > 1)
      for (auto [cut, piece] : llvm::zip(pieces.lookup(argument), carried)) {
        cut.replaceAllUsesWith(piece);
        cut.getDefiningOp()->erase();
      }
    carried = carried.drop_front(count);
  }
  mapPieces(loop.getRegionIterArgs(), counts, split.getRegionIterArgs());
  mapPieces(loop.getResults(), counts, split.getResults());
  replaced.push_back(loop);
}

void RowSplitter::visit(scf::IfOp branch) {
  for (Region &region : branch->getRegions())
    if (!region.empty())
      visit(region.front());
  if (llvm::none_of(branch.getResults(), [&](Value v) { return isTall(v); }))
    return;
  SmallVector<size_t> counts;
  SmallVector<Type> types;
  for (Region &region : branch->getRegions()) {
    counts.clear();
    Operation *yield = region.front().getTerminator();
    b.setInsertionPoint(yield);
    Pieces yielded = splitValues(yield->getOperands(), counts);
    yield->setOperands(yielded);
    types = llvm::to_vector(ValueRange(yielded).getTypes());
  }
  b.setInsertionPoint(branch);
  auto split = scf::IfOp::create(b, branch.getLoc(), types,
                                 branch.getCondition(), /*withElse=*/false);
  split->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [to, from] : llvm::zip(split->getRegions(), branch->getRegions()))
    to.takeBody(from);
  mapPieces(branch.getResults(), counts, split.getResults());
  replaced.push_back(branch);
}

/// The op that makes `value`, in a branch if that hands it on.
static Operation *findMaker(Value value) {
  while (auto branch = value.getDefiningOp<scf::IfOp>())
    value =
        branch.thenYield().getOperand(cast<OpResult>(value).getResultNumber());
  return value.getDefiningOp();
}

/// Gives those who still take all of `value`, which became pieces, their stack.
void RowSplitter::stackPieces(Value value, const DenseSet<Operation *> &dead) {
  auto isLive = [&](OpOperand &use) { return !dead.contains(use.getOwner()); };
  auto known = pieces.find(value);
  if (known == pieces.end() || llvm::none_of(value.getUses(), isLive))
    return;
  Value last = known->second.back();
  b.setInsertionPointAfterValue(last);
  auto stack = tensor::ConcatOp::create(b, value.getLoc(), 0, known->second);
  // It is made in the step of the last piece, or of the first op that takes it.
  Operation *labels = findMaker(last);
  if (!labels || isa<scf::ForOp>(labels))
    labels = llvm::find_if(value.getUses(), isLive)->getOwner();
  stack->setDiscardableAttrs(labels->getDiscardableAttrDictionary());
  value.replaceUsesWithIf(stack, isLive);
}

/// Erases what became pieces.
void RowSplitter::finish() {
  DenseSet<Operation *> dead(replaced.begin(), replaced.end());
  for (Operation *op : replaced) {
    for (Value value : op->getResults())
      stackPieces(value, dead);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value value : loop.getRegionIterArgs())
        stackPieces(value, dead);
  }
  for (Operation *op : replaced)
    op->dropAllReferences();
  for (Operation *op : replaced) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        block.dropAllDefinedValueUses();
    op->dropAllUses();
    op->erase();
  }
}

void RowSplitter::run() {
  visit(program.getBody().front());
  finish();
}
