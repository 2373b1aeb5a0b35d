//===- RoleLayouts.h - The values of one role -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_ROLELAYOUTS_H
#define GDN_LIB_CONVERSION_TILETOWARP_ROLELAYOUTS_H

#include "FieldLayouts.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn {

/// True for a tile of that rank.
inline bool isTile(Type type, int64_t rank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == rank;
}

/// True for [0, 1, 2, ...] of i32.
bool isNumbers(arith::ConstantOp constant);

/// A tile, and what its columns are times: null for 1.
struct ScaledTile {
  Value tile, columns = {};
};

/// What `inverse` is of, before it is rounded to where it has factors.
ScaledTile findScaled(tile::TriInverseOp inverse);

/// The inverse of a matrix, times factors of its rows and of its columns, which
/// may be null: what `gdn_warp.tri_inverse` writes.
struct SolvedTile {
  tile::TriInverseOp inverse;
  Value rows = {}, columns = {};
};

/// What rounded to `value` is a solve, if it is one.
std::optional<SolvedTile> findSolve(Value value);

/// A value in shared memory, and whether it lies there transposed.
struct InShared {
  Value view;
  bool transposed = false;
  /// The view of as many rows as a fragment has that holds it from row `first`
  /// on; null if there is none.
  Value whole = {};
  int64_t first = 0;
  /// Of a matrix a row or column alone, as a vector.
  std::optional<int64_t> row = {}, column = {};
};

/// A tile that is added to what an array holds, as far as that is loaded.
struct AddedTile {
  Value tile;
  tile::LoadOp stored;
};
/// What is stored where it was loaded, with nothing written in between.
AddedTile findAdded(tile::StoreOp store);

/// Calls `convert` for the ops of a block in order, but for its terminator.
LogicalResult
convertOps(Block &block,
           llvm::function_ref<LogicalResult(Operation *)> convert);
/// Replaces the body of a role by what `convert` writes with `b` for its ops.
LogicalResult
convertBody(warp::RoleOp role, OpBuilder &b,
            llvm::function_ref<LogicalResult(Operation *)> convert);

