//===- RowSplitter.h - The pieces of tiles of many rows ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_ROWSPLITTER_H
#define GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_ROWSPLITTER_H

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::gdn::tile {

/// Replaces each value of a program that has more rows than a fragment by its
/// pieces, op after op.
class RowSplitter {
public:
  RowSplitter(ProgramOp program, int64_t maxRows)
      : program(program), maxRows(maxRows), b(program.getContext()) {}

  void run();

private:
  using Pieces = SmallVector<Value>;
  struct Range {
    int64_t first, rows;
  };

  /// The type of a tile or vector, null of another value.
  static RankedTensorType getTile(Value value) {
    return dyn_cast<RankedTensorType>(value.getType());
  }
  bool isTall(Value value) const {
    RankedTensorType tile = getTile(value);
    return tile && tile.getRank() == 2 && tile.getDimSize(0) > maxRows;
  }
  /// The rows of each piece of a tile or vector of `rows` rows.
  SmallVector<Range> getRanges(int64_t rows) const;
  RankedTensorType getPieceType(Value value, Range range) const {
    RankedTensorType tile = getTile(value);
    SmallVector<int64_t> shape(tile.getShape());
    shape[0] = range.rows;
    return tile.clone(shape);
  }

  void visit(Block &block);
  void visit(Operation *op);
  void visit(scf::ForOp loop);
  scf::ForOp moveToLoop(scf::ForOp loop, ValueRange inits);
  void splitVectors(scf::ForOp loop);
  void visit(scf::IfOp branch);
  void visit(LoadOp load);
  void visit(StoreOp store);
  void visit(linalg::ContractOp product);
  void visit(linalg::ReduceOp reduce);
  void visit(tensor::ExtractSliceOp slice);
  void visit(ScanOp scan);
  void visit(tensor::ConcatOp concat);

  static bool isElementwise(Operation *op);
  Pieces getPieces(Value value);
  Pieces splitLoad(LoadOp load);
  void splitElementwise(Operation *op);
  Pieces splitValues(ValueRange values, SmallVectorImpl<size_t> &counts);
  void setPieces(Value value, Pieces pieces, Operation *replaced);
  void mapPieces(ValueRange values, ArrayRef<size_t> counts, ValueRange pieces);
  Operation *clone(Operation *op, const IRMapping &map, Type type = {});
  Value slice(Value tile, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
              RankedTensorType type, Operation *labels);
  Value addOffset(Location loc, Value offset, int64_t distance);
  void stackPieces(Value value, const DenseSet<Operation *> &dead);
  void finish();

  ProgramOp program;
  int64_t maxRows;
  OpBuilder b;
  DenseMap<Value, Pieces> pieces;
  /// Ops whose results became pieces, in order.
  SmallVector<Operation *> replaced;
};

} // namespace mlir::gdn::tile

#endif // GDN_LIB_DIALECT_TILE_TRANSFORMS_GPU_ROWSPLITTER_H
