//===- SplitRows.cpp - Tiles of at most a fragment's rows -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup holds 64 rows of a tile in its registers. A taller tile becomes
// several: this pass visits the ops in order and replaces each value of more
// rows by its pieces. An op that reads shared memory (the right operand of a
// product) keeps the whole tile, which is the stack of the pieces.
//
//===----------------------------------------------------------------------===//

#include "RowSplitter.h"

#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#define DEBUG_TYPE "gdn-tile-split-rows"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_SPLITROWSPASS
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// Whether `op` repeats a vector in every row of a tile.
static bool isOfColumns(Operation *op) {
  auto broadcast = dyn_cast<linalg::BroadcastOp>(op);
  return broadcast && broadcast.getDimensions() == ArrayRef<int64_t>(0);
}

/// Whether a product reads `use` from shared memory, whatever its rows: the
/// right operand, and a left operand whose columns are the result's rows.
static bool isReadFromShared(OpOperand &use) {
  auto product = dyn_cast<linalg::ContractOp>(use.getOwner());
  if (!product || use.getOperandNumber() > 1)
    return isa<tensor::ConcatOp>(use.getOwner());
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  return use.getOperandNumber() == 1 ||
         maps[0].getResult(0) != maps[2].getResult(0);
}

void RowSplitter::visit(LoadOp load) {
  if (isTall(load) && !llvm::all_of(load->getUses(), isReadFromShared))
    setPieces(load, splitLoad(load), load);
}

RowSplitter::Pieces RowSplitter::splitLoad(LoadOp load) {
  Pieces made;
  for (Range range : getRanges(load.getType().getDimSize(0))) {
    int64_t axis = load.getAxes()[0];
    auto piece = cast<LoadOp>(clone(load, {}, getPieceType(load, range)));
    b.setInsertionPoint(piece);
    piece.getOffsetsMutable()[axis].set(
        addOffset(load.getLoc(), load.getOffsets()[axis], range.first));
    b.setInsertionPointAfter(piece);
    made.push_back(piece);
  }
  return made;
}

void RowSplitter::visit(StoreOp store) {
  Value tile = store.getTile();
  if (!isTall(tile) && !pieces.contains(tile))
    return;
  int64_t axis = store.getAxes()[0], first = 0;
  for (Value piece : getPieces(tile)) {
    IRMapping map;
    map.map(tile, piece);
    Value offset = addOffset(store.getLoc(), store.getOffsets()[axis], first);
    cast<StoreOp>(clone(store, map)).getOffsetsMutable()[axis].set(offset);
    first += getTile(piece).getDimSize(0);
  }
  replaced.push_back(store);
}

/// The rows of the result are those of the left operand.
void RowSplitter::visit(linalg::ContractOp product) {
  Value result = product.getResult(0), left = product.getDpsInputs()[0];
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  if (!isTall(result) || maps[0].getNumResults() != 2)
    return;
  bool isTransposed = maps[0].getResult(0) != maps[2].getResult(0);
  Value init = product.getDpsInits()[0];
  Pieces lefts, inits = getPieces(init), made;
  if (isTransposed) {
    int64_t depth = getTile(left).getDimSize(0);
    for (Range range : getRanges(getTile(result).getDimSize(0)))
      lefts.push_back(slice(left, {0, range.first}, {depth, range.rows},
                            getTile(left).clone({depth, range.rows}), product));
  } else {
    lefts = getPieces(left);
  }
  for (auto [a, c] : llvm::zip(lefts, inits)) {
    IRMapping map;
    map.map(init, c);
    auto piece = cast<linalg::ContractOp>(clone(product, map, c.getType()));
    piece.getDpsInputOperand(0)->set(a);
    made.push_back(piece.getResult(0));
  }
  setPieces(result, made, product);
}

void RowSplitter::visit(linalg::ReduceOp reduce) {
  Value tile = reduce.getInputs().front(), init = reduce.getInits().front(),
        result = reduce->getResult(0);
  if (reduce.getInputs().size() != 1 || !isTall(tile))
    return;
  bool isOfRows = reduce.getDimensions() == ArrayRef<int64_t>(1);
  Pieces tiles = getPieces(tile), inits, made;
  if (isOfRows)
    inits = getPieces(init);
  // What is reduced over rows goes on from piece to piece.
  Value last = init;
  for (auto [number, piece] : llvm::enumerate(tiles)) {
    IRMapping map;
    map.map(tile, piece);
    map.map(init, isOfRows ? inits[number] : last);
    last = clone(reduce, map, map.lookup(init).getType())->getResult(0);
    made.push_back(last);
  }
  if (isOfRows)
    return setPieces(result, made, reduce);
  result.replaceAllUsesWith(last);
  replaced.push_back(reduce);
}

