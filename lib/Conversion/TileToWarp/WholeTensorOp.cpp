//===- WholeTensorOp.cpp - What an op on whole tensors does ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeTensorOp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

/// Columns of a tile whose registers several inputs share.
static constexpr int64_t kMaxColumns = 128;

namespace {
class Reader {
public:
  explicit Reader(linalg::GenericOp op) : op(op) { result.op = op; }

  FailureOr<WholeTensorOp> read();

private:
  InFlightDiagnostic fail();
  LogicalResult readLoops();
  LogicalResult readColumns(int64_t columns);
  LogicalResult readOutput();
  LogicalResult readTokenSum();
  LogicalResult readElements();
  LogicalResult readInput(OpOperand *operand);
  LogicalResult readBody();
  bool isMap(AffineMap map, ArrayRef<unsigned> loops) {
    return map == AffineMap::getMultiDimMapWithTargets(op.getNumLoops(), loops,
                                                       op.getContext());
  }

  linalg::GenericOp op;
  WholeTensorOp result;
  SmallVector<unsigned> parallel, reduced;
};
} // namespace

InFlightDiagnostic Reader::fail() {
  return op.emitOpError(
      "expected elementwise work on arrays [B, T, H] or [B, T, H, K], or a "
      "sum over K, over the heads of a group or over tokens, around the "
      "kernels of a GPU, got ");
}

LogicalResult Reader::readLoops() {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    (kind == utils::IteratorType::parallel ? parallel : reduced)
        .push_back(loop);
  size_t kept = parallel.size(), summed = reduced.size();
  if ((kept == 1 && (summed == 2 || summed == 3)) ||
      (kept == 2 && summed == 2)) {
    result.reduction = Reduction::Tokens;
    result.hasChannels = kept == 2;
    if (kept + summed == 3)
      return success();
    return readColumns(sizes[result.hasChannels ? parallel[1] : reduced[2]]);
  }
  if (parallel.size() < 3 || parallel.size() > 4 || reduced.size() > 1)
    return fail() << parallel.size() << " parallel and " << reduced.size()
                  << " reduced dimensions";
  if (!reduced.empty() && parallel.size() == 3) {
    result.reduction = Reduction::Columns;
  } else if (!reduced.empty()) {
    result.reduction = Reduction::Group;
    result.group = sizes[reduced[0]];
    if (ShapedType::isDynamic(result.group))
      return fail() << "a sum over a dynamic number of heads";
  }
  if (parallel.size() == 4)
    return readColumns(sizes[parallel[3]]);
  return reduced.empty() ? success() : readColumns(sizes[reduced[0]]);
}

LogicalResult Reader::readColumns(int64_t columns) {
  if (ShapedType::isDynamic(columns))
    return fail() << "a dynamic K";
  constexpr int64_t kLanes = WholeTensorGroup::kLanesPerRow;
  if (columns > kMaxColumns || columns % kLanes != 0)
    return fail() << "K = " << columns << ", no multiple of " << kLanes
                  << " up to " << kMaxColumns;
  result.columns = columns;
  return success();
}

/// Elementwise work writes new memory; sums begin at zero.
LogicalResult Reader::readOutput() {
  if (op.getNumDpsInits() != 1 || op.getNumResults() != 1 ||
      !isMap(op.getIndexingMapsArray().back(), parallel))
    return fail() << "other outputs than one, in the order of the loops";
  Value init = op.getDpsInits().front();
  if (!reduced.empty()) {
    auto fill = init.getDefiningOp<linalg::FillOp>();
    if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()))
      return fail() << "a sum that does not begin at zero";
    init = fill.output();
  }
  result.result = op.getResult(0);
  if (result.reduction == Reduction::Tokens && failed(readTokenSum()))
    return failure();
  if (result.reduction != Reduction::Tokens)
    result.out = init.getDefiningOp<tensor::EmptyOp>();
  if (!result.out)
    return fail() << "an output that is no tensor.empty";
  return success();
}

linalg::GenericOp gdn::findRounding(Value sum) {
  if (!sum.hasOneUse())
    return {};
  auto op = dyn_cast<linalg::GenericOp>(*sum.getUsers().begin());
  if (!op || op.getNumLoops() > 2 || op.getNumReductionLoops() != 0 ||
      op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return {};
  Value rounded = op.getBody()->getTerminator()->getOperand(0);
  while (isa_and_nonnull<arith::TruncFOp>(rounded.getDefiningOp()))
    rounded = rounded.getDefiningOp()->getOperand(0);
  bool isKnown = rounded == op.getBody()->getArgument(0) &&
                 !getElementTypeOrSelf(op.getResult(0)).isF64();
  return isKnown ? op : linalg::GenericOp();
}

/// Partial sums are of f32, and the sum of these is rounded once.
LogicalResult Reader::readTokenSum() {
  Value made = op.getResult(0);
  if (linalg::GenericOp rounding = findRounding(made)) {
    result.result = rounding.getResult(0);
    result.out =
        rounding.getDpsInits().front().getDefiningOp<tensor::EmptyOp>();
    return success();
  }
  if (getElementTypeOrSelf(made).isF64())
    return fail() << "a sum in f64 that nothing rounds";
  result.out = op.getDpsInits()
                   .front()
                   .getDefiningOp<linalg::FillOp>()
                   .output()
                   .getDefiningOp<tensor::EmptyOp>();
  return success();
}

/// The array [B, T, H G, K] that is viewed as [B, T, H, G, K].
static Value findUngrouped(Value grouped) {
  auto view = grouped.getDefiningOp<tensor::ExpandShapeOp>();
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}, {4}};
  if (!view || view.getReassociationIndices() != groups)
    return {};
  return view.getSrc();
}

