//===- WholeTensorSums.cpp - Sums of work on whole tensors ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A work item adds up over its tokens what it has a chunk of, a tile or a
// vector. What is left of it at the end is stored as a part of the sum, and a
// second program adds up the parts.
//
//===----------------------------------------------------------------------===//

#include "WholeTensorWriter.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;

/// The sum of a tile or vector along one of its dimensions.
Value WholeTensorWriter::reduce(Value tile, int64_t dim) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(tile.getType()).getShape());
  shape.erase(shape.begin() + dim);
  auto sum = linalg::ReduceOp::create(
      b, tile, zeros(shape), ArrayRef<int64_t>{dim},
      [](OpBuilder &inner, Location loc, ValueRange args) {
        Value total = arith::AddFOp::create(inner, loc, args[0], args[1]);
        linalg::YieldOp::create(inner, loc, total);
      });
  note(sum);
  return sum->getResult(0);
}

/// Whether an op's element is zero because a number that was loaded is, as all
/// are of rows past the end.
static bool vanishesPastEnd(const WholeTensorGroup &group,
                            const WholeTensorOp &op) {
  auto select = op.element.getDefiningOp<arith::SelectOp>();
  auto isZero = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                       : arith::CmpFOp();
  if (!isZero || isZero.getPredicate() != arith::CmpFPredicate::OEQ ||
      !matchPattern(isZero.getRhs(), m_AnyZeroFloat()) ||
      !matchPattern(select.getTrueValue(), m_AnyZeroFloat()))
    return false;
  Value number = isZero.getLhs();
  if (auto widened = number.getDefiningOp<arith::ExtFOp>())
    number = widened.getIn();
  auto argument = dyn_cast<BlockArgument>(number);
  if (!argument)
    return false;
  const WholeTensorOp::Input &input = op.inputs[argument.getArgNumber()];
  return input.kind == InputKind::Whole && !group.makes(input.array);
}

/// Zeros for tokens past the end, which a body may make anything of.
Value WholeTensorWriter::maskPastEnd(const WholeTensorOp &op, Value tile,
                                     Value token) {
  // Past the end there are zeros of rows, but a vector is the last one.
  if (group.columns() && vanishesPastEnd(group, op))
    return tile;
  Value left = arith::IndexCastOp::create(b, b.getI32Type(),
                                          arith::SubIOp::create(b, end, token));
  int64_t rows = group.columns() ? tokens : tileShape()[0];
  SmallVector<int32_t> numbers(rows);
  if (group.columns())
    std::iota(numbers.begin(), numbers.end(), 0);
  auto type = RankedTensorType::get({rows}, b.getI32Type());
  Value row = create<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  if (group.columns())
    row = broadcast(row, 1);
  Value isInside =
      create<arith::CmpIOp>(arith::CmpIPredicate::slt, row,
                            create<tensor::SplatOp>(left, tileShape()));
  return create<arith::SelectOp>(isInside, tile, zeros(tileShape()));
}

/// The sum of a vector, a scalar. Where a role has vectors alone, each thread
/// has some of it.
Value WholeTensorWriter::sumVector(Value vector) {
  if (group.columns())
    return create<tensor::ExtractOp>(reduce(vector, 0), ValueRange());
  Value sums = create<tile::ScanOp>(vector, 0, /*reverse=*/false);
  Value last = arith::ConstantIndexOp::create(b, tokens - 1);
  return create<tensor::ExtractOp>(sums, last);
}

/// Stores the sum of a tile's rows at `offsets`, and at 0 of the columns, which
/// are dimension `axis` of the array; or at `offsets` the sum of all elements.
void WholeTensorWriter::storeSum(Value tile, bool hasChannels, Value array,
                                 ArrayRef<Value> offsets, int64_t axis) {
  Value sum = group.columns() ? reduce(tile, 0) : tile;
  if (!hasChannels)
    sum = create<tensor::SplatOp>(sumVector(sum), ArrayRef<int64_t>{1});
  SmallVector<Value> places(offsets);
  if (hasChannels)
    places.push_back(zero);
  storeVector(sum, array, places, axis);
}

/// Stores a vector, rounded to what the array has.
void WholeTensorWriter::storeVector(Value vector, Value array,
                                    ArrayRef<Value> offsets, int64_t axis,
                                    std::optional<Bound> bound) {
  auto type = cast<RankedTensorType>(vector.getType());
  Type element = cast<MemRefType>(array.getType()).getElementType();
  if (!element.isF32())
    vector = create<arith::TruncFOp>(type.clone(element), vector);
  auto store = tile::StoreOp::create(
      b, vector, array, offsets, b.getDenseI64ArrayAttr(axis),
      bound ? bound->end : Value(),
      bound ? b.getI64IntegerAttr(bound->dim) : IntegerAttr());
  note(store);
}

void WholeTensorWriter::writeTotals() {
  zero = arith::ConstantIndexOp::create(b, 0);
  // Vectors are along the parts here.
  constexpr int64_t kParts = 64;
  if (!group.columns()) {
    tokens = kParts;
    shape = {kParts};
  }
  Value chunk = arith::ConstantIndexOp::create(b, tokens);
  Walk walk = {program.getBegin(), chunk,
               arith::CeilDivUIOp::create(b, end, chunk)};
  SmallVector<Value> sums = writeLoop(
      walk, arrays.size(),
      [&](Value token) {
        SmallVector<Value> chunk;
        for (Value array : program.getInputs()) {
          SmallVector<Value> offsets = {zero, token, program.getHead()};
          SmallVector<int64_t> axes = {1};
          if (group.columns()) {
            offsets.push_back(zero);
            axes.push_back(3);
          }
          chunk.push_back(
              load(array, offsets, axes, tileShape(), Bound{end, 1}));
        }
        return chunk;
      },
      [](Value, ValueRange tiles) { return llvm::to_vector(tiles); });
  for (auto [sum, array] : llvm::zip(sums, program.getOutputs())) {
    bool hasChannels = cast<MemRefType>(array.getType()).getRank() == 2;
    storeSum(sum, hasChannels, array, program.getHead(), hasChannels ? 1 : 0);
  }
}
