//===- QuadStores.cpp - Rows of a fragment in wide stores -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four lanes hold a row of a fragment, each two neighbours of every eight
// elements. They exchange elements until a lane has 16 bytes of neighbours,
// which is a store: eight elements of 16 bits, four of 32. By elements the row
// is 16 or 4 times as many stores, and each sector of memory is written by
// several.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Lanes of a row, and words of 32 bits in a store.
static constexpr int64_t kLanes = 4, kWords = 4;

/// Elements of a store.
static int64_t getRun(ArrayStoreOp op) {
  return kRunBytes * 8 /
         cast<RankedTensorType>(op.getTile().getType())
             .getElementTypeBitWidth();
}

bool warp::mayStoreRuns(ArrayStoreOp op) {
  // Rows of tokens, which have an end, are of 16 bits, states of 32.
  auto tile = cast<RankedTensorType>(op.getTile().getType());
  unsigned bits = op.getEnd() ? 16 : 32;
  if (!isEncoded<FragmentAttr>(tile) || op.getRows() || tile.getRank() != 2 ||
      (tile.getElementTypeBitWidth() != bits &&
       !op->hasAttr(WarpDialect::getLateAddressesAttrName())) ||
      tile.getDimSize(1) % (kLanes * getRun(op)) != 0)
    return false;
  bool cutsColumns =
      op.getEnd() && static_cast<int64_t>(*op.getDim()) == op.getAxes()[1];
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(op.getArray().getType());
  if (cutsColumns || failed(type.getStridesAndOffset(strides, offset)))
    return false;
  return strides[op.getAxes()[1]] == 1 || hasAnyStrides(type);
}

bool warp::hasAnyStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !strides.empty() && llvm::all_of(strides, ShapedType::isDynamic);
}

Array warp::asRuns(ImplicitLocOpBuilder &b, const Array &array, int64_t axis) {
  Array runs = array;
  runs.strides[axis] = createIndex(b, 1);
  return runs;
}

Value warp::createHasAlignedRuns(ImplicitLocOpBuilder &b, const Array &array,
                                 ValueRange offsets, int64_t axis,
                                 int64_t bytes, int64_t elementBytes) {
  Type i32 = b.getI32Type();
  // Read here: the test of what does not change would hold a register over the
  // loop.
  auto readHere = [&](Value value) -> Value {
    return createAsm(b, i32, value, "mov.b32 $0, $1;", "=r,r").getResult(0);
  };
  Value all = readHere(LLVM::PtrToIntOp::create(b, i32, array.pointer));
  for (auto [dim, stride] : llvm::enumerate(array.strides)) {
    Value elements = static_cast<int64_t>(dim) == axis ? offsets[dim] : stride;
    Value distance = arith::MulIOp::create(
        b, readHere(arith::IndexCastOp::create(b, i32, elements)),
        createI32(b, elementBytes));
    all = arith::OrIOp::create(b, all, distance);
  }
  Value low = arith::AndIOp::create(b, all, createI32(b, bytes - 1));
  Value isAligned =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, low, createI32(b, 0));
  APInt known;
  if (matchPattern(array.strides[axis], m_ConstantInt(&known)))
    return isAligned;
  Value isRun = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                      array.strides[axis], createIndex(b, 1));
  return arith::AndIOp::create(b, isAligned, isRun);
}

Value warp::createHasAlignedRuns(ImplicitLocOpBuilder &b, const Array &array,
                                 ValueRange offsets, ArrayStoreOp op) {
  return createHasAlignedRuns(b, array, offsets, op.getAxes().back(), kRunBytes,
                              kRunBytes / getRun(op));
}

/// Lanes at a distance exchange words at a distance: of two words, the lane
/// that is lower gets both first ones, the other one both second ones.
static void exchange(ImplicitLocOpBuilder &b, Value lane, int64_t lanes,
                     SmallVector<Value> &words, int64_t distance) {
  Value bit = arith::AndIOp::create(b, lane, createI32(b, lanes));
  Value isUpper =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, createI32(b, 0));
  auto select = [&](Value ifUpper, Value ifLower) -> Value {
    return arith::SelectOp::create(b, isUpper, ifUpper, ifLower);
  };
  for (int64_t first = 0; first < kWords; ++first) {
    if (first & distance)
      continue;
    Value &low = words[first], &high = words[first + distance];
    Value other = createShuffle(b, ShuffleKind::Xor, select(low, high),
                                createI32(b, lanes));
    Value nextLow = select(other, low);
    high = select(high, other);
    low = nextLow;
  }
}

