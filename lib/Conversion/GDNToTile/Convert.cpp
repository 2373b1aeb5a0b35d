//===- Convert.cpp - Programs that convert whole arrays -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy goes by tiles of tokens and channels, whatever lies side by side. What
// computes goes by rows: a warp takes rows in turn, of 128 channels each.
//
//===----------------------------------------------------------------------===//

#include "Convert.h"

#include "Launch.h"
#include "TileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// A work item of a copy: tokens and bytes of channels of a tile, and tokens of
/// the part that it takes tile by tile.
static constexpr int64_t kTileTokens = 64, kTileBytes = 128,
                         kTilePartTokens = 512;

/// A work item of another conversion.
static constexpr int64_t kRowChannels = 128, kPartRows = 32;

namespace {
/// The arrays of a program by the names of the op's operands, and where its
/// work item lies: its first channel, and its tokens.
struct Arrays {
  Arrays(ConvertOp op, tile::ProgramOp program);

  Value input, like, factor, aLog, dtBias, output;
  Value channel, begin, end;
};
} // namespace

Arrays::Arrays(ConvertOp op, tile::ProgramOp program)
    : output(program.getOutputs()[0]) {
  auto inputs = program.getInputs().begin();
  using Place = std::pair<Value *, Value>;
  for (auto [array, operand] :
       {Place(&input, op.getInput()), Place(&like, op.getLike()),
        Place(&factor, op.getFactor()), Place(&aLog, op.getALog()),
        Place(&dtBias, op.getDtBias())})
    if (operand)
      *array = *inputs++;
}

static bool isCopy(ConvertOp op) {
  return op.getKind() == ConversionKind::Copy ||
         op.getKind() == ConversionKind::Transpose;
}

/// Whether elements are computed in f64.
static bool isActivation(ConvertOp op) {
  return op.getKind() != ConversionKind::Cast &&
         op.getKind() != ConversionKind::Fill;
}

