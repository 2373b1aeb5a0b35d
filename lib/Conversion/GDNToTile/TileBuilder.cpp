//===- TileBuilder.cpp - Builds tiles: products, broadcasts, roundings ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// Products may be contracted into the sums that take them: fma is wanted.
static constexpr arith::FastMathFlags kContract =
    arith::FastMathFlags::contract;

TileBuilder::TileBuilder(Location loc, OpBuilder &parent, FloatType operandType)
    : ImplicitLocOpBuilder(loc, parent), operandType(operandType) {
  setListener(this);
}

void TileBuilder::notifyOperationInserted(Operation *op, InsertPoint) {
  if (stepLabel && tile::TileDialect::needsStep(op))
    op->setAttr(tile::TileDialect::getStepAttrName(), stepLabel);
}

RankedTensorType TileBuilder::tileType(ArrayRef<int64_t> shape, Type element) {
  return RankedTensorType::get(shape, element ? element : getF32Type());
}

//===----------------------------------------------------------------------===//
// Constants and scalars
//===----------------------------------------------------------------------===//

Value TileBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value TileBuilder::toI32(Value index) {
  return arith::IndexCastUIOp::create(*this, getI32Type(), index);
}

Value TileBuilder::toIndex(Value number) {
  return arith::IndexCastUIOp::create(*this, getIndexType(), number);
}

Value TileBuilder::scalar(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

Value TileBuilder::fill(double value, ArrayRef<int64_t> shape, Type element) {
  RankedTensorType type = tileType(shape, element);
  return arith::ConstantOp::create(
      *this,
      DenseElementsAttr::get(type, getFloatAttr(type.getElementType(), value)));
}

Value TileBuilder::splat(Value scalar, ArrayRef<int64_t> shape) {
  return tensor::SplatOp::create(*this, scalar, shape);
}

Value TileBuilder::iota(int64_t size) {
  SmallVector<int32_t> values =
      llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(size)));
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(tileType(size, getI32Type()),
                                    ArrayRef<int32_t>(values)));
}

Value TileBuilder::extract(Value tile, ArrayRef<int64_t> indices) {
  SmallVector<Value> values;
  for (int64_t i : indices)
    values.push_back(index(i));
  return tensor::ExtractOp::create(*this, tile, values);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Value TileBuilder::add(Value lhs, Value rhs) {
  return arith::AddFOp::create(*this, lhs, rhs, kContract);
}
Value TileBuilder::sub(Value lhs, Value rhs) {
  return arith::SubFOp::create(*this, lhs, rhs, kContract);
}
Value TileBuilder::mul(Value lhs, Value rhs) {
  return arith::MulFOp::create(*this, lhs, rhs, kContract);
}
Value TileBuilder::div(Value lhs, Value rhs) {
  return arith::DivFOp::create(*this, lhs, rhs);
}
Value TileBuilder::neg(Value value) {
  return arith::NegFOp::create(*this, value);
}
Value TileBuilder::isNot(Value condition) {
  Value yes = arith::ConstantOp::create(*this, getBoolAttr(true));
  return arith::XOrIOp::create(*this, condition, yes);
}
/// A constant of `value`'s type: a scalar or a tile.
static Value constantLike(TileBuilder &b, Value value, double constant) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    return b.fill(constant, type.getShape(), type.getElementType());
  return b.scalar(constant);
}

Value TileBuilder::exp2(Value value) {
  Value rounded = f32(value);
  Value power = math::Exp2Op::create(*this, rounded);
  if (!getElementTypeOrSelf(value.getType()).isF64())
    return power;
  // What f32 rounds off -60 log2 e is 3e-6 of the power, which is first order.
  Value rest = f32(sub(value, to(rounded, getF64Type())));
  return mul(power, add(scaled(rest, M_LN2), constantLike(*this, power, 1.0)));
}

