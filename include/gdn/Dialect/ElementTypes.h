//===- ElementTypes.h - What arrays and tiles may hold ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of element types for the verifiers of all dialects: what it does
// not list for a level, no target can carry there, and no pass has to expect.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_ELEMENTTYPES_H
#define GDN_DIALECT_ELEMENTTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::gdn {

/// The levels that have arrays and tiles: whole layers, programs of a work
/// item, kernels of a GPU.
enum class ElementLevel { Layer, Tile, Warp };

namespace detail {
struct ElementType {
  StringLiteral name;
  bool (*is)(Type);
  bool inLayer, inTile, inWarp;
  constexpr bool isIn(ElementLevel level) const {
    return level == ElementLevel::Layer  ? inLayer
           : level == ElementLevel::Tile ? inTile
                                         : inWarp;
  }
};

template <unsigned width> bool isInt(Type type) {
  return type.isSignlessInteger(width);
}

inline constexpr ElementType kElementTypes[] = {
    {"bf16", [](Type type) { return type.isBF16(); }, true, true, true},
    {"f16", [](Type type) { return type.isF16(); }, true, true, true},
    {"f32", [](Type type) { return type.isF32(); }, true, true, true},
    {"f64", [](Type type) { return type.isF64(); }, false, true, true},
    {"i1", isInt<1>, false, true, true},
    {"i8", isInt<8>, false, true, true},
    {"i16", isInt<16>, false, true, true},
    {"i32", isInt<32>, true, true, true},
    {"i64", isInt<64>, true, true, true},
    // A CPU has a size for it; in a kernel it is no memory of any size.
    {"index", [](Type type) { return type.isIndex(); }, false, true, false}};
} // namespace detail

/// Whether arrays and tiles of `level` may hold elements of `type`.
inline bool isElementType(Type type, ElementLevel level) {
  return llvm::any_of(detail::kElementTypes, [&](const auto &row) {
    return row.isIn(level) && row.is(type);
  });
}

/// The element types of `level`, for messages: "bf16, f16, f32, ...".
inline std::string listElementTypes(ElementLevel level) {
  SmallVector<StringRef> names;
  for (const detail::ElementType &row : detail::kElementTypes)
    if (row.isIn(level))
      names.push_back(row.name);
  return llvm::join(names, ", ");
}

/// The types of scalars that a host passes to a kernel, for messages.
inline constexpr StringLiteral kScalarArguments = "index, i64, i32 or f32";

/// Whether a host passes scalars of `type` to a kernel.
inline bool isScalarArgument(Type type) {
  return type.isIndex() || type.isSignlessInteger(64) ||
         type.isSignlessInteger(32) || type.isF32();
}

/// Whether all extents of a tile are known and positive.
inline bool hasExtentsOfTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         llvm::all_of(tensor.getShape(), [](int64_t size) { return size > 0; });
}

/// Whether tensor `type` is one that passes take for a tile of `level`.
inline bool isTileOf(Type type, ElementLevel level) {
  return hasExtentsOfTile(type) &&
         isElementType(cast<RankedTensorType>(type).getElementType(), level);
}

/// Whether memref `type` is an array that passes can address: it has strides.
inline bool hasStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  return succeeded(type.getStridesAndOffset(strides, offset));
}

/// Checks a value's type in a program or kernel of `level`. A tensor is a tile:
/// its extents are positive and have a product that LLVM makes code for. A
/// memref has strides. Both hold elements of the table. Other types pass.
inline LogicalResult verifyArrayOrTile(Operation *op, Type type,
                                       ElementLevel level) {
  if (!isa<TensorType, BaseMemRefType>(type))
    return success();
  // The largest state has 256 x 256 elements, the stack of a product is less.
  constexpr int64_t kMostElements = 1 << 20;
  if (isa<TensorType>(type)) {
    if (!hasExtentsOfTile(type))
      return op->emitOpError("expected tiles of static, positive extents, got ")
             << type;
    int64_t room = kMostElements;
    for (int64_t size : cast<RankedTensorType>(type).getShape())
      room = size > room ? 0 : room / size;
    if (room == 0)
      return op->emitOpError("expected tiles of at most ")
             << kMostElements << " elements, got " << type;
  } else if (auto array = dyn_cast<MemRefType>(type);
             !array || !hasStrides(array)) {
    return op->emitOpError("expected arrays of a known rank with strides, got ")
           << type;
  }
  Type element = getElementTypeOrSelf(type);
  if (isElementType(element, level))
    return success();
  return op->emitOpError("expected elements of ")
         << listElementTypes(level) << ", got " << type;
}

/// Checks the types of all that the ops inside `op` take and make.
inline LogicalResult verifyArraysAndTiles(Operation *op, ElementLevel level) {
  WalkResult walked = op->walk([&](Operation *inner) {
    if (inner == op)
      return WalkResult::advance();
    for (TypeRange types : {TypeRange(inner->getOperandTypes()),
                            TypeRange(inner->getResultTypes())})
      for (Type type : types)
        if (failed(verifyArrayOrTile(inner, type, level)))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace mlir::gdn

#endif // GDN_DIALECT_ELEMENTTYPES_H
