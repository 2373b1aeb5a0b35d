//===- RolePublished.cpp - Tiles of a role that its products read ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Stores what this role has made where its products read it.
FailureOr<Value> RoleLayouts::publish(Value old, bool inTurn) {
  Value &known = published[old];
  if (known && known.getParentBlock() == b.getInsertionBlock())
    return known;
  auto tile = cast<RankedTensorType>(old.getType());
  SmallVector<Value> pieces{old}, fragments;
  if (auto stack = old.getDefiningOp<tensor::ConcatOp>();
      stack && stack.getDim() == 0)
    pieces = SmallVector<Value>(stack.getInputs());
  for (Value piece : pieces) {
    FailureOr<Value> registers = fragment(piece);
    if (failed(registers))
      return failure();
    fragments.push_back(*registers);
    if (piece != pieces.back() && getRows(piece))
      return old.getDefiningOp()->emitOpError("expected stacked tiles of ")
             << format::kWgmmaRows << " rows before the last one, got "
             << piece.getType();
  }
  FieldLayout layout = layOutPublished(tile);
  known = PublishOp::create(b, old.getLoc(), layout.view, fragments,
                            getRows(pieces.back()), layout.transposed, inTurn);
  return known;
}

/// Stores rows of what this role has made. Of a tile that products read again
/// and again all are stored at once. Others have a turn in shared memory, which
/// is over when their product has read them.
FailureOr<InShared> RoleLayouts::publishRows(tensor::ExtractSliceOp slice) {
  if (slice->hasOneUse()) {
    FailureOr<Value> view = publish(slice, /*inTurn=*/true);
    if (failed(view))
      return failure();
    return InShared{*view, (*view).getDefiningOp<PublishOp>().getTranspose()};
  }
  FailureOr<Value> view = publish(slice.getSource(), /*inTurn=*/true);
  if (failed(view))
    return failure();
  bool turn = (*view).getDefiningOp<PublishOp>().getTranspose();
  ArrayRef<int64_t> offsets = slice.getStaticOffsets(),
                    sizes = slice.getStaticSizes();
  return InShared{sliceView(*view, offsets[turn], offsets[!turn], sizes[turn],
                            sizes[!turn]),
                  turn};
}

/// Whether a user of `tile`, or of what is a part of it or only wider in
/// registers, stands behind `op`.
static bool isReadBehind(Value tile, Operation *op) {
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    if (user->getBlock() != op->getBlock())
      return true;
    if (isa<arith::ExtFOp, tensor::ExtractSliceOp, linalg::TransposeOp>(user))
      return isReadBehind(user->getResult(0), op);
    return op->isBeforeInBlock(user);
  });
}

Value RoleLayouts::findReplaced(arith::TruncFOp round) {
  auto product = round.getIn().getDefiningOp<arith::MulFOp>();
  if (!product)
    return {};
  for (Value factor : product->getOperands()) {
    auto widen = factor.getDefiningOp<arith::ExtFOp>();
    auto get = widen ? widen.getIn().getDefiningOp<GetOp>() : GetOp();
    if (!get || get.getType() != round.getType() ||
        get->getBlock() != round->getBlock() || isReadBehind(get, round))
      continue;
    bool isShared =
        llvm::any_of(get.getChannel().getUsers(), [&](Operation *user) {
          auto other = dyn_cast<GetOp>(user);
          return other && other != get && other.getField() == get.getField();
        });
    auto place = shared.find(get);
    if (!isShared && place != shared.end() && !place->second.transposed &&
        cast<ViewType>(place->second.view.getType()).isSwizzled())
      return place->second.view;
  }
  return {};
}

/// Stores what is rounded where all that takes it reads it. Each warp has read
/// the rows that it writes.
LogicalResult RoleLayouts::convertShared(arith::TruncFOp round) {
  if (failed(convertOther(round)))
    return failure();
  Location loc = round.getLoc();
  InShared place;
  if (Value replaced = findReplaced(round)) {
    SyncOp::create(b, loc, SyncKind::Warp);
    FragmentStoreOp::create(b, loc, map.lookup(round.getResult()), replaced,
                            /*transpose=*/false, getRows(round));
    place.view = ShareOp::create(b, loc, replaced);
    loaded.erase(replaced);
  } else {
    FailureOr<Value> view = publish(round, /*inTurn=*/true);
    if (failed(view))
      return failure();
    place.view = *view;
    place.transposed = (*view).getDefiningOp<PublishOp>().getTranspose();
  }
  shared[round] = place;
  map.erase(round.getResult());
  return success();
}

FailureOr<InShared> RoleLayouts::getShared(Value old) {
  if (auto place = shared.find(old); place != shared.end())
    return place->second;
  if (auto place = stored.find(old);
      place != stored.end() &&
      place->second.first.getParentBlock() == b.getInsertionBlock()) {
    auto [view, transposed] = place->second;
    Value &known = published[old];
    if (!known)
      known = ShareOp::create(b, old.getLoc(), view);
    return InShared{known, transposed};
  }
  if (auto slice = old.getDefiningOp<tensor::ExtractSliceOp>())
    return publishRows(slice);
  FailureOr<Value> view = publish(old);
  if (failed(view))
    return failure();
  return InShared{*view, (*view).getDefiningOp<PublishOp>().getTranspose()};
}