Value TileBuilder::scaled(Value value, double factor) {
  return mul(value, constantLike(*this, value, factor));
}
Value TileBuilder::min(Value value, double bound) {
  return arith::MinimumFOp::create(*this, value,
                                   constantLike(*this, value, bound));
}
Value TileBuilder::max(Value value, double bound) {
  return arith::MaximumFOp::create(*this, value,
                                   constantLike(*this, value, bound));
}
Value TileBuilder::abs(Value value) {
  return math::AbsFOp::create(*this, value);
}

Value TileBuilder::exp(Value value) { return exp2(scaled(value, M_LOG2E)); }

Value TileBuilder::sigmoid(Value value) {
  Value one = constantLike(*this, value, 1.0);
  return div(one, add(one, exp(neg(value))));
}

Value TileBuilder::softplus(Value value) {
  // max(x, 0) + log1p(exp(-|x|)): the exponent is never positive.
  Value magnitude = math::AbsFOp::create(*this, value);
  Value tail = math::Log1pOp::create(*this, exp(neg(magnitude)));
  return add(max(value, 0.0), tail);
}

Value TileBuilder::select(Value condition, Value yes, double no) {
  return arith::SelectOp::create(*this, condition, yes,
                                 constantLike(*this, yes, no));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value TileBuilder::broadcast(Value vec, ArrayRef<int64_t> shape, int64_t axis) {
  Type element = cast<RankedTensorType>(vec.getType()).getElementType();
  SmallVector<int64_t> added;
  for (int64_t i = 0, rank = shape.size(); i < rank; ++i)
    if (i != axis)
      added.push_back(i);
  Value init = tensor::EmptyOp::create(*this, shape, element);
  return linalg::BroadcastOp::create(*this, vec, init, added)->getResult(0);
}

Value TileBuilder::mulAxis(Value tile, Value vec, int64_t axis) {
  return mul(tile, broadcast(vec, shapeOf(tile), axis));
}

/// Reduces `axis` of `tile` by the scalar op `Combiner`, from `identity`.
template <typename Combiner>
static Value reduce(TileBuilder &b, Value tile, int64_t axis, double identity) {
  SmallVector<int64_t> shape(shapeOf(tile));
  shape.erase(shape.begin() + axis);
  Value init = b.fill(identity, shape, getElementTypeOrSelf(tile.getType()));
  return linalg::ReduceOp::create(
             b, ValueRange{tile}, ValueRange{init}, {axis},
             [](OpBuilder &builder, Location loc, ValueRange args) {
               Value next =
                   Combiner::create(builder, loc, args[0], args[1], kContract);
               linalg::YieldOp::create(builder, loc, next);
             })
      ->getResult(0);
}

Value TileBuilder::sum(Value tile, int64_t axis) {
  return reduce<arith::AddFOp>(*this, tile, axis, 0.0);
}

Value TileBuilder::maximum(Value tile, int64_t axis) {
  return reduce<arith::MaximumFOp>(*this, tile, axis, 0.0);
}

Value TileBuilder::maximum(Value vec) {
  return extract(reduce<arith::MaximumFOp>(*this, vec, 0, -INFINITY), {});
}

Value TileBuilder::rows(Value tile, int64_t begin, int64_t size) {
  int64_t columns = shapeOf(tile)[1];
  return tensor::ExtractSliceOp::create(
      *this, tile, ArrayRef<OpFoldResult>{getIndexAttr(begin), getIndexAttr(0)},
      ArrayRef<OpFoldResult>{getIndexAttr(size), getIndexAttr(columns)},
      ArrayRef<OpFoldResult>{getIndexAttr(1), getIndexAttr(1)});
}

Value TileBuilder::columns(Value tile, int64_t begin, int64_t size) {
  int64_t rows = shapeOf(tile)[0];
  return tensor::ExtractSliceOp::create(
      *this, tile, ArrayRef<OpFoldResult>{getIndexAttr(0), getIndexAttr(begin)},
      ArrayRef<OpFoldResult>{getIndexAttr(rows), getIndexAttr(size)},
      ArrayRef<OpFoldResult>{getIndexAttr(1), getIndexAttr(1)});
}

Value TileBuilder::transpose(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape = {type.getDimSize(1), type.getDimSize(0)};
  Value empty = tensor::EmptyOp::create(*this, shape, type.getElementType());
  return linalg::TransposeOp::create(*this, tile, empty,
                                     ArrayRef<int64_t>{1, 0})
      ->getResult(0);
}

Value TileBuilder::repeatRow(Value tile, int64_t block, Value at) {
  return tile::RepeatOp::create(*this, tile.getType(), tile, /*axis=*/0, block,
                                at);
}

Value TileBuilder::row(Value tile, int64_t row) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t columns = type.getShape()[1];
  return tensor::ExtractSliceOp::create(
      *this, tileType(columns, type.getElementType()), tile,
      ArrayRef<OpFoldResult>{getIndexAttr(row), getIndexAttr(0)},
      ArrayRef<OpFoldResult>{getIndexAttr(1), getIndexAttr(columns)},
      ArrayRef<OpFoldResult>{getIndexAttr(1), getIndexAttr(1)});
}

