//===- CheckLaunch.cpp - Does a launch go with its program? ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckLaunch.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::gdn;

/// Whether `tokens` may be all that `array` has along `dim`.
static bool mayBeExtent(Value tokens, Value array, int64_t dim) {
  auto type = dyn_cast<ShapedType>(array.getType());
  std::optional<int64_t> constant = getConstantIntValue(tokens);
  return !constant || !type || !type.hasRank() || type.isDynamicDim(dim) ||
         type.getDimSize(dim) == *constant;
}

/// Whether `tokens` is what `array` has along `dim`, or comes from outside.
static bool isExtent(Value tokens, Value array, int64_t dim) {
  Operation *op = tokens.getDefiningOp();
  if (!op)
    return true;
  if (std::optional<int64_t> constant = getConstantIntValue(tokens))
    return cast<ShapedType>(array.getType()).getDimSize(dim) == *constant;
  if (auto empty = array.getDefiningOp<tensor::EmptyOp>();
      empty && empty.getType().isDynamicDim(dim) &&
      empty.getDynamicSize(dim) == tokens)
    return true;
  auto isDim = [&](auto of) {
    return of.getSource() == array && of.getConstantIndex() == dim;
  };
  if (auto of = dyn_cast<tensor::DimOp>(op); of && isDim(of))
    return true;
  if (auto of = dyn_cast<memref::DimOp>(op); of && isDim(of))
    return true;
  // A launch leaves its outs as large as they are.
  auto launch = array.getDefiningOp<tile::LaunchOp>();
  return launch &&
         isExtent(tokens,
                  launch.getOutputs()[cast<OpResult>(array).getResultNumber()],
                  dim);
}

LogicalResult gdn::checkTokens(tile::ProgramOp program, tile::LaunchOp launch) {
  if (launch.getCuSeqlens())
    return success();
  SmallVector<Value> arrays(launch.getInputs());
  llvm::append_range(arrays, launch.getOutputs());
  bool hasEnds = false, isKnown = false, differs = false;
  auto visit = [&](Value array, Value end, std::optional<uint64_t> dim) {
    auto argument = dyn_cast<BlockArgument>(array);
    if (end != program.getEnd() || !dim || !argument ||
        argument.getOwner() != &program.getBody().front())
      return;
    Value given = arrays[argument.getArgNumber()];
    hasEnds = true;
    isKnown |= isExtent(launch.getTokens(), given, *dim);
    differs |= !mayBeExtent(launch.getTokens(), given, *dim);
  };
  program.walk([&](tile::LoadOp op) {
    visit(op.getSource(), op.getEnd(), op.getDim());
  });
  program.walk([&](tile::StoreOp op) {
    visit(op.getTarget(), op.getEnd(), op.getDim());
  });
  if (!hasEnds || (isKnown && !differs))
    return success();
  InFlightDiagnostic diagnostic = launch.emitOpError(
      "expected as many tokens as the arrays have that end there, since copies "
      "do: the extent of one of them (a tensor.dim, or the constant), got ");
  if (std::optional<int64_t> tokens = getConstantIntValue(launch.getTokens()))
    return diagnostic << *tokens;
  return diagnostic << "another value";
}

FailureOr<tile::LaunchOp> gdn::findLaunch(ModuleOp module,
                                          tile::ProgramOp program) {
  tile::LaunchOp first, second;
  module.walk([&](tile::LaunchOp op) {
    if (op.getProgram() == program.getSymName())
      (first ? second : first) = op;
  });
  if (!first)
    return program.emitOpError("expected a launch of the program, got none");
  if (!second)
    return first;
  InFlightDiagnostic diagnostic =
      second.emitOpError("expected one launch of program @")
      << program.getSymName()
      << ", whose kernel is made for its grid and tokens, got two; give each "
         "one a program of its own";
  diagnostic.attachNote(first.getLoc()) << "the other launch";
  return diagnostic;
}