/// Rewrites the body of one role with encodings and views.
class RoleLayouts {
public:
  RoleLayouts(warp::RoleOp role, FieldLayouts &fields)
      : role(role), fields(fields), b(role.getContext()),
        isGroup(role.countTogether() % warp::format::kWarpgroupWarps == 0) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation *op);
  template <typename Op>
  Value createSlot(Op op, const FieldLayout &layout,
                   warp::SlotDirection direction);
  LogicalResult convertGet(warp::GetOp get);
  LogicalResult convertPut(warp::PutOp put);
  bool putConstant(warp::PutOp put, Value view);
  Value slicePiece(Value view, RankedTensorType piece, int64_t first);
  LogicalResult putStack(warp::PutOp put, tensor::ConcatOp stack,
                         const FieldLayout &layout, Value view);
  LogicalResult putSolve(warp::PutOp put, SolvedTile solved, Value view);
  LogicalResult convertStore(tile::StoreOp store);
  LogicalResult convertReport(tile::ReportOp report);
  LogicalResult convertLoad(tile::LoadOp load);
  void forgetFragments(Operation *op);
  LogicalResult convertSlice(tensor::ExtractSliceOp slice);
  LogicalResult convertContract(linalg::ContractOp contract);
  LogicalResult convertDifference(arith::SubFOp difference);
  LogicalResult convertBroadcast(linalg::BroadcastOp broadcast);
  LogicalResult convertNumbers(linalg::BroadcastOp broadcast);
  LogicalResult convertReduce(linalg::ReduceOp reduce);
  LogicalResult reduceVector(linalg::ReduceOp reduce);
  LogicalResult reduceFragment(linalg::ReduceOp reduce, Attribute encoding);
  LogicalResult convertRow(tensor::ExtractSliceOp slice);
  LogicalResult convertCausal(tile::CausalOp causal);
  LogicalResult convertDiagonal(tile::DiagonalOp diagonal);
  LogicalResult convertScan(tile::ScanOp scan);
  LogicalResult convertRebase(tile::RebaseOp rebase);
  LogicalResult convertRepeat(tile::RepeatOp repeat);
  LogicalResult convertTranspose(linalg::TransposeOp transpose);
  LogicalResult putVectors(warp::PutOp put, tensor::ConcatOp stack, Value view);
  FailureOr<Value> joinFragments(tensor::ConcatOp concat);
  LogicalResult convertClusterSum(tile::ClusterSumOp sum);
  LogicalResult convertIf(scf::IfOp branch);
  LogicalResult convertFor(scf::ForOp loop);
  LogicalResult placeCarried(scf::ForOp loop);
  FailureOr<SmallVector<Value>> carriedValues(ValueRange old,
                                              ArrayRef<Attribute> encodings);
  LogicalResult convertOther(Operation *op);
  LogicalResult convertBranch(scf::IfOp from, scf::IfOp to, bool isThen);

  /// The new value for any operand: a fragment, vector over lanes or scalar.
  FailureOr<Value> value(Value old);
  FailureOr<Value> fragment(Value old);
  FailureOr<Value> loadFragment(Value old, const InShared &place);
  /// Where the operand `old` of a product lies in shared memory. What this role
  /// has made itself is published there, unless it lies in a slot that goes to
  /// another role.
  FailureOr<InShared> getShared(Value old);
  FailureOr<Value> publish(Value old, bool inTurn = false);
  FailureOr<InShared> publishRows(tensor::ExtractSliceOp slice);
  LogicalResult convertShared(arith::TruncFOp round);
  /// The view of the slot that `round` may overwrite: of a tile that it is made
  /// of, and that nobody reads behind it; null if there is none.
  Value findReplaced(arith::TruncFOp round);
  /// The left operand of a product of `rows` rows, and whether it is turned.
  FailureOr<Value> getLeft(linalg::ContractOp product, int64_t rows,
                           bool &isTurned);
  /// Whether registers of a warpgroup hold a tile of this type.
  LogicalResult checkTile(Value old);
  LogicalResult checkVector(Value old, Attribute encoding);
  Value loadArray(tile::LoadOp load, RankedTensorType type,
                  DenseI64ArrayAttr rows);
  /// The encodings that the uses of a vector in a warpgroup ask for.
  void collectEncodings(Value old, SetVector<Attribute> &encodings);
  /// Marks an op that goes over the rows of a fragment, of which `tile` has
  /// some.
  void markOverRows(Operation *op, Value tile);
  std::optional<std::pair<InShared, InShared>>
  findRowDots(linalg::ReduceOp reduce);
  bool isOfRowDots(Operation *op);
  /// Whether `difference` subtracts a product that is made negated.
  bool isOfNegated(arith::SubFOp difference);
  FailureOr<Value> lanes(Value old) { return vector(old, lanesEncoding()); }
  FailureOr<Value> vector(Value old, Attribute encoding);
  FailureOr<SmallVector<Value>> values(ValueRange old);

  /// The type of a tile in registers here.
  Type convertType(Type type);
  RankedTensorType withEncoding(RankedTensorType tile, Attribute encoding);
  Attribute lanesEncoding() { return warp::LanesAttr::get(b.getContext()); }
  /// How a warpgroup or warp holds the vector `old` that it stores.
  Attribute encodingOf(Value old);
  /// Notes that `result` lies in the rows of a fragment where `from` do.
  LogicalResult placeLike(Value result, ValueRange from);
  /// Rows [first, last) of a fragment that a tile of fewer rows lies in.
  DenseI64ArrayAttr getRows(Value tile);
  /// Clones an elementwise op on new operands.
  Value cloneOn(Operation *op, ValueRange operands, RankedTensorType type);
  LogicalResult requireOneCopier(Operation *copy);
  LogicalResult gather(tile::LoadOp load, Value view, bool isTransposed);
  LogicalResult fetch(tile::LoadOp load, Value view, bool isTransposed);
  Value getCopyEnd(Value end);
  Value sliceView(Value view, int64_t row, int64_t column, int64_t rows,
                  int64_t columns);
  Value constantLike(arith::ConstantOp constant, RankedTensorType type);

  warp::RoleOp role;
  FieldLayouts &fields;
  OpBuilder b;
  /// Whether the role computes as warpgroups or as single warps.
  bool isGroup;
  IRMapping map;
  DenseMap<Value, InShared> shared;
  /// First row, in its fragment, of a tile of fewer rows. One that is the same
  /// in all of them, as a vector that repeats, has none.
  DenseMap<Value, int64_t> firstRow;
  /// Fragments of views that were loaded.
  DenseMap<Value, Value> loaded;
  /// Views of tiles that were published.
  DenseMap<Value, Value> published;
  /// Of tiles that this role has made and stored to a slot, the view, and
  /// whether the tile lies there transposed.
  DenseMap<Value, std::pair<Value, bool>> stored;
  /// Of sums over a cluster, what this CTA has sent and keeps.
  DenseMap<Value, Value> sent;
  /// Vectors of arrays in the encodings that they are used in.
  DenseMap<std::pair<Value, Attribute>, Value> vectors;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_ROLELAYOUTS_H
