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
        tokens(group.tokens()), end(program.getEnd()),
        shape(group.columns() ? SmallVector<int64_t>{tokens, group.columns()}
                              : SmallVector<int64_t>{group.heads()}) {}

  void write();
  /// The program of sums over parts: the arrays' numbers, all of one head.
  void writeTotals();

private:
  /// A chunk of tokens: loaded arrays by their number and member of a group of
  /// heads, and results of ops.
  struct Chunk {
    /// Where it lies, and where it would if there were no end.
    Value token, number;
    llvm::DenseMap<std::pair<unsigned, int64_t>, Value> loaded;
    llvm::DenseMap<Value, Value> made;
  };

  /// An array of which an op reads a chunk, or one of a group of heads.
  struct ChunkLoad {
    const WholeTensorOp *op;
    const WholeTensorOp::Input *input;
    int64_t member;
  };

  /// Where a dimension ends of what is accessed.
  struct Bound {
    Value end;
    int64_t dim;
  };

  /// Chunks from token `first` on, `step` tokens from one to the next.
  struct Walk {
    Value first, step, count;
  };

  void loadParameters();
  SmallVector<ChunkLoad> collectLoads() const;
  SmallVector<Value>
  writeLoop(const Walk &walk, unsigned sums,
            function_ref<SmallVector<Value>(Value)> load,
            function_ref<SmallVector<Value>(Value, ValueRange)> compute);
  SmallVector<Value> writeChunk(Chunk &chunk);
  Value load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
             ArrayRef<int64_t> shape, std::optional<Bound> bound);
  Value getFirstHead();
  Bound boundOfHeads(Value array, int64_t dim);
  SmallVector<std::pair<Value, Value>> getPlaces(Value token);
  Value loadArray(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Value token, int64_t member);
  Value readInput(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Chunk &chunk, int64_t member);
  Value compute(const WholeTensorOp &op, Chunk &chunk);
  Value makeTile(Value scalar, IRMapping &tiles);
  Value shapeLike(Value scalar, Value tile, ArrayRef<int64_t> like);
  Value reduce(Value tile, int64_t dim);
  Value maskPastEnd(const WholeTensorOp &op, Value tile, Value token);
  void storeChunk(const WholeTensorOp &op, Value result, Value array,
                  Value token);
  Value sumVector(Value vector);
  void storeVector(Value vector, Value array, ArrayRef<Value> offsets,
                   int64_t axis, std::optional<Bound> bound = {});
  void storeSum(Value tile, bool hasChannels, Value array,
                ArrayRef<Value> offsets, int64_t axis);
  /// Heads are next to each other in memory and among work items, so they are
  /// the last coordinate, and the parts of a batch row stand for its heads.
  Value getHead() { return program.getCoordinates().back(); }
  Value getPart() { return program.getHead(); }
  /// The most chunks that one has, and how many there are.
  std::pair<Value, Value> getParts() {
    auto scalars = program.getInputs().take_back(kNumScalars);
    return {scalars[0], scalars[1]};
  }
  /// Whether a program of tiles has the op's results, and what they are made
  /// of, as vectors, with an element a row.
  bool isOfRows(const WholeTensorOp &op) const {
    return group.columns() && !op.columns;
  }
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
    note(made);
    return made->getResult(0);
  }
  void note(Operation *made) {
    made->setAttr(tile::TileDialect::getStepAttrName(),
                  b.getStringAttr(kRowStep));
  }
  Value zeros(ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, b.getF32Type());
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(type, b.getZeroAttr(b.getF32Type())));
  }
  ArrayRef<int64_t> tileShape() const { return shape; }

  const WholeTensorGroup &group;
  ArrayRef<Value> arrays;
  tile::ProgramOp program;
  ImplicitLocOpBuilder b;
  /// Of a chunk.
  int64_t tokens;
  /// Behind the work item's last token.
  Value end;
  /// Of a tile.
  SmallVector<int64_t> shape;
  Value zero;
  /// Numbers of the work item's head, f32, and vectors of it, by array.
  llvm::DenseMap<unsigned, Value> parameters;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_WHOLETENSORWRITER_H
