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

#include "Layouts.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_INFERLAYOUTSPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Fields of channels
//===----------------------------------------------------------------------===//

/// A swizzled or plain view of `shape`, transposed or not.
static FieldLayout makeLayout(RankedTensorType tile, bool transposed) {
  SmallVector<int64_t> shape(tile.getShape());
  if (transposed)
    std::swap(shape[0], shape[1]);
  return {ViewType::get(shape, tile.getElementType(), kSm90a.panelBytes),
          transposed};
}

/// Rows of M^T an odd number of 16 bytes apart, so that a warp's reads of one
/// row after the other meet different banks.
static FieldLayout makeSolveLayout(RankedTensorType tile) {
  constexpr int64_t kRun = 16;
  int64_t bytes = tile.getDimSize(0) * tile.getElementTypeBitWidth() / 8 + kRun;
  return {ViewType::get(tile.getContext(), tile.getShape(),
                        tile.getElementType(), /*swizzle=*/0, bytes,
                        /*column=*/0),
          /*transposed=*/true};
}

/// True if a tile's rows run along the array's innermost dimension.
static bool isTransposed(ArrayRef<int64_t> axes) { return axes[0] > axes[1]; }

static tile::LoadOp findLoad(Value value) {
  if (auto concat = value.getDefiningOp<tensor::ConcatOp>())
    return findLoad(concat.getInputs().front());
  return value.getDefiningOp<tile::LoadOp>();
}

static FieldLayout findLayout(ChannelOp channel, uint64_t field) {
  auto tile = dyn_cast<RankedTensorType>(channel.getType().getFields()[field]);
  if (!tile)
    return {ViewType::get(ArrayRef<int64_t>(1),
                          channel.getType().getFields()[field])};
  if (tile.getRank() == 1)
    return {ViewType::get(tile.getShape(), tile.getElementType())};
  for (Operation *user : channel->getUsers()) {
    if (auto put = dyn_cast<PutOp>(user); put && put.getField() == field)
      if (tile::LoadOp load = findLoad(put.getValue()))
        return makeLayout(tile, isTransposed(load.getAxes()));
    auto get = dyn_cast<GetOp>(user);
    if (!get || get.getField() != field)
      continue;
    for (Operation *taker : get->getUsers()) {
      if (auto store = dyn_cast<tile::StoreOp>(taker))
        return makeLayout(tile, isTransposed(store.getAxes()));
      if (isa<tile::InverseOp>(taker))
        return makeSolveLayout(tile);
    }
  }
  return makeLayout(tile, /*transposed=*/false);
}

/// Two tiles of half a panel's width lie side by side in its rows. Neither may
/// be transposed or copied from or to an array, which takes whole rows.
static void shareRows(MutableArrayRef<FieldLayout> fields) {
  FieldLayout *open = nullptr;
  for (FieldLayout &field : fields) {
    ViewType view = field.view;
    constexpr int64_t kHalf = kSm90a.panelBytes / 2;
    if (!view.isSwizzled() || field.transposed ||
        view.getColumns() * view.getElementBytes() > kHalf)
      continue;
    if (!open || open->view.getRows() != view.getRows()) {
      open = &field;
      continue;
    }
    field.view =
        ViewType::get(view.getContext(), view.getShape(), view.getElementType(),
                      view.getSwizzle(), view.getStride(), kHalf);
    open = nullptr;
  }
}

FieldLayouts::FieldLayouts(KernelOp kernel) {
  for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
    SmallVector<FieldLayout> &fields = layouts[channel];
    for (uint64_t field = 0; field < channel.getType().getFields().size();
         ++field) {
      // The fields of further parts follow that of the first.
      bool used = llvm::any_of(channel->getUsers(), [&](Operation *user) {
        auto put = dyn_cast<PutOp>(user);
        auto get = dyn_cast<GetOp>(user);
        return (put && put.getField() == field) ||
               (get && get.getField() == field);
      });
      fields.push_back(used || fields.empty() ? findLayout(channel, field)
                                              : fields.back());
    }
    shareRows(fields);
  }
}

