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
using namespace mlir::gdn::warp;

LogicalResult ChannelOp::verify() {
  int64_t maxSlots = getArch(*this).maxSlots();
  if (getDepth() < 1 || getDepth() > static_cast<uint64_t>(maxSlots))
    return emitOpError("expected 1 to ")
           << maxSlots << " slots, got " << getDepth();
  if (getTurn() && *getTurn() < 1)
    return emitOpError("expected a CTA to fill at least one slot in its turn, "
                       "got ")
           << *getTurn();
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
                                 uint64_t field) {
  uint64_t fields = channel.getType().getFields().size(),
           ofChunk = fields / channel.getChunks();
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
  uint64_t field = op.getField();
  if (!op->template getParentOfType<RoleOp>())
    return op.emitOpError("expected to stand in a role");
  ArrayRef<Type> fields = channel.getFields();
  if (field >= fields.size())
    return op.emitOpError("expected a field of ")
           << channel << ", got number " << field;
  if (fields[field] != value)
    return op.emitOpError("expected the type of field ")
           << field << ", " << fields[field] << ", got " << value;
  if (op.getVTile() &&
      (field + 1 >= fields.size() || fields[field + 1] != value))
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
