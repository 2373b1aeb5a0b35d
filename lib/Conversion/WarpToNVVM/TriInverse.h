//===- TriInverse.h - A unit lower triangular inverse by a warp -*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lane holds columns of the inverse as pairs of rows in f16, so that a step
// of the substitution is one fma.f16x2 a pair, with a run of M that is the same
// for all lanes: a broadcast of 16 bytes.
//
// The half-warps take the diagonal 16-blocks two at a time. Their inverses
// replace M's blocks in memory, from where the merges read them: those are
// products of tensor cores, with which an inverse of 32 rows has 210 of 480
// instructions less (docs/experiments/instructions.md).
//
//===----------------------------------------------------------------------===//

#ifndef GDN_CONVERSION_WARPTONVVM_TRIINVERSE_H
#define GDN_CONVERSION_WARPTONVVM_TRIINVERSE_H

#include "Lowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::gdn::warp {

/// Pairs of rows of one column, from a row that the user of it knows.
using Column = SmallVector<Value>;

/// Writes the instructions of one `gdn_warp.tri_inverse`.
class TriInverseWriter {
public:
  /// `rows` and `columns` are the addresses of the result's factors, or null.
  TriInverseWriter(ImplicitLocOpBuilder &b, ViewType m, Value mBase, ViewType x,
                   Value xBase, Value rows, Value columns);
  /// Puts M in f16 where it lies in f32: times `scale`, the address of factors
  /// of its columns.
  void scaleM(Value scale);
  void run();

private:
  /// Rows and columns of a block of the substitution, and elements of a run of
  /// 16 bytes.
  static constexpr int64_t kBlock = 16, kRun = 8;
  /// Bytes of a factor or of an element of M in f32, and how many a load takes.
  static constexpr int64_t kBytes = 4, kLoad = 4;

  /// Elements of a column of M from a row on.
  struct Run {
    Value column, row;
    int64_t size;
  };
  SmallVector<Run> shareOut();
  Value createElementAddress(const Run &run, int64_t bytes);

  // Words of two f16.
  VectorType getPair() const { return VectorType::get(2, b.getF16Type()); }
  Value createZero() {
    return arith::ConstantOp::create(b, b.getZeroAttr(getPair()));
  }
  Value toWord(Value pair);
  Value toPair(Value word);
  /// Both halves of the result are element `row` of `column`.
  Value createBroadcast(const Column &column, int64_t row);

  // M in memory: row `row` of M^T, that is column `row` of M or of what
  // replaced it, from element `column` on; both may have a part in a register.
  Value createRunAddress(int64_t row, int64_t column, Value offset);
  Column loadRun(Value address);
  Column loadColumn(int64_t row, int64_t column, int64_t size, Value offset);
  void storeColumn(const Column &column, Value address);

  Column createUnit(Value column, int64_t size);
  Column substitute(int64_t first);

  /// 16 x 16 elements of M^T or of a product as `mma.sync` has them: a lane's
  /// pairs of four matrices of 8 x 8.
  using Tile = SmallVector<Value>;
  /// With the layout `col` as the right operand of a product, else as the left.
  Tile loadTile(int64_t row, int64_t column, NVVM::MMALayout layout);
  void storeTile(const Tile &tile, int64_t row, int64_t column);
  SmallVector<Tile> multiply(ArrayRef<Tile> left, int64_t row, int64_t column,
                             bool negate);
  void merge(int64_t first, int64_t size);

  // The result.
  SmallVector<Value> loadRowFactors(int64_t row, Value rowPart, int64_t size);
  void writeColumn(const Column &column, int64_t row, Value rowPart,
                   Value columnPart);
  void writeZeros(int64_t row, int64_t column, int64_t size);

  void runOneBlock();
  void runTwoBlocks();
  void runFourBlocks();

  ImplicitLocOpBuilder &b;
  ViewType m, x;
  Value mBase, xBase, rows, columns;
  /// Number of the lane, of its half of the warp and in it, as i32.
  Value lane, half, place;
  /// The lane's part of the address of a tile, in bytes: of row `place`, eight
  /// elements from 8 `half` on.
  Value matrices;
};

} // namespace mlir::gdn::warp

#endif // GDN_CONVERSION_WARPTONVVM_TRIINVERSE_H