void FieldLayouts::apply() {
  for (auto &[channel, fields] : layouts) {
    SmallVector<Type> views = llvm::map_to_vector(
        fields, [](const FieldLayout &field) -> Type { return field.view; });
    cast<ChannelOp>(channel).getResult().setType(
        ChannelType::get(channel->getContext(), views));
  }
}

//===----------------------------------------------------------------------===//
// The body of a role
//===----------------------------------------------------------------------===//

namespace {
/// A value in shared memory, and whether it lies there transposed.
struct InShared {
  Value view;
  bool transposed = false;
};

/// Rewrites the body of one role with encodings and views.
class RoleLayouts {
public:
  RoleLayouts(RoleOp role, FieldLayouts &fields)
      : role(role), fields(fields), b(role.getContext()),
        isGroup(role.getCount() % kSm90a.warpgroupWarps == 0 &&
                !role->hasAttr(WarpDialect::getAloneAttrName())) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation *op);
  LogicalResult convertGet(GetOp get);
  LogicalResult convertPut(PutOp put);
  LogicalResult convertStore(tile::StoreOp store);
  LogicalResult convertLoad(tile::LoadOp load);
  LogicalResult convertSlice(tensor::ExtractSliceOp slice);
  LogicalResult convertContract(linalg::ContractOp contract);
  LogicalResult convertBroadcast(linalg::BroadcastOp broadcast);
  LogicalResult convertCausal(tile::CausalOp causal);
  LogicalResult convertIf(scf::IfOp branch);
  LogicalResult convertFor(scf::ForOp loop);
  LogicalResult convertOther(Operation *op);
  LogicalResult convertBranch(scf::IfOp from, scf::IfOp to, bool isThen,
                              SmallVectorImpl<int64_t> &rows);

  /// The new value for any operand: a fragment, vector over lanes or scalar.
  FailureOr<Value> value(Value old);
  FailureOr<Value> fragment(Value old);
  FailureOr<Value> lanes(Value old) { return vector(old, lanesEncoding()); }
  FailureOr<Value> vector(Value old, Attribute encoding);
  FailureOr<SmallVector<Value>> values(ValueRange old);

  /// The type of a tile in registers here.
  Type convertType(Type type);
  RankedTensorType withEncoding(RankedTensorType tile, Attribute encoding);
  Attribute lanesEncoding() { return LanesAttr::get(b.getContext()); }
  /// Clones an elementwise op on new operands.
  Value cloneOn(Operation *op, ValueRange operands, RankedTensorType type);
  void fetch(tile::LoadOp load, Value view);
  Value getCopyEnd(Value end);
  Value sliceView(Value view, int64_t row, int64_t column, int64_t rows,
                  int64_t columns);
  Value constantLike(arith::ConstantOp constant, RankedTensorType type);

  RoleOp role;
  FieldLayouts &fields;
  OpBuilder b;
  /// Whether the role computes as warpgroups or as single warps.
  bool isGroup;
  IRMapping map;
  DenseMap<Value, InShared> shared;
  /// First row, in its fragment, of a tile of fewer rows.
  DenseMap<Value, int64_t> firstRow;
};
} // namespace

static bool isTile(Type type, int64_t rank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == rank;
}

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

FailureOr<Value> RoleLayouts::fragment(Value old) {
  if (Value known = map.lookupOrNull(old))
    return known;
  auto type = cast<RankedTensorType>(convertType(old.getType()));
  auto place = shared.find(old);
  if (place != shared.end()) {
    auto tile = cast<RankedTensorType>(old.getType());
    if (tile.getDimSize(0) != kSm90a.productRows)
      return emitError(old.getLoc(), "expected a tile of ")
             << kSm90a.productRows << " rows to read from shared memory, got "
             << tile;
    return Value(FragmentLoadOp::create(
        b, old.getLoc(), type, place->second.view, place->second.transposed));
  }
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat())
      return constantLike(constant, type);
  if (auto widen = dyn_cast_or_null<arith::ExtFOp>(op)) {
    FailureOr<Value> narrow = fragment(widen.getIn());
    if (failed(narrow))
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
  if (Value known = map.lookupOrNull(old))
    return known;
  RankedTensorType type =
      withEncoding(cast<RankedTensorType>(old.getType()), encoding);
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
  return cloneOn(op, operands, type);
}

