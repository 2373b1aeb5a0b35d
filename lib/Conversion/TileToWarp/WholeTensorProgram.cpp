//===- WholeTensorProgram.cpp - The program of work on whole tensors ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program of a group of ops takes a chunk of tokens after the other, as
// vectors or as tiles with a row a token. The ops' scalar ops become the same
// ops on tiles, in one role. Vectors live in other threads than rows do, so
// where both meet a second role loads the vectors and stores the sums of rows,
// through channels. What an op of the group makes for another stays in
// registers.
//
//===----------------------------------------------------------------------===//

#include "WholeTensorWriter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

Value WholeTensorWriter::load(Value array, ValueRange offsets,
                              ArrayRef<int64_t> axes, ArrayRef<int64_t> shape,
                              bool ends, StringRef step) {
  Type element = cast<MemRefType>(array.getType()).getElementType();
  auto loaded = tile::LoadOp::create(
      b, RankedTensorType::get(shape, element), array, offsets,
      b.getDenseI64ArrayAttr(axes), ends ? program.getEnd() : Value(),
      ends ? b.getI64IntegerAttr(1) : IntegerAttr());
  note(loaded, step);
  return loaded;
}

/// A chunk of an input; `member` is a head's number in its group.
Value WholeTensorWriter::loadArray(const WholeTensorOp &op,
                                   const WholeTensorOp::Input &input,
                                   Chunk &chunk, int64_t member) {
  unsigned index = numberOf(input.array);
  Value array = program.getInputs()[index];
  Value head = program.getHead();
  switch (input.kind) {
  case InputKind::PerHead: {
    Value tile = create<tensor::SplatOp>(parameters[index], tileShape());
    Type element = getElementTypeOrSelf(input.array.getType());
    return element.isF32()
               ? tile
               : create<arith::TruncFOp>(
                     RankedTensorType::get(tileShape(), element), tile);
  }
  case InputKind::PerChannel:
    return broadcast(parameters[index], 0);
  case InputKind::PerToken:
    return broadcast(load(array, {program.getBatch(), chunk.token, head}, {1},
                          {tokens}, /*ends=*/true, kVectorStep),
                     1);
  case InputKind::Grouped: {
    Value first = arith::MulIOp::create(
        b, head, arith::ConstantIndexOp::create(b, op.group));
    head = arith::AddIOp::create(b, first,
                                 arith::ConstantIndexOp::create(b, member));
    [[fallthrough]];
  }
  case InputKind::Whole:
    if (group.columns())
      return load(array, {program.getBatch(), chunk.token, head, zero}, {1, 3},
                  tileShape(), /*ends=*/true, kRowStep);
    return load(array, {program.getBatch(), chunk.token, head}, {1}, {tokens},
                /*ends=*/true, kRowStep);
  }
  llvm_unreachable("covered switch");
}

/// What an op of the group has made, or a chunk of an array. An array is loaded
/// once.
Value WholeTensorWriter::readInput(const WholeTensorOp &op,
                                   const WholeTensorOp::Input &input,
                                   Chunk &chunk, int64_t member) {
  if (Value made = chunk.made.lookup(input.array))
    return made;
  bool isGrouped = input.kind == InputKind::Grouped;
  Value &loaded =
      chunk.loaded[{numberOf(input.array), isGrouped ? member : -1}];
  if (!loaded)
    loaded = loadArray(op, input, chunk, member);
  return loaded;
}

/// A constant, or `tile`, in the shape of `like`.
Value WholeTensorWriter::shapeLike(Value scalar, Value tile,
                                   ArrayRef<int64_t> like) {
  Attribute constant;
  if (!tile && matchPattern(scalar, m_Constant(&constant)))
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(RankedTensorType::get(like, scalar.getType()),
                               ArrayRef<Attribute>(constant)));
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getShape() == like ? tile : broadcast(tile, 1);
}

/// The tile of a scalar of an op's body, or the vector if it is one of what is
/// the same for all columns; null for a constant, which has any shape.
Value WholeTensorWriter::makeTile(Value scalar, IRMapping &tiles) {
  if (Value known = tiles.lookupOrNull(scalar))
    return known;
  if (matchPattern(scalar, m_Constant()))
    return {};
  Operation *op = scalar.getDefiningOp();
  SmallVector<Value> operands;
  SmallVector<int64_t> shape;
  for (Value operand : op->getOperands()) {
    operands.push_back(makeTile(operand, tiles));
    if (!operands.back())
      continue;
    ArrayRef<int64_t> own =
        cast<RankedTensorType>(operands.back().getType()).getShape();
    if (own.size() > shape.size())
      shape.assign(own.begin(), own.end());
  }
  if (shape.empty())
    shape = tileShape();
  OperationState state(b.getLoc(), op->getName());
  for (auto [operand, tile] : llvm::zip(op->getOperands(), operands))
    state.addOperands(shapeLike(operand, tile, shape));
  state.addTypes(RankedTensorType::get(shape, scalar.getType()));
  state.addAttributes(op->getAttrs());
  Operation *copy = b.create(state);
  note(copy, kRowStep);
  tiles.map(scalar, copy->getResult(0));
  return copy->getResult(0);
}