/// Channels of a work item, and its tokens.
static int64_t countChannels(ConvertOp op) {
  return isCopy(op) ? kTileBytes * 8 / op.getType().getElementTypeBitWidth()
                    : kRowChannels;
}
static int64_t countTokens(ConvertOp op) {
  return isCopy(op) ? kTilePartTokens : kPartRows;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The dimensions of an input for tokens, heads and channels.
static std::array<int64_t, 3> dimsOf(ConvertOp op) {
  if (op.getKind() == ConversionKind::Transpose)
    return {3, 1, 2};
  return {1, 2, 3};
}

static void writeTiles(ConvertOp op, tile::ProgramOp program, TileBuilder &b,
                       const Arrays &arrays) {
  auto [tokenDim, headDim, channelDim] = dimsOf(op);
  auto loop =
      scf::ForOp::create(b, arrays.begin, arrays.end, b.index(kTileTokens));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value token = loop.getInductionVar(), end = program.getEnd();
  SmallVector<Value> place(4, program.getBatch());
  place[tokenDim] = token;
  place[headDim] = program.getHead();
  place[channelDim] = arrays.channel;
  b.step("load");
  Value tile = tile::LoadOp::create(
      b,
      b.tileType({kTileTokens, countChannels(op)},
                 op.getType().getElementType()),
      arrays.input, place, b.getDenseI64ArrayAttr({tokenDim, channelDim}), end,
      b.getI64IntegerAttr(tokenDim));
  b.step("store");
  b.store(tile, arrays.output,
          {program.getBatch(), token, program.getHead(), arrays.channel},
          {1, 3}, end);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Channels of an array along its last dimension; zeros from `end` on.
static Value loadRow(TileBuilder &b, Value array, ValueRange place, Value end) {
  auto type = cast<MemRefType>(array.getType());
  int64_t dim = type.getRank() - 1;
  return tile::LoadOp::create(
      b, b.tileType(kRowChannels, type.getElementType()), array, place,
      b.getDenseI64ArrayAttr({dim}), end, b.getI64IntegerAttr(dim));
}

/// Channels of a parameter in f64.
static Value loadParameter(TileBuilder &b, Value array, Value channel) {
  Value end = memref::DimOp::create(b, array, 0);
  return b.to(loadRow(b, array, channel, end), b.getF64Type());
}

/// max(x, 0) + log(1 + e^-|x|).
static Value writeSoftplus(TileBuilder &b, Value x) {
  Value small = math::ExpOp::create(
      b, arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
  Value above =
      arith::MaxNumFOp::create(b, x, b.fill(0.0, shapeOf(x), b.getF64Type()));
  return arith::AddFOp::create(b, above, math::Log1pOp::create(b, small));
}

static Value writeSigmoid(TileBuilder &b, Value x, Value factor) {
  Value one = b.fill(1.0, shapeOf(x), b.getF64Type());
  Value decay = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, factor, arith::AddFOp::create(b, one, decay));
}

static void writeRows(ConvertOp op, tile::ProgramOp program, TileBuilder &b,
                      const Arrays &arrays) {
  b.step(isActivation(op) ? "activate" : "cast");
  Value zero = b.index(0), width = memref::DimOp::create(b, arrays.like, 3);
  Value rows, end, rate, bias, factor;
  if (arrays.input) {
    rows = memref::DimOp::create(b, arrays.input, 1);
    end = memref::DimOp::create(b, arrays.input, 3);
  }
  if (arrays.aLog) {
    rate =
        math::ExpOp::create(b, loadParameter(b, arrays.aLog, arrays.channel));
    bias = loadParameter(b, arrays.dtBias, arrays.channel);
  }
  if (arrays.factor)
    factor = b.splat(arrays.factor, kRowChannels);
  // What no row has a say in is made once.
  Type target = op.getType().getElementType();
  if (op.getKind() == ConversionKind::Fill)
    factor = b.to(factor, target);
  if (op.getKind() == ConversionKind::LogitToValue)
    factor = b.to(factor, b.getF64Type());

  auto loop = scf::ForOp::create(b, arrays.begin, arrays.end, b.index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> place = {program.getBatch(), loop.getInductionVar(),
                              program.getHead(), arrays.channel};
  Value x;
  if (arrays.input) {
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                         loop.getInductionVar(), rows);
    x = b.f32(loadRow(b, arrays.input, place,
                      arith::SelectOp::create(b, inside, end, zero)));
    if (isActivation(op))
      x = b.to(x, b.getF64Type());
  }
  auto convert = [&]() -> Value {
    switch (op.getKind()) {
    case ConversionKind::Fill:
      return factor;
    case ConversionKind::Cast:
      return arith::MulFOp::create(b, x, factor);
    case ConversionKind::LinearToLog:
      return math::LogOp::create(b, x);
    case ConversionKind::SoftplusToLog:
      return arith::NegFOp::create(
          b, arith::MulFOp::create(
                 b, writeSoftplus(b, arith::AddFOp::create(b, x, bias)), rate));
    case ConversionKind::LogitToValue:
      return writeSigmoid(b, x, factor);
    case ConversionKind::Copy:
    case ConversionKind::Transpose:
      break;
    }
    llvm_unreachable("copies go by tiles");
  };
  tile::StoreOp::create(b, b.to(convert(), target), arrays.output, place,
                        b.getDenseI64ArrayAttr({3}), width,
                        b.getI64IntegerAttr(3));
}

//===----------------------------------------------------------------------===//
// Programs and launches
//===----------------------------------------------------------------------===//

/// How a program sees an array: with any strides, but for what a copy makes,
/// whose channels lie side by side, and the tokens of what a transpose reads.
static Type viewOf(ConvertOp op, Type type, bool isWritten) {
  if (!isa<RankedTensorType>(type))
    return type;
  return tile::getArrayType(type, op.getKind() == ConversionKind::Transpose ||
                                      (isCopy(op) && isWritten));
}

static void writeProgram(ConvertOp op, tile::ProgramOp program) {
  OpBuilder parent = OpBuilder::atBlockBegin(&program.getBody().front());
  TileBuilder b(op.getLoc(), parent, parent.getF32Type());
  Arrays arrays(op, program);
  auto coordinates = program.getCoordinates();
  arrays.channel =
      arith::MulIOp::create(b, coordinates[tile::ProgramOp::kMinGridRank],
                            b.index(countChannels(op)));
  Value tokens = b.index(countTokens(op));
  arrays.begin = arith::MulIOp::create(b, coordinates.back(), tokens);
  arrays.end = arith::MinSIOp::create(
      b, arith::AddIOp::create(b, arrays.begin, tokens), program.getEnd());
  if (isCopy(op))
    writeTiles(op, program, b, arrays);
  else
    writeRows(op, program, b, arrays);
}

void gdn::replaceByLaunch(ConvertOp op, ModuleOp module, SymbolTable &symbols) {
  SmallVector<Type> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(viewOf(op, operand.getType(), /*isWritten=*/false));
  // Two coordinates more: the tile of channels, and the part of the tokens.
  tile::ProgramOp program = createProgram(
      op, module, symbols, inputs, viewOf(op, op.getType(), /*isWritten=*/true),
      /*names=*/{}, tile::ProgramOp::kMinGridRank + 2);
  writeProgram(op, program);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto [tokenDim, headDim, channelDim] = dimsOf(op);
  SmallVector<Value> sizes;
  for (int64_t dim : {int64_t(0), tokenDim, headDim, channelDim})
    sizes.push_back(tensor::DimOp::create(
        b, op.getLike() ? op.getLike() : op.getInput(), dim));
  Value columns =
      arith::CeilDivUIOp::create(b, sizes[3], index(countChannels(op)));
  Value parts = arith::CeilDivUIOp::create(b, sizes[1], index(countTokens(op)));
  Value empty = tensor::EmptyOp::create(b, op.getType(), sizes);
  auto launch = tile::LaunchOp::create(
      b, op.getType(), SymbolRefAttr::get(program),
      ValueRange{sizes[0], sizes[2], index(1), columns, parts}, sizes[1],
      /*cuSeqlens=*/Value(), op->getOperands(), empty);
  op->replaceAllUsesWith(launch.getResults());
  op->erase();
}
