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

#include "WholeTensorProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

namespace {
/// Writes the program of a group.
class ProgramWriter {
public:
  ProgramWriter(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                tile::ProgramOp program)
      : group(group), arrays(arrays), program(program),
        b(program.getLoc(),
          OpBuilder::atBlockBegin(&program.getBody().front())) {}

  void write();
  /// The program of sums over parts: the arrays' numbers, all of one head.
  void writeTotals();

private:
  /// A chunk of tokens: loaded arrays by their number and member of a group of
  /// heads, and results of ops.
  struct Chunk {
    Value token;
    llvm::DenseMap<std::pair<unsigned, int64_t>, Value> loaded;
    llvm::DenseMap<Value, Value> made;
  };

  void loadHeadNumbers();
  SmallVector<Value> writeLoop(Value lower, int64_t step, unsigned sums,
                               function_ref<SmallVector<Value>(Value)> chunk);
  SmallVector<Value> writeChunk(Value token);
  Value load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
             ArrayRef<int64_t> shape, bool ends, StringRef step);
  Value loadArray(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Chunk &chunk, int64_t member);
  Value readInput(const WholeTensorOp &op, const WholeTensorOp::Input &input,
                  Chunk &chunk, int64_t member);
  Value compute(const WholeTensorOp &op, Chunk &chunk);
  Value makeTile(Value scalar, IRMapping &tiles);
  Value shapeLike(Value scalar, Value tile, ArrayRef<int64_t> like);
  Value sumColumns(Value tile);
  Value maskPastEnd(Value vector, Value token);
  void storeChunk(const WholeTensorOp &op, Value result, Value array,
                  Value token);
  void storeNumber(Value vector, Value array, ValueRange offsets,
                   ArrayRef<int64_t> axes);
  unsigned numberOf(Value array) const {
    return llvm::find(arrays, array) - arrays.begin();
  }
  Value broadcastRows(Value vector) {
    Value empty = create<tensor::EmptyOp>(
        tileShape(), getElementTypeOrSelf(vector.getType()));
    return create<linalg::BroadcastOp>(vector, empty, ArrayRef<int64_t>{1});
  }
  template <typename Op, typename... Args> Value create(Args &&...args) {
    auto made = Op::create(b, std::forward<Args>(args)...);
    note(made, kRowStep);
    return made->getResult(0);
  }
  void note(Operation *made, StringRef step) {
    made->setAttr(tile::TileDialect::getStepAttrName(), b.getStringAttr(step));
  }
  Value zeros(ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, b.getF32Type());
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(type, b.getZeroAttr(b.getF32Type())));
  }
  SmallVector<int64_t> tileShape() const {
    if (group.columns())
      return {kTokens, group.columns()};
    return {kTokens};
  }

  const WholeTensorGroup &group;
  ArrayRef<Value> arrays;
  tile::ProgramOp program;
  ImplicitLocOpBuilder b;
  Value zero;
  /// Numbers of the work item's head in f32, by array.
  llvm::DenseMap<unsigned, Value> perHead;
};
} // namespace

