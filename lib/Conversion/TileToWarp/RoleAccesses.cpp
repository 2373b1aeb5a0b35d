//===- RoleAccesses.cpp - Channels and arrays of a role -------------------===//
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

/// The vector whose elements `factor` has along dimension `axis` of a tile.
static Value findVector(Value factor, int64_t axis) {
  auto broadcast = factor.getDefiningOp<linalg::BroadcastOp>();
  return broadcast && broadcast.getDimensions() == ArrayRef<int64_t>(1 - axis)
             ? broadcast.getInput()
             : Value();
}

ScaledTile gdn::findScaled(tile::TriInverseOp inverse) {
  auto round = inverse.getSource().getDefiningOp<arith::TruncFOp>();
  auto scale =
      round ? round.getIn().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  Value columns = scale ? findVector(scale.getRhs(), 1) : Value();
  return columns ? ScaledTile{scale.getLhs(), columns}
                 : ScaledTile{inverse.getSource()};
}

std::optional<SolvedTile> gdn::findSolve(Value value) {
  auto round = value.getDefiningOp<arith::TruncFOp>();
  if (!round)
    return std::nullopt;
  if (auto inverse = round.getIn().getDefiningOp<tile::TriInverseOp>())
    return SolvedTile{inverse};
  auto byColumns = round.getIn().getDefiningOp<arith::MulFOp>();
  auto byRows = byColumns ? byColumns.getLhs().getDefiningOp<arith::MulFOp>()
                          : arith::MulFOp();
  auto inverse = byRows ? byRows.getLhs().getDefiningOp<tile::TriInverseOp>()
                        : tile::TriInverseOp();
  if (!inverse)
    return std::nullopt;
  SolvedTile solved = {inverse, findVector(byRows.getRhs(), 0),
                       findVector(byColumns.getRhs(), 1)};
  return solved.rows && solved.columns ? std::optional(solved) : std::nullopt;
}

/// The slot of a put or get, of the field's view.
template <typename Op>
Value RoleLayouts::createSlot(Op op, const FieldLayout &layout,
                              SlotDirection direction) {
  return SlotOp::create(b, op.getLoc(), layout.view, direction, op.getChannel(),
                        op.getField(), map.lookupOrDefault(op.getIteration()),
                        map.lookupOrDefault(op.getVTile()),
                        map.lookupOrDefault(op.getChunk()));
}

LogicalResult RoleLayouts::convertGet(GetOp get) {
  Location loc = get.getLoc();
  const FieldLayout &layout = fields.lookup(get.getChannel(), get.getField());
  Value view = createSlot(get, layout, SlotDirection::Get);
  if (isa<RankedTensorType>(get.getType())) {
    shared[get] = {view, layout.transposed};
    return success();
  }
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  map.map(get.getResult(),
          Value(LoadOp::create(b, loc, get.getType(), view, zero)));
  return success();
}

Value RoleLayouts::sliceView(Value view, int64_t row, int64_t column,
                             int64_t rows, int64_t columns) {
  auto source = cast<ViewType>(view.getType());
  SmallVector<int64_t> shape{rows, columns};
  if (ArrayRef(shape) == source.getShape())
    return view;
  int64_t byte = source.getColumn() + column * source.getElementBytes();
  auto type = ViewType::get(
      b.getContext(), shape, source.getElementType(), source.getSwizzle(),
      source.getStride(), source.isSwizzled() ? byte % format::kPanelBytes : 0);
  return SliceOp::create(b, view.getLoc(), type, view, row, column);
}

/// Where a copy of a tensor map has to end. Work items that end with the array,
/// at the kernel's argument `tokens`, need nothing: the map ends there too.
Value RoleLayouts::getCopyEnd(Value end) {
  if (!end)
    return {};
  Value converted = map.lookupOrDefault(end);
  auto cast = converted.getDefiningOp<arith::IndexCastOp>();
  return cast && isa<BlockArgument>(cast.getIn()) ? Value() : converted;
}