/// A chunk of an op's result, or what it adds to a sum over tokens.
Value WholeTensorWriter::compute(const WholeTensorOp &op, Chunk &chunk) {
  Value result;
  for (int64_t member = 0; member < op.group; ++member) {
    IRMapping tiles;
    linalg::GenericOp generic = op.op;
    for (auto [argument, input] :
         llvm::zip(generic.getBody()->getArguments(), op.inputs))
      tiles.map(argument, readInput(op, input, chunk, member));
    Value element =
        shapeLike(op.element, makeTile(op.element, tiles), tileShape());
    result = result ? create<arith::AddFOp>(result, element) : element;
  }
  return op.reduction == Reduction::Columns ? reduce(result, 1) : result;
}

void WholeTensorWriter::storeChunk(const WholeTensorOp &op, Value result,
                                   Value array, Value token) {
  bool sums = op.reduction == Reduction::Columns;
  SmallVector<Value> offsets = {program.getBatch(), token, program.getHead()};
  SmallVector<int64_t> axes = {1};
  if (group.columns() && !sums) {
    offsets.push_back(zero);
    axes.push_back(3);
  }
  auto store = tile::StoreOp::create(b, result, array, offsets,
                                     b.getDenseI64ArrayAttr(axes),
                                     program.getEnd(), b.getI64IntegerAttr(1));
  note(store, sums ? kStoreStep : kRowStep);
}

/// A chunk of every op. Returns what sums over tokens add.
SmallVector<Value> WholeTensorWriter::writeChunk(Value token) {
  Chunk chunk;
  chunk.token = token;
  SmallVector<Value> sums;
  unsigned output = 0;
  for (const WholeTensorOp &op : group.ops) {
    Value result = compute(op, chunk);
    if (op.reduction == Reduction::Tokens) {
      sums.push_back(maskPastEnd(result, token));
      ++output;
      continue;
    }
    chunk.made[op.result] = result;
    if (group.isRead(op))
      storeChunk(op, result, program.getOutputs()[output++], token);
  }
  return sums;
}

void WholeTensorWriter::loadParameters() {
  for (const WholeTensorOp &op : group.ops)
    for (const WholeTensorOp::Input &input : op.inputs) {
      bool isVector = input.kind == InputKind::PerChannel;
      unsigned index = numberOf(input.array);
      if ((!isVector && input.kind != InputKind::PerHead) ||
          parameters.contains(index))
        continue;
      Value array = program.getInputs()[index];
      if (isVector) {
        parameters[index] =
            load(array, {program.getHead(), zero}, {1}, {group.columns()},
                 /*ends=*/false, kRowStep);
        continue;
      }
      Value one =
          load(array, program.getHead(), {0}, {1}, /*ends=*/false, kRowStep);
      // Lanes hand on words of 32 bits.
      if (!getElementTypeOrSelf(one.getType()).isF32())
        one = create<arith::ExtFOp>(RankedTensorType::get({1}, b.getF32Type()),
                                    one);
      parameters[index] = create<tensor::ExtractOp>(one, zero);
    }
}

/// A loop over the chunks from `lower` on that adds `sums` of what they have
/// up.
SmallVector<Value>
WholeTensorWriter::writeLoop(Value lower, int64_t step, unsigned sums,
                             function_ref<SmallVector<Value>(Value)> chunk) {
  SmallVector<Value> inits;
  for (unsigned i = 0; i < sums; ++i)
    inits.push_back(zeros(tileShape()));
  auto loop =
      scf::ForOp::create(b, lower, program.getEnd(),
                         arith::ConstantIndexOp::create(b, step), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next;
  for (auto [sum, added] :
       llvm::zip(loop.getRegionIterArgs(), chunk(loop.getInductionVar())))
    next.push_back(create<arith::AddFOp>(sum, added));
  if (!next.empty())
    scf::YieldOp::create(b, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void WholeTensorWriter::write() {
  zero = arith::ConstantIndexOp::create(b, 0);
  loadParameters();
  // The parts of a head take its chunks in turn.
  int64_t parts = countParts(group);
  Value chunk = arith::ConstantIndexOp::create(b, tokens);
  Value first = arith::MulIOp::create(b, program.getVTile(), chunk);
  Value lower = arith::AddIOp::create(b, program.getBegin(), first);
  unsigned count = llvm::count_if(group.ops, [](const WholeTensorOp &op) {
    return op.reduction == Reduction::Tokens;
  });
  SmallVector<Value> sums =
      writeLoop(lower, tokens * parts, count,
                [&](Value token) { return writeChunk(token); });
  if (sums.empty())
    return;
  // A part's number among those of all batch rows.
  Value before = arith::MulIOp::create(
      b, program.getSequence(), arith::ConstantIndexOp::create(b, parts));
  Value part = arith::AddIOp::create(b, before, program.getVTile());
  unsigned output = 0, next = 0;
  for (const WholeTensorOp &op : group.ops) {
    // With columns a part has a row of them, and the second program the rest.
    bool hasColumns = group.columns() != 0;
    if (op.reduction == Reduction::Tokens)
      storeSum(sums[next++], hasColumns, program.getOutputs()[output],
               {zero, part, program.getHead()}, hasColumns ? 3 : 1);
    output += op.reduction == Reduction::Tokens || group.isRead(op);
  }
}

void gdn::writeProgram(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                       tile::ProgramOp program) {
  WholeTensorWriter(group, arrays, program).write();
}

void gdn::writeTotals(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                      tile::ProgramOp program) {
  WholeTensorWriter(group, arrays, program).writeTotals();
}
