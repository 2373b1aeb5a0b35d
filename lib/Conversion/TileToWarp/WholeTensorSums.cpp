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

using namespace mlir;
using namespace mlir::gdn;

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
  note(sum, kRowStep);
  return sum->getResult(0);
}

/// Zeros for tokens past the end, which a body may make anything of.
Value WholeTensorWriter::maskPastEnd(Value tile, Value token) {
  Value left = arith::IndexCastOp::create(
      b, b.getI32Type(), arith::SubIOp::create(b, program.getEnd(), token));
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, tokens));
  auto type = RankedTensorType::get({tokens}, b.getI32Type());
  Value iota = create<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  SmallVector<int64_t> shape = tileShape();
  if (group.columns())
    iota = broadcast(iota, 1);
  Value isInside = create<arith::CmpIOp>(arith::CmpIPredicate::slt, iota,
                                         create<tensor::SplatOp>(left, shape));
  return create<arith::SelectOp>(isInside, tile, zeros(shape));
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
  auto type = cast<RankedTensorType>(sum.getType());
  Type element = cast<MemRefType>(array.getType()).getElementType();
  if (!element.isF32())
    sum = create<arith::TruncFOp>(type.clone(element), sum);
  SmallVector<Value> places(offsets);
  if (hasChannels)
    places.push_back(zero);
  auto store =
      tile::StoreOp::create(b, sum, array, places, b.getDenseI64ArrayAttr(axis),
                            Value(), IntegerAttr());
  note(store, kRowStep);
}

void WholeTensorWriter::writeTotals() {
  zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> sums =
      writeLoop(program.getBegin(), tokens, arrays.size(), [&](Value token) {
        SmallVector<Value> chunk;
        for (Value array : program.getInputs()) {
          SmallVector<Value> offsets = {zero, token, program.getHead()};
          SmallVector<int64_t> axes = {1};
          if (group.columns()) {
            offsets.push_back(zero);
            axes.push_back(3);
          }
          chunk.push_back(load(array, offsets, axes, tileShape(),
                               /*ends=*/true, kRowStep));
        }
        return chunk;
      });
  for (auto [sum, array] : llvm::zip(sums, program.getOutputs())) {
    bool hasChannels = cast<MemRefType>(array.getType()).getRank() == 2;
    storeSum(sum, hasChannels, array, program.getHead(), hasChannels ? 1 : 0);
  }
}
