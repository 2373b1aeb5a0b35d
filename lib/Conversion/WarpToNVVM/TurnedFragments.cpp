//===- TurnedFragments.cpp - f32 tiles that lie turned in shared memory ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The view from the panel on that has byte `byte` of its rows; `byte` becomes
/// that in the panel.
static Value createPanel(ImplicitLocOpBuilder &b, ViewType view, Value base,
                         Value &byte) {
  if (view.getPanels() == 1)
    return base;
  Value panel =
      arith::DivUIOp::create(b, byte, createI32(b, format::kPanelBytes));
  byte = arith::AndIOp::create(b, byte, createI32(b, format::kPanelBytes - 1));
  Value start = arith::MulIOp::create(b, panel, createI32(b, view.getStride()));
  return createAddress(b, base, start, 0);
}

/// Calls `access(address, i)` for each element i of a fragment whose row is a
/// column of the view. A thread's two columns of eight are rows of their own,
/// which a swizzle moves differently.
static void forEachTurned(ImplicitLocOpBuilder &b, VectorType type,
                          ViewType view, Value base, int64_t firstRow,
                          function_ref<void(Value, int64_t)> access) {
  int64_t bytes = view.getElementBytes();
  Value row =
      arith::SubIOp::create(b, createFragmentRow(b), createI32(b, firstRow));
  SmallVector<ViewAddress> columns;
  if (view.isSwizzled()) {
    Value byte = arith::MulIOp::create(b, row, createI32(b, bytes));
    base = createPanel(b, view, base, byte);
    Value column = createFragmentColumn(b);
    Value next = arith::AddIOp::create(b, column, createI32(b, 1));
    columns.emplace_back(b, view, base, column, byte);
    columns.emplace_back(b, view, base, next, byte);
  } else {
    columns.emplace_back(b, view, base, createFragmentColumn(b),
                         arith::MulIOp::create(b, row, createI32(b, bytes)));
  }
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    bool isNext = columns.size() > 1 && i % 2;
    access(columns[isNext].get(i / 4 * 8 + (isNext ? 0 : i % 2),
                               i / 2 % 2 * 8 * bytes),
           i);
  }
}

Value warp::createTurnedLoad(ImplicitLocOpBuilder &b, VectorType type,
                             ViewType view, Value base, int64_t firstRow) {
  SmallVector<Value> elements;
  forEachTurned(b, type, view, base, firstRow, [&](Value address, int64_t) {
    elements.push_back(LLVM::LoadOp::create(b, type.getElementType(), address,
                                            view.getElementBytes()));
  });
  return pack(b, type, elements);
}

void warp::createTurnedStore(ImplicitLocOpBuilder &b, Value fragment,
                             ViewType view, Value base, int64_t firstRow) {
  SmallVector<Value> elements = unpack(b, fragment);
  forEachTurned(b, cast<VectorType>(fragment.getType()), view, base, firstRow,
                [&](Value address, int64_t i) {
                  LLVM::StoreOp::create(b, elements[i], address,
                                        view.getElementBytes());
                });
}
