//===- TransposeTiles.cpp - Tiles whose rows fill a fragment --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products read shared memory, where a tile may lie either way. So work that
// makes tiles for products may be done on the transposed tiles: this pass finds
// the values that such work connects, and transposes all of them or none.
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/EquivalenceClasses.h"

#define DEBUG_TYPE "gdn-tile-transpose-tiles"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_TRANSPOSETILESPASS
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

static RankedTensorType transposeType(RankedTensorType tile) {
  return tile.clone({tile.getDimSize(1), tile.getDimSize(0)});
}

/// Whether `op` makes each element of its tile of the same elements of tiles,
/// or of lines of them: such an op works on transposed tiles as well.
static bool isTransposable(Operation *op) {
  return op->getNumResults() == 1 &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<ScanOp, RebaseOp, linalg::BroadcastOp, tensor::SplatOp>(op));
}

/// Whether a tile is made again where it is needed, in any shape.
static bool isMadeAnywhere(Value value) {
  Operation *op = value.getDefiningOp();
  auto constant = dyn_cast_or_null<arith::ConstantOp>(op);
  return isa_and_nonnull<tensor::EmptyOp>(op) ||
         (constant && isa<SplatElementsAttr>(constant.getValue()));
}

/// A slice of one whole row.
static bool isRow(tensor::ExtractSliceOp slice) {
  return slice.getType().getRank() == 1 && slice.hasUnitStride() &&
         slice.getOffsets().empty() && slice.getSizes().empty() &&
         slice.getStaticSizes()[0] == 1 &&
         slice.getStaticSizes()[1] == slice.getSourceType().getDimSize(1);
}

namespace {
class TileTransposer {
public:
  TileTransposer(ProgramOp program, int64_t rows)
      : program(program), rows(rows), b(program.getContext()) {}

  void run();

private:
  /// Whether the columns of a tile would fill fragments that its rows do not.
  bool isCandidate(Value value) const {
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    return tile && tile.getRank() == 2 && tile.getDimSize(0) < rows &&
           tile.getDimSize(1) % rows == 0 && tile.getDimSize(1) > 0;
  }

  void connect(Value member, Value other);
  void connectValues(ValueRange some, ValueRange others);
  void collect(Operation *op);
  void checkUse(OpOperand &use);
  void chooseClasses();
  bool isTransposed(Value value) const { return transposed.contains(value); }

  Value getTransposed(OpOperand &use);
  void setType(Value value) {
    value.setType(transposeType(cast<RankedTensorType>(value.getType())));
  }
  void rewrite(Operation *op);

  ProgramOp program;
  int64_t rows;
  OpBuilder b;
  /// Values that lie in one way, in the order in which they were found.
  llvm::EquivalenceClasses<Value> classes;
  SmallVector<Value> members;
  DenseSet<Value> known;
  /// Members that cannot be transposed, and those that a product reads.
  DenseSet<Value> fixed, multiplied, transposed;
  /// Values from outside, transposed in a block for a step.
  DenseMap<std::tuple<Value, Block *, Attribute>, Value> outside;
};
} // namespace

/// Has `member` lie as `other`, one that it is made of. What is not made by
/// such work has to be read from shared memory.
void TileTransposer::connect(Value member, Value other) {
  if (!isCandidate(other) || isMadeAnywhere(other))
    return;
  if (known.contains(other))
    classes.unionSets(member, other);
  else if (!other.getDefiningOp<LoadOp>())
    fixed.insert(member);
}

void TileTransposer::connectValues(ValueRange some, ValueRange others) {
  for (auto [one, other] : llvm::zip(some, others))
    if (known.contains(one))
      connect(one, other);
}

/// Notes which values `op` makes that could be transposed, and what they have
/// to lie as.
void TileTransposer::collect(Operation *op) {
  auto add = [&](Value value) {
    if (!isCandidate(value))
      return;
    classes.insert(value);
    members.push_back(value);
  };
  if (isTransposable(op)) {
    add(op->getResult(0));
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    llvm::for_each(branch.getResults(), add);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    llvm::for_each(loop.getResults(), add);
    llvm::for_each(loop.getRegionIterArgs(), add);
  }
}

void TileTransposer::checkUse(OpOperand &use) {
  Operation *user = use.getOwner();
  Value value = use.get();
  auto product = dyn_cast<linalg::ContractOp>(user);
  if (product && product.getNumLoops() == 3 && use.getOperandNumber() < 2) {
    multiplied.insert(value);
    return;
  }
  if (isTransposable(user) || isa<scf::YieldOp, scf::ForOp>(user))
    return;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
  auto reduce = dyn_cast<linalg::ReduceOp>(user);
  if ((slice && isRow(slice)) || (reduce && reduce.getInputs().size() == 1 &&
                                  reduce.getDimensions().size() == 1))
    return;
  fixed.insert(value);
}

