//===- VerifyProgram.cpp - What a warpgroup can compute -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the passes after this one would refuse in terms of their own is said
// here in terms of the layer that the program comes from.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"
#include "RoleLayouts.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_VERIFYPROGRAMPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
namespace format = warp::format;

static RankedTensorType getTile(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// Whether the program of `op` has a schedule by hand. The others, of layers,
/// get schedules that are made for a tensor core's rows.
static bool hasSchedule(Operation *op) {
  return op->getParentOfType<tile::ProgramOp>()->hasAttr(
      warp::ScheduleAttr::kName);
}

/// Whether element by element work makes `value` of the sums of a reduction.
static bool hasSums(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<linalg::ReduceOp>(op))
    return true;
  bool passes = op && (op->hasTrait<OpTrait::Elementwise>() ||
                       isa<linalg::BroadcastOp>(op));
  return passes && llvm::any_of(op->getOperands(), hasSums);
}

/// Whether `value` is made in the step that sums squares, whose role holds no
/// tiles in registers. Others hand what they make to their own products, or to
/// those of other roles, through shared memory.
static bool isOfNorms(Value value) {
  Operation *op = value.getDefiningOp();
  auto step =
      op ? op->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName())
         : StringAttr();
  return step && step.getValue() == "norms";
}

static LogicalResult verifyProduct(linalg::ContractOp product) {
  RankedTensorType result = getTile(product.getResult(0));
  if (result.getRank() != 2 || product.getNumLoops() != 3)
    return product.emitOpError("expected a product of two matrices, or of one "
                               "and a vector, got one of result ")
           << result;
  Value right = product.getDpsInputs()[1];
  if (getTile(right).getElementTypeBitWidth() != 16)
    return product.emitOpError("expected operands of bf16 or f16, got ")
           << getTile(right).getElementType()
           << "; use the forward over chunks with q, k and v of 16 bits, or "
              "--operand-type=bf16";
  // It is read from shared memory, where arrays are copied to as they are. What
  // a solve writes there has its factors.
  if (!hasSchedule(product) && !findSolve(right) && hasSums(right) &&
      isOfNorms(right))
    return product.emitOpError("expected an unnormalised right operand (norms "
                               "scale the result), got a normalised one; use "
                               "no --two-product-chain with qk_l2norm");
  int64_t rows = result.getDimSize(0), columns = result.getDimSize(1);
  if (rows != format::kWgmmaRows && !hasSchedule(product))
    return product.emitOpError("expected products of ")
           << format::kWgmmaRows << " rows, got one of " << rows
           << "; use V in multiples of " << format::kWgmmaRows
           << ", and no --two-product-chain";
  if (rows > format::kWgmmaRows || rows % format::kWarpRows != 0)
    return product.emitOpError("expected products of a multiple of ")
           << format::kWarpRows << " rows up to " << format::kWgmmaRows
           << ", got one of " << rows;
  if (columns > format::kMaxWgmmaColumns ||
      columns % format::kWgmmaColumnUnit != 0)
    return product.emitOpError("expected products of a multiple of ")
           << format::kWgmmaColumnUnit << " columns up to "
           << format::kMaxWgmmaColumns << ", got one of " << columns;
  bool isTurned = product.getIndexingMapsArray()[1].getResult(0) ==
                  product.getIndexingMapsArray()[2].getResult(1);
  int64_t depth = getTile(right).getDimSize(isTurned ? 1 : 0);
  if (depth % format::kWgmmaDepth != 0)
    return product.emitOpError("expected products over a multiple of ")
           << format::kWgmmaDepth << ", got one over " << depth;
  return success();
}

/// A panel or whole panels of shared memory.
static LogicalResult verifyLoad(tile::LoadOp load) {
  RankedTensorType tile = load.getType();
  if (tile.getRank() != 2)
    return success();
  bool isTransposed = load.getAxes()[0] > load.getAxes()[1];
  int64_t bytes =
      tile.getDimSize(isTransposed ? 0 : 1) * tile.getElementTypeBitWidth() / 8;
  if (bytes > format::kPanelBytes && bytes % format::kPanelBytes != 0)
    return load.emitOpError("expected rows of at most ")
           << format::kPanelBytes << " bytes or a multiple of it, got " << bytes
           << "; use K of at most 64 or of 128, and V of a multiple of 64";
  return success();
}

/// A warpgroup holds as much as a square of its rows and twice as many columns
/// for the whole of a sequence beside what a chunk needs.
static LogicalResult verifyCarried(scf::ForOp loop) {
  constexpr int64_t kColumns = 2 * format::kWgmmaRows;
  for (Value carried : loop.getRegionIterArgs())
    if (RankedTensorType tile = getTile(carried);
        tile && tile.getRank() == 2 &&
        tile.getNumElements() > format::kWgmmaRows * kColumns)
      return loop.emitOpError("expected a state of at most ")
             << kColumns << " columns in the registers of a warpgroup, got "
             << tile.getDimSize(1) << "; use K of at most " << kColumns;
  return success();
}

static bool hasProducts(Operation *op) {
  return op->getParentOfType<tile::ProgramOp>()
      ->walk([](linalg::ContractOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static LogicalResult verifyReduction(linalg::ReduceOp reduce) {
  RankedTensorType tile = getTile(reduce.getInputs().front());
  bool isOfRows = reduce.getDimensions() == ArrayRef<int64_t>(1);
  // Lanes that share tiles sum along a vector too, and so do warpgroups.
  if (tile.getRank() == 1)
    return success();
  // Over rows warpgroups reduce what they hold in registers, which is f32.
  bool isOfColumns = tile.getElementType().isF32() && hasProducts(reduce);
  if (tile.getRank() == 2 && reduce.getDimensions().size() == 1 &&
      (isOfRows || isOfColumns || hasSchedule(reduce)))
    return success();
  return reduce.emitOpError("expected reductions of a tile to a vector, got "
                            "one along [")
         << reduce.getDimensions() << "] of " << tile
         << "; use a gate a head, and the forward over chunks";
}

/// Success where the passes after this one know what to do with `op`.
static LogicalResult verify(Operation *op) {
  if (auto product = dyn_cast<linalg::ContractOp>(op))
    return verifyProduct(product);
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return verifyLoad(load);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return verifyCarried(loop);
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return verifyReduction(reduce);
  if (isa<tile::SolveOp>(op))
    return op->emitOpError(
        "expected gdn_tile.tri_inverse, the solve that a warp "
        "has; use --plan=fused");
  if (isa<memref::AllocOp>(op))
    return op->emitOpError("expected no scratch memory; use the forward");
  return success();
}

LogicalResult gdn::verifyTypes(tile::ProgramOp program) {
  // The tables of the host know no other arguments.
  for (BlockArgument input : program.getInputs())
    if (!isa<MemRefType>(input.getType()) && !isScalarArgument(input.getType()))
      return program.emitOpError("expected inputs of a kernel to be arrays or "
                                 "scalars of ")
             << kScalarArguments << ", got " << input.getType();
  for (BlockArgument array : program.getArrays())
    if (failed(verifyArrayOrTile(program, array.getType(), ElementLevel::Warp)))
      return failure();
  return verifyArraysAndTiles(program, ElementLevel::Warp);
}

namespace {
struct VerifyProgram : gdn::impl::VerifyProgramPassBase<VerifyProgram> {
  void runOnOperation() override {
    if (failed(verifyTypes(getOperation())))
      return signalPassFailure();
    WalkResult walked =
        getOperation()->walk<WalkOrder::PreOrder>([](Operation *op) {
          return failed(verify(op)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
        });
    if (walked.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
