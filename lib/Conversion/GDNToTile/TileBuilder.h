//===- TileBuilder.h - Builds the ops of tile programs ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_TILEBUILDER_H
#define GDN_LIB_CONVERSION_GDNTOTILE_TILEBUILDER_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// Writes tile programs. Every op on tiles gets the label of the current step;
/// index and scalar arithmetic has no step, since every role may need it.
class TileBuilder : private OpBuilder::Listener, public ImplicitLocOpBuilder {
public:
  /// `operandType` is the type that operands of products are rounded to.
  TileBuilder(Location loc, OpBuilder &parent, FloatType operandType);

  /// Where ops are inserted.
  using OpBuilder::getInsertionBlock;

  /// Ops from here on belong to `name` (bridge: load, gates, scores, ...).
  void step(StringRef name) { stepLabel = getStringAttr(name); }

  FloatType getOperandType() { return operandType; }
  RankedTensorType tileType(ArrayRef<int64_t> shape, Type element = {});

  //===--- Constants and scalars ------------------------------------------===//
  Value index(int64_t value);
  /// An index as an i32, and back: a GPU has no division of 64 bits.
  Value toI32(Value index);
  Value toIndex(Value number);
  Value scalar(double value);
  /// A tile that holds `value` everywhere.
  Value fill(double value, ArrayRef<int64_t> shape, Type element = {});
  Value splat(Value scalar, ArrayRef<int64_t> shape);
  /// [0, 1, ..., size) of type i32.
  Value iota(int64_t size);
  /// One element of a tile at constant indices.
  Value extract(Value tile, ArrayRef<int64_t> indices);

  //===--- Elementwise, on tiles of one shape or on scalars ---------------===//
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value div(Value lhs, Value rhs);
  Value neg(Value value);
  /// Whether a condition does not hold.
  Value isNot(Value condition);
  /// In f32; of f64 with all its digits.
  Value exp2(Value value);
  /// As exp2, the one exponential that the hardware has.
  Value exp(Value value);
  /// `value` times a constant.
  Value scaled(Value value, double factor);
  Value min(Value value, double bound);
  Value max(Value value, double bound);
  Value abs(Value value);
  /// 1 / (1 + exp(-value)).
  Value sigmoid(Value value);
  /// log(1 + exp(value)) without overflow.
  Value softplus(Value value);
  /// `yes` where `condition` holds, else the constant `no`.
  Value select(Value condition, Value yes, double no);

  //===--- Shapes ---------------------------------------------------------===//
  /// The vector `vec` along `axis` of a tile of `shape`, the same elsewhere.
  Value broadcast(Value vec, ArrayRef<int64_t> shape, int64_t axis);
  /// `tile` times `vec` along `axis`.
  Value mulAxis(Value tile, Value vec, int64_t axis);
  Value sum(Value tile, int64_t axis);
  /// Largest element along `axis` of a tile that has none below 0.
  Value maximum(Value tile, int64_t axis);
  /// Largest element of a vector as a scalar.
  Value maximum(Value vec);
  /// Rows [begin, begin + size) of a tile of rank 2.
  Value rows(Value tile, int64_t begin, int64_t size);
  /// Columns [begin, begin + size) of one.
  Value columns(Value tile, int64_t begin, int64_t size);
  /// A tile of rank 2 with rows for columns.
  Value transpose(Value tile);
  /// Row `at` of each block of `block` rows, for all of these rows.
  Value repeatRow(Value tile, int64_t block, Value at);
  /// Row `row` of a tile of rank 2, as a vector.
  Value row(Value tile, int64_t row);

  //===--- Types and products ---------------------------------------------===//
  /// A tile, or a scalar, in another element type.
  Value to(Value tile, Type element);
  Value f32(Value tile) { return to(tile, getF32Type()); }
  /// To the operand type: one of the kernel's rounding points.
  Value round(Value tile) { return to(tile, operandType); }
  /// A product in index notation, as "vk,ck->vc", into f32, added to `acc`.
  Value product(StringRef spec, Value lhs, Value rhs, Value acc = {});

  //===--- Memory ---------------------------------------------------------===//
  /// A tile of `array`; `end` bounds array dimension 1, the tokens.
  Value load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
             ArrayRef<int64_t> shape, Value end = {});
  /// Stores `tile`, converted to the element type of `array`.
  tile::StoreOp store(Value tile, Value array, ValueRange offsets,
                      ArrayRef<int64_t> axes, Value end = {});

private:
  void notifyOperationInserted(Operation *op, InsertPoint previous) override;

  FloatType operandType;
  StringAttr stepLabel;
};

/// Shape of a tile.
inline ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getShape();
}

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_TILEBUILDER_H
