//===- WholeTensors.cpp - Work around layer ops, as linalg ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;

/// Converts a scalar between float types.
static Value convert(OpBuilder &b, Location loc, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned into = type.getIntOrFloatBitWidth();
  if (from == into)
    return value;
  if (from < into)
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

Value WholeTensors::guard(ImplicitLocOpBuilder &b, Value gradient,
                          Value product) const {
  if (!packed)
    return product;
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
  Value isZero =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, gradient, zero);
  return arith::SelectOp::create(b, isZero, zero, product);
}

/// Batch rows, tokens and value heads are those of v, so that all see the same
/// sizes, and nothing asks for those of a view, of which the host of a GPU
/// knows nothing.
OpFoldResult
WholeTensors::sizeOf(char letter,
                     ArrayRef<std::pair<Value, StringRef>> inputs) {
  if (size_t at = StringRef("btn").find(letter); at != StringRef::npos)
    return tensor::getMixedSize(*this, getLoc(), values, at);
  for (auto [value, letters] : inputs)
    if (size_t at = letters.find(letter); at != StringRef::npos)
      return tensor::getMixedSize(*this, getLoc(), value, at);
  llvm_unreachable("some input has the letter");
}

Value WholeTensors::generic(StringRef out, StringRef all,
                            ArrayRef<std::pair<Value, StringRef>> inputs,
                            Type element, Body body) {
  SmallVector<OpFoldResult> sizes;
  for (char letter : out)
    sizes.push_back(sizeOf(letter, inputs));
  Value init = tensor::EmptyOp::create(*this, sizes, element);
  bool reduces = out.size() != all.size();
  if (reduces) {
    Value zero = arith::ConstantOp::create(*this, getFloatAttr(element, 0.0));
    init = linalg::FillOp::create(*this, zero, init)->getResult(0);
  }
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (auto [value, letters] : inputs) {
    values.push_back(value);
    maps.push_back(map(letters, all));
  }
  maps.push_back(map(out, all));
  SmallVector<utils::IteratorType> iterators;
  for (char letter : all)
    iterators.push_back(out.contains(letter) ? utils::IteratorType::parallel
                                             : utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      *this, init.getType(), values, init, maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        ImplicitLocOpBuilder b(loc, inner);
        SmallVector<Value> floats;
        for (Value arg : args.drop_back())
          floats.push_back(convert(b, loc, arg, getF32Type()));
        Value result = body(b, floats);
        if (reduces)
          result = arith::AddFOp::create(b, args.back(),
                                         convert(b, loc, result, element));
        linalg::YieldOp::create(b, convert(b, loc, result, element));
      });
  return op.getResult(0);
}