Value ProgramWriter::load(Value array, ValueRange offsets,
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
Value ProgramWriter::loadArray(const WholeTensorOp &op,
                               const WholeTensorOp::Input &input, Chunk &chunk,
                               int64_t member) {
  unsigned index = numberOf(input.array);
  Value array = program.getInputs()[index];
  Value head = program.getHead();
  switch (input.kind) {
  case InputKind::PerHead: {
    Value tile = create<tensor::SplatOp>(perHead[index], tileShape());
    Type element = getElementTypeOrSelf(input.array.getType());
    return element.isF32()
               ? tile
               : create<arith::TruncFOp>(
                     RankedTensorType::get(tileShape(), element), tile);
  }
  case InputKind::PerToken:
    return broadcastRows(load(array, {program.getBatch(), chunk.token, head},
                              {1}, {kTokens}, /*ends=*/true, kVectorStep));
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
    return load(array, {program.getBatch(), chunk.token, head}, {1}, {kTokens},
                /*ends=*/true, kRowStep);
  }
  llvm_unreachable("covered switch");
}

/// What an op of the group has made, or a chunk of an array. An array is loaded
/// once.
Value ProgramWriter::readInput(const WholeTensorOp &op,
                               const WholeTensorOp::Input &input, Chunk &chunk,
                               int64_t member) {
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
Value ProgramWriter::shapeLike(Value scalar, Value tile,
                               ArrayRef<int64_t> like) {
  Attribute constant;
  if (!tile && matchPattern(scalar, m_Constant(&constant)))
    return create<arith::ConstantOp>(
        DenseElementsAttr::get(RankedTensorType::get(like, scalar.getType()),
                               ArrayRef<Attribute>(constant)));
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getShape() == like ? tile : broadcastRows(tile);
}

/// The tile of a scalar of an op's body, or the vector if it is one of what is
/// the same for all columns; null for a constant, which has any shape.
Value ProgramWriter::makeTile(Value scalar, IRMapping &tiles) {
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
Value ProgramWriter::compute(const WholeTensorOp &op, Chunk &chunk) {
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
  return op.reduction == Reduction::Columns ? sumColumns(result) : result;
}

Value ProgramWriter::sumColumns(Value tile) {
  auto sum = linalg::ReduceOp::create(
      b, tile, zeros({kTokens}), ArrayRef<int64_t>{1},
      [](OpBuilder &inner, Location loc, ValueRange args) {
        Value total = arith::AddFOp::create(inner, loc, args[0], args[1]);
        linalg::YieldOp::create(inner, loc, total);
      });
  note(sum, kRowStep);
  return sum->getResult(0);
}

/// Zeros for tokens past the end, which a body may make anything of.
Value ProgramWriter::maskPastEnd(Value vector, Value token) {
  Value left = arith::IndexCastOp::create(
      b, b.getI32Type(), arith::SubIOp::create(b, program.getEnd(), token));
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, kTokens));
  auto type = RankedTensorType::get({kTokens}, b.getI32Type());
  Value iota = create<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  Value isInside = create<arith::CmpIOp>(
      arith::CmpIPredicate::slt, iota,
      create<tensor::SplatOp>(left, ArrayRef<int64_t>{kTokens}));
  return create<arith::SelectOp>(isInside, vector, zeros({kTokens}));
}

void ProgramWriter::storeChunk(const WholeTensorOp &op, Value result,
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

/// Stores the sum of a vector.
void ProgramWriter::storeNumber(Value vector, Value array, ValueRange offsets,
                                ArrayRef<int64_t> axes) {
  Value sums = create<tile::ScanOp>(vector, 0, /*reverse=*/false);
  Value last = arith::ConstantIndexOp::create(b, kTokens - 1);
  Value total = create<tensor::ExtractOp>(sums, last);
  Type element = cast<MemRefType>(array.getType()).getElementType();
  if (!element.isF32())
    total = create<arith::TruncFOp>(element, total);
  Value one = create<tensor::SplatOp>(total, ArrayRef<int64_t>{1});
  auto store = tile::StoreOp::create(b, one, array, offsets,
                                     b.getDenseI64ArrayAttr(axes), Value(),
                                     IntegerAttr());
  note(store, kRowStep);
}

/// A chunk of every op. Returns what sums over tokens add.
SmallVector<Value> ProgramWriter::writeChunk(Value token) {
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

void ProgramWriter::loadHeadNumbers() {
  for (const WholeTensorOp &op : group.ops)
    for (const WholeTensorOp::Input &input : op.inputs) {
      if (input.kind != InputKind::PerHead ||
          perHead.contains(numberOf(input.array)))
        continue;
      unsigned index = numberOf(input.array);
      Value one = load(program.getInputs()[index], program.getHead(), {0}, {1},
                       /*ends=*/false, kRowStep);
      // Lanes hand on words of 32 bits.
      if (!getElementTypeOrSelf(one.getType()).isF32())
        one = create<arith::ExtFOp>(RankedTensorType::get({1}, b.getF32Type()),
                                    one);
      perHead[index] = create<tensor::ExtractOp>(one, zero);
    }
}

/// A loop over the chunks from `lower` on that adds `sums` vectors up.
SmallVector<Value>
ProgramWriter::writeLoop(Value lower, int64_t step, unsigned sums,
                         function_ref<SmallVector<Value>(Value)> chunk) {
  SmallVector<Value> inits;
  for (unsigned i = 0; i < sums; ++i)
    inits.push_back(zeros({kTokens}));
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

void ProgramWriter::write() {
  zero = arith::ConstantIndexOp::create(b, 0);
  loadHeadNumbers();
  // The parts of a head take its chunks in turn.
  int64_t parts = countParts(group);
  Value chunk = arith::ConstantIndexOp::create(b, kTokens);
  Value first = arith::MulIOp::create(b, program.getVTile(), chunk);
  Value lower = arith::AddIOp::create(b, program.getBegin(), first);
  unsigned count = llvm::count_if(group.ops, [](const WholeTensorOp &op) {
    return op.reduction == Reduction::Tokens;
  });
  SmallVector<Value> sums =
      writeLoop(lower, kTokens * parts, count,
                [&](Value token) { return writeChunk(token); });
  if (sums.empty())
    return;
  // A part's number among those of all batch rows.
  Value before = arith::MulIOp::create(
      b, program.getSequence(), arith::ConstantIndexOp::create(b, parts));
  Value part = arith::AddIOp::create(b, before, program.getVTile());
  unsigned output = 0, next = 0;
  for (const WholeTensorOp &op : group.ops) {
    if (op.reduction == Reduction::Tokens)
      storeNumber(sums[next++], program.getOutputs()[output],
                  {zero, part, program.getHead()}, {1});
    output += op.reduction == Reduction::Tokens || group.isRead(op);
  }
}

void ProgramWriter::writeTotals() {
  zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> sums =
      writeLoop(program.getBegin(), kTokens, arrays.size(), [&](Value token) {
        SmallVector<Value> chunk;
        for (Value array : program.getInputs())
          chunk.push_back(load(array, {zero, token, program.getHead()}, {1},
                               {kTokens}, /*ends=*/true, kRowStep));
        return chunk;
      });
  for (auto [sum, array] : llvm::zip(sums, program.getOutputs()))
    storeNumber(sum, array, {program.getHead()}, {0});
}

void gdn::writeProgram(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                       tile::ProgramOp program) {
  ProgramWriter(group, arrays, program).write();
}

void gdn::writeTotals(const WholeTensorGroup &group, ArrayRef<Value> arrays,
                      tile::ProgramOp program) {
  ProgramWriter(group, arrays, program).writeTotals();
}
