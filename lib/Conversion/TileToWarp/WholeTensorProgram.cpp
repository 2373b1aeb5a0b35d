//===- WholeTensorProgram.cpp - The program of work on whole tensors ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program of a group of ops takes a chunk of tokens after the other, as
// tiles with a row a token, or as vectors of heads. The ops' scalar ops become
// the same ops on these. What an op of the group makes for another stays in
// registers.
//
//===----------------------------------------------------------------------===//

#include "WholeTensorWriter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

Value WholeTensorWriter::load(Value array, ValueRange offsets,
                              ArrayRef<int64_t> axes, ArrayRef<int64_t> shape,
                              std::optional<Bound> bound) {
  Type element = cast<MemRefType>(array.getType()).getElementType();
  auto loaded = tile::LoadOp::create(
      b, RankedTensorType::get(shape, element), array, offsets,
      b.getDenseI64ArrayAttr(axes), bound ? bound->end : Value(),
      bound ? b.getI64IntegerAttr(bound->dim) : IntegerAttr());
  note(loaded);
  return loaded;
}

/// The first head of the work item.
Value WholeTensorWriter::getFirstHead() {
  Value heads = arith::ConstantIndexOp::create(b, group.heads());
  return arith::MulIOp::create(b, getHead(), heads);
}

WholeTensorWriter::Bound WholeTensorWriter::boundOfHeads(Value array,
                                                         int64_t dim) {
  return {memref::DimOp::create(b, array, dim), dim};
}

/// A chunk of an input; `member` is a head's number in its group.
Value WholeTensorWriter::loadArray(const WholeTensorOp &op,
                                   const WholeTensorOp::Input &input,
                                   Value token, int64_t member) {
  unsigned index = numberOf(input.array);
  Value array = program.getInputs()[index];
  Value head = getHead();
  switch (input.kind) {
  case InputKind::PerHead: {
    Value parameter = parameters[index];
    if (!group.columns())
      return parameter;
    Value tile = create<tensor::SplatOp>(parameter, tileShape());
    Type element = getElementTypeOrSelf(input.array.getType());
    return element.isF32()
               ? tile
               : create<arith::TruncFOp>(
                     RankedTensorType::get(tileShape(), element), tile);
  }
  case InputKind::PerChannel:
    return broadcast(parameters[index], 0);
  case InputKind::PerToken:
    return load(array, {program.getBatch(), token, head}, {1}, {tokens},
                Bound{end, 1});
  case InputKind::Grouped: {
    Value first = arith::MulIOp::create(
        b, head, arith::ConstantIndexOp::create(b, op.group));
    head = arith::AddIOp::create(b, first,
                                 arith::ConstantIndexOp::create(b, member));
    [[fallthrough]];
  }
  case InputKind::Whole:
    if (group.columns())
      return load(array, {program.getBatch(), token, head, zero}, {1, 3},
                  tileShape(), Bound{end, 1});
    return load(array, {program.getBatch(), token, getFirstHead()}, {2},
                tileShape(), boundOfHeads(array, 2));
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
    loaded = loadArray(op, input, chunk.token, member);
  return input.kind == InputKind::PerToken ? broadcast(loaded, 1) : loaded;
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
    shape.assign(tileShape().begin(), tileShape().end());
  OperationState state(b.getLoc(), op->getName());
  for (auto [operand, tile] : llvm::zip(op->getOperands(), operands))
    state.addOperands(shapeLike(operand, tile, shape));
  state.addTypes(RankedTensorType::get(shape, scalar.getType()));
  state.addAttributes(op->getAttrs());
  Operation *copy = b.create(state);
  note(copy);
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
    Value element = shapeLike(op.element, makeTile(op.element, tiles),
                              isOfRows(op) ? ArrayRef(tokens) : tileShape());
    result = result ? create<arith::AddFOp>(result, element) : element;
  }
  return op.reduction == Reduction::Columns ? reduce(result, 1) : result;
}