/// The 16 bytes that this lane stores of what its four hold of one of two rows
/// from element i on. Of 16 bits these are words [i, i + 2), [i + 4, i + 6) and
/// so on, and lane l gets word l of each: a 4 x 4 transpose, of the blocks of
/// 2 x 2 last. Of 32 bits they are the words of eight columns and of the next
/// eight, and even lanes get those of the first.
static SmallVector<Value> takeRun(ImplicitLocOpBuilder &b, Value lane,
                                  ArrayRef<Value> elements, int64_t i) {
  Type element = elements.front().getType(), i32 = b.getI32Type();
  SmallVector<Value> words;
  if (element.getIntOrFloatBitWidth() == 32) {
    for (int64_t k : {i, i + 1, i + 4, i + 5})
      words.push_back(LLVM::BitcastOp::create(b, i32, elements[k]));
    exchange(b, lane, 1, words, 2);
    return words;
  }
  auto pair = VectorType::get(2, element);
  for (int64_t word = 0; word < kWords; ++word, i += 4)
    words.push_back(
        LLVM::BitcastOp::create(b, i32, pack(b, pair, elements.slice(i, 2))));
  exchange(b, lane, 1, words, 1);
  exchange(b, lane, 2, words, 2);
  return words;
}

/// The first column that a lane stores of those of four lanes.
static Value createRunColumn(ImplicitLocOpBuilder &b, Value lane, int64_t run) {
  Value inRow = arith::AndIOp::create(b, lane, createI32(b, kLanes - 1));
  if (run == 2 * kWords)
    return arith::MulIOp::create(b, inRow, createI32(b, run));
  Value second = arith::AndIOp::create(b, inRow, createI32(b, 1));
  Value half = arith::ShRUIOp::create(b, inRow, createI32(b, 1));
  return arith::AddIOp::create(
      b, arith::MulIOp::create(b, second, createI32(b, 2 * run)),
      arith::MulIOp::create(b, half, createI32(b, run)));
}

Value warp::createSumInMemory(ImplicitLocOpBuilder &b, Value adds, Value stored,
                              Value address, unsigned alignment) {
  if (!adds)
    return stored;
  auto branch = scf::IfOp::create(b, TypeRange(stored.getType()), adds,
                                  /*withElseRegion=*/true);
  ImplicitLocOpBuilder then =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.thenBlock());
  Value old = LLVM::LoadOp::create(then, stored.getType(), address, alignment);
  scf::YieldOp::create(then, Value(arith::AddFOp::create(then, stored, old)));
  ImplicitLocOpBuilder otherwise =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.elseBlock());
  scf::YieldOp::create(otherwise, stored);
  return branch.getResult(0);
}

void warp::createRunStores(ImplicitLocOpBuilder &b, ArrayStoreOp op, Value tile,
                           const Array &array, ValueRange offsets, Value end,
                           Value sumEnd) {
  Type element = cast<MemRefType>(op.getArray().getType()).getElementType();
  ArrayRef<int64_t> axes = op.getAxes();
  Array runs = asRuns(b, array, axes[1]);
  SmallVector<Value> elements = unpack(b, tile);
  Value thread = createThreadHere(b);
  Value lane = createLane(b, thread);
  Value firstRow = createFragmentRow(b, thread);
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
  };
  int64_t run = getRun(op);
  Value column = toIndex(createRunColumn(b, lane, run));
  int64_t columns =
      cast<RankedTensorType>(op.getTile().getType()).getDimSize(1);
  auto words = VectorType::get(kWords, b.getI32Type()),
       floats = VectorType::get(kWords, b.getF32Type());
  for (int64_t half : {0, 1}) {
    Value row = toIndex(arith::AddIOp::create(b, firstRow, //
                                              createI32(b, 8 * half)));
    SmallVector<Value> place(offsets);
    place[axes[0]] = arith::AddIOp::create(b, place[axes[0]], row);
    Value first = arith::AddIOp::create(b, place[axes[1]], column);
    for (int64_t from = 0; from < columns; from += kLanes * run) {
      SmallVector<Value> mine = takeRun(b, lane, elements, from / 2 + 2 * half);
      OpBuilder::InsertionGuard guard(b);
      if (end) {
        Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               place[axes[0]], end);
        b.setInsertionPointToStart(scf::IfOp::create(b, isInside).thenBlock());
      }
      place[axes[1]] = arith::AddIOp::create(b, first, createIndex(b, from));
      Value stored = pack(b, words, mine);
      Value address = createElementAddress(b, runs, element, place);
      if (sumEnd) {
        Value adds = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           place[axes[0]], sumEnd);
        stored = createSumInMemory(b, adds,
                                   LLVM::BitcastOp::create(b, floats, stored),
                                   address, kRunBytes);
      }
      LLVM::StoreOp::create(b, stored, address, kRunBytes);
    }
  }
}
