//===- RoleValues.cpp - Where the values of a role live ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// An error at the op that makes `value`, or whose body has it.
static InFlightDiagnostic emitOpErrorAt(Value value) {
  Operation *op = value.getDefiningOp();
  return (op ? op : value.getParentRegion()->getParentOp())->emitOpError();
}

RankedTensorType RoleLayouts::withEncoding(RankedTensorType tile,
                                           Attribute encoding) {
  SmallVector<int64_t> shape(tile.getShape());
  if (isa<FragmentAttr, RowsAttr>(encoding))
    shape[0] = format::kWgmmaRows;
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

/// Rows that whole warps hold, and columns of a product.
LogicalResult RoleLayouts::checkTile(Value old) {
  auto tile = cast<RankedTensorType>(old.getType());
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1);
  auto error = [&] { return emitOpErrorAt(old); };
  if (!isGroup)
    return error() << "expected tiles in the registers of whole warpgroups, "
                      "got one in role "
                   << role.getNameAttr() << ", whose warps work alone";
  if (rows > format::kWgmmaRows || rows % format::kWarpRows != 0)
    return error() << "expected tiles of a multiple of " << format::kWarpRows
                   << " rows up to " << format::kWgmmaRows
                   << " in registers, got " << tile;
  if (columns > format::kMaxWgmmaColumns ||
      columns % format::kWgmmaColumnUnit != 0)
    return error() << "expected tiles of a multiple of "
                   << format::kWgmmaColumnUnit << " columns up to "
                   << format::kMaxWgmmaColumns << " in registers, got " << tile;
  return success();
}

/// What each encoding asks of a vector's size; one of fewer rows becomes that
/// of all rows of a fragment.
LogicalResult RoleLayouts::checkVector(Value old, Attribute encoding) {
  auto type = cast<RankedTensorType>(old.getType());
  auto error = [&] { return emitOpErrorAt(old); };
  if (!isa<RowsAttr>(encoding))
    return cast<VerifiableTensorEncoding>(encoding).verifyEncoding(
        type.getShape(), type.getElementType(), error);
  int64_t rows = type.getDimSize(0);
  if (rows > format::kWgmmaRows || rows % format::kWarpRows != 0)
    return error() << "expected a multiple of " << format::kWarpRows
                   << " rows up to " << format::kWgmmaRows << ", got " << type;
  return success();
}

FailureOr<Value> RoleLayouts::loadFragment(Value old, const InShared &place) {
  auto tile = cast<RankedTensorType>(old.getType());
  Value view = place.view;
  DenseI64ArrayAttr rows;
  if (tile.getDimSize(0) != format::kWgmmaRows) {
    firstRow[old] = place.whole ? place.first : 0;
    if (place.whole)
      view = place.whole;
    else
      rows = b.getDenseI64ArrayAttr({0, tile.getDimSize(0)});
  }
  // Tiles that lie in one fragment are read together.
  Value &known = loaded[view];
  if (!known || known.getParentBlock() != b.getInsertionBlock())
    known = FragmentLoadOp::create(b, old.getLoc(), convertType(tile), view,
                                   place.transposed, rows, /*row=*/Value());
  return known;
}

LogicalResult RoleLayouts::placeLike(Value result, ValueRange from) {
  for (Value value : from) {
    auto row = firstRow.find(value);
    if (row == firstRow.end())
      continue;
    // A copy, for the map may move what it holds.
    int64_t first = row->second;
    auto [known, isNew] = firstRow.try_emplace(result, first);
    if (!isNew && known->second != first)
      return emitOpErrorAt(result)
             << "expected tiles in the same rows of a fragment, got one from "
                "row "
             << known->second << " and one from row " << first;
  }
  return success();
}

/// Whether `slice` is a row or column of a tile in registers.
static bool isOfRegisters(tensor::ExtractSliceOp slice) {
  Value from = slice.getSource();
  if (!isTile(from.getType(), 2) || !isTile(slice.getType(), 1))
    return false;
  while (Operation *op = from.getDefiningOp()) {
    if (isa<GetOp, tile::LoadOp>(op))
      return false;
    if (!isa<tensor::ExtractSliceOp, linalg::TransposeOp>(op))
      break;
    from = op->getOperand(0);
  }
  return true;
}

Attribute RoleLayouts::encodingOf(Value old) {
  if (!isGroup)
    return lanesEncoding();
  if (Value known = map.lookupOrNull(old))
    return cast<RankedTensorType>(known.getType()).getEncoding();
  Operation *op = old.getDefiningOp();
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
    return encodingOf(
        loop.getYieldedValues()[cast<OpResult>(old).getResultNumber()]);
  auto reduce = dyn_cast_or_null<linalg::ReduceOp>(op);
  if (reduce && reduce.getDimensions() == ArrayRef<int64_t>(0))
    return ColumnsAttr::get(b.getContext());
  if (reduce || isa_and_nonnull<tile::DiagonalOp>(op))
    return RowsAttr::get(b.getContext());
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  if (slice && isOfRegisters(slice))
    return slice.getStaticSizes()[0] == 1
               ? Attribute(ColumnsAttr::get(b.getContext()))
               : RowsAttr::get(b.getContext());
  if (op && !shared.contains(old))
    for (Value operand : op->getOperands())
      if (isTile(operand.getType(), 1))
        if (Attribute encoding = encodingOf(operand);
            encoding != lanesEncoding())
          return encoding;
  return lanesEncoding();
}

