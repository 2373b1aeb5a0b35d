//===- TileToLinalg.cpp - Programs become functions -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

#define DEBUG_TYPE "convert-gdn-tile-to-linalg"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTILETOLINALGPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

Value tile::createZeroTile(OpBuilder &builder, Location loc,
                           RankedTensorType type) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

namespace {
/// A program becomes a private function of its arrays and its work item.
struct ProgramToFunction : OpRewritePattern<ProgramOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ProgramOp program,
                                PatternRewriter &rewriter) const override {
    Location loc = program.getLoc();
    auto type = rewriter.getFunctionType(
        program.getBody().front().getArgumentTypes(), {});
    auto function =
        func::FuncOp::create(rewriter, loc, program.getSymName(), type);
    function.setPrivate();
    function->setAttr(TileDialect::getProgramAttrName(),
                      rewriter.getUnitAttr());
    rewriter.inlineRegionBefore(program.getBody(), function.getBody(),
                                function.getBody().end());
    rewriter.setInsertionPointToEnd(&function.getBody().front());
    func::ReturnOp::create(rewriter, loc);
    rewriter.eraseOp(program);
    return success();
  }
};

/// What only programs that run at the same time need, or CTAs.
template <typename Op> struct Drop : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

/// Programs run one after the other: what is reported is just stored.
struct ReportToStore : OpRewritePattern<ReportOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReportOp op,
                                PatternRewriter &rewriter) const override {
    Value done = arith::IndexCastOp::create(
        rewriter, op.getLoc(), rewriter.getI32Type(), op.getDone());
    rewriter.replaceOpWithNewOp<memref::StoreOp>(op, done, op.getArray(),
                                                 op.getOffsets());
    return success();
  }
};

struct ConvertGDNTileToLinalg
    : gdn::impl::ConvertGDNTileToLinalgPassBase<ConvertGDNTileToLinalg> {
  void runOnOperation() override {
    // Bufferization sees the functions of one module, and the calls in it.
    for (auto nested : getOperation().getOps<ModuleOp>())
      if (nested.walk([](LaunchOp) { return WalkResult::interrupt(); })
              .wasInterrupted()) {
        nested.emitOpError("expected launches of programs in the outermost "
                           "module, got one in a nested one");
        return signalPassFailure();
      }
    RewritePatternSet patterns(&getContext());
    patterns.add<ProgramToFunction, Drop<LeaveOp>, Drop<AwaitOp>,
                 Drop<CountDownOp>, Drop<HoldBackOp>, Drop<AwaitReportOp>,
                 Drop<EntryOp>, ReportToStore>(&getContext());
    populateAccessPatterns(patterns);
    populateScanPatterns(patterns);
    populateTriInversePatterns(patterns);

    ConversionTarget target(getContext());
    target.addIllegalDialect<TileDialect>();
    // Tables are for the host of a GPU.
    target.addIllegalOp<EntryOp>();
    target.addLegalOp<LaunchOp>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
