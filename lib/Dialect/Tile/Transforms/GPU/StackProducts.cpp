//===- StackProducts.cpp - Fill the rows of a tensor core -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/InsertionPoint.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#define DEBUG_TYPE "gdn-tile-stack-products"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_STACKPRODUCTSPASS
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

static RankedTensorType getTile(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The dimension of the left operand along which the result's rows lie.
static int64_t getRowDim(linalg::ContractOp product) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  return maps[0].getResult(0) == maps[2].getResult(0) ? 0 : 1;
}

/// A product of rows: (i, k) or (k, i), any right operand, (i, j), added to
/// nothing.
static bool isRowProduct(linalg::ContractOp product) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  if (product.getNumDpsInputs() != 2 || maps[0].getNumDims() != 3 ||
      maps[0].getNumResults() != 2 || maps[2].getNumResults() != 2)
    return false;
  return maps[2].getResult(0).isFunctionOfDim(0) &&
         maps[0].isFunctionOfDim(0) && !maps[1].isFunctionOfDim(0) &&
         matchPattern(product.getDpsInits()[0], m_AnyZeroFloat());
}

/// Whether a tile is loaded, so that its copy may as well be a part of a stack.
static bool isLoaded(Value tile) {
  return tile.getDefiningOp<LoadOp>() != nullptr;
}

/// Whether `tile` is there where `product` is: what is loaded, and what has
/// been made.
static bool isReady(linalg::ContractOp product, Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op || isLoaded(product.getDpsInputs()[0]) != isLoaded(tile))
    return false;
  return isLoaded(tile) || (op->getBlock() == product->getBlock() &&
                            op->isBeforeInBlock(product));
}

/// Whether the second product may be stacked under the first.
static bool isAlike(linalg::ContractOp first, linalg::ContractOp second) {
  return first.getDpsInputs()[1] == second.getDpsInputs()[1] &&
         first.getIndexingMapsArray() == second.getIndexingMapsArray() &&
         getTile(first.getDpsInputs()[0]) ==
             getTile(second.getDpsInputs()[0]) &&
         isReady(first, second.getDpsInputs()[0]);
}

/// Rows, or columns, [first, first + size) of `tile`.
static Value takePart(OpBuilder &b, Value tile, int64_t dim, int64_t first,
                      int64_t size, DictionaryAttr labels) {
  SmallVector<OpFoldResult> offsets(2, b.getIndexAttr(0)), sizes;
  for (int64_t all : getTile(tile).getShape())
    sizes.push_back(b.getIndexAttr(all));
  offsets[dim] = b.getIndexAttr(first);
  sizes[dim] = b.getIndexAttr(size);
  SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
  auto slice = tensor::ExtractSliceOp::create(b, tile.getLoc(), tile, offsets,
                                              sizes, strides);
  slice->setDiscardableAttrs(labels);
  return slice;
}

/// Whether `use` is of a product of another step than `stacked`, for which it
/// lies in shared memory anyway.
static bool isOfOtherStep(OpOperand &use, tensor::ConcatOp stacked) {
  StringRef step = TileDialect::getStepAttrName();
  return isa<linalg::ContractOp>(use.getOwner()) &&
         use.getOwner()->getAttr(step) != stacked->getAttr(step);
}

/// Makes users of `parts` behind the stack take their part of it: all of them,
/// or products of other steps.
static void replaceByParts(OpBuilder &b, tensor::ConcatOp stacked,
                           ArrayRef<Value> parts, DictionaryAttr labels,
                           bool ofOtherSteps) {
  int64_t dim = stacked.getDim(), size = getTile(parts.front()).getDimSize(dim);
  for (auto [index, part] : llvm::enumerate(parts)) {
    Value slice = takePart(b, stacked, dim, size * index, size, labels);
    Value(part).replaceUsesWithIf(slice, [&](OpOperand &use) {
      Operation *user =
          stacked->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && stacked->isBeforeInBlock(user) &&
             (!ofOtherSteps || isOfOtherStep(use, stacked));
    });
    if (slice.use_empty())
      slice.getDefiningOp()->erase();
  }
}

/// The result of `branch` that each of `parts` is on the side of `yield`; empty
/// unless each is one.
static SmallVector<OpResult> findResults(scf::IfOp branch, Operation *yield,
                                         ArrayRef<Value> parts) {
  SmallVector<OpResult> results;
  for (Value part : parts) {
    auto yielded = llvm::find(yield->getOperands(), part);
    if (yielded == yield->operand_end())
      return {};
    results.push_back(
        branch->getResult(std::distance(yield->operand_begin(), yielded)));
  }
  return results;
}

/// `branch` with one more result: `own` on its side, `other` on the other one.
static scf::IfOp addResult(OpBuilder &b, scf::IfOp branch, Value own,
                           Value other) {
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(own.getType());
  b.setInsertionPoint(branch);
  auto wider = scf::IfOp::create(b, branch.getLoc(), types,
                                 branch.getCondition(), /*addThenBlock=*/false,
                                 /*addElseBlock=*/false);
  wider->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip(branch->getRegions(), wider->getRegions()))
    to.takeBody(from);
  for (Value value : {own, other}) {
    Operation *yield = value.getParentBlock()->getTerminator();
    yield->insertOperands(yield->getNumOperands(), value);
  }
  branch.replaceAllUsesWith(wider.getResults().drop_back());
  branch.erase();
  return wider;
}