/// Whether one warp of the role runs each copy; each of several warps that do
/// not take turns would copy the whole tile.
LogicalResult RoleLayouts::requireOneCopier(Operation *copy) {
  if (role.countTogether() == 1)
    return success();
  return copy->emitOpError("expected a role of one warp, or of warps that take "
                           "turns (round_robin), for a tile that is copied "
                           "between an array and a slot, got role ")
         << role.getNameAttr() << " of " << role.getCount() << " warps";
}

/// Copies the tile of `load` to `view` by the lanes of a warp.
LogicalResult RoleLayouts::gather(tile::LoadOp load, Value view,
                                  bool isTransposed) {
  SmallVector<int64_t> axes(load.getAxes());
  if (isTransposed)
    std::swap(axes[0], axes[1]);
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  Value end = getCopyEnd(load.getEnd());
  StridedLoadOp::create(b, load.getLoc(), map.lookupOrDefault(load.getSource()),
                        offsets, axes, end,
                        end ? load.getDimAttr() : IntegerAttr(), view);
  return success();
}

/// Copies the tile of `load` to `view`, transposed or not. Panels that do not
/// follow each other are copied one by one.
LogicalResult RoleLayouts::fetch(tile::LoadOp load, Value view,
                                 bool isTransposed) {
  if (failed(requireOneCopier(load)))
    return failure();
  if (!isCopiedAs(load, isTransposed))
    return gather(load, view, isTransposed);
  Location loc = load.getLoc();
  auto type = cast<ViewType>(view.getType());
  SmallVector<int64_t> axes(load.getAxes());
  llvm::sort(axes);
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  int64_t panel = format::kPanelBytes / type.getElementBytes();
  bool dense = type.getPanels() == 1 ||
               type.getStride() == type.getRows() * format::kPanelBytes;
  int64_t width = dense ? type.getColumns() : panel;
  Value end = getCopyEnd(load.getEnd());
  for (int64_t first = 0; first < type.getColumns(); first += width) {
    Value vTile = sliceView(view, 0, first, type.getRows(), width);
    SmallVector<Value> at = offsets;
    if (first != 0)
      at[axes[1]] = arith::AddIOp::create(
          b, loc, at[axes[1]], arith::ConstantIndexOp::create(b, loc, first));
    TmaLoadOp::create(b, loc, map.lookupOrDefault(load.getSource()), at, axes,
                      end, end ? load.getDimAttr() : IntegerAttr(), vTile);
  }
  return success();
}

/// A stack of loaded tiles, or of tiles that this role has made.
LogicalResult RoleLayouts::putStack(PutOp put, tensor::ConcatOp stack,
                                    const FieldLayout &layout, Value view) {
  if (stack.getDim() != 0 || !isTile(stack.getType(), 2))
    return stack.emitOpError("expected tiles stacked along their rows");
  auto isLoaded = [](Value piece) {
    return piece.getDefiningOp<tile::LoadOp>() != nullptr;
  };
  bool areLoaded = llvm::all_of(stack.getInputs(), isLoaded);
  if ((areLoaded && layout.transposed) ||
      (!areLoaded && llvm::any_of(stack.getInputs(), isLoaded)))
    return stack.emitOpError("expected a stack of loaded tiles, or one of "
                             "computed tiles, got both or turned ones");
  int64_t row = 0, columns = stack.getType().getDimSize(1);
  for (Value piece : stack.getInputs()) {
    int64_t rows = cast<RankedTensorType>(piece.getType()).getDimSize(0);
    Value place = layout.transposed ? sliceView(view, 0, row, columns, rows)
                                    : sliceView(view, row, 0, rows, columns);
    row += rows;
    if (areLoaded) {
      if (failed(fetch(piece.getDefiningOp<tile::LoadOp>(), place,
                       layout.transposed)))
        return failure();
      continue;
    }
    FailureOr<Value> registers = fragment(piece);
    if (failed(registers))
      return failure();
    FragmentStoreOp::create(b, put.getLoc(), *registers, place,
                            layout.transposed, getRows(piece));
  }
  return success();
}