//===----------------------------------------------------------------------===//
// Types and products
//===----------------------------------------------------------------------===//

Value TileBuilder::to(Value tile, Type element) {
  auto from = cast<FloatType>(getElementTypeOrSelf(tile.getType()));
  auto into = cast<FloatType>(element);
  if (from == into)
    return tile;
  Type target = into;
  if (auto type = dyn_cast<RankedTensorType>(tile.getType()))
    target = type.clone(into);
  if (from.getWidth() < into.getWidth())
    return arith::ExtFOp::create(*this, target, tile);
  if (from.getWidth() > into.getWidth())
    return arith::TruncFOp::create(*this, target, tile);
  // bf16 and f16: through f32, which holds both.
  return to(to(tile, getF32Type()), into);
}

/// The indexing map of one operand of a product: "ck" over the letters of all.
static AffineMap letterMap(MLIRContext *context, StringRef letters,
                           StringRef all) {
  SmallVector<AffineExpr> results;
  for (char letter : letters)
    results.push_back(getAffineDimExpr(all.find(letter), context));
  return AffineMap::get(all.size(), 0, results, context);
}

Value TileBuilder::product(StringRef spec, Value lhs, Value rhs, Value acc) {
  auto [operands, out] = spec.split("->");
  auto [left, right] = operands.split(',');
  // Letters of the result first, then what is summed over.
  std::string all = out.str();
  for (char letter : left)
    if (!StringRef(all).contains(letter))
      all.push_back(letter);
  if (!acc) {
    SmallVector<int64_t> shape;
    for (char letter : out) {
      size_t position = left.find(letter);
      shape.push_back(position != StringRef::npos
                          ? shapeOf(lhs)[position]
                          : shapeOf(rhs)[right.find(letter)]);
    }
    acc = fill(0.0, shape);
  }
  MLIRContext *context = getContext();
  ArrayAttr maps = getAffineMapArrayAttr({letterMap(context, left, all),
                                          letterMap(context, right, all),
                                          letterMap(context, out, all)});
  return linalg::ContractOp::create(*this, ValueRange{lhs, rhs},
                                    ValueRange{acc}, maps)
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The dimension of every array that tokens run along.
static constexpr int64_t kTokenDim = 1;

Value TileBuilder::load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
                        ArrayRef<int64_t> shape, Value end) {
  Type element = cast<MemRefType>(array.getType()).getElementType();
  return tile::LoadOp::create(*this, tileType(shape, element), array, offsets,
                              getDenseI64ArrayAttr(axes), end,
                              end ? getI64IntegerAttr(kTokenDim) : nullptr);
}

tile::StoreOp TileBuilder::store(Value tile, Value array, ValueRange offsets,
                                 ArrayRef<int64_t> axes, Value end) {
  Type element = cast<MemRefType>(array.getType()).getElementType();
  return tile::StoreOp::create(*this, to(tile, element), array, offsets,
                               getDenseI64ArrayAttr(axes), end,
                               end ? getI64IntegerAttr(kTokenDim) : nullptr);
}
