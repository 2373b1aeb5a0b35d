//===- RoleProducts.cpp - Products, and sums of products, of a role -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Products of tiles
//===----------------------------------------------------------------------===//

/// Whether all that becomes of `product`, times factors or not, is that it is
/// subtracted: a tensor core negates for nothing, and between a wait and its
/// readers LLVM would do it by an instruction for each element.
static bool isSubtracted(Value product) {
  return !product.use_empty() &&
         llvm::all_of(product.getUsers(), [&](Operation *user) {
           if (auto scaled = dyn_cast<arith::MulFOp>(user))
             return scaled.getLhs() == product && scaled.getRhs() != product &&
                    isSubtracted(scaled.getResult());
           auto difference = dyn_cast<arith::SubFOp>(user);
           return difference && difference.getRhs() == product &&
                  difference.getLhs() != product;
         });
}

/// Whether `product` is made negated: nothing is added to it, and it is
/// subtracted.
static bool isNegated(linalg::ContractOp product) {
  return matchPattern(product.getDpsInits()[0], m_AnyZeroFloat()) &&
         isSubtracted(product.getResult(0));
}

/// Tiles side by side that this role has made.
FailureOr<Value> RoleLayouts::joinFragments(tensor::ConcatOp concat) {
  SmallVector<Value> fragments;
  for (Value input : concat.getInputs()) {
    FailureOr<Value> registers = fragment(input);
    if (failed(registers) || failed(placeLike(concat.getResult(), input)))
      return failure();
    fragments.push_back(*registers);
  }
  return Value(JoinOp::create(b, concat.getLoc(), convertType(concat.getType()),
                              fragments));
}

/// From shared memory, or from registers, where it is not turned. A product of
/// fewer rows than a tensor core's takes registers: of a view it would read
/// rows that are not there.
FailureOr<Value> RoleLayouts::getLeft(linalg::ContractOp product, int64_t rows,
                                      bool &isTurned) {
  Value left = product.getDpsInputs()[0];
  if (rows == format::kWgmmaRows) {
    if (!isTurned && !shared.contains(left))
      return fragment(left);
    FailureOr<InShared> place = getShared(left);
    if (failed(place))
      return failure();
    isTurned ^= place->transposed;
    return place->view;
  }
  if (!isTurned)
    return fragment(left);
  FailureOr<InShared> place = getShared(left);
  if (failed(place))
    return failure();
  auto tile = cast<RankedTensorType>(left.getType());
  auto turned = tile.clone({tile.getDimSize(1), tile.getDimSize(0)});
  if (rows % format::kWarpRows != 0 || rows > format::kWgmmaRows)
    return product.emitOpError("expected products of a multiple of ")
           << format::kWarpRows << " rows up to " << format::kWgmmaRows
           << ", got " << rows;
  isTurned = false;
  return Value(FragmentLoadOp::create(b, product.getLoc(), convertType(turned),
                                      place->view, !place->transposed,
                                      b.getDenseI64ArrayAttr({0, rows}),
                                      /*row=*/Value()));
}

LogicalResult RoleLayouts::convertContract(linalg::ContractOp contract) {
  SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
  // Dimensions of the result are m and n; the other one is k.
  auto isFirst = [](AffineMap map, AffineExpr dim) {
    return map.getResult(0) == dim;
  };
  AffineExpr m = maps[2].getResult(0), n = maps[2].getResult(1);
  Value result = contract.getResult(0), left = contract.getDpsInputs()[0],
        accumulator = contract.getDpsInits()[0];
  if (failed(checkTile(result)))
    return failure();
  FailureOr<InShared> right = getShared(contract.getDpsInputs()[1]);
  if (failed(right))
    return failure();
  bool transposeA = !isFirst(maps[0], m);
  bool transposeB = isFirst(maps[1], n) != right->transposed;
  int64_t rows = cast<RankedTensorType>(result.getType()).getDimSize(0);
  bool isLeftPlaced = !transposeA;
  FailureOr<Value> a = getLeft(contract, rows, transposeA);
  if (failed(a))
    return failure();
  Value into;
  if (!matchPattern(accumulator, m_AnyZeroFloat())) {
    FailureOr<Value> converted = fragment(accumulator);
    if (failed(converted))
      return failure();
    into = *converted;
  }
  map.map(result, Value(WgmmaOp::create(b, contract.getLoc(),
                                        convertType(result.getType()), *a,
                                        right->view, into, transposeA,
                                        transposeB, isNegated(contract))));
  if (rows == format::kWgmmaRows)
    return success();
  // Rows of the result are those of the left operand.
  int64_t first = isLeftPlaced ? firstRow.lookup(left) : 0;
  firstRow[result] = first;
  return into ? placeLike(result, accumulator) : success();
}

