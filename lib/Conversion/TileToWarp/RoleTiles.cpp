//===- RoleTiles.cpp - Ops on the tiles of a role -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

AddedTile gdn::findAdded(tile::StoreOp store) {
  auto sum = store.getTile().getDefiningOp<arith::AddFOp>();
  auto load = sum && sum->hasOneUse()
                  ? sum.getRhs().getDefiningOp<tile::LoadOp>()
                  : tile::LoadOp();
  if (!load || !load->hasOneUse() || load->getBlock() != store->getBlock() ||
      load.getSource() != store.getTarget() ||
      load.getOffsets() != store.getOffsets() ||
      load.getAxes() != store.getAxes() || load.getDim() != store.getDim() ||
      !load.getEnd() || !getElementTypeOrSelf(sum).isF32())
    return {store.getTile(), {}};
  for (Operation *op = load->getNextNode(); op != store; op = op->getNextNode())
    if (!isMemoryEffectFree(op))
      return {store.getTile(), {}};
  return {sum.getLhs(), load};
}

/// A row of a tile, or a column of one in shared memory, as a vector.
LogicalResult RoleLayouts::convertRow(tensor::ExtractSliceOp slice) {
  ArrayRef<int64_t> offsets = slice.getStaticOffsets();
  RankedTensorType tile = slice.getSourceType();
  Value source = slice.getSource();
  auto place = shared.find(source);
  if (tile.getRank() == 1) {
    if (place == shared.end() || place->second.row || place->second.column)
      return slice.emitOpError("expected a part of a vector from a channel");
    Value view = place->second.view;
    auto type = ViewType::get(slice.getType().getShape(),
                              slice.getType().getElementType());
    shared[slice] = {
        SliceOp::create(b, slice.getLoc(), type, view, 0, offsets[0])};
    return success();
  }
  bool isRow = slice.getStaticSizes()[0] == 1;
  if (slice.getType().getDimSize(0) != tile.getDimSize(isRow ? 1 : 0))
    return slice.emitOpError("expected a whole row or column of a tile");
  if (place != shared.end()) {
    InShared line = {place->second.view};
    // A column of the view where it is of the turned tile.
    (isRow != place->second.transposed ? line.row : line.column) =
        offsets[isRow ? 0 : 1];
    shared[slice] = line;
    return success();
  }
  FailureOr<Value> registers = fragment(source);
  if (failed(registers))
    return failure();
  if (!isRow) {
    RankedTensorType type =
        withEncoding(slice.getType(), RowsAttr::get(b.getContext()));
    map.map(slice.getResult(), Value(ColumnOp::create(b, slice.getLoc(), type,
                                                      *registers, offsets[1])));
    return placeLike(slice.getResult(), source);
  }
  RankedTensorType type =
      withEncoding(slice.getType(), ColumnsAttr::get(b.getContext()));
  auto row = RowOp::create(b, slice.getLoc(), type, *registers,
                           firstRow.lookup(source) + offsets[0]);
  row->setAttr(WarpDialect::getScratchBytesAttrName(),
               b.getI64IntegerAttr(type.getDimSize(0) *
                                   type.getElementTypeBitWidth() / 8));
  map.map(slice.getResult(), row.getResult());
  return success();
}

LogicalResult RoleLayouts::convertSlice(tensor::ExtractSliceOp slice) {
  ArrayRef<int64_t> offsets = slice.getStaticOffsets(),
                    sizes = slice.getStaticSizes();
  if (!slice.hasUnitStride() || slice.getOffsets().size() ||
      slice.getSizes().size())
    return slice.emitOpError("expected a slice at a constant place");
  if (slice.getType().getRank() == 1)
    return convertRow(slice);
  Value source = slice.getSource();
  // A vector that repeats lies along the rows of such a tile wherever it is.
  bool isAligned = offsets[0] % sizes[0] == 0;
  auto place = shared.find(source);
  if (place != shared.end()) {
    InShared from = place->second;
    bool turn = from.transposed;
    InShared piece = {sliceView(from.view, offsets[turn], offsets[!turn],
                                sizes[turn], sizes[!turn]),
                      turn};
    RankedTensorType tile = slice.getSourceType();
    if (!from.whole && tile.getDimSize(0) == format::kWgmmaRows)
      from.whole = from.view;
    if (sizes[1] == tile.getDimSize(1) && isAligned) {
      piece.whole = from.whole;
      piece.first = from.first + offsets[0];
    }
    shared[slice] = piece;
    return success();
  }
  FailureOr<Value> tile = fragment(source);
  if (failed(tile) || failed(checkTile(slice)))
    return failure();
  if (offsets[1] != 0 || sizes[1] != slice.getSourceType().getDimSize(1))
    return slice.emitOpError("expected whole rows of a fragment");
  if (!isAligned)
    return slice.emitOpError("expected rows of a fragment from a multiple of "
                             "their number on, got ")
           << sizes[0] << " rows from row " << offsets[0];
  map.map(slice.getResult(), *tile);
  firstRow[slice] = firstRow.lookup(source) + offsets[0];
  return success();
}

