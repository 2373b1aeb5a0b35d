//===- StageOps.cpp - Verifiers of the stage ops --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace mlir::gdn;

LogicalResult FusedStageOp::verify() { return success(); }
LogicalResult RecurrentStageOp::verify() { return success(); }
LogicalResult StatePassStageOp::verify() { return success(); }
LogicalResult PrepareStageOp::verify() { return success(); }
LogicalResult RunStageOp::verify() { return success(); }
LogicalResult BackwardStageOp::verify() { return success(); }
LogicalResult LinearAttentionStageOp::verify() { return success(); }