bool RoleLayouts::isOfNegated(arith::SubFOp difference) {
  Value subtracted = difference.getRhs();
  while (auto scaled = subtracted.getDefiningOp<arith::MulFOp>())
    subtracted = scaled.getLhs();
  auto product = subtracted.getDefiningOp<linalg::ContractOp>();
  return product && isNegated(product);
}

/// Whether an op may round once with the next one.
static bool mayFuse(arith::FastMathFlags flags) {
  return arith::bitEnumContainsAll(flags, arith::FastMathFlags::contract);
}

/// Adds the product that `difference` subtracts, and that is made negated. Its
/// factor is fused with the addition here: LLVM might fuse that of what it is
/// subtracted from, which need not wait for the product.
LogicalResult RoleLayouts::convertDifference(arith::SubFOp difference) {
  FailureOr<Value> left = fragment(difference.getLhs());
  FailureOr<Value> product = fragment(difference.getRhs());
  if (failed(left) || failed(product))
    return failure();
  auto scaled = (*product).getDefiningOp<arith::MulFOp>();
  bool fuses = scaled && mayFuse(scaled.getFastmath()) &&
               mayFuse(difference.getFastmath());
  Value sum =
      fuses ? Value(math::FmaOp::create(b, difference.getLoc(), scaled.getLhs(),
                                        scaled.getRhs(), *left))
            : arith::AddFOp::create(b, difference.getLoc(), *left, *product,
                                    difference.getFastmath());
  map.map(difference.getResult(), sum);
  return placeLike(difference.getResult(), difference.getOperands());
}

//===----------------------------------------------------------------------===//
// Sums of rows
//===----------------------------------------------------------------------===//

/// The two tiles in shared memory of which `reduce` takes inner products of
/// rows, if it does.
std::optional<std::pair<InShared, InShared>>
RoleLayouts::findRowDots(linalg::ReduceOp reduce) {
  Block &combiner = reduce.getCombiner().front();
  auto product = reduce.getInputs().front().getDefiningOp<arith::MulFOp>();
  if (!product || !llvm::hasSingleElement(combiner.without_terminator()) ||
      !isa<arith::AddFOp>(combiner.front()) ||
      !matchPattern(reduce.getInits().front(), m_AnyZeroFloat()))
    return std::nullopt;
  SmallVector<InShared> places;
  for (Value factor : product->getOperands()) {
    auto widen = factor.getDefiningOp<arith::ExtFOp>();
    auto place = widen ? shared.find(widen.getIn()) : shared.end();
    if (place == shared.end() || place->second.transposed)
      return std::nullopt;
    places.push_back(place->second);
  }
  // A warpgroup takes rows where its fragments have them.
  auto [a, c] = std::pair(places[0], places[1]);
  if (isGroup && (!a.whole || !c.whole || a.first != c.first))
    return std::nullopt;
  return std::pair(a, c);
}

/// Whether only inner products of rows take `op`, which read shared memory.
bool RoleLayouts::isOfRowDots(Operation *op) {
  return isGroup && isa<arith::MulFOp>(op) && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           auto reduce = dyn_cast<linalg::ReduceOp>(user);
           return reduce && findRowDots(reduce);
         });
}

