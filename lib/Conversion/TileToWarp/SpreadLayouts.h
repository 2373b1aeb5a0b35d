//===- SpreadLayouts.h - A role whose tiles lie over lanes ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_SPREADLAYOUTS_H
#define GDN_LIB_CONVERSION_TILETOWARP_SPREADLAYOUTS_H

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::gdn {

/// Rewrites the body of a role that takes no part in products: its tiles are
/// spread over the lanes of its warps (#gdn_warp.spread), all in one way.
///
/// A vector lies as its users ask: along the rows or the columns of the tiles,
/// or, of one element, in every thread. What an array, a constant or element by
/// element work gives is made once for each of these.
class SpreadLayouts {
public:
  SpreadLayouts(warp::RoleOp role, int64_t lanesPerRow)
      : role(role), lanesPerRow(lanesPerRow), b(role.getContext()) {}

  LogicalResult run();

private:
  using Encodings = llvm::SetVector<Attribute>;

  void chooseSpread();
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation *op);
  LogicalResult convertFor(scf::ForOp loop);
  LogicalResult convertIf(scf::IfOp branch);
  FailureOr<SmallVector<Value>> lookupAll(ValueRange values,
                                          ArrayRef<Attribute> encodings);
  void define(ValueRange old, ValueRange made);
  LogicalResult convertLoad(tile::LoadOp load);
  LogicalResult convertStore(tile::StoreOp store);
  LogicalResult convertBroadcast(linalg::BroadcastOp broadcast);
  LogicalResult convertReduce(linalg::ReduceOp reduce);
  LogicalResult convertExtract(Operation *op);
  LogicalResult convertOther(Operation *op);
  LogicalResult cloneAs(Operation *op, Attribute encoding);

  /// The encodings in which the users of a vector want it.
  Encodings getWanted(Value vector);
  void collectWanted(Value vector, Encodings &wanted, DenseSet<Value> &seen);
  /// How a vector lies whose users do not say.
  Attribute getNatural(Value vector);
  /// How what control flow hands over lies, null for scalars: a vector as all
  /// of its users want it.
  Attribute getCarried(Value value);
  Attribute alongAxis(int64_t axis);
  Attribute uniform();
  LogicalResult checkSize(Value old, Attribute encoding);

  RankedTensorType typeOf(Value old, Attribute encoding);
  /// The new value of a tile, a vector in an encoding, or a scalar.
  FailureOr<Value> lookup(Value old, Attribute encoding = {});
  Value makeConstant(arith::ConstantOp constant, RankedTensorType type);
  SmallVector<Value> mapAll(ValueRange values);
  LogicalResult checkEnd(Operation *access, Value end,
                         std::optional<int64_t> dim, ArrayRef<int64_t> axes);
  Value lookupEnd(Value end) {
    return end ? map.lookupOrDefault(end) : Value();
  }

  warp::RoleOp role;
  int64_t lanesPerRow;
  OpBuilder b;
  warp::SpreadAttr spread;
  IRMapping map;
  DenseMap<std::pair<Value, Attribute>, Value> vectors;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_SPREADLAYOUTS_H
