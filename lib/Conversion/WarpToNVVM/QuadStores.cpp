//===- QuadStores.cpp - Rows of a fragment in wide stores -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four lanes hold a row of a fragment, each two neighbours of every eight
// elements. They exchange 16-bit elements until a lane has eight neighbours,
// which is a store. By elements the row is 16 times as many, and each sector of
// memory is written by several.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Lanes of a row, words of 32 bits in a store, and its 16-bit elements.
static constexpr int64_t kLanes = 4, kWords = 4, kRun = 8;

bool warp::mayStoreRuns(ArrayStoreOp op) {
  // What has no end is stored once a work item: a state.
  auto tile = cast<RankedTensorType>(op.getTile().getType());
  if (!op.getEnd() || !isEncoded<FragmentAttr>(tile) || op.getRows() ||
      tile.getRank() != 2 || tile.getElementTypeBitWidth() != 16 ||
      tile.getDimSize(1) % (kLanes * kRun) != 0)
    return false;
  bool cutsColumns = static_cast<int64_t>(*op.getDim()) == op.getAxes()[1];
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(op.getArray().getType());
  return !cutsColumns && succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[op.getAxes()[1]] == 1;
}

Value warp::createHasAlignedRuns(ImplicitLocOpBuilder &b, const Array &array,
                                 ValueRange offsets, int64_t axis) {
  Type i32 = b.getI32Type();
  // Read here: the test of what does not change would hold a register over the
  // loop.
  auto readHere = [&](Value value) -> Value {
    return createAsm(b, i32, value, "mov.b32 $0, $1;", "=r,r").getResult(0);
  };
  Value all = readHere(LLVM::PtrToIntOp::create(b, i32, array.pointer));
  for (auto [dim, stride] : llvm::enumerate(array.strides)) {
    Value elements = static_cast<int64_t>(dim) == axis ? offsets[dim] : stride;
    Value bytes = arith::MulIOp::create(
        b, readHere(arith::IndexCastOp::create(b, i32, elements)),
        createI32(b, 2));
    all = arith::OrIOp::create(b, all, bytes);
  }
  Value low = arith::AndIOp::create(b, all, createI32(b, 2 * kRun - 1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, low,
                               createI32(b, 0));
}

/// Lane l of four gets word l of each: a 4 x 4 transpose in two steps, of the
/// blocks of 2 x 2 last.
static void exchange(ImplicitLocOpBuilder &b, Value lane,
                     SmallVector<Value> &words) {
  for (int64_t distance : {1, 2}) {
    Value bit = arith::AndIOp::create(b, lane, createI32(b, distance));
    Value isUpper = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit,
                                          createI32(b, 0));
    auto select = [&](Value ifUpper, Value ifLower) -> Value {
      return arith::SelectOp::create(b, isUpper, ifUpper, ifLower);
    };
    for (int64_t first = 0; first < kWords; ++first) {
      if (first & distance)
        continue;
      Value &low = words[first], &high = words[first + distance];
      Value other = createShuffle(b, ShuffleKind::Xor, select(low, high),
                                  createI32(b, distance));
      Value nextLow = select(other, low);
      high = select(high, other);
      low = nextLow;
    }
  }
}

/// The words of the fragment's elements [i, i + 2), [i + 4, i + 6) and so on:
/// what this lane holds of one of its two rows in kWords runs.
static SmallVector<Value> takeWords(ImplicitLocOpBuilder &b,
                                    ArrayRef<Value> elements, int64_t i) {
  auto pair = VectorType::get(2, elements.front().getType());
  SmallVector<Value> words;
  for (int64_t word = 0; word < kWords; ++word, i += 4)
    words.push_back(LLVM::BitcastOp::create(
        b, b.getI32Type(), pack(b, pair, elements.slice(i, 2))));
  return words;
}

void warp::createRunStores(ImplicitLocOpBuilder &b, ArrayStoreOp op, Value tile,
                           const Array &array, ValueRange offsets, Value end) {
  Type element = cast<MemRefType>(op.getArray().getType()).getElementType();
  ArrayRef<int64_t> axes = op.getAxes();
  SmallVector<Value> elements = unpack(b, tile);
  Value thread = createThreadHere(b);
  Value lane = createLane(b, thread);
  Value inRow = arith::AndIOp::create(b, lane, createI32(b, kLanes - 1));
  Value firstRow = createFragmentRow(b, thread);
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
  };
  Value column = toIndex(arith::MulIOp::create(b, inRow, createI32(b, kRun)));
  int64_t columns =
      cast<RankedTensorType>(op.getTile().getType()).getDimSize(1);
  auto words = VectorType::get(kWords, b.getI32Type());
  for (int64_t half : {0, 1}) {
    Value row = toIndex(arith::AddIOp::create(b, firstRow, //
                                              createI32(b, 8 * half)));
    SmallVector<Value> place(offsets);
    place[axes[0]] = arith::AddIOp::create(b, place[axes[0]], row);
    Value first = arith::AddIOp::create(b, place[axes[1]], column);
    for (int64_t from = 0; from < columns; from += kLanes * kRun) {
      SmallVector<Value> mine = takeWords(b, elements, from / 2 + 2 * half);
      exchange(b, lane, mine);
      OpBuilder::InsertionGuard guard(b);
      if (end) {
        Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               place[axes[0]], end);
        b.setInsertionPointToStart(scf::IfOp::create(b, isInside).thenBlock());
      }
      place[axes[1]] = arith::AddIOp::create(b, first, createIndex(b, from));
      LLVM::StoreOp::create(b, pack(b, words, mine),
                            createElementAddress(b, array, element, place),
                            2 * kRun);
    }
  }
}