//===----------------------------------------------------------------------===//
// Channels and arrays
//===----------------------------------------------------------------------===//

LogicalResult RoleLayouts::convertGet(GetOp get) {
  Location loc = get.getLoc();
  const FieldLayout &layout = fields.lookup(get.getChannel(), get.getField());
  Value view = SlotOp::create(
      b, loc, layout.view, SlotDirection::Get, get.getChannel(), get.getField(),
      map.lookupOrDefault(get.getTrip()), map.lookupOrDefault(get.getPart()));
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
  auto type = ViewType::get(b.getContext(), shape, source.getElementType(),
                            source.getSwizzle(), source.getStride(),
                            source.isSwizzled() ? byte % kSm90a.panelBytes : 0);
  return SliceOp::create(b, view.getLoc(), type, view, row, column);
}

/// Where a copy of a tensor map has to end. Items that end with the array, at
/// the kernel's argument `tokens`, need nothing: the map ends there too.
Value RoleLayouts::getCopyEnd(Value end) {
  if (!end)
    return {};
  Value converted = map.lookupOrDefault(end);
  auto cast = converted.getDefiningOp<arith::IndexCastOp>();
  return cast && isa<BlockArgument>(cast.getIn()) ? Value() : converted;
}

/// Copies the tile of `load` to `view`, which lies as the array does. Panels
/// that do not follow each other are copied one by one.
void RoleLayouts::fetch(tile::LoadOp load, Value view) {
  Location loc = load.getLoc();
  auto type = cast<ViewType>(view.getType());
  SmallVector<int64_t> axes(load.getAxes());
  llvm::sort(axes);
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  int64_t panel = kSm90a.panelBytes / type.getElementBytes();
  bool dense = type.getPanels() == 1 ||
               type.getStride() == type.getRows() * kSm90a.panelBytes;
  int64_t width = dense ? type.getColumns() : panel;
  Value end = getCopyEnd(load.getEnd());
  for (int64_t first = 0; first < type.getColumns(); first += width) {
    Value part = sliceView(view, 0, first, type.getRows(), width);
    SmallVector<Value> at = offsets;
    if (first != 0)
      at[axes[1]] = arith::AddIOp::create(
          b, loc, at[axes[1]], arith::ConstantIndexOp::create(b, loc, first));
    FetchOp::create(b, loc, map.lookupOrDefault(load.getSource()), at, axes,
                    end, end ? load.getDimAttr() : IntegerAttr(), part);
  }
}

/// The solve that makes `value`, if one does.
static tile::InverseOp findInverse(Value value) {
  if (auto round = value.getDefiningOp<arith::TruncFOp>())
    return round.getIn().getDefiningOp<tile::InverseOp>();
  return {};
}

LogicalResult RoleLayouts::convertPut(PutOp put) {
  Location loc = put.getLoc();
  const FieldLayout &layout = fields.lookup(put.getChannel(), put.getField());
  Value view = SlotOp::create(
      b, loc, layout.view, SlotDirection::Put, put.getChannel(), put.getField(),
      map.lookupOrDefault(put.getTrip()), map.lookupOrDefault(put.getPart()));
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
  if (isTile(tile.getType(), 1)) {
    FailureOr<Value> converted = lanes(tile);
    if (failed(converted))
      return failure();
    VectorStoreOp::create(b, loc, *converted, view);
    return success();
  }
  if (auto load = tile.getDefiningOp<tile::LoadOp>()) {
    fetch(load, view);
    return success();
  }
  if (auto concat = tile.getDefiningOp<tensor::ConcatOp>()) {
    int64_t row = 0;
    for (Value part : concat.getInputs()) {
      auto load = part.getDefiningOp<tile::LoadOp>();
      if (!load || layout.transposed)
        return put.emitOpError("expected a stack of loaded tiles");
      int64_t rows = cast<RankedTensorType>(part.getType()).getDimSize(0);
      fetch(load, sliceView(view, row, 0, rows, layout.view.getColumns()));
      row += rows;
    }
    return success();
  }
  if (tile::InverseOp inverse = findInverse(tile)) {
    auto m = shared.find(inverse.getSource());
    if (m == shared.end())
      return inverse.emitOpError("expected a matrix from a channel");
    SolveOp::create(b, loc, m->second.view, view);
    return success();
  }
  FailureOr<Value> registers = fragment(tile);
  if (failed(registers))
    return failure();
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  DenseI64ArrayAttr taken;
  if (rows != kSm90a.productRows) {
    int64_t first = firstRow.lookup(tile);
    taken = b.getDenseI64ArrayAttr({first, first + rows});
  }
  FragmentStoreOp::create(b, loc, *registers, view, layout.transposed, taken);
  return success();
}

