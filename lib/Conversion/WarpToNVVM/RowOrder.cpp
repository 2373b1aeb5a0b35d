//===- RowOrder.cpp - Which rows of a fragment a lane holds ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma gives four neighbouring lanes a row of eight. Rows of f32 of a swizzled
// view lie so that rows r and r + 1 of an even r have the same banks there, and
// half a warp accesses them at once: 8 bytes a lane take twice the wavefronts.
// Rows 0, 2, 4, 6 do not. Where no op of a kernel tells rows apart, its lanes
// may hold them in that order, in all of its tiles.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Whether `type` is a tile whose rows lanes hold.
static bool hasRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor &&
         isa_and_nonnull<FragmentAttr, RowsAttr>(tensor.getEncoding());
}

static bool isSwizzledF32(ViewType view) {
  return view.getElementType().isF32() && view.getSwizzle() != 0;
}

/// Whether `op`, on tiles with rows, does the same to each row, or takes the
/// rows' numbers from createFragmentRow.
static bool takesRowsAlike(Operation *op) {
  // Matrix instructions move 16-bit tiles, by rows of their own.
  if (auto load = dyn_cast<FragmentLoadOp>(op))
    return isSwizzledF32(load.getView().getType()) && !load.getRows() &&
           !load.getRow();
  if (auto store = dyn_cast<FragmentStoreOp>(op))
    return isSwizzledF32(store.getView().getType()) && !store.getRows();
  if (auto product = dyn_cast<WgmmaOp>(op))
    return !isa<ViewType>(product.getA().getType());
  if (auto sum = dyn_cast<linalg::ReduceOp>(op))
    return sum.getDimensions() == ArrayRef<int64_t>(1);
  if (auto copies = dyn_cast<linalg::BroadcastOp>(op))
    return copies.getDimensions() == ArrayRef<int64_t>(1);
  if (auto load = dyn_cast<ArrayLoadOp>(op))
    return !load.getRows();
  if (auto store = dyn_cast<ArrayStoreOp>(op))
    return !store.getRows();
  return isa<WgmmaWaitOp, tensor::EmptyOp, tensor::SplatOp, scf::ForOp,
             scf::YieldOp>(op) ||
         isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
}

bool warp::mayTurnRows(KernelOp kernel) {
  bool gains = false;
  WalkResult walked = kernel.walk([&](Operation *op) {
    if (!llvm::any_of(op->getOperandTypes(), hasRows) &&
        !llvm::any_of(op->getResultTypes(), hasRows))
      return WalkResult::advance();
    gains |= isa<FragmentLoadOp, FragmentStoreOp>(op);
    return takesRowsAlike(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return gains && !walked.wasInterrupted();
}

Value warp::turnRows(ImplicitLocOpBuilder &b, Value quad) {
  auto function =
      dyn_cast<LLVM::LLVMFuncOp>(b.getInsertionBlock()->getParentOp());
  if (!function)
    function = b.getInsertionBlock()
                   ->getParentOp()
                   ->getParentOfType<LLVM::LLVMFuncOp>();
  if (!function || !function->hasAttr(kTurnedRows))
    return quad;
  // 0 to 7 become 0, 2, 4, 6, 1, 3, 5, 7: the three bits turn left.
  Value up = arith::ShLIOp::create(b, quad, createI32(b, 1));
  Value down = arith::ShRUIOp::create(b, quad, createI32(b, 2));
  return arith::AndIOp::create(b, arith::OrIOp::create(b, up, down),
                               createI32(b, 7));
}
