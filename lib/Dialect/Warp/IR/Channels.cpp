//===- Channels.cpp - Checks of channels and their values -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

using namespace mlir;
using namespace mlir::gdn::warp;

LogicalResult ChannelOp::verify() {
  if (getDepth() < 1)
    return emitOpError("expected at least one slot, got ") << getDepth();
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

/// The op stands in a role, the field exists and is of the value's type, and
/// behind it those of the other parts if the op says which part.
static LogicalResult verifyField(Operation *op, ChannelType channel,
                                 uint64_t field, Type value, Value part) {
  if (!op->getParentOfType<RoleOp>())
    return op->emitOpError("expected to stand in a role");
  ArrayRef<Type> fields = channel.getFields();
  if (field >= fields.size())
    return op->emitOpError("expected a field of ")
           << channel << ", got number " << field;
  if (fields[field] != value)
    return op->emitOpError("expected the type of field ")
           << field << ", " << fields[field] << ", got " << value;
  if (part && (field + 1 >= fields.size() || fields[field + 1] != value))
    return op->emitOpError("expected a field for each part, got none of ")
           << value << " behind field " << field;
  return success();
}

LogicalResult PutOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(),
                     getValue().getType(), getPart());
}
LogicalResult GetOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(), getType(),
                     getPart());
}
LogicalResult SlotOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(), getType(),
                     getPart());
}
