//===- PackBatch.h - Batch rows as packed sequences ----------------*- C++
//-*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_PACKBATCH_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_PACKBATCH_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// The type [1, B T, ...] of an array [B, T, ...].
RankedTensorType getPackedType(RankedTensorType type);

/// [B, T, ...] as [1, B T, ...]; null for null.
Value packBatch(ImplicitLocOpBuilder &b, Value array);

/// [1, B T, ...] as an array of `type`, whose first sizes are those of `like`.
Value unpackBatch(ImplicitLocOpBuilder &b, Value packed, RankedTensorType type,
                  Value like);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_PACKBATCH_H