/// The numbers of all rows, or columns, of a tile.
LogicalResult RoleLayouts::convertNumbers(linalg::BroadcastOp broadcast) {
  Value tile = broadcast->getResult(0);
  if (failed(checkTile(tile)))
    return failure();
  bool isOfRows = broadcast.getDimensions()[0] != 0;
  auto type = cast<RankedTensorType>(convertType(tile.getType()));
  Value numbers = IotaOp::create(b, broadcast.getLoc(), type, isOfRows ? 0 : 1);
  if (Attribute use = broadcast->getAttr(tile::kRereadAttrName))
    numbers.getDefiningOp()->setAttr(tile::kRereadAttrName, use);
  // A tile of fewer rows lies in some rows of the fragment, which repeat.
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  if (isOfRows && rows != format::kWgmmaRows) {
    if (!llvm::isPowerOf2_64(rows))
      return broadcast.emitOpError("expected the numbers of 2^n rows, got "
                                   "those of ")
             << rows;
    Value bits = arith::ConstantOp::create(
        b, broadcast.getLoc(),
        DenseElementsAttr::get(type, b.getI32IntegerAttr(rows - 1)));
    numbers = arith::AndIOp::create(b, broadcast.getLoc(), numbers, bits);
  }
  map.map(tile, numbers);
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
  auto numbers = broadcast.getInput().getDefiningOp<arith::ConstantOp>();
  if (numbers && isNumbers(numbers))
    return convertNumbers(broadcast);
  FailureOr<Value> source = vector(broadcast.getInput(), encoding);
  if (failed(source) || failed(checkTile(broadcast->getResult(0))))
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
  auto cut = CausalOp::create(b, causal.getLoc(), *source, causal.getStrict());
  if (Attribute use = causal->getAttr(tile::kRereadAttrName))
    cut->setAttr(tile::kRereadAttrName, use);
  map.map(causal.getResult(), cut.getResult());
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

void RoleLayouts::markOverRows(Operation *op, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (DenseI64ArrayAttr rows = getRows(tile))
    op->setAttr(WarpDialect::getRowsAttrName(), rows);
  // Each warp leaves a vector of columns.
  int64_t bytes = type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  op->setAttr(WarpDialect::getScratchBytesAttrName(),
              b.getI64IntegerAttr(format::kWarpgroupWarps * bytes));
}

LogicalResult RoleLayouts::convertScan(tile::ScanOp scan) {
  FailureOr<Value> source = fragment(scan.getSource());
  if (failed(source))
    return failure();
  if (!scan.getType().getElementType().isF32())
    return scan.emitOpError("expected a tile of f32, got ") << scan.getType();
  auto sums = tile::ScanOp::create(b, scan.getLoc(), (*source).getType(),
                                   *source, scan.getAxis(), scan.getReverse());
  if (scan.getAxis() == 0)
    markOverRows(sums, scan.getSource());
  map.map(scan.getResult(), sums.getResult());
  return placeLike(scan.getResult(), scan.getSource());
}

/// A quad of lanes has all columns of a row, and a warp the rows of a block.
LogicalResult RoleLayouts::convertRebase(tile::RebaseOp rebase) {
  FailureOr<Value> source = fragment(rebase.getSource());
  if (failed(source))
    return failure();
  auto block = static_cast<int64_t>(rebase.getBlock());
  bool isOfRows = rebase.getAxis() == 0;
  bool fits = isOfRows ? format::kWarpRows % block == 0
                       : block % format::kWgmmaColumnUnit == 0 ||
                             format::kWgmmaColumnUnit % block == 0;
  if (!fits || !rebase.getType().getElementType().isF32())
    return rebase.emitOpError("expected blocks of 1, 2, 4 or a multiple of ")
           << format::kWgmmaColumnUnit << " columns, or of 2^n rows up to "
           << format::kWarpRows << ", of a tile of f32, got blocks of " << block
           << " along dimension " << rebase.getAxis() << " of "
           << rebase.getType();
  map.map(rebase.getResult(),
          Value(tile::RebaseOp::create(b, rebase.getLoc(), (*source).getType(),
                                       *source, rebase.getAxis(),
                                       rebase.getBlock(), rebase.getAt())));
  return placeLike(rebase.getResult(), rebase.getSource());
}

/// A warp has the rows of a block, and reads the one of them.
LogicalResult RoleLayouts::convertRepeat(tile::RepeatOp repeat) {
  RankedTensorType tile = repeat.getType();
  auto place = shared.find(repeat.getSource());
  if (repeat.getAxis() != 0 || repeat.getBlock() != format::kWarpRows ||
      tile.getRank() != 2 || tile.getDimSize(0) != format::kWgmmaRows ||
      place == shared.end() || place->second.transposed)
    return repeat.emitOpError("expected blocks of ")
           << format::kWarpRows << " rows of a tile of " << format::kWgmmaRows
           << " rows from a channel, got blocks of "
           << static_cast<int64_t>(repeat.getBlock()) << " along dimension "
           << static_cast<int64_t>(repeat.getAxis()) << " of " << tile;
  if (failed(checkTile(repeat.getResult())))
    return failure();
  map.map(repeat.getResult(),
          Value(FragmentLoadOp::create(b, repeat.getLoc(), convertType(tile),
                                       place->second.view,
                                       /*transpose=*/false, DenseI64ArrayAttr(),
                                       map.lookupOrDefault(repeat.getAt()))));
  return success();
}

/// What lies in shared memory is read the other way.
LogicalResult RoleLayouts::convertTranspose(linalg::TransposeOp transpose) {
  auto place = shared.find(transpose.getInput());
  if (place == shared.end())
    return transpose.emitOpError("expected a tile from a channel, got one that "
                                 "is made here");
  InShared turned = {place->second.view, !place->second.transposed};
  shared[transpose->getResult(0)] = turned;
  return success();
}

LogicalResult RoleLayouts::convertClusterSum(tile::ClusterSumOp sum) {
  FailureOr<Value> source = fragment(sum.getSource());
  if (failed(source) || failed(checkTile(sum.getResult())))
    return failure();
  RankedTensorType tile = sum.getSource().getType();
  if (tile.getDimSize(0) != format::kWgmmaRows ||
      !tile.getElementType().isF32())
    return sum.emitOpError("expected a tile of f32 with ")
           << format::kWgmmaRows << " rows, got " << tile;
  if (role.getCount() != format::kWarpgroupWarps)
    return sum.emitOpError("expected a role of one warpgroup, got ")
           << role.getCount() << " warps";
  // The others' columns are added where somebody needs the sum.
  sent[sum.getResult()] = ClusterSendOp::create(
      b, sum.getLoc(), convertType(sum.getType()), *source,
      map.lookupOrDefault(sum.getNumber()), DenseI64ArrayAttr());
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
  if (makes(2) && failed(checkTile(op->getResult(0))))
    return failure();
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

/// The part of a view of a vector that has `piece`, `first` elements behind its
/// begin.
Value RoleLayouts::slicePiece(Value view, RankedTensorType piece,
                              int64_t first) {
  return SliceOp::create(
      b, view.getLoc(), ViewType::get(piece.getShape(), piece.getElementType()),
      view, 0, first);
}

/// One number for every element, by the warps of rows: over lanes each warp
/// would store all of them. Returns false if `put` is of another vector.
bool RoleLayouts::putConstant(PutOp put, Value view) {
  auto constant = put.getValue().getDefiningOp<arith::ConstantOp>();
  auto type = cast<RankedTensorType>(put.getValue().getType());
  if (!isGroup || !constant ||
      !cast<DenseElementsAttr>(constant.getValue()).isSplat() ||
      type.getDimSize(0) % format::kWgmmaRows != 0)
    return false;
  auto piece = type.clone({format::kWgmmaRows});
  Value rows = constantLike(constant,
                            withEncoding(piece, RowsAttr::get(b.getContext())));
  for (int64_t first = 0; first < type.getDimSize(0);
       first += format::kWgmmaRows)
    VectorStoreOp::create(b, put.getLoc(), rows, slicePiece(view, piece, first),
                          DenseI64ArrayAttr());
  return true;
}
