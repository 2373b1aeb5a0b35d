//===- FieldLayouts.cpp - How values lie in the slots of channels ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FieldLayouts.h"

#include "RoleLayouts.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// A swizzled or plain view of `shape`, transposed or not.
static FieldLayout makeLayout(RankedTensorType tile, bool transposed) {
  SmallVector<int64_t> shape(tile.getShape());
  if (transposed)
    std::swap(shape[0], shape[1]);
  return {ViewType::get(shape, tile.getElementType(), format::kPanelBytes),
          transposed};
}

/// Rows of M^T an odd number of 16 bytes apart, so that a warp's reads of one
/// row after the other meet different banks.
static FieldLayout makeSolveLayout(RankedTensorType tile) {
  constexpr int64_t kRun = 16;
  int64_t bytes = tile.getDimSize(0) * tile.getElementTypeBitWidth() / 8 + kRun;
  return {ViewType::get(tile.getContext(), tile.getShape(),
                        tile.getElementType(), /*swizzle=*/0, bytes,
                        /*column=*/0),
          /*transposed=*/true};
}

/// Rows of more than a panel of f32, which neither copies nor products read: an
/// odd number of 32 bytes apart, so that the pairs that a half of a warp takes
/// of four rows meet different banks. A swizzle by 16 bytes would let those of
/// two rows meet.
static FieldLayout makePairLayout(RankedTensorType tile) {
  constexpr int64_t kRun = 32;
  int64_t bytes = tile.getDimSize(1) * tile.getElementTypeBitWidth() / 8;
  if (bytes / kRun % 2 == 0)
    bytes += kRun;
  return {ViewType::get(tile.getContext(), tile.getShape(),
                        tile.getElementType(), /*swizzle=*/0, bytes,
                        /*column=*/0),
          /*transposed=*/false};
}

/// A layout for copies from or to an array, which take whole rows of panels.
static FieldLayout makeCopyLayout(RankedTensorType tile, bool transposed) {
  FieldLayout layout = makeLayout(tile, transposed);
  layout.sharesRows = false;
  return layout;
}

/// True if a tile's rows run along the array's innermost dimension.
static bool isTransposed(ArrayRef<int64_t> axes) { return axes[0] > axes[1]; }

bool gdn::isCopiedAs(tile::LoadOp load, bool transposed) {
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(load.getSource().getType());
  return isTransposed(load.getAxes()) == transposed &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[load.getAxes()[transposed ? 0 : 1]] == 1;
}

static tile::LoadOp findLoad(Value value) {
  if (auto concat = value.getDefiningOp<tensor::ConcatOp>())
    return findLoad(concat.getInputs().front());
  return value.getDefiningOp<tile::LoadOp>();
}

/// True if `taker` is the inverse of `tile`, or begins what it is rounded by.
static bool isInverted(Operation *taker, Value tile) {
  if (isa<tile::TriInverseOp>(taker))
    return true;
  if (!isa<arith::MulFOp>(taker) || !taker->hasOneUse())
    return false;
  auto round = dyn_cast<arith::TruncFOp>(*taker->user_begin());
  return round && llvm::any_of(round->getUsers(), [&](Operation *user) {
           auto inverse = dyn_cast<tile::TriInverseOp>(user);
           return inverse && findScaled(inverse).tile == tile;
         });
}

/// The store of what is taken from a field as it is, or null.
static tile::StoreOp findStore(ChannelOp channel, uint64_t field) {
  for (Operation *user : channel->getUsers())
    if (auto get = dyn_cast<GetOp>(user); get && get.getField() == field)
      for (Operation *taker : get->getUsers())
        if (auto store = dyn_cast<tile::StoreOp>(taker))
          return store;
  return {};
}

/// A loaded tile lies as its array does. One that is stored to an array where
/// it lies the other way, or that no tensor map can copy, is turned by those
/// who load it.
static FieldLayout makeLoadLayout(RankedTensorType tile, tile::LoadOp load,
                                  tile::StoreOp store) {
  bool transposed = isTransposed(load.getAxes());
  if (store)
    transposed = isTransposed(store.getAxes());
  else if (!isCopiedAs(load, transposed))
    transposed = false;
  return makeCopyLayout(tile, transposed);
}

bool gdn::fillsPanelsTurned(RankedTensorType tile) {
  int64_t bytes = tile.getElementTypeBitWidth() / 8;
  return tile.getDimSize(0) > format::kWgmmaRows &&
         tile.getDimSize(1) * bytes * 2 == format::kPanelBytes &&
         tile.getDimSize(0) * bytes % format::kPanelBytes == 0;
}

static FieldLayout findLayout(ChannelOp channel, uint64_t field) {
  auto tile = dyn_cast<RankedTensorType>(channel.getType().getFields()[field]);
  if (!tile)
    return {ViewType::get(ArrayRef<int64_t>(1),
                          channel.getType().getFields()[field])};
  if (tile.getRank() == 1)
    return {ViewType::get(tile.getShape(), tile.getElementType())};
  for (Operation *user : channel->getUsers()) {
    if (auto put = dyn_cast<PutOp>(user); put && put.getField() == field) {
      if (tile::LoadOp load = findLoad(put.getValue()))
        return makeLoadLayout(tile, load, findStore(channel, field));
      if (findSolve(put.getValue()))
        return makeLayout(tile, /*transposed=*/true);
    }
    auto get = dyn_cast<GetOp>(user);
    if (!get || get.getField() != field)
      continue;
    if (tile::StoreOp store = findStore(channel, field))
      return makeCopyLayout(tile, isTransposed(store.getAxes()));
    for (Operation *taker : get->getUsers())
      if (isInverted(taker, get))
        return makeSolveLayout(tile);
  }
  if (tile.getElementType().isF32() &&
      tile.getDimSize(1) * 4 > format::kPanelBytes)
    return makePairLayout(tile);
  return makeLayout(tile, fillsPanelsTurned(tile));
}

