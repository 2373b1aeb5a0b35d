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
  size_t fields = getType().getFields().size();
  if (getPlaces() && getPlaces()->size() != fields)
    return emitOpError("expected the place of each of ")
           << fields << " fields, got " << getPlaces()->size();
  return success();
}

/// The field exists and is of the value's type.
static LogicalResult verifyField(Operation *op, ChannelType channel,
                                 uint64_t field, Type value) {
  if (field >= channel.getFields().size())
    return op->emitOpError("expected a field of ")
           << channel << ", got number " << field;
  if (channel.getFields()[field] != value)
    return op->emitOpError("expected the type of field ")
           << field << ", " << channel.getFields()[field] << ", got " << value;
  return success();
}

LogicalResult PutOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(),
                     getValue().getType());
}
LogicalResult GetOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(), getType());
}
LogicalResult SlotOp::verify() {
  return verifyField(*this, getChannel().getType(), getField(), getType());
}