/// A warpgroup reduces a fragment to a vector of rows or of columns.
LogicalResult RoleLayouts::reduceFragment(linalg::ReduceOp reduce,
                                          Attribute encoding) {
  Value tile = reduce.getInputs().front(), result = reduce->getResult(0);
  auto type = withEncoding(cast<RankedTensorType>(result.getType()), encoding);
  if (!type.getElementType().isF32())
    return reduce.emitOpError("expected a reduction of f32, got ")
           << tile.getType();
  FailureOr<Value> source = fragment(tile);
  FailureOr<Value> init = vector(reduce.getInits().front(), encoding);
  if (failed(source) || failed(init))
    return failure();
  IRMapping operands;
  operands.map(tile, *source);
  operands.map(reduce.getInits().front(), *init);
  Operation *copy = b.clone(*reduce, operands);
  copy->getResult(0).setType(type);
  copy->removeAttr(tile::TileDialect::getStepAttrName());
  copy->removeAttr(tile::TileDialect::getChunkAttrName());
  map.map(result, copy->getResult(0));
  if (isa<RowsAttr>(encoding))
    return placeLike(result, tile);
  markOverRows(copy, tile);
  return success();
}

/// A warpgroup reduces a vector of its rows, or several one behind the other,
/// to a number that all threads have.
LogicalResult RoleLayouts::reduceVector(linalg::ReduceOp reduce) {
  Value input = reduce.getInputs().front(), result = reduce->getResult(0);
  SmallVector<Value> pieces{input};
  if (auto stack = input.getDefiningOp<tensor::ConcatOp>())
    pieces = SmallVector<Value>(stack.getInputs());
  Attribute uniform = UniformAttr::get(b.getContext());
  auto init = reduce.getInits().front().getDefiningOp<arith::ConstantOp>();
  if (!init ||
      !cast<RankedTensorType>(result.getType()).getElementType().isF32())
    return reduce.emitOpError("expected a reduction of f32 from a constant");
  auto type = RankedTensorType::get({}, b.getF32Type(), uniform);
  Value all = constantLike(init, type);
  for (Value piece : pieces) {
    FailureOr<Value> rows = vector(piece, RowsAttr::get(b.getContext()));
    if (failed(rows))
      return failure();
    if (cast<RankedTensorType>(piece.getType()).getDimSize(0) !=
        format::kWgmmaRows)
      return reduce.emitOpError("expected vectors of ")
             << format::kWgmmaRows << " rows, got " << piece.getType();
    IRMapping operands;
    operands.map(input, *rows);
    operands.map(reduce.getInits().front(), all);
    Operation *copy = b.clone(*reduce, operands);
    copy->getResult(0).setType(type);
    copy->removeAttr(tile::TileDialect::getStepAttrName());
    copy->removeAttr(tile::TileDialect::getChunkAttrName());
    copy->setAttr(WarpDialect::getScratchBytesAttrName(),
                  b.getI64IntegerAttr(kReducedBytes));
    all = copy->getResult(0);
  }
  map.map(result, all);
  return success();
}

/// Inner products of rows are taken from shared memory. Other rows a warpgroup
/// reduces as a fragment, to a vector of rows.
LogicalResult RoleLayouts::convertReduce(linalg::ReduceOp reduce) {
  Value tile = reduce.getInputs().front(), result = reduce->getResult(0);
  if (isGroup && reduce.getInputs().size() == 1 && isTile(tile.getType(), 1))
    return reduceVector(reduce);
  if (reduce.getInputs().size() != 1 || !isTile(tile.getType(), 2) ||
      reduce.getDimensions().size() != 1)
    return reduce.emitOpError("expected a reduction of one tile of two "
                              "dimensions along one of them, got [")
           << reduce.getDimensions() << "] of " << tile.getType();
  if (reduce.getDimensions()[0] == 0)
    return reduceFragment(reduce, ColumnsAttr::get(b.getContext()));
  auto type = withEncoding(cast<RankedTensorType>(result.getType()),
                           isGroup ? Attribute(RowsAttr::get(b.getContext()))
                                   : lanesEncoding());
  if (auto tiles = findRowDots(reduce)) {
    auto [a, c] = *tiles;
    map.map(result, Value(RowDotsOp::create(b, reduce.getLoc(), type,
                                            isGroup ? a.whole : a.view,
                                            isGroup ? c.whole : c.view)));
    if (isGroup)
      firstRow[result] = a.first;
    return success();
  }
  if (!isGroup)
    return reduce.emitOpError("expected a sum of products of tiles from "
                              "channels, or a role of warpgroups to reduce");
  return reduceFragment(reduce, RowsAttr::get(b.getContext()));
}