void RoleLayouts::collectEncodings(Value old, SetVector<Attribute> &encodings) {
  MLIRContext *context = b.getContext();
  for (Operation *user : old.getUsers()) {
    auto broadcast = dyn_cast<linalg::BroadcastOp>(user);
    auto reduce = dyn_cast<linalg::ReduceOp>(user);
    if (broadcast || reduce) {
      bool isOfColumns =
          (broadcast ? broadcast.getDimensions() : reduce.getDimensions()) ==
          ArrayRef<int64_t>(0);
      encodings.insert(isOfColumns ? Attribute(ColumnsAttr::get(context))
                                   : Attribute(RowsAttr::get(context)));
    } else if (user->hasTrait<OpTrait::Elementwise>()) {
      collectEncodings(user->getResult(0), encodings);
    } else {
      encodings.insert(encodingOf(old));
    }
  }
}

FailureOr<Value> RoleLayouts::fragment(Value old) {
  if (Value known = map.lookupOrNull(old))
    return known;
  if (failed(checkTile(old)))
    return failure();
  auto type = cast<RankedTensorType>(convertType(old.getType()));
  if (auto own = sent.find(old); own != sent.end()) {
    auto send = own->second.getDefiningOp<ClusterSendOp>();
    Value sum = ClusterAddOp::create(b, old.getLoc(), type, own->second,
                                     send.getNumber(), send.getItems(),
                                     DenseI64ArrayAttr());
    map.map(old, sum);
    return sum;
  }
  if (auto place = shared.find(old); place != shared.end())
    return loadFragment(old, place->second);
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat())
      return constantLike(constant, type);
  if (auto widen = dyn_cast_or_null<arith::ExtFOp>(op)) {
    if (auto place = shared.find(widen.getIn());
        place != shared.end() && op->hasAttr(tile::kRereadAttrName))
      loaded.erase(place->second.view);
    FailureOr<Value> narrow = fragment(widen.getIn());
    if (failed(narrow) || failed(placeLike(old, widen.getIn())))
      return failure();
    return cloneOn(op, *narrow, type);
  }
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op);
      concat && concat.getDim() == 1) {
    FailureOr<Value> joined = joinFragments(concat);
    if (succeeded(joined))
      map.map(old, *joined);
    return joined;
  }
  return emitOpErrorAt(old) << "expected an op that makes a tile in registers";
}

bool gdn::isNumbers(arith::ConstantOp constant) {
  auto dense = cast<DenseElementsAttr>(constant.getValue());
  if (!dense.getElementType().isSignlessInteger(32))
    return false;
  for (auto [index, value] : llvm::enumerate(dense.getValues<int32_t>()))
    if (value != static_cast<int32_t>(index))
      return false;
  return true;
}

FailureOr<Value> RoleLayouts::vector(Value old, Attribute encoding) {
  if (failed(checkVector(old, encoding)))
    return failure();
  RankedTensorType type =
      withEncoding(cast<RankedTensorType>(old.getType()), encoding);
  if (Value known = vectors.lookup({old, encoding}))
    return known;
  if (Value known = map.lookupOrNull(old)) {
    if (known.getType() != type)
      return emitOpErrorAt(old)
             << "expected a vector " << type << ", got " << known.getType()
             << ": what other threads hold goes through a channel";
    return known;
  }
  auto place = shared.find(old);
  if (place != shared.end()) {
    auto number = [&](std::optional<int64_t> line) {
      return line ? b.getI64IntegerAttr(*line) : IntegerAttr();
    };
    const InShared &from = place->second;
    if ((from.row || from.column) && isa<RowsAttr>(encoding) &&
        type.getShape() != cast<RankedTensorType>(old.getType()).getShape())
      return emitOpErrorAt(old)
             << "expected a line of a tile as " << format::kWgmmaRows
             << " rows, got " << old.getType();
    return Value(VectorLoadOp::create(b, old.getLoc(), type, from.view,
                                      number(from.row), number(from.column)));
  }
  Operation *op = old.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    if (cast<DenseElementsAttr>(constant.getValue()).isSplat())
      return constantLike(constant, type);
    if (isNumbers(constant) && isa<LanesAttr>(encoding))
      return Value(IotaOp::create(b, old.getLoc(), type, 0));
    return constant.emitOpError(
        "expected a vector of one value or of the numbers from 0");
  }
  if (isa_and_nonnull<tile::ScanOp>(op) && !isa<LanesAttr>(encoding))
    return op->emitOpError("expected a scan over lanes, got a use of it as ")
           << type << ": what other threads hold goes through a channel";
  bool isElementwise = op && (op->hasTrait<OpTrait::Elementwise>() ||
                              isa<tile::ScanOp, tensor::SplatOp>(op));
  if (!isElementwise || op->getNumResults() != 1)
    return emitOpErrorAt(old)
           << "expected an op that makes a vector in registers";
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