void WholeTensorWriter::storeChunk(const WholeTensorOp &op, Value result,
                                   Value array, Value token) {
  SmallVector<Value> offsets = {program.getBatch(), token, getHead()};
  SmallVector<int64_t> axes = {1};
  Bound bound = {end, 1};
  if (!group.columns()) {
    offsets.back() = getFirstHead();
    axes = {2};
    bound = boundOfHeads(array, 2);
  } else if (op.reduction != Reduction::Columns && !isOfRows(op)) {
    offsets.push_back(zero);
    axes.push_back(3);
  }
  auto store = tile::StoreOp::create(b, result, array, offsets,
                                     b.getDenseI64ArrayAttr(axes), bound.end,
                                     b.getI64IntegerAttr(bound.dim));
  note(store);
}

/// A chunk of every op. Returns what sums over tokens add.
SmallVector<Value> WholeTensorWriter::writeChunk(Chunk &chunk) {
  SmallVector<Value> sums;
  unsigned output = 0;
  for (const WholeTensorOp &op : group.ops) {
    Value result = compute(op, chunk);
    if (op.reduction == Reduction::Tokens) {
      sums.push_back(maskPastEnd(op, result, chunk.number));
      ++output;
      continue;
    }
    chunk.made[op.result] = result;
    if (group.isRead(op))
      storeChunk(op, result, program.getOutputs()[output++], chunk.token);
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
            load(array, {getHead(), zero}, {1}, {group.columns()}, {});
        continue;
      }
      if (!group.columns()) {
        parameters[index] = load(array, getFirstHead(), {0}, tileShape(),
                                 boundOfHeads(array, 0));
        continue;
      }
      Value one = load(array, getHead(), {0}, {1}, {});
      // Lanes hand on words of 32 bits.
      if (!getElementTypeOrSelf(one.getType()).isF32())
        one = create<arith::ExtFOp>(RankedTensorType::get({1}, b.getF32Type()),
                                    one);
      parameters[index] = create<tensor::ExtractOp>(one, zero);
    }
}

/// The arrays whose chunks the group loads, in the order in which it reads
/// them.
SmallVector<WholeTensorWriter::ChunkLoad>
WholeTensorWriter::collectLoads() const {
  SmallVector<ChunkLoad> loads;
  for (const WholeTensorOp &op : group.ops)
    for (const WholeTensorOp::Input &input : op.inputs) {
      bool isGrouped = input.kind == InputKind::Grouped;
      if (group.makes(input.array) || input.kind == InputKind::PerHead ||
          input.kind == InputKind::PerChannel)
        continue;
      for (int64_t member = 0; member < (isGrouped ? op.group : 1); ++member) {
        ChunkLoad load = {&op, &input, isGrouped ? member : -1};
        if (llvm::none_of(loads, [&](const ChunkLoad &other) {
              return numberOf(other.input->array) == numberOf(input.array) &&
                     other.member == load.member;
            }))
          loads.push_back(load);
      }
    }
  return loads;
}

/// A loop over the chunks of a walk that adds `sums` of what they have up.
/// A thread has loaded the next chunk of tiles before it computes one, so
/// memory and the other units of a multiprocessor work at the same time.
SmallVector<Value> WholeTensorWriter::writeLoop(
    const Walk &walk, unsigned sums,
    function_ref<SmallVector<Value>(Value)> load,
    function_ref<SmallVector<Value>(Value, ValueRange)> compute) {
  SmallVector<Value> inits;
  for (unsigned i = 0; i < sums; ++i)
    inits.push_back(zeros(tileShape()));
  bool isAhead = group.loadsAhead();
  if (isAhead)
    llvm::append_range(inits, load(walk.first));
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, zero, walk.count, one, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value distance = arith::MulIOp::create(b, loop.getInductionVar(), walk.step);
  Value token = arith::AddIOp::create(b, walk.first, distance);
  ValueRange carried = loop.getRegionIterArgs();
  SmallVector<Value> next, loaded;
  if (isAhead)
    loaded = load(arith::AddIOp::create(b, token, walk.step));
  else
    next = load(token);
  SmallVector<Value> added =
      compute(token, isAhead ? carried.drop_front(sums) : ValueRange(next));
  next.clear();
  for (auto [sum, more] : llvm::zip(carried.take_front(sums), added))
    next.push_back(create<arith::AddFOp>(sum, more));
  llvm::append_range(next, loaded);
  if (!next.empty())
    scf::YieldOp::create(b, next);
  return llvm::to_vector_of<Value>(loop.getResults().take_front(sums));
}

