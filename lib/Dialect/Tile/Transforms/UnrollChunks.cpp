//===- UnrollChunks.cpp - Several chunks an iteration ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#define DEBUG_TYPE "gdn-tile-unroll-chunks"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_UNROLLCHUNKSPASS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// Copies the loop's body for one chunk. Returns what it yields.
static SmallVector<Value> copyChunk(OpBuilder &b, scf::ForOp loop, Value t,
                                    ValueRange carried, int64_t chunk) {
  IRMapping copies;
  copies.map(loop.getInductionVar(), t);
  copies.map(loop.getRegionIterArgs(), carried);
  Attribute number = b.getI64IntegerAttr(chunk);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, copies)->walk([&](Operation *copy) {
      copy->setAttr(TileDialect::getChunkAttrName(), number);
    });
  return llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
    return copies.lookupOrDefault(value);
  });
}

static void unroll(scf::ForOp loop, int64_t factor) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value step = loop.getStep();
  Value longStep = arith::MulIOp::create(b, loc, step, constant(factor));
  SmallVector<Value> offsets;
  for (int64_t chunk = 0; chunk < factor; ++chunk)
    offsets.push_back(arith::MulIOp::create(b, loc, step, constant(chunk)));
  auto iterations = scf::ForOp::create(
      b, loc, loop.getLowerBound(), loop.getUpperBound(), longStep,
      loop.getInits(),
      [&](OpBuilder &b, Location loc, Value t, ValueRange carried) {
        SmallVector<Value> values(carried);
        for (auto [chunk, offset] : llvm::enumerate(offsets)) {
          Value start = arith::AddIOp::create(b, loc, t, offset);
          values = copyChunk(b, loop, start, values, chunk);
        }
        scf::YieldOp::create(b, loc, values);
      });
  loop.replaceAllUsesWith(iterations);
  loop.erase();
}

namespace {
struct UnrollChunks : gdn::tile::impl::UnrollChunksPassBase<UnrollChunks> {
  using UnrollChunksPassBase::UnrollChunksPassBase;

  void runOnOperation() override {
    // Each chunk is a copy of the body.
    constexpr int64_t kMostChunks = 64;
    if (factor < 1 || factor > kMostChunks) {
      getOperation().emitOpError("expected factor to be 1 to ")
          << kMostChunks << ", got " << factor.getValue();
      return signalPassFailure();
    }
    Block &body = getOperation().getBody().front();
    for (auto loop : llvm::make_early_inc_range(body.getOps<scf::ForOp>()))
      unroll(loop, factor);
  }
};
} // namespace
