//===- RoleLayouts.cpp - The ops and the control flow of a role -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLayouts.h"
#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult RoleLayouts::convertBranch(scf::IfOp from, scf::IfOp to,
                                         bool isThen) {
  Block *source = isThen ? from.thenBlock() : from.elseBlock();
  Block *target = isThen ? to.thenBlock() : to.elseBlock();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(target);
  if (failed(convertBlock(*source)))
    return failure();
  if (from.getNumResults() == 0)
    return success();
  Operation *yield = source->getTerminator();
  FailureOr<SmallVector<Value>> yielded = values(yield->getOperands());
  if (failed(yielded))
    return failure();
  scf::YieldOp::create(b, yield->getLoc(), *yielded);
  for (auto [result, operand] :
       llvm::zip(from.getResults(), yield->getOperands()))
    if (failed(placeLike(result, operand)))
      return failure();
  return success();
}

LogicalResult RoleLayouts::convertIf(scf::IfOp branch) {
  for (Value result : branch.getResults())
    if (isTile(result.getType(), 2) && failed(checkTile(result)))
      return failure();
  SmallVector<Type> types = llvm::map_to_vector(
      branch.getResultTypes(), [&](Type type) { return convertType(type); });
  bool hasElse = branch.elseBlock() != nullptr;
  auto copy =
      scf::IfOp::create(b, branch.getLoc(), types,
                        map.lookupOrDefault(branch.getCondition()), hasElse);
  if (Attribute likely =
          branch->getAttr(tile::TileDialect::getLikelyAttrName()))
    copy->setAttr(WarpDialect::getLikelyAttrName(), likely);
  if (branch->hasAttr(tile::kSeldomAttrName))
    copy->setAttr(WarpDialect::getLateAddressesAttrName(), b.getUnitAttr());
  if (failed(convertBranch(branch, copy, /*isThen=*/true)) ||
      (hasElse && failed(convertBranch(branch, copy, /*isThen=*/false))))
    return failure();
  map.map(branch.getResults(), copy.getResults());
  return success();
}

/// A carried tile of fewer rows lies where it lay before the loop.
LogicalResult RoleLayouts::placeCarried(scf::ForOp loop) {
  for (auto [arg, yielded, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues(),
                 loop.getResults())) {
    auto first = firstRow.find(arg);
    if (first == firstRow.end())
      continue;
    int64_t row = first->second;
    firstRow[result] = row;
    if (failed(placeLike(result, yielded)))
      return failure();
  }
  return success();
}

/// A vector is carried as each iteration makes it.
FailureOr<SmallVector<Value>>
RoleLayouts::carriedValues(ValueRange old, ArrayRef<Attribute> encodings) {
  SmallVector<Value> all;
  for (auto [one, encoding] : llvm::zip(old, encodings)) {
    FailureOr<Value> converted = encoding ? vector(one, encoding) : value(one);
    if (failed(converted))
      return failure();
    all.push_back(*converted);
  }
  return all;
}

