//===- Channels.cpp - Checks of channels and their values -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

bool gdn::warp::isFieldType(Type type) {
  if (isa<ViewType>(type))
    return true;
  auto tile = dyn_cast<RankedTensorType>(type);
  if (tile && (!isTileOf(tile, ElementLevel::Warp) || tile.getRank() < 1 ||
               tile.getRank() > 2))
    return false;
  Type element = tile ? tile.getElementType() : type;
  return isElementType(element, ElementLevel::Warp) && !element.isInteger(1);
}

LogicalResult ChannelOp::verify() {
  int64_t maxSlots = getArch(*this).maxSlots(), depth = getDepth();
  if (depth < 1 || depth > maxSlots)
    return emitOpError("expected 1 to ") << maxSlots << " slots, got " << depth;
  if (int64_t turn = getTurn().value_or(1); turn < 1)
    return emitOpError("expected a CTA to fill at least one slot in its turn, "
                       "got ")
           << turn;
  for (Type field : getType().getFields())
    if (!isFieldType(field))
      return emitOpError("expected fields of ")
             << kFieldTypes << ", got " << field;
  size_t fields = getType().getFields().size();
  if (getPlaces() && getPlaces()->size() != fields)
    return emitOpError("expected the place of each of ")
           << fields << " fields, got " << getPlaces()->size();
  ArrayRef<Type> types = getType().getFields();
  int64_t chunks = getChunks();
  if (chunks < 1 || fields % chunks != 0)
    return emitOpError("expected as many fields for each of ")
           << chunks << " chunks, got " << fields << " fields";
  size_t stride = fields / chunks;
  for (size_t field = stride; field < fields; ++field)
    if (types[field] != types[field - stride])
      return emitOpError("expected fields of the same types for each chunk, "
                         "got ")
             << types[field - stride] << " and " << types[field];
  return success();
}

/// What names a chunk names a field of the first one; further ones follow.
static LogicalResult verifyChunk(Operation *op, ChannelOp channel,
                                 int64_t field) {
  int64_t fields = channel.getType().getFields().size(),
          ofChunk = fields / static_cast<int64_t>(channel.getChunks());
  if (channel.getChunks() == 1)
    return op->emitOpError("expected a chunk only where the channel has fields "
                           "for several, got one of channel ")
           << channel.getNameAttr() << ", which has them for one";
  if (field >= ofChunk)
    return op->emitOpError("expected a field of the first chunk, below ")
           << ofChunk << ", and the chunk's number, got number " << field;
  return success();
}

/// The op stands in a role, the field exists and is of the value's type, and
/// behind it those of the other V tiles and chunks if the op says which.
template <typename Op> static LogicalResult verifyField(Op op, Type value) {
  ChannelType channel = op.getChannel().getType();
  int64_t field = op.getField();
  if (!op->template getParentOfType<RoleOp>())
    return op.emitOpError("expected to stand in a role");
  ArrayRef<Type> fields = channel.getFields();
  int64_t count = fields.size();
  if (field < 0 || field >= count)
    return op.emitOpError("expected a field of ")
           << channel << ", got number " << field;
  if (fields[field] != value)
    return op.emitOpError("expected the type of field ")
           << field << ", " << fields[field] << ", got " << value;
  if (op.getVTile() && (field + 1 >= count || fields[field + 1] != value))
    return op.emitOpError("expected a field for each V tile, got none of ")
           << value << " behind field " << field;
  auto maker = op.getChannel().template getDefiningOp<ChannelOp>();
  return op.getChunk() && maker ? verifyChunk(op, maker, field) : success();
}

LogicalResult PutOp::verify() {
  return verifyField(*this, getValue().getType());
}
LogicalResult GetOp::verify() { return verifyField(*this, getType()); }
LogicalResult SlotOp::verify() { return verifyField(*this, getType()); }
