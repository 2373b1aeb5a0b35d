//===- Views.h - Arrays with other dimensions -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TARGET_HOST_VIEWS_H
#define GDN_LIB_TARGET_HOST_VIEWS_H

#include "Tables.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace mlir::gdn::host {

/// Dimensions of an array, or of its view `dims`, each group as one.
SmallVector<GdnViewDim> joinDims(ArrayRef<GdnViewDim> dims,
                                 ArrayRef<ReassociationIndices> groups);

/// The other way round: each dimension as a group of those of `type`. What had
/// been joined becomes what it was if so many members are not of extent 1, or
/// if `isOwn` says of each that it may be that dimension of the array; whether
/// they have its extents is not known. Otherwise all of a group but one are of
/// extent 1. Failure for another group.
FailureOr<SmallVector<GdnViewDim>> splitDims(
    ArrayRef<GdnViewDim> dims, ArrayRef<ReassociationIndices> groups,
    RankedTensorType type,
    llvm::function_ref<bool(int64_t member, int32_t dim)> isOwn = nullptr);

} // namespace mlir::gdn::host

#endif // GDN_LIB_TARGET_HOST_VIEWS_H