/// Rows of a tall tile are rows of its pieces. A part that products read from
/// shared memory is read there.
void RowSplitter::visit(tensor::ExtractSliceOp op) {
  Value source = op.getSource();
  if (!isTall(source) || !pieces.contains(source) || !op.hasUnitStride() ||
      op.getOffsets().size() || op.getSizes().size() ||
      (isTall(op) && llvm::all_of(op->getUses(), isReadFromShared)))
    return;
  SmallVector<int64_t> offsets(op.getStaticOffsets()),
      sizes(op.getStaticSizes());
  int64_t begin = offsets[0], end = begin + sizes[0], first = 0;
  Pieces made;
  for (Value piece : getPieces(source)) {
    int64_t last = first + getTile(piece).getDimSize(0);
    int64_t from = std::max(begin, first), to = std::min(end, last);
    if (from < to) {
      offsets[0] = from - first;
      sizes[0] = to - from;
      RankedTensorType type = op.getType();
      if (sizes[0] != op.getStaticSizes()[0])
        type = getPieceType(op, {0, sizes[0]});
      made.push_back(slice(piece, offsets, sizes, type, op));
    }
    first = last;
  }
  if (made.size() > 1)
    return setPieces(op, made, op);
  op.getResult().replaceAllUsesWith(made.front());
  replaced.push_back(op);
}

/// Along the rows a piece goes on from the last row of the one before it.
void RowSplitter::visit(ScanOp scan) {
  if (!isTall(scan))
    return;
  Pieces tiles = getPieces(scan.getSource()), made(tiles.size());
  int64_t columns = scan.getType().getDimSize(1);
  auto row = scan.getType().clone({columns});
  Value before;
  for (size_t i = 0; i < tiles.size(); ++i) {
    size_t number = scan.getReverse() ? tiles.size() - 1 - i : i;
    IRMapping map;
    map.map(scan.getSource(), tiles[number]);
    auto type = cast<RankedTensorType>(tiles[number].getType());
    Value sum = clone(scan, map, type)->getResult(0);
    if (before && scan.getAxis() == 0) {
      DictionaryAttr labels = scan->getDiscardableAttrDictionary();
      int64_t last = scan.getReverse() ? 0 : getTile(before).getDimSize(0) - 1;
      Value carried = slice(before, {last, 0}, {1, columns}, row, scan);
      Value empty = tensor::EmptyOp::create(b, scan.getLoc(), type.getShape(),
                                            type.getElementType());
      auto spread = linalg::BroadcastOp::create(b, scan.getLoc(), carried,
                                                empty, ArrayRef<int64_t>(0));
      spread->setDiscardableAttrs(labels);
      auto added =
          arith::AddFOp::create(b, scan.getLoc(), sum, spread->getResult(0));
      added->setDiscardableAttrs(labels);
      sum = added;
    }
    made[number] = before = sum;
  }
  setPieces(scan, made, scan);
}

/// Tiles side by side have their pieces side by side.
void RowSplitter::visit(tensor::ConcatOp concat) {
  if (!isTall(concat.getResult()) || concat.getDim() != 1)
    return;
  Pieces made;
  for (auto [number, range] :
       llvm::enumerate(getRanges(concat.getType().getDimSize(0)))) {
    IRMapping map;
    for (Value input : concat.getInputs())
      map.map(input, getPieces(input)[number]);
    made.push_back(clone(concat, map, getPieceType(concat.getResult(), range))
                       ->getResult(0));
  }
  setPieces(concat.getResult(), made, concat);
}

void RowSplitter::visit(Operation *op) {
  b.setInsertionPoint(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visit(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visit(branch);
  if (auto load = dyn_cast<LoadOp>(op))
    return visit(load);
  if (auto store = dyn_cast<StoreOp>(op))
    return visit(store);
  if (auto product = dyn_cast<linalg::ContractOp>(op))
    return visit(product);
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return visit(reduce);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return visit(slice);
  if (auto scan = dyn_cast<ScanOp>(op))
    return visit(scan);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return visit(concat);
  // A vector of rows has pieces where an operand of it has.
  bool isOfPieces =
      !isOfColumns(op) && llvm::any_of(op->getOperands(), [&](Value value) {
        return pieces.contains(value);
      });
  if (!isElementwise(op) || (!isTall(op->getResult(0)) && !isOfPieces))
    return;
  splitElementwise(op);
  replaced.push_back(op);
}

/// Ops that make each row of their result of that row of their operands, and
/// those that make tiles of vectors.
bool RowSplitter::isElementwise(Operation *op) {
  if (auto rebase = dyn_cast<RebaseOp>(op))
    return rebase.getAxis() != 0;
  return op->getNumResults() == 1 &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<linalg::BroadcastOp, tensor::SplatOp>(op));
}

void RowSplitter::splitElementwise(Operation *op) {
  bool isWhole = isOfColumns(op);
  Value result = op->getResult(0);
  Pieces made;
  for (auto [number, range] :
       llvm::enumerate(getRanges(getTile(result).getDimSize(0)))) {
    IRMapping map;
    for (Value operand : op->getOperands())
      if (getTile(operand) && !(isWhole && operand == op->getOperand(0)))
        map.map(operand, getPieces(operand)[number]);
    made.push_back(clone(op, map, getPieceType(result, range))->getResult(0));
  }
  pieces[result] = made;
}

void RowSplitter::visit(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (!op.hasTrait<OpTrait::IsTerminator>())
      visit(&op);
}

namespace {
struct SplitRows : gdn::tile::impl::SplitRowsPassBase<SplitRows> {
  using SplitRowsPassBase::SplitRowsPassBase;

  void runOnOperation() override {
    if (rows < 1) {
      getOperation().emitOpError("expected pieces of at least one row, got ")
          << rows.getValue();
      return signalPassFailure();
    }
    RowSplitter(getOperation(), rows).run();
  }
};
} // namespace