/// Two tiles of half a panel's width lie side by side in its rows where they
/// may.
static void shareRows(MutableArrayRef<FieldLayout> fields) {
  FieldLayout *open = nullptr;
  for (FieldLayout &field : fields) {
    ViewType view = field.view;
    constexpr int64_t kHalf = format::kPanelBytes / 2;
    if (!view.isSwizzled() || !field.sharesRows ||
        view.getColumns() * view.getElementBytes() > kHalf)
      continue;
    if (!open || open->view.getRows() != view.getRows()) {
      open = &field;
      continue;
    }
    field.view =
        ViewType::get(view.getContext(), view.getShape(), view.getElementType(),
                      view.getSwizzle(), view.getStride(), kHalf);
    open = nullptr;
  }
}

FieldLayouts::FieldLayouts(KernelOp kernel) {
  for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
    SmallVector<FieldLayout> &fields = layouts[channel];
    size_t ofChunk = channel.getType().getFields().size() / channel.getChunks();
    for (uint64_t field = 0; field < ofChunk; ++field) {
      // The fields of further V tiles follow that of the first.
      bool used = llvm::any_of(channel->getUsers(), [&](Operation *user) {
        auto put = dyn_cast<PutOp>(user);
        auto get = dyn_cast<GetOp>(user);
        return (put && put.getField() == field) ||
               (get && get.getField() == field);
      });
      fields.push_back(used || fields.empty() ? findLayout(channel, field)
                                              : fields.back());
    }
    shareRows(fields);
    // Each chunk's fields are as those of the first.
    for (uint64_t field = ofChunk; field < ofChunk * channel.getChunks();
         ++field) {
      FieldLayout layout = fields[field - ofChunk];
      fields.push_back(layout);
    }
  }
}

void FieldLayouts::apply() {
  for (auto &[channel, fields] : layouts) {
    SmallVector<Type> views = llvm::map_to_vector(
        fields, [](const FieldLayout &field) -> Type { return field.view; });
    cast<ChannelOp>(channel).getResult().setType(
        ChannelType::get(channel->getContext(), views));
  }
}

/// Whether a tile lies in a slot, as a whole or in part, or goes to one where
/// products may read it.
static bool isOfSlot(Value tile) {
  if (!findSolve(tile) && llvm::any_of(tile.getUsers(), llvm::IsaPred<PutOp>))
    return true;
  while (Operation *op = tile.getDefiningOp()) {
    if (isa<GetOp>(op))
      return true;
    if (!isa<tensor::ExtractSliceOp, linalg::TransposeOp, arith::ExtFOp>(op))
      return false;
    tile = op->getOperand(0);
  }
  return false;
}

FieldLayout gdn::layOutPublished(RankedTensorType tile) {
  FieldLayout layout;
  layout.transposed = fillsPanelsTurned(tile);
  SmallVector<int64_t> shape(tile.getShape());
  if (layout.transposed)
    std::swap(shape[0], shape[1]);
  layout.view =
      ViewType::get(shape, tile.getElementType(), format::kPanelBytes);
  return layout;
}

int64_t gdn::countPublished(KernelOp kernel) {
  int64_t all = 0;
  for (auto role : kernel.getBody().getOps<RoleOp>()) {
    DenseSet<Value> known;
    int64_t own = 0, most = 0,
            groups = llvm::divideCeil(role.getCount(), format::kWarpgroupWarps);
    role.walk([&](linalg::ContractOp product) {
      SmallVector<AffineMap> maps = product.getIndexingMapsArray();
      bool isLeftTurned = maps[0].getResult(0) != maps[2].getResult(0),
           isRare = isUnlikely(product, tile::TileDialect::getLikelyAttrName());
      int64_t turn = 0;
      for (int64_t number : {0, 1}) {
        Value tile = product.getDpsInputs()[number];
        if ((number == 0 && !isLeftTurned) || isOfSlot(tile) ||
            !known.insert(tile).second)
          continue;
        FieldLayout layout =
            layOutPublished(cast<RankedTensorType>(tile.getType()));
        int64_t bytes =
            llvm::alignTo(layout.view.getSpan(), format::kSwizzleAlignment);
        (isRare ? turn : own) += bytes;
      }
      most = std::max(most, turn);
    });
    bool reduces = role.walk([](linalg::ReduceOp reduce) {
                         auto type = cast<RankedTensorType>(
                             reduce->getResult(0).getType());
                         return type.getRank() == 0 ? WalkResult::interrupt()
                                                    : WalkResult::advance();
                       })
                       .wasInterrupted();
    all += (std::max(own, most) + (reduces ? kReducedBytes : 0)) * groups;
  }
  return all;
}