/// Where a branch hands its parts on to products of other steps, it hands on
/// the stack, and these take their part of it.
static void handOn(OpBuilder &b, tensor::ConcatOp stacked,
                   ArrayRef<Value> parts, DictionaryAttr labels) {
  auto branch = dyn_cast<scf::IfOp>(stacked->getParentOp());
  if (!branch || !branch.elseBlock())
    return;
  Block *own = stacked->getBlock(), *other = own == branch.thenBlock()
                                                 ? branch.elseBlock()
                                                 : branch.thenBlock();
  SmallVector<OpResult> results =
      findResults(branch, own->getTerminator(), parts);
  auto isTaken = [&](OpResult result) {
    return llvm::any_of(result.getUses(), [&](OpOperand &use) {
      return isOfOtherStep(use, stacked);
    });
  };
  if (!llvm::any_of(results, isTaken))
    return;
  Operation *yield = other->getTerminator();
  SmallVector<Value> others =
      llvm::map_to_vector(results, [&](OpResult result) {
        return yield->getOperand(result.getResultNumber());
      });
  setInsertionPointBehind(b, others, *other);
  auto alike =
      tensor::ConcatOp::create(b, stacked.getLoc(), stacked.getDim(), others);
  alike->setDiscardableAttrs(labels);
  SmallVector<unsigned> numbers = llvm::map_to_vector(
      results, [](OpResult result) { return result.getResultNumber(); });
  branch = addResult(b, branch, stacked, alike);
  b.setInsertionPointAfter(branch);
  int64_t dim = stacked.getDim(), size = getTile(parts.front()).getDimSize(dim);
  for (auto [index, number] : llvm::enumerate(numbers)) {
    Value slice = takePart(b, branch.getResults().back(), dim, size * index,
                           size, labels);
    branch->getResult(number).replaceUsesWithIf(
        slice, [&](OpOperand &use) { return isOfOtherStep(use, stacked); });
  }
}

/// Stacks `products`, which are alike, and fills up `maxRows` with the last.
static void stack(ArrayRef<linalg::ContractOp> products, int64_t maxRows) {
  linalg::ContractOp first = products.front();
  int64_t rows = getTile(first.getResult(0)).getDimSize(0);
  bool areLoaded = isLoaded(first.getDpsInputs()[0]);
  SmallVector<Value> parts;
  Operation *last = nullptr;
  for (linalg::ContractOp product : products) {
    parts.push_back(product.getDpsInputs()[0]);
    Operation *made = parts.back().getDefiningOp();
    if (!last || last->isBeforeInBlock(made))
      last = made;
  }
  while (rows * static_cast<int64_t>(parts.size() + 1) <= maxRows)
    parts.push_back(parts.back());
  OpBuilder b(first);
  Location loc = first.getLoc();
  DictionaryAttr loadLabels = last->getDiscardableAttrDictionary(),
                 labels = first->getDiscardableAttrDictionary();
  b.setInsertionPointAfter(last);
  auto stacked = tensor::ConcatOp::create(b, loc, getRowDim(first), parts);
  stacked->setDiscardableAttrs(loadLabels);
  // Of made tiles, too, one copy lies in shared memory, unless the stack is
  // filled up: then their own is smaller.
  if (areLoaded || parts.size() == products.size())
    replaceByParts(b, stacked, parts, loadLabels, /*ofOtherSteps=*/!areLoaded);
  if (!areLoaded && parts.size() == products.size())
    handOn(b, stacked, parts, loadLabels);
  b.setInsertionPoint(first);
  auto type = getTile(first.getResult(0))
                  .clone({rows * static_cast<int64_t>(parts.size()),
                          getTile(first.getResult(0)).getDimSize(1)});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  auto product = linalg::ContractOp::create(
      b, loc, TypeRange(type), ValueRange{stacked, first.getDpsInputs()[1]},
      zero, first.getIndexingMaps());
  product->setDiscardableAttrs(labels);
  for (auto [index, alike] : llvm::enumerate(products)) {
    linalg::ContractOp old = alike;
    Value slice = takePart(b, product.getResult(0), /*dim=*/0, rows * index,
                           rows, labels);
    old.getResult(0).replaceAllUsesWith(slice);
  }
  for (linalg::ContractOp old : products)
    old.erase();
}

/// Stacks what fits of the products in `block`.
static void stackIn(Block &block, int64_t maxRows) {
  SmallVector<linalg::ContractOp> open;
  for (auto product : block.getOps<linalg::ContractOp>())
    if (isRowProduct(product))
      open.push_back(product);
  while (!open.empty()) {
    SmallVector<linalg::ContractOp> alike, rest;
    int64_t rows = getTile(open.front().getResult(0)).getDimSize(0);
    for (linalg::ContractOp product : open) {
      bool fits = rows * static_cast<int64_t>(alike.size() + 1) <= maxRows;
      bool joins = alike.empty() || (fits && isAlike(alike.front(), product));
      (joins ? alike : rest).push_back(product);
    }
    // Nothing fills up with tiles of no rows. Made tiles are stacked along the
    // columns of registers, in which a transposed one has the result's rows.
    bool isStacked = isLoaded(alike[0].getDpsInputs()[0])
                         ? getRowDim(alike[0]) == 0
                         : getRowDim(alike[0]) == 1 &&
                               isReady(alike[0], alike[0].getDpsInputs()[0]);
    if (isStacked && rows > 0 && 2 * rows <= maxRows)
      stack(alike, maxRows);
    open = rest;
  }
}

namespace {
struct StackProducts : gdn::tile::impl::StackProductsPassBase<StackProducts> {
  using StackProductsPassBase::StackProductsPassBase;

  void runOnOperation() override {
    // Each tile of a stack is an operand.
    constexpr int64_t kMostRows = 1024;
    if (rows < 1 || rows > kMostRows) {
      getOperation().emitOpError("expected rows to be 1 to ")
          << kMostRows << ", got " << rows.getValue();
      return signalPassFailure();
    }
    // A branch may be made anew; its blocks stay.
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      stackIn(*block, rows);
  }
};
} // namespace
