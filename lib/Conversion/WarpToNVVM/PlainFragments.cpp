//===- PlainFragments.cpp - Tiles of f32 to and from shared memory --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix instructions move 16 bits. A thread accesses what it holds of a
// fragment of f32 by pairs of neighbours.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Calls `access(address, i)` for each pair of elements i, i + 1 of a fragment;
/// they lie side by side.
static void forEachPair(ImplicitLocOpBuilder &b, VectorType type, ViewType view,
                        Value base, int64_t firstRow, Value thread,
                        function_ref<void(Value, int64_t)> access) {
  int64_t bytes = view.getElementBytes();
  Value row = arith::SubIOp::create(b, createFragmentRow(b, thread),
                                    createI32(b, firstRow));
  Value byte = arith::MulIOp::create(b, createFragmentColumn(b, thread),
                                     createI32(b, bytes));
  ViewAddress address(b, view, base, row, byte);
  for (int64_t i = 0; i < type.getNumElements(); i += 2)
    access(address.get(i / 2 % 2 * 8, i / 4 * 8 * bytes), i);
}

Value warp::createPlainLoad(ImplicitLocOpBuilder &b, VectorType type,
                            ViewType view, Value base, int64_t firstRow,
                            Value thread) {
  auto pair = VectorType::get(2, type.getElementType());
  SmallVector<Value> elements;
  forEachPair(
      b, type, view, base, firstRow, thread, [&](Value address, int64_t) {
        Value loaded =
            LLVM::LoadOp::create(b, pair, address, 2 * view.getElementBytes());
        llvm::append_range(elements, unpack(b, loaded));
      });
  return pack(b, type, elements);
}

Value warp::createRepeatedLoad(ImplicitLocOpBuilder &b, VectorType type,
                               ViewType view, Value base, Value row,
                               Value thread) {
  int64_t bytes = view.getElementBytes();
  Value firstRow = arith::MulIOp::create(b, createGroupWarp(b, thread),
                                         createI32(b, format::kWarpRows));
  row = arith::AddIOp::create(
      b, firstRow, arith::IndexCastUIOp::create(b, b.getI32Type(), row));
  Value byte = arith::MulIOp::create(b, createFragmentColumn(b, thread),
                                     createI32(b, bytes));
  ViewAddress address(b, view, base, row, byte);
  auto pair = VectorType::get(2, type.getElementType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements(); i += 4) {
    Value loaded = LLVM::LoadOp::create(
        b, pair, address.get(0, i / 4 * 8 * bytes), 2 * bytes);
    SmallVector<Value> both = unpack(b, loaded);
    for (int64_t copies = 0; copies < 2; ++copies)
      llvm::append_range(elements, both);
  }
  return pack(b, type, elements);
}

void warp::createPlainStore(ImplicitLocOpBuilder &b, Value fragment,
                            ViewType view, Value base, int64_t firstRow,
                            Value thread) {
  auto type = cast<VectorType>(fragment.getType());
  auto pair = VectorType::get(2, type.getElementType());
  SmallVector<Value> elements = unpack(b, fragment);
  forEachPair(
      b, type, view, base, firstRow, thread, [&](Value address, int64_t i) {
        LLVM::StoreOp::create(b, pack(b, pair, {elements[i], elements[i + 1]}),
                              address, 2 * view.getElementBytes());
      });
}