LogicalResult RoleLayouts::convertFor(scf::ForOp loop) {
  auto encodings =
      llvm::map_to_vector(loop.getYieldedValues(), [&](Value next) {
        return isTile(next.getType(), 1) ? encodingOf(next) : Attribute();
      });
  FailureOr<SmallVector<Value>> inits =
      carriedValues(loop.getInits(), encodings);
  if (failed(inits))
    return failure();
  for (auto [init, arg, encoding] :
       llvm::zip(loop.getInits(), loop.getRegionIterArgs(), encodings))
    if ((isTile(arg.getType(), 2) || isa_and_nonnull<RowsAttr>(encoding)) &&
        cast<RankedTensorType>(arg.getType()).getDimSize(0) !=
            format::kWgmmaRows) {
      int64_t row = firstRow.lookup(init);
      firstRow[arg] = row;
    }
  auto copy = scf::ForOp::create(b, loop.getLoc(),
                                 map.lookupOrDefault(loop.getLowerBound()),
                                 map.lookupOrDefault(loop.getUpperBound()),
                                 map.lookupOrDefault(loop.getStep()), *inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  map.map(loop.getInductionVar(), copy.getInductionVar());
  for (auto [from, to] :
       llvm::zip(loop.getRegionIterArgs(), copy.getRegionIterArgs()))
    map.map(from, to);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    if (failed(convertBlock(*loop.getBody())))
      return failure();
    FailureOr<SmallVector<Value>> yielded =
        carriedValues(loop.getYieldedValues(), encodings);
    if (failed(yielded))
      return failure();
    if (!inits->empty())
      scf::YieldOp::create(b, loop.getLoc(), *yielded);
  }
  for (auto [from, to] : llvm::zip(loop.getResults(), copy.getResults()))
    map.map(from, to);
  return placeCarried(loop);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// An op that is to read tiles from shared memory once more takes none of their
/// fragments. One that widens a tile does so where it is used.
void RoleLayouts::forgetFragments(Operation *op) {
  if (!op->hasAttr(tile::kRereadAttrName) || isa<arith::ExtFOp>(op))
    return;
  for (Value operand : op->getOperands())
    if (auto place = shared.find(operand); place != shared.end())
      loaded.erase(place->second.view);
}

LogicalResult RoleLayouts::convert(Operation *op) {
  forgetFragments(op);
  if (auto get = dyn_cast<GetOp>(op))
    return convertGet(get);
  if (auto put = dyn_cast<PutOp>(op))
    return convertPut(put);
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return convertLoad(load);
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return convertStore(store);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return convertSlice(slice);
  if (auto contract = dyn_cast<linalg::ContractOp>(op))
    return convertContract(contract);
  if (auto broadcast = dyn_cast<linalg::BroadcastOp>(op))
    return convertBroadcast(broadcast);
  if (auto reduce = dyn_cast<linalg::ReduceOp>(op))
    return convertReduce(reduce);
  if (auto causal = dyn_cast<tile::CausalOp>(op))
    return convertCausal(causal);
  if (auto diagonal = dyn_cast<tile::DiagonalOp>(op))
    return convertDiagonal(diagonal);
  if (auto scan = dyn_cast<tile::ScanOp>(op); scan && isTile(scan.getType(), 2))
    return convertScan(scan);
  if (auto rebase = dyn_cast<tile::RebaseOp>(op))
    return convertRebase(rebase);
  if (auto repeat = dyn_cast<tile::RepeatOp>(op))
    return convertRepeat(repeat);
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
    return convertTranspose(transpose);
  if (auto sum = dyn_cast<tile::ClusterSumOp>(op))
    return convertClusterSum(sum);
  if (auto report = dyn_cast<tile::ReportOp>(op))
    return convertReport(report);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return convertIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertFor(loop);
  // Made where they are used: constants and empty tiles, stacks of loads, what
  // a put takes from a solve, and what is only wider in registers.
  bool isTileConstant = op->hasTrait<OpTrait::ConstantLike>() &&
                        isa<RankedTensorType>(op->getResult(0).getType());
  if (isTileConstant ||
      isa<tensor::EmptyOp, tensor::ConcatOp, tile::TriInverseOp>(op))
    return success();
  if (auto round = dyn_cast<arith::TruncFOp>(op);
      round && findSolve(round.getResult()))
    return success();
  if (isOfRowDots(op))
    return success();
  if (auto round = dyn_cast<arith::TruncFOp>(op);
      round && isGroup && round->hasAttr(tile::kSharedAttrName))
    return convertShared(round);
  if (auto difference = dyn_cast<arith::SubFOp>(op);
      difference && isOfNegated(difference))
    return convertDifference(difference);
  if (auto widen = dyn_cast<arith::ExtFOp>(op);
      widen && shared.contains(widen.getIn()))
    return success();
  return convertOther(op);
}

LogicalResult
gdn::convertOps(Block &block,
                llvm::function_ref<LogicalResult(Operation *)> convert) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (failed(convert(&op)))
      return failure();
  }
  return success();
}

LogicalResult
gdn::convertBody(warp::RoleOp role, OpBuilder &b,
                 llvm::function_ref<LogicalResult(Operation *)> convert) {
  Block &old = role.getBody().front();
  auto *block = new Block();
  role.getBody().push_back(block);
  b.setInsertionPointToStart(block);
  LogicalResult converted = convertOps(old, convert);
  // What stays of a failed role would have two blocks.
  old.dropAllDefinedValueUses();
  old.erase();
  return converted;
}

LogicalResult RoleLayouts::convertBlock(Block &block) {
  return convertOps(block, [&](Operation *op) { return convert(op); });
}

LogicalResult RoleLayouts::run() {
  if (isGroup && role.getFirst() % format::kWarpgroupWarps != 0)
    return role.emitOpError("expected warpgroups to begin at a multiple of ")
           << format::kWarpgroupWarps << " warps, got warp " << role.getFirst();
  return convertBody(role, b, [&](Operation *op) { return convert(op); });
}
