//===- LaunchToParallel.cpp - Launches become parallel loops of calls -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#define DEBUG_TYPE "gdn-tile-launch-to-parallel"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_LAUNCHTOPARALLELPASS
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn::tile;

/// Of the tree over boundaries: a sequence has a number below 2^kLevels.
static constexpr int64_t kLevels = 32;

namespace {
/// Where the tokens of a sequence lie.
struct TokenRange {
  Value batch, begin, end;
};

struct LaunchToParallel
    : gdn::tile::impl::LaunchToParallelPassBase<LaunchToParallel> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<LaunchOp> launches;
    getOperation()->walk([&](LaunchOp op) { launches.push_back(op); });
    for (LaunchOp launch : launches)
      if (failed(lower(launch, symbols)))
        return signalPassFailure();
  }

private:
  static LogicalResult lower(LaunchOp launch, SymbolTable &symbols);
};
} // namespace

/// The range of sequence `n`. Boundaries come from the caller's memory: by the
/// rule of `gdn_tile.launch`, wrong ones give wrong numbers but touch no
/// foreign memory, and no token twice.
static TokenRange getTokens(OpBuilder &builder, Location loc, LaunchOp launch,
                            Value n) {
  ImplicitLocOpBuilder b(loc, builder);
  Value zero = arith::ConstantIndexOp::create(b, 0),
        one = arith::ConstantIndexOp::create(b, 1);
  Value boundaries = launch.getCuSeqlens();
  if (!boundaries)
    return {n, zero, launch.getTokens()};
  auto read = [&](Value at) -> Value {
    Value raw = memref::LoadOp::create(b, boundaries, at);
    Value place = arith::IndexCastOp::create(b, b.getIndexType(), raw);
    Value atLeast = arith::MaxSIOp::create(b, place, zero);
    return arith::MinSIOp::create(b, atLeast, launch.getTokens());
  };
  Value count =
      arith::SubIOp::create(b, memref::DimOp::create(b, boundaries, 0), one);
  Value begin = zero, end = launch.getTokens();
  // No loop: an OpenMP loop's body is one block.
  for (int64_t level = 0; level < kLevels; ++level) {
    Value shift = arith::ConstantIndexOp::create(b, level);
    Value block = arith::ShRUIOp::create(b, n, shift);
    Value low = arith::ShLIOp::create(b, block, shift);
    Value next = arith::AddIOp::create(b, block, one);
    Value high =
        arith::MinUIOp::create(b, arith::ShLIOp::create(b, next, shift), count);
    begin = arith::MaxSIOp::create(b, begin, read(low));
    end = arith::MinSIOp::create(b, end, read(high));
  }
  return {zero, arith::MinSIOp::create(b, begin, end), end};
}

/// Casts an operand of the launch to the type of the function's argument.
static FailureOr<Value> castTo(OpBuilder &builder, LaunchOp launch,
                               Value operand, Type type) {
  if (operand.getType() == type)
    return operand;
  if (!memref::CastOp::areCastCompatible(operand.getType(), type))
    return launch.emitOpError("expected an operand that casts to ")
           << type << ", got " << operand.getType();
  return memref::CastOp::create(builder, launch.getLoc(), type, operand)
      .getResult();
}

LogicalResult LaunchToParallel::lower(LaunchOp launch, SymbolTable &symbols) {
  if (launch->getNumResults())
    return launch.emitOpError("expected a launch on memrefs, got tensors");
  auto program = symbols.lookup<func::FuncOp>(launch.getProgram());
  if (!program)
    return launch.emitOpError("expected the program to be a function, got ")
           << launch.getProgramAttr();
  size_t rank = launch.getGrid().size();
  ArrayRef<Type> types = program.getArgumentTypes();
  size_t arrays = launch.getInputs().size() + launch.getOutputs().size();
  if (types.size() != arrays + rank + ProgramOp::kNumTokenArguments)
    return launch.emitOpError("expected ")
           << types.size() << " arguments of the program, got " << arrays
           << " and the work item";

  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  SmallVector<Value> arguments(launch.getInputs());
  llvm::append_range(arguments, launch.getOutputs());
  for (auto [argument, type] : llvm::zip(arguments, types)) {
    FailureOr<Value> cast = castTo(builder, launch, argument, type);
    if (failed(cast))
      return failure();
    argument = *cast;
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  scf::ParallelOp::create(
      builder, loc, SmallVector<Value>(rank, zero), launch.getGrid(),
      SmallVector<Value>(rank, one),
      [&](OpBuilder &builder, Location loc, ValueRange item) {
        TokenRange tokens = getTokens(builder, loc, launch, item.front());
        SmallVector<Value> operands(arguments);
        llvm::append_range(operands, item);
        operands.append({tokens.batch, tokens.begin, tokens.end});
        func::CallOp::create(builder, loc, program, operands);
      });
  launch.erase();
  return success();
}