/// Transposes the classes of which nothing has to stay as it is, and that are
/// made for products. What is not computed here may be read either way.
void TileTransposer::chooseClasses() {
  program.walk([&](Operation *op) { collect(op); });
  known.insert(members.begin(), members.end());
  for (Value value : members) {
    Operation *op = value.getDefiningOp();
    if (op && isTransposable(op))
      for (Value operand : op->getOperands())
        connect(value, operand);
    for (OpOperand &use : value.getUses())
      checkUse(use);
  }
  program.walk([&](scf::IfOp branch) {
    for (Region &region : branch->getRegions())
      if (!region.empty())
        connectValues(branch.getResults(),
                      region.front().getTerminator()->getOperands());
  });
  program.walk([&](scf::ForOp loop) {
    connectValues(loop.getResults(), loop.getRegionIterArgs());
    connectValues(loop.getResults(), loop.getYieldedValues());
    connectValues(loop.getResults(), loop.getInits());
  });
  DenseSet<Value> fixedClasses, readClasses;
  for (Value value : fixed)
    fixedClasses.insert(classes.getLeaderValue(value));
  for (Value value : multiplied)
    readClasses.insert(classes.getLeaderValue(value));
  for (Value value : members) {
    Value leader = classes.getLeaderValue(value);
    if (readClasses.contains(leader) && !fixedClasses.contains(leader))
      transposed.insert(value);
  }
}

/// The operand `use` of an op on transposed tiles, transposed.
Value TileTransposer::getTransposed(OpOperand &use) {
  Value value = use.get();
  auto tile = cast<RankedTensorType>(value.getType());
  Operation *user = use.getOwner();
  bool handsOn = isa<scf::YieldOp, scf::ForOp>(user);
  DictionaryAttr labels =
      (handsOn ? value.getDefiningOp() : user)->getDiscardableAttrDictionary();
  b.setInsertionPoint(user);
  if (isMadeAnywhere(value)) {
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      return arith::ConstantOp::create(
          b, value.getLoc(),
          cast<SplatElementsAttr>(constant.getValue())
              .resizeSplat(transposeType(tile)));
    auto empty = tensor::EmptyOp::create(b, value.getLoc(),
                                         transposeType(tile).getShape(),
                                         tile.getElementType());
    empty->setDiscardableAttrs(labels);
    return empty;
  }
  Value &made = outside[{value, user->getBlock(), labels}];
  if (made)
    return made;
  Value empty = tensor::EmptyOp::create(
      b, value.getLoc(), transposeType(tile).getShape(), tile.getElementType());
  auto transpose = linalg::TransposeOp::create(b, value.getLoc(), value, empty,
                                               ArrayRef<int64_t>{1, 0});
  for (Operation *op : {empty.getDefiningOp(), transpose.getOperation()})
    op->setDiscardableAttrs(labels);
  return made = transpose->getResult(0);
}

/// Makes `op` one of transposed tiles, where it makes or takes such.
void TileTransposer::rewrite(Operation *op) {
  if (auto product = dyn_cast<linalg::ContractOp>(op)) {
    SmallVector<AffineMap> maps = product.getIndexingMapsArray();
    for (int64_t number : {0, 1})
      if (isTransposed(product.getDpsInputs()[number])) {
        AffineMap map = maps[number];
        maps[number] = AffineMap::get(map.getNumDims(), 0,
                                      {map.getResult(1), map.getResult(0)},
                                      op->getContext());
      }
    product.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
    return;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
      slice && isTransposed(slice.getSource())) {
    auto swapped = [](ArrayRef<int64_t> pair) {
      return SmallVector<int64_t>{pair[1], pair[0]};
    };
    slice.setStaticOffsets(swapped(slice.getStaticOffsets()));
    slice.setStaticSizes(swapped(slice.getStaticSizes()));
    return;
  }
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op);
      reduce && isTransposed(reduce.getInputs().front())) {
    reduce.setDimensions({1 - reduce.getDimensions()[0]});
    return;
  }
  if (!isTransposable(op) || !isTransposed(op->getResult(0)))
    return;
  if (auto scan = dyn_cast<ScanOp>(op))
    scan.setAxis(1 - scan.getAxis());
  else if (auto rebase = dyn_cast<RebaseOp>(op))
    rebase.setAxis(1 - rebase.getAxis());
  else if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op))
    broadcast.setDimensions({1 - broadcast.getDimensions()[0]});
  for (OpOperand &operand : op->getOpOperands())
    if (isCandidate(operand.get()) && !isTransposed(operand.get()))
      operand.set(getTransposed(operand));
}

void TileTransposer::run() {
  chooseClasses();
  if (transposed.empty())
    return;
  SmallVector<Operation *> ops;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    rewrite(op);
  // What branches and loops hand on from outside, in the step of its load.
  for (Operation *op : ops) {
    if (!isa<scf::YieldOp, scf::ForOp>(op))
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    Operation *owner = loop ? op : op->getParentOp();
    for (auto [number, result] : llvm::enumerate(owner->getResults())) {
      OpOperand &operand =
          loop ? loop.getInitsMutable()[number] : op->getOpOperand(number);
      if (isTransposed(result) && !isTransposed(operand.get()))
        operand.set(getTransposed(operand));
    }
  }
  for (Value value : members)
    if (isTransposed(value))
      setType(value);
}

namespace {
struct TransposeTiles
    : gdn::tile::impl::TransposeTilesPassBase<TransposeTiles> {
  using TransposeTilesPassBase::TransposeTilesPassBase;

  void runOnOperation() override {
    if (rows < 1) {
      getOperation().emitOpError("expected fragments of at least one row, got ")
          << rows.getValue();
      return signalPassFailure();
    }
    TileTransposer(getOperation(), rows).run();
  }
};
} // namespace