/// Vectors of rows, one behind the other.
LogicalResult RoleLayouts::putVectors(PutOp put, tensor::ConcatOp stack,
                                      Value view) {
  int64_t first = 0;
  for (Value piece : stack.getInputs()) {
    FailureOr<Value> converted = vector(piece, encodingOf(piece));
    if (failed(converted))
      return failure();
    auto type = cast<RankedTensorType>(piece.getType());
    VectorStoreOp::create(
        b, put.getLoc(), *converted, slicePiece(view, type, first),
        isEncoded<RowsAttr>(converted->getType()) ? getRows(piece)
                                                  : DenseI64ArrayAttr());
    first += type.getDimSize(0);
  }
  return success();
}

LogicalResult RoleLayouts::putSolve(PutOp put, SolvedTile solved, Value view) {
  SmallVector<Value> views;
  ScaledTile m = findScaled(solved.inverse);
  for (Value taken : {m.tile, m.columns, solved.rows, solved.columns}) {
    auto place = shared.find(taken);
    if (taken && place == shared.end())
      return solved.inverse.emitOpError(
          "expected a matrix and its factors from a channel");
    views.push_back(taken ? place->second.view : Value());
  }
  TriInverseOp::create(b, put.getLoc(), views[0], views[1], view, views[2],
                       views[3]);
  return success();
}