LogicalResult Reader::readInput(OpOperand *operand) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  Value array = operand->get();
  SmallVector<unsigned> whole(parallel);
  if (result.reduction == Reduction::Tokens) {
    whole.assign({reduced[0], reduced[1], parallel[0]});
    llvm::append_range(whole, result.hasChannels
                                  ? ArrayRef(parallel).drop_front()
                                  : ArrayRef(reduced).drop_front(2));
  }
  if (result.reduction == Reduction::Columns)
    whole.append(reduced);
  if (isMap(map, whole)) {
    result.inputs.push_back({InputKind::Whole, array});
    return success();
  }
  if (result.columns != 0 && isMap(map, ArrayRef(whole).take_front(3))) {
    result.inputs.push_back({InputKind::PerToken, array});
    return success();
  }
  if (isMap(map, whole[2])) {
    result.inputs.push_back({InputKind::PerHead, array});
    return success();
  }
  if (result.columns != 0 && isMap(map, ArrayRef(whole).drop_front(2))) {
    result.inputs.push_back({InputKind::PerChannel, array});
    return success();
  }
  if (result.reduction == Reduction::Group &&
      isMap(map,
            {parallel[0], parallel[1], parallel[2], reduced[0], parallel[3]}))
    if (Value ungrouped = findUngrouped(array)) {
      result.inputs.push_back({InputKind::Grouped, ungrouped});
      return success();
    }
  return fail() << "input #" << operand->getOperandNumber() << " by "
                << AffineMapAttr::get(map);
}

LogicalResult Reader::readBody() {
  Block *body = op.getBody();
  result.element = body->getTerminator()->getOperand(0);
  if (result.element.getParentBlock() != body &&
      !matchPattern(result.element, m_Constant()))
    return fail() << "a value from outside of the body";
  if (!reduced.empty()) {
    // acc + element, in any order.
    Value total = body->getArguments().back();
    auto sum = result.element.getDefiningOp<arith::AddFOp>();
    if (!sum || (sum.getLhs() != total && sum.getRhs() != total))
      return fail() << "a reduction that is no sum";
    result.element = sum.getLhs() == total ? sum.getRhs() : sum.getLhs();
    if (!total.hasOneUse())
      return fail() << "a sum that is used before its end";
    auto widened = result.element.getDefiningOp<arith::ExtFOp>();
    if (widened && widened.getType().isF64())
      result.element = widened.getIn();
    if (!result.element.getType().isF32())
      return fail() << "a sum of " << result.element.getType();
  } else if (!body->getArguments().back().use_empty()) {
    return fail() << "a body that reads the output";
  }
  WalkResult walked = op.getRegion().walk([&](Operation *inner) {
    if (isa<linalg::YieldOp>(inner))
      return WalkResult::advance();
    if (OpTrait::hasElementwiseMappableTraits(inner))
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() != body &&
            !matchPattern(operand, m_Constant())) {
          fail() << "a value from outside of the body";
          return WalkResult::interrupt();
        }
    if (OpTrait::hasElementwiseMappableTraits(inner) ||
        isa<arith::ConstantOp>(inner))
      return WalkResult::advance();
    fail() << "'" << inner->getName() << "' in the body";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

/// f64 is only in sums over tokens.
LogicalResult Reader::readElements() {
  for (OpOperand &operand : op->getOpOperands()) {
    Type element = getElementTypeOrSelf(operand.get().getType());
    bool isLongSum = result.reduction == Reduction::Tokens && element.isF64() &&
                     op.isDpsInit(&operand);
    if (!element.isBF16() && !element.isF16() && !element.isF32() && !isLongSum)
      return fail() << "elements of " << element;
  }
  return success();
}

FailureOr<WholeTensorOp> Reader::read() {
  if (failed(readLoops()) || failed(readElements()) || failed(readOutput()))
    return failure();
  for (OpOperand *operand : op.getDpsInputOperands())
    if (failed(readInput(operand)))
      return failure();
  bool hasWhole =
      llvm::any_of(result.inputs, [](const WholeTensorOp::Input &input) {
        return input.kind == InputKind::Whole ||
               input.kind == InputKind::Grouped;
      });
  if (!hasWhole && !result.inputs.empty())
    return fail() << "no input of the output's size";
  if (failed(readBody()))
    return failure();
  return std::move(result);
}

FailureOr<WholeTensorOp> gdn::readWholeTensorOp(linalg::GenericOp op) {
  return Reader(op).read();
}
