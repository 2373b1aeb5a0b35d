//===- Launches.cpp - The kernels of a function ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// An array that a kernel reads, or a scalar, which has no extents.
FailureOr<Array> FunctionBuilder::readInput(tile::LaunchOp launch,
                                            Value input) {
  if (!input.getType().isIntOrIndex())
    return readArray(launch, input);
  FailureOr<int32_t> index =
      getIndex(launch, input,
               "expected scalars that are arguments of the function or made "
               "from these and from extents");
  if (failed(index))
    return failure();
  return Array{{GDN_OPERAND_INDEX, *index}, {}, {}};
}

/// The kernel takes the program's arrays and scalars in order, the tokens and,
/// if there are any, the boundaries.
LogicalResult FunctionBuilder::addOperands(tile::LaunchOp launch,
                                           ArrayRef<Array> inputs,
                                           ArrayRef<Array> outputs,
                                           LaunchTable &result) {
  for (ArrayRef<Array> arrays : {inputs, outputs})
    for (const Array &array : arrays)
      result.operands.push_back(makeOperand(array));
  FailureOr<int32_t> tokens =
      getIndex(launch, launch.getTokens(), "expected sizes made from extents");
  if (failed(tokens))
    return failure();
  result.operands.push_back({GDN_OPERAND_INDEX, *tokens});
  if (Value boundaries = launch.getCuSeqlens()) {
    FailureOr<Array> array = readArray(launch, boundaries);
    if (failed(array))
      return failure();
    result.operands.push_back(makeOperand(*array));
  }
  const KernelTable &kernel = kernels[result.kernel];
  if (kernel.arguments.size() != result.operands.size())
    return launch.emitOpError("expected kernel @")
           << kernel.name << " to take " << result.operands.size()
           << " arguments (inputs, outs, tokens, cu_seqlens), got "
           << kernel.arguments.size();
  return success();
}

/// A work item of one turn may write what one of another has yet to read: the
/// final state of a sequence whose segments begin in any order.
static LogicalResult checkTurns(tile::LaunchOp launch, ArrayRef<Array> inputs,
                                ArrayRef<Array> outputs) {
  if (!launch->hasAttr(tile::TileDialect::getInTurnsAttrName()))
    return success();
  for (auto [number, output] : llvm::enumerate(outputs))
    for (auto [other, input] : llvm::enumerate(inputs))
      if (input.place.kind == output.place.kind &&
          input.place.index == output.place.index)
        return launch.emitOpError("expected outs apart from the inputs where "
                                  "work items run in turns, got outs #")
               << number << " in the memory of input #" << other
               << "; use no --own-starts";
  return success();
}

LogicalResult FunctionBuilder::visitLaunch(tile::LaunchOp op) {
  const KernelTable *kernel = llvm::find_if(
      kernels, [&](const KernelTable &k) { return k.name == op.getProgram(); });
  if (kernel == kernels.end())
    return op.emitOpError("expected a kernel that went through "
                          "gdn-warp-to-llvm, got ")
           << op.getProgramAttr();
  LaunchTable launch{static_cast<unsigned>(kernel - kernels.begin()), {}, {}};
  for (auto [dim, size] : llvm::enumerate(op.getGrid())) {
    FailureOr<int32_t> index =
        getIndex(op, size, "expected a grid made from extents");
    if (failed(index))
      return failure();
    // The runtime launches as many blocks as the product of three sizes.
    if (dim < launch.grid.size())
      launch.grid[dim] = *index;
    else
      launch.grid.back() =
          addStep({GDN_INDEX_MULTIPLY, launch.grid.back(), *index, 0});
  }
  SmallVector<Array> inputs, outputs;
  for (Value input : op.getInputs()) {
    FailureOr<Array> array = readInput(op, input);
    if (failed(array))
      return failure();
    inputs.push_back(std::move(*array));
  }
  for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
    FailureOr<Array> array = addOutput(op, i);
    if (failed(array))
      return failure();
    outputs.push_back(std::move(*array));
  }
  if (failed(checkTurns(op, inputs, outputs)) ||
      failed(addOperands(op, inputs, outputs, launch)))
    return failure();
  for (auto [result, output] : llvm::zip(op.getResults(), outputs))
    arrays[result] = output;
  table.launches.push_back(std::move(launch));
  return success();
}

LogicalResult FunctionBuilder::visitReturn(func::ReturnOp op) {
  for (auto [number, value] : llvm::enumerate(op.getOperands())) {
    auto array = arrays.find(value);
    if (array == arrays.end() ||
        array->second.place.kind != GDN_OPERAND_ARGUMENT ||
        array->second.place.index != resultArguments[number] ||
        !array->second.dims.empty() || overwritten.contains(value) ||
        isa<BlockArgument>(value))
      return op.emitOpError("expected results of kernels, each returned once, "
                            "got another value as result ")
             << number;
  }
  return success();
}

/// Steps are signed: extents are not negative, their products are checked, and
/// so is what scalars make: divisors, extents, grids.
static int32_t getStepKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, int32_t>(op)
      .Case([](arith::AddIOp) { return GDN_INDEX_ADD; })
      .Case([](arith::SubIOp) { return GDN_INDEX_SUBTRACT; })
      .Case([](arith::MulIOp) { return GDN_INDEX_MULTIPLY; })
      .Case<arith::DivUIOp, arith::FloorDivSIOp>(
          [](auto) { return GDN_INDEX_DIVIDE; })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>(
          [](auto) { return GDN_INDEX_DIVIDE_UP; })
      .Case([](arith::RemUIOp) { return GDN_INDEX_REMAINDER; })
      .Case<arith::MinUIOp, arith::MinSIOp>(
          [](auto) { return GDN_INDEX_MINIMUM; })
      .Case<arith::MaxUIOp, arith::MaxSIOp>(
          [](auto) { return GDN_INDEX_MAXIMUM; })
      .Default(0);
}

LogicalResult FunctionBuilder::visit(Operation *op) {
  if (int32_t kind = getStepKind(op))
    return visitBinary(op, kind);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp op) { return visitConstant(op); })
      .Case([&](arith::IndexCastOp op) { return visitCast(op); })
      .Case<tensor::DimOp, memref::DimOp>([&](auto op) {
        return visitDim(cast<ShapedDimOpInterface>(op.getOperation()));
      })
      .Case([&](tensor::EmptyOp op) { return visitEmpty(op); })
      .Case([&](tile::LaunchOp op) { return visitLaunch(op); })
      .Case([&](func::ReturnOp op) { return visitReturn(op); })
      .Case<tensor::CastOp, memref::CastOp>(
          [&](auto op) { return visitView(op, op.getSource()); })
      .Case([&](tensor::CollapseShapeOp op) { return visitCollapse(op); })
      .Case([&](tensor::ExpandShapeOp op) { return visitExpand(op); })
      .Case([&](tensor::ExtractSliceOp op) { return visitSlice(op); })
      .Case([&](bufferization::ToTensorOp op) {
        return visitView(op, op.getBuffer());
      })
      .Case([&](bufferization::MaterializeInDestinationOp op) {
        return visitMaterialize(op);
      })
      .Default([](Operation *op) {
        return op->emitOpError(
            "expected only kernels and the arithmetic of their sizes in a "
            "function for a GPU (gdn_tile.launch, tensor.empty, tensor.dim, "
            "tensor.cast, views, arith)");
      });
}
