//===- FieldLayouts.h - How fields of channels lie in a slot ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_TILETOWARP_FIELDLAYOUTS_H
#define GDN_LIB_CONVERSION_TILETOWARP_FIELDLAYOUTS_H

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::gdn {

/// How a value lies in shared memory.
struct FieldLayout {
  warp::ViewType view;
  /// Whether the view is that of the transposed tile.
  bool transposed = false;
  /// Whether another tile may lie beside it in its rows.
  bool sharesRows = true;
};

/// Whether columns of a tile are whole panels, of which its rows fill a half.
/// Of one that a fragment holds, two may lie side by side.
bool fillsPanelsTurned(RankedTensorType tile);

/// How a tile lies that a role makes for its own products.
FieldLayout layOutPublished(RankedTensorType tile);

/// Whether a tensor map copies the tile of `load` to a view of it, transposed
/// or not: the view's rows run along a dimension of stride 1.
bool isCopiedAs(tile::LoadOp load, bool isTransposed);

/// Bytes that a warpgroup reduces a vector in: each warp leaves its number in
/// the columns of a product's unit.
constexpr int64_t kReducedBytes =
    warp::format::kWarpgroupWarps * warp::format::kWgmmaColumnUnit * 4;

/// Bytes of shared memory that roles of a kernel of values take for themselves:
/// of operands of products that their own roles make, and of reductions to a
/// number. Operands of rare branches take turns, and so do reductions.
int64_t countPublished(warp::KernelOp kernel);

/// The layouts of all fields of a kernel's channels.
class FieldLayouts {
public:
  /// Reads the puts and gets of tile values.
  explicit FieldLayouts(warp::KernelOp kernel);

  const FieldLayout &lookup(Value channel, uint64_t field) {
    return layouts[channel.getDefiningOp()][field];
  }
  /// Gives the channels the types of the views.
  void apply();

private:
  llvm::MapVector<Operation *, SmallVector<FieldLayout>> layouts;
};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_TILETOWARP_FIELDLAYOUTS_H