/// Places of the tiles of a chunk: each as the token at which it would be, and
/// the one at which it is. Vectors are of one token, and those of tokens past
/// the end are made of the last one once more.
SmallVector<std::pair<Value, Value>> WholeTensorWriter::getPlaces(Value token) {
  if (group.columns())
    return {{token, token}};
  Value last =
      arith::SubIOp::create(b, end, arith::ConstantIndexOp::create(b, 1));
  SmallVector<std::pair<Value, Value>> places;
  for (int64_t i = 0; i < tokens; ++i) {
    Value number =
        arith::AddIOp::create(b, token, arith::ConstantIndexOp::create(b, i));
    places.emplace_back(number, arith::MinSIOp::create(b, number, last));
  }
  return places;
}

void WholeTensorWriter::write() {
  zero = arith::ConstantIndexOp::create(b, 0);
  loadParameters();
  auto [chunks, parts] = getParts();
  Value chunk = arith::ConstantIndexOp::create(b, tokens);
  Value length = arith::MulIOp::create(b, chunks, chunk);
  Value first = arith::AddIOp::create(
      b, program.getBegin(), arith::MulIOp::create(b, getPart(), length));
  end = arith::MinSIOp::create(b, end, arith::AddIOp::create(b, first, length));
  Value left =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, end, first), zero);
  Walk walk = {first, chunk, arith::CeilDivUIOp::create(b, left, chunk)};
  unsigned count = llvm::count_if(group.ops, [](const WholeTensorOp &op) {
    return op.reduction == Reduction::Tokens;
  });
  // Where registers hold no second chunk they need not hold all of the first.
  SmallVector<ChunkLoad> loads;
  if (!group.columns() || group.loadsAhead())
    loads = collectLoads();
  SmallVector<Value> sums = writeLoop(
      walk, count,
      [&](Value token) {
        SmallVector<Value> tiles;
        for (auto [number, place] : getPlaces(token))
          for (const ChunkLoad &load : loads)
            tiles.push_back(
                loadArray(*load.op, *load.input, place, load.member));
        return tiles;
      },
      [&](Value token, ValueRange tiles) {
        SmallVector<Value> sums;
        for (auto [number, place] : getPlaces(token)) {
          Chunk chunk;
          chunk.token = place;
          chunk.number = number;
          for (auto [load, tile] :
               llvm::zip(loads, tiles.take_front(loads.size())))
            chunk.loaded[{numberOf(load.input->array), load.member}] = tile;
          tiles = tiles.drop_front(loads.size());
          SmallVector<Value> more = writeChunk(chunk);
          if (sums.empty())
            sums = more;
          else
            for (auto [sum, added] : llvm::zip(sums, more))
              sum = create<arith::AddFOp>(sum, added);
        }
        return sums;
      });
  if (sums.empty())
    return;
  // A part's number among those of all batch rows.
  Value before = arith::MulIOp::create(b, program.getSequence(), parts);
  Value part = arith::AddIOp::create(b, before, getPart());
  unsigned output = 0, next = 0;
  for (const WholeTensorOp &op : group.ops) {
    // With columns a part has a row of them, and the second program the rest.
    Value array = program.getOutputs()[output];
    if (op.reduction == Reduction::Tokens && group.columns())
      storeSum(sums[next++], /*hasChannels=*/true, array,
               {zero, part, getHead()}, 3);
    else if (op.reduction == Reduction::Tokens)
      storeVector(sums[next++], array, {zero, part, getFirstHead()}, 2,
                  boundOfHeads(array, 2));
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
