//===- Warp.h - The gdn_warp dialect and its ops ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_WARP_H
#define GDN_DIALECT_WARP_IR_WARP_H

#include "gdn/Dialect/ElementTypes.h"
#include "gdn/Dialect/KnownAttributes.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gdn/Dialect/Warp/IR/Dialect.h.inc"
#include "gdn/Dialect/Warp/IR/Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/Warp/IR/Attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/Warp/IR/Types.h.inc"

namespace mlir::gdn::warp {

/// True if `type` is a tensor with an encoding of kind `Encoding`.
template <typename Encoding> bool isEncoded(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<Encoding>(tensor.getEncoding());
}

/// Whether a slot of a channel can hold a value of `type`: its view, a tile,
/// which lies there row by row, or a scalar. The message says which.
bool isFieldType(Type type);
inline constexpr StringLiteral kFieldTypes =
    "views, or tiles of one or two dimensions or scalars, whose elements are "
    "whole bytes";

/// Rows (`dim` 0) or columns of a tile of `size` of them that a thread holds.
int64_t countAlong(SpreadAttr spread, int64_t dim, int64_t size);

/// Elements of an encoded tensor (fragment, columns, rows, lanes) that a thread
/// holds, or 0 if the tensor is not encoded.
int64_t getThreadElements(RankedTensorType tensor);

/// Bytes of shared memory in which the warps of a warpgroup leave their parts
/// of `op` for each other; 0 for an op that each warp runs by itself.
int64_t getScratchBytes(Operation *op);

/// Whether `op` is in a branch that is not the usual one: the attribute
/// `likely` of the choice says so.
bool isUnlikely(Operation *op, StringRef likely);

/// The chip that `op` is for: that of the innermost `gdn_warp.target` around
/// it, or the first one of the table where there is none.
const Arch &getArch(Operation *op);

} // namespace mlir::gdn::warp

#define GET_OP_CLASSES
#include "gdn/Dialect/Warp/IR/Ops.h.inc"

#endif // GDN_DIALECT_WARP_IR_WARP_H