LogicalResult RoleLayouts::convertPut(PutOp put) {
  Location loc = put.getLoc();
  const FieldLayout &layout = fields.lookup(put.getChannel(), put.getField());
  Value view = createSlot(put, layout, SlotDirection::Put);
  Value tile = put.getValue();
  if (!isa<RankedTensorType>(tile.getType())) {
    Value one = ElectOp::create(b, loc);
    auto guard = scf::IfOp::create(b, loc, one, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPointToStart(guard.thenBlock());
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    StoreOp::create(b, loc, map.lookupOrDefault(tile), view, zero);
    return success();
  }
  auto vectors = tile.getDefiningOp<tensor::ConcatOp>();
  if (isTile(tile.getType(), 1) && vectors)
    return putVectors(put, vectors, view);
  if (isTile(tile.getType(), 1)) {
    if (putConstant(put, view))
      return success();
    FailureOr<Value> converted = vector(tile, encodingOf(tile));
    if (failed(converted))
      return failure();
    VectorStoreOp::create(b, loc, *converted, view,
                          isEncoded<RowsAttr>(converted->getType())
                              ? getRows(tile)
                              : DenseI64ArrayAttr());
    return success();
  }
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    return fetch(load, view, layout.transposed);
  if (layout.view.isSwizzled())
    stored[tile] = {view, layout.transposed};
  if (auto stack = tile.getDefiningOp<tensor::ConcatOp>())
    return putStack(put, stack, layout, view);
  if (std::optional<SolvedTile> solved = findSolve(tile))
    return putSolve(put, *solved, view);
  FailureOr<Value> registers = fragment(tile);
  if (failed(registers))
    return failure();
  FragmentStoreOp::create(b, loc, *registers, view, layout.transposed,
                          getRows(tile));
  return success();
}

DenseI64ArrayAttr RoleLayouts::getRows(Value tile) {
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  if (rows == format::kWgmmaRows)
    return {};
  int64_t first = firstRow.lookup(tile);
  return b.getDenseI64ArrayAttr({first, first + rows});
}

LogicalResult RoleLayouts::convertStore(tile::StoreOp store) {
  Location loc = store.getLoc();
  SmallVector<Value> offsets;
  for (Value offset : store.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  Value array = map.lookupOrDefault(store.getTarget());
  Value end = store.getEnd() ? map.lookupOrDefault(store.getEnd()) : Value();
  auto place = shared.find(store.getTile());
  // The copy engine has no vectors: their lanes are stored.
  if (place != shared.end() && isTile(store.getTile().getType(), 2)) {
    if (failed(requireOneCopier(store)))
      return failure();
    SmallVector<int64_t> axes(store.getAxes());
    llvm::sort(axes);
    end = getCopyEnd(store.getEnd());
    TmaStoreOp::create(b, loc, place->second.view, array, offsets, axes, end,
                       end ? store.getDimAttr() : IntegerAttr());
    return success();
  }
  auto [old, stored] = findAdded(store);
  FailureOr<Value> tile =
      isTile(old.getType(), 1) ? vector(old, encodingOf(old)) : value(old);
  if (failed(tile))
    return failure();
  bool hasRows = isEncoded<FragmentAttr>((*tile).getType()) ||
                 isEncoded<RowsAttr>((*tile).getType());
  Value sumEnd = stored ? map.lookupOrDefault(stored.getEnd()) : Value();
  auto stores = ArrayStoreOp::create(
      b, loc, *tile, array, offsets, store.getAxesAttr(), end,
      store.getDimAttr(), sumEnd, hasRows ? getRows(old) : DenseI64ArrayAttr());
  if (store->hasAttr(tile::kSeldomAttrName))
    stores->setAttr(WarpDialect::getLateAddressesAttrName(), b.getUnitAttr());
  return success();
}

LogicalResult RoleLayouts::convertReport(tile::ReportOp report) {
  if (role.getCount() != 1)
    return report.emitOpError("expected a role of one warp, whose stores it "
                              "follows, got role ")
           << role.getNameAttr() << " of " << role.getCount() << " warps";
  SmallVector<Value> offsets;
  for (Value offset : report.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  ReportOp::create(b, report.getLoc(), map.lookupOrDefault(report.getDone()),
                   map.lookupOrDefault(report.getArray()), offsets);
  return success();
}

LogicalResult RoleLayouts::convertLoad(tile::LoadOp load) {
  // A tile that goes to a channel is copied there by its put.
  auto goesToChannel = [](Operation *user) {
    return isa<PutOp, tensor::ConcatOp>(user);
  };
  if (isTile(load.getType(), 2) &&
      llvm::all_of(load->getUsers(), goesToChannel))
    return success();
  if (isTile(load.getType(), 2)) {
    if (failed(checkTile(load)))
      return failure();
    DenseI64ArrayAttr rows = getRows(load);
    if (rows)
      firstRow[load] = 0;
    auto type = cast<RankedTensorType>(convertType(load.getType()));
    map.map(load.getResult(), loadArray(load, type, rows));
    return success();
  }
  SetVector<Attribute> encodings;
  if (isGroup)
    collectEncodings(load, encodings);
  else
    encodings.insert(lanesEncoding());
  for (Attribute encoding : encodings) {
    if (failed(checkVector(load, encoding)))
      return failure();
    DenseI64ArrayAttr rows =
        isa<RowsAttr>(encoding) ? getRows(load) : DenseI64ArrayAttr();
    if (rows)
      firstRow[load] = 0;
    Value loaded =
        loadArray(load, withEncoding(load.getType(), encoding), rows);
    if (encoding == lanesEncoding())
      map.map(load.getResult(), loaded);
    else
      vectors[{load, encoding}] = loaded;
  }
  return success();
}

Value RoleLayouts::loadArray(tile::LoadOp load, RankedTensorType type,
                             DenseI64ArrayAttr rows) {
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  Value end = load.getEnd() ? map.lookupOrDefault(load.getEnd()) : Value();
  auto loaded = ArrayLoadOp::create(
      b, load.getLoc(), type, map.lookupOrDefault(load.getSource()), offsets,
      load.getAxesAttr(), end, load.getDimAttr(), rows);
  if (Attribute words = load->getAttr(tile::kWordsAttrName))
    loaded->setAttr(tile::kWordsAttrName, words);
  return loaded;
}
