//===- WholeTensorWriter.h - Writer of work on whole tensors ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORWRITER_H
#define GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORWRITER_H

#include "WholeTensorProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// Writes the program of a group.
class WholeTensorWriter {
public:
  WholeTensorWriter(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                    tile::ProgramOp program)
      : group(group), arrays(arrays), program(program),
        b(program.getLoc(),
          OpBuilder::atBlockBegin(&program.getBody().front())),
        tokens(group.tokens()) {}

  void write();
  /// The program of sums over parts: the arrays' numbers, all of one head.
  void writeTotals();

private:
  /// A chunk of tokens: loaded arrays by their number and member of a group of
  /// heads, and results of ops.
  struct Chunk {
    Value token;
    llvm::DenseMap<std::pair<unsigned, int64_t>, Value> loaded;
    llvm::DenseMap<Value, Value> made;
  };

  void loadParameters();
  SmallVector<Value> writeLoop(Value lower, int64_t step, unsigned sums,
                               function_ref<SmallVector<Value>(Value)> chunk);
  SmallVector<Value> writeChunk(Value token);
  Value load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
             ArrayRef<int64_t> shape, bool ends, StringRef step);
  Value loadArray(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Chunk &chunk, int64_t member);
  Value readInput(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Chunk &chunk, int64_t member);
  Value compute(const WholeTensorOp &op, Chunk &chunk);
  Value makeTile(Value scalar, IRMapping &tiles);
  Value shapeLike(Value scalar, Value tile, ArrayRef<int64_t> like);
  Value reduce(Value tile, int64_t dim);
  Value maskPastEnd(Value tile, Value token);
  void storeChunk(const WholeTensorOp &op, Value result, Value array,
                  Value token);
  Value sumVector(Value vector);
  void storeSum(Value tile, bool hasChannels, Value array,
                ArrayRef<Value> offsets, int64_t axis);
  unsigned numberOf(Value array) const {
    return llvm::find(arrays, array) - arrays.begin();
  }
  /// A vector as all columns of a tile, or as all rows.
  Value broadcast(Value vector, int64_t added) {
    Value empty = create<tensor::EmptyOp>(
        tileShape(), getElementTypeOrSelf(vector.getType()));
    return create<linalg::BroadcastOp>(vector, empty, ArrayRef<int64_t>{added});
  }
  template <typename Op, typename... Args> Value create(Args &&...args) {
    auto made = Op::create(b, std::forward<Args>(args)...);
    note(made, kRowStep);
    return made->getResult(0);
  }
  void note(Operation *made, StringRef step) {
    made->setAttr(tile::TileDialect::getStepAttrName(), b.getStringAttr(step));
  }
  Value zeros(ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, b.getF32Type());
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(type, b.getZeroAttr(b.getF32Type())));
  }
  SmallVector<int64_t> tileShape() const {
    if (group.columns())
      return {tokens, group.columns()};
    return {tokens};
  }

  const WholeTensorGroup &group;
  ArrayRef<Value> arrays;
  tile::ProgramOp program;
  ImplicitLocOpBuilder b;
  /// Of a chunk.
  int64_t tokens;
  Value zero;
  /// Numbers of the work item's head, f32, and vectors of it, by array.
  llvm::DenseMap<unsigned, Value> parameters;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORWRITER_H