LogicalResult RoleLayouts::convertStore(tile::StoreOp store) {
  Location loc = store.getLoc();
  SmallVector<Value> offsets;
  for (Value offset : store.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  Value array = map.lookupOrDefault(store.getTarget());
  Value end = store.getEnd() ? map.lookupOrDefault(store.getEnd()) : Value();
  auto place = shared.find(store.getTile());
  if (place != shared.end()) {
    SmallVector<int64_t> axes(store.getAxes());
    llvm::sort(axes);
    end = getCopyEnd(store.getEnd());
    FlushOp::create(b, loc, place->second.view, array, offsets, axes, end,
                    end ? store.getDimAttr() : IntegerAttr());
    return success();
  }
  FailureOr<Value> tile = value(store.getTile());
  if (failed(tile))
    return failure();
  ArrayStoreOp::create(b, loc, *tile, array, offsets, store.getAxesAttr(), end,
                       store.getDimAttr());
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
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(map.lookupOrDefault(offset));
  Value end = load.getEnd() ? map.lookupOrDefault(load.getEnd()) : Value();
  map.map(load.getResult(), Value(ArrayLoadOp::create(
                                b, load.getLoc(), convertType(load.getType()),
                                map.lookupOrDefault(load.getSource()), offsets,
                                load.getAxesAttr(), end, load.getDimAttr())));
  return success();
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
    bool turn = place->second.transposed;
    shared[slice] = {sliceView(place->second.view, offsets[turn],
                               offsets[!turn], sizes[turn], sizes[!turn]),
                     turn};
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

LogicalResult RoleLayouts::convertContract(linalg::ContractOp contract) {
  SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
  // Dimensions of the result are m and n; the other one is k.
  auto isFirst = [](AffineMap map, AffineExpr dim) {
    return map.getResult(0) == dim;
  };
  AffineExpr m = maps[2].getResult(0), n = maps[2].getResult(1);
  Value left = contract.getDpsInputs()[0], right = contract.getDpsInputs()[1];
  auto place = shared.find(right);
  if (place == shared.end())
    return contract.emitOpError("expected a right operand from a channel");
  bool transposeA = !isFirst(maps[0], m);
  bool transposeB = isFirst(maps[1], n) != place->second.transposed;
  Value a;
  auto leftPlace = shared.find(left);
  if (leftPlace != shared.end()) {
    a = leftPlace->second.view;
    transposeA ^= leftPlace->second.transposed;
  } else {
    FailureOr<Value> registers = fragment(left);
    if (failed(registers))
      return failure();
    a = *registers;
  }
  Value accumulator = contract.getDpsInits()[0];
  Value into;
  if (!matchPattern(accumulator, m_AnyZeroFloat())) {
    FailureOr<Value> converted = fragment(accumulator);
    if (failed(converted))
      return failure();
    into = *converted;
  }
  map.map(contract.getResult(0),
          Value(ProductOp::create(b, contract.getLoc(),
                                  convertType(contract.getResult(0).getType()),
                                  a, place->second.view, into, transposeA,
                                  transposeB)));
  return success();
}

LogicalResult RoleLayouts::convertBroadcast(linalg::BroadcastOp broadcast) {
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
  return success();
}

LogicalResult RoleLayouts::convertCausal(tile::CausalOp causal) {
  Location loc = causal.getLoc();
  FailureOr<Value> source = fragment(causal.getSource());
  if (failed(source))
    return failure();
  auto type = cast<RankedTensorType>(source->getType());
  auto integers = type.clone(b.getI32Type());
  Value row = IotaOp::create(b, loc, integers, 0),
        column = IotaOp::create(b, loc, integers, 1);
  firstRow[causal] = firstRow.lookup(causal.getSource());
  // Wherever the tile lies in the fragment: its rows repeat.
  int64_t rows = causal.getType().getDimSize(0);
  if (rows != kSm90a.productRows) {
    Value mask = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(integers, b.getI32IntegerAttr(rows - 1)));
    row = arith::AndIOp::create(b, loc, row, mask);
  }
  Value keep =
      arith::CmpIOp::create(b, loc,
                            causal.getStrict() ? arith::CmpIPredicate::sgt
                                               : arith::CmpIPredicate::sge,
                            row, column);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  map.map(causal.getResult(),
          Value(arith::SelectOp::create(b, loc, keep, *source, zero)));
  return success();
}

LogicalResult RoleLayouts::convertOther(Operation *op) {
  bool makesVector =
      op->getNumResults() == 1 && isTile(op->getResult(0).getType(), 1);
  // In a warpgroup a vector's layout is that of its use.
  if (makesVector && isGroup)
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
  int64_t first = 0;
  for (Value operand : op->getOperands())
    first = std::max(first, firstRow.lookup(operand));
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults())) {
    to.setType(convertType(from.getType()));
    map.map(from, to);
    if (isTile(from.getType(), 2))
      firstRow[from] = first;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult RoleLayouts::convertBranch(scf::IfOp from, scf::IfOp to,
                                         bool isThen,
                                         SmallVectorImpl<int64_t> &rows) {
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
  for (Value operand : yield->getOperands())
    rows.push_back(firstRow.lookup(operand));
  scf::YieldOp::create(b, yield->getLoc(), *yielded);
  return success();
}

LogicalResult RoleLayouts::convertIf(scf::IfOp branch) {
  SmallVector<Type> types = llvm::map_to_vector(
      branch.getResultTypes(), [&](Type type) { return convertType(type); });
  bool hasElse = branch.elseBlock() != nullptr;
  auto copy =
      scf::IfOp::create(b, branch.getLoc(), types,
                        map.lookupOrDefault(branch.getCondition()), hasElse);
  StringRef likely = tile::TileDialect::getLikelyAttrName();
  if (Attribute usual = branch->getAttr(likely))
    copy->setAttr(likely, usual);
  SmallVector<int64_t> rows, other;
  if (failed(convertBranch(branch, copy, /*isThen=*/true, rows)) ||
      (hasElse && failed(convertBranch(branch, copy, /*isThen=*/false, other))))
    return failure();
  if (hasElse && rows != other)
    return branch.emitOpError("expected tiles in the same rows of both "
                              "branches");
  for (auto [index, result] : llvm::enumerate(branch.getResults())) {
    map.map(result, copy.getResult(index));
    firstRow[result] = rows[index];
  }
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
  if (auto causal = dyn_cast<tile::CausalOp>(op))
    return convertCausal(causal);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return convertIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertFor(loop);
  // Made where they are used: constants and empty tiles, stacks of loads, what
  // a put takes from a solve, and what is only wider in registers.
  bool isTileConstant = op->hasTrait<OpTrait::ConstantLike>() &&
                        isa<RankedTensorType>(op->getResult(0).getType());
  if (isTileConstant ||
      isa<tensor::EmptyOp, tensor::ConcatOp, tile::InverseOp>(op))
    return success();
  if (auto round = dyn_cast<arith::TruncFOp>(op); round && findInverse(round))
    return success();
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

namespace {
struct InferLayouts : gdn::impl::InferLayoutsPassBase<InferLayouts> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // Without a schedule a kernel is in the explicit form already.
    if (!getOperation()->hasAttr(ScheduleAttr::kName))
      return;
    FieldLayouts fields(kernel);
    for (auto role : kernel.getBody().getOps<RoleOp>())
      if (failed(RoleLayouts(role, fields).run()))
        return signalPassFailure();
    fields.apply();
  }
};
} // namespace
