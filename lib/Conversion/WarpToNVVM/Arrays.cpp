//===- Arrays.cpp - Plain accesses to arrays in global memory -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {
/// The elements of a fragment or of a vector that this thread holds, as
/// elements of an array.
class TileAccess {
public:
  /// The tile begins at row `firstRow` of a fragment or vector of rows.
  TileAccess(ImplicitLocOpBuilder &b, const Array &array, MemRefType type,
             RankedTensorType tile, ValueRange offsets, ArrayRef<int64_t> axes,
             Value end, std::optional<int64_t> dim, int64_t firstRow);

  /// Elements that one access moves: 2 where a row's neighbours are so in
  /// memory and at an address that allows it.
  int64_t getRun() const { return run; }
  void setRun(int64_t elements) { run = elements; }
  int64_t getCount() const { return count; }
  /// The address of element `i`.
  Value getAddress(ImplicitLocOpBuilder &b, int64_t i) const;
  /// True if element `i` and the rest of its run lie before the end; null if
  /// there is none.
  Value getInside(ImplicitLocOpBuilder &b, int64_t i) const {
    return getBefore(b, i, end);
  }
  /// The same of another end, which may be null.
  Value getBefore(ImplicitLocOpBuilder &b, int64_t i, Value limit) const;

private:
  /// Distance along axis number `axis` from this thread's first element to
  /// element `i`.
  int64_t getDistance(size_t axis, int64_t i) const {
    if (isEncoded<LanesAttr>(tile))
      return i * format::kWarpThreads;
    if (isEncoded<RowsAttr>(tile))
      return i * 8;
    if (isEncoded<ColumnsAttr>(tile))
      return i / 2 * 8 + i % 2;
    return axis == 0 ? i / 2 % 2 * 8 : i / 4 * 8 + i % 2;
  }

  Array array;
  RankedTensorType tile;
  Type element;
  ArrayRef<int64_t> axes;
  Value end, first, start;
  /// Number of the axis that has an end.
  size_t cut = 0;
  int64_t count, run = 1;
};
} // namespace

/// Whether an offset is even: a constant, one of several that is selected, or a
/// sum of these.
static bool isEven(Value offset) {
  if (auto select = offset.getDefiningOp<arith::SelectOp>())
    return isEven(select.getTrueValue()) && isEven(select.getFalseValue());
  if (auto sum = offset.getDefiningOp<arith::AddIOp>())
    return isEven(sum.getLhs()) && isEven(sum.getRhs());
  APInt value;
  return matchPattern(offset, m_ConstantInt(&value)) && !value[0];
}

/// True if all pairs of neighbours along `axis` that begin at an even column
/// are aligned: every other stride is even, and so is the offset.
static bool hasAlignedPairs(MemRefType type, ValueRange offsets, int64_t axis) {
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides[axis] != 1)
    return false;
  // Without a layout a stride is a multiple of the ones further in.
  bool isDense = type.getLayout().isIdentity() && axis == type.getRank() - 1 &&
                 axis > 0 && !type.isDynamicDim(axis) &&
                 type.getDimSize(axis) % 2 == 0;
  for (auto [dim, stride] : llvm::enumerate(strides))
    if (!isDense && static_cast<int64_t>(dim) != axis &&
        (ShapedType::isDynamic(stride) || stride % 2 != 0))
      return false;
  return isEven(offsets[axis]);
}

/// The place of this thread's first element in a tile, one number an axis.
static SmallVector<Value> createPlace(ImplicitLocOpBuilder &b,
                                      RankedTensorType tile, int64_t firstRow) {
  SmallVector<Value> place;
  if (isEncoded<LanesAttr>(tile)) {
    place = {createLanePlace(b, tile.getDimSize(0))};
  } else {
    // Fragments of arrays are states, at the beginning and end of a work item.
    Value thread = createThreadHere(b);
    if (!isEncoded<ColumnsAttr>(tile))
      place.push_back(createFragmentRow(b, thread));
    if (firstRow != 0)
      place[0] = arith::SubIOp::create(b, place[0], createI32(b, firstRow));
    if (!isEncoded<RowsAttr>(tile))
      place.push_back(createFragmentColumn(b, thread));
  }
  for (Value &value : place)
    value = arith::IndexCastUIOp::create(b, b.getIndexType(), value);
  return place;
}

TileAccess::TileAccess(ImplicitLocOpBuilder &b, const Array &array,
                       MemRefType type, RankedTensorType tile,
                       ValueRange offsets, ArrayRef<int64_t> axes, Value end,
                       std::optional<int64_t> dim, int64_t firstRow)
    : array(array), tile(tile), element(type.getElementType()), axes(axes),
      end(end), count(getThreadElements(tile)) {
  SmallVector<Value> place = createPlace(b, tile, firstRow);
  first = createArrayOffset(b, array, offsets);
  for (auto [value, axis] : llvm::zip(place, axes))
    first = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, value, array.strides[axis]));
  if (end) {
    cut = llvm::find(axes, *dim) - axes.begin();
    start = arith::AddIOp::create(b, offsets[*dim], place[cut]);
  }
  bool cutsColumns = end && cut == axes.size() - 1;
  bool hasColumns =
      isEncoded<FragmentAttr>(tile) || isEncoded<ColumnsAttr>(tile);
  if (hasColumns && !cutsColumns && hasAlignedPairs(type, offsets, axes.back()))
    run = 2;
}

Value TileAccess::getAddress(ImplicitLocOpBuilder &b, int64_t i) const {
  Value offset = first;
  for (auto [number, axis] : llvm::enumerate(axes)) {
    Value distance = arith::MulIOp::create(
        b, array.strides[axis], createIndex(b, getDistance(number, i)));
    offset = arith::AddIOp::create(b, offset, distance);
  }
  return createOffsetAddress(b, array, element, offset);
}

Value TileAccess::getBefore(ImplicitLocOpBuilder &b, int64_t i,
                            Value limit) const {
  if (!limit)
    return {};
  Value place =
      arith::AddIOp::create(b, start, createIndex(b, getDistance(cut, i)));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, place, limit);
}

/// A builder at the start of a block.
static ImplicitLocOpBuilder inside(ImplicitLocOpBuilder &b, Block *block) {
  return ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), block);
}

static Value createArrayLoad(ImplicitLocOpBuilder &b, VectorType type,
                             const TileAccess &access) {
  auto part = VectorType::get(access.getRun(), type.getElementType());
  unsigned alignment = access.getRun() * type.getElementTypeBitWidth() / 8;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < access.getCount(); i += access.getRun()) {
    Value loaded;
    if (Value condition = access.getInside(b, i)) {
      auto branch = scf::IfOp::create(b, TypeRange(part), condition,
                                      /*withElseRegion=*/true);
      ImplicitLocOpBuilder then = inside(b, branch.thenBlock());
      Value value = LLVM::LoadOp::create(then, part, access.getAddress(then, i),
                                         alignment);
      scf::YieldOp::create(then, value);
      ImplicitLocOpBuilder otherwise = inside(b, branch.elseBlock());
      Value zero =
          arith::ConstantOp::create(otherwise, otherwise.getZeroAttr(part));
      scf::YieldOp::create(otherwise, zero);
      loaded = branch.getResult(0);
    } else {
      loaded =
          LLVM::LoadOp::create(b, part, access.getAddress(b, i), alignment);
    }
    llvm::append_range(elements, unpack(b, loaded));
  }
  return pack(b, type, elements);
}

/// Elements before `sumEnd`, which may be null, are added to.
static void createArrayStore(ImplicitLocOpBuilder &b, Value tile,
                             const TileAccess &access, Value sumEnd) {
  auto type = cast<VectorType>(tile.getType());
  int64_t run = access.getRun();
  auto part = VectorType::get(run, type.getElementType());
  unsigned alignment = run * type.getElementTypeBitWidth() / 8;
  SmallVector<Value> elements = unpack(b, tile);
  for (int64_t i = 0; i < access.getCount(); i += run) {
    auto emit = [&](ImplicitLocOpBuilder &at) {
      Value stored = pack(at, part, ArrayRef(elements).slice(i, run));
      Value address = access.getAddress(at, i);
      stored = createSumInMemory(at, access.getBefore(at, i, sumEnd), stored,
                                 address, alignment);
      LLVM::StoreOp::create(at, stored, address, alignment);
    };
    if (Value condition = access.getInside(b, i)) {
      auto branch = scf::IfOp::create(b, condition);
      ImplicitLocOpBuilder then = inside(b, branch.thenBlock());
      emit(then);
    } else {
      emit(b);
    }
  }
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Whether neighbours of the tile's rows are to be loaded as words of 32 bits,
/// if the array's address and strides allow it when the kernel runs.
static bool mayLoadWords(ArrayLoadOp op) {
  auto tile = cast<RankedTensorType>(op.getType());
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(op.getArray().getType());
  return op->hasAttr(tile::kWordsAttrName) && isEncoded<FragmentAttr>(tile) &&
         tile.getElementTypeBitWidth() == 16 && !op.getEnd() && !op.getRows() &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[op.getAxes().back()] == 1;
}

/// Loads words where that is allowed, and elements elsewhere.
static Value createWordLoad(ImplicitLocOpBuilder &b, ArrayLoadOp op,
                            VectorType type, TileAccess access,
                            const Array &array, ValueRange offsets) {
  constexpr int64_t kElements = 2, kElementBytes = 2;
  Value isAligned =
      createHasAlignedRuns(b, array, offsets, op.getAxes().back(),
                           kElements * kElementBytes, kElementBytes);
  auto words =
      VectorType::get(type.getNumElements() / kElements, b.getI32Type());
  auto branch = scf::IfOp::create(b, TypeRange(words), isAligned,
                                  /*withElseRegion=*/true);
  for (Block *block : {branch.elseBlock(), branch.thenBlock()}) {
    ImplicitLocOpBuilder at = inside(b, block);
    Value loaded = createArrayLoad(at, type, access);
    scf::YieldOp::create(at, Value(LLVM::BitcastOp::create(at, words, loaded)));
    access.setRun(kElements);
  }
  return LLVM::BitcastOp::create(b, type, branch.getResult(0));
}

/// The array with strides of which LLVM knows nothing outside of a loop: the
/// addresses that it makes of them are made here.
static Array readHere(ImplicitLocOpBuilder &b, const Array &array) {
  Array here = array;
  for (Value &stride : here.strides) {
    APInt known;
    if (matchPattern(stride, m_ConstantInt(&known)))
      continue;
    Value wide = arith::IndexCastOp::create(b, b.getI64Type(), stride);
    wide = createAsm(b, b.getI64Type(), wide, "mov.b64 $0, $1;", "=l,l")
               .getResult(0);
    stride = arith::IndexCastOp::create(b, b.getIndexType(), wide);
  }
  return here;
}

namespace {
/// The threads' elements of the tile of an access.
template <typename Op>
static TileAccess createAccess(ImplicitLocOpBuilder &b, Op op,
                               typename Op::Adaptor adaptor, const Array &array,
                               Type tile) {
  bool isLate = op->hasAttr(WarpDialect::getLateAddressesAttrName());
  return TileAccess(b, isLate ? readHere(b, array) : array,
                    cast<MemRefType>(op.getArray().getType()),
                    cast<RankedTensorType>(tile), adaptor.getOffsets(),
                    op.getAxes(), adaptor.getEnd(), op.getDim(),
                    op.getRows() ? (*op.getRows())[0] : 0);
}

/// Whether neighbours of a tile's row may be so in memory: those of a state
/// whose array has any strides, and those of f32 of tokens whose addresses are
/// late, so that no loop holds what the answer needs.
static bool mayLoadPairs(ArrayLoadOp op) {
  auto tile = cast<RankedTensorType>(op.getType());
  auto array = cast<MemRefType>(op.getArray().getType());
  if (!isEncoded<FragmentAttr>(tile))
    return false;
  if (!op.getEnd())
    return hasAnyStrides(array);
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  return tile.getElementType().isF32() && !isa<scf::IfOp>(op->getParentOp()) &&
         op->hasAttr(WarpDialect::getLateAddressesAttrName()) &&
         static_cast<int64_t>(*op.getDim()) == op.getAxes().front() &&
         succeeded(array.getStridesAndOffset(strides, offset)) &&
         strides[op.getAxes().back()] == 1;
}

/// Loads pairs of neighbours if the array allows it, and else elements.
static Value createPairLoad(ImplicitLocOpBuilder &b, ArrayLoadOp op,
                            ArrayLoadOp::Adaptor adaptor, VectorType type,
                            const Array &array) {
  constexpr int64_t kElements = 2;
  int64_t axis = op.getAxes().back(), bytes = type.getElementTypeBitWidth() / 8;
  Value isAligned = createHasAlignedRuns(b, array, adaptor.getOffsets(), axis,
                                         kElements * bytes, bytes);
  auto branch =
      scf::IfOp::create(b, TypeRange(type), isAligned, /*withElseRegion=*/true);
  ImplicitLocOpBuilder then = inside(b, branch.thenBlock());
  Array runs = asRuns(then, array, axis);
  TileAccess pairs = createAccess(then, op, adaptor, runs, op.getType());
  pairs.setRun(kElements);
  scf::YieldOp::create(then, createArrayLoad(then, type, pairs));
  ImplicitLocOpBuilder otherwise = inside(b, branch.elseBlock());
  scf::YieldOp::create(otherwise,
                       createArrayLoad(otherwise, type,
                                       createAccess(otherwise, op, adaptor,
                                                    array, op.getType())));
  return branch.getResult(0);
}

struct LowerArrayLoad : ArrayPattern<ArrayLoadOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(ArrayLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    const Array &array = *kernels.lookup(op.getArray());
    auto load = [&](ImplicitLocOpBuilder &at) {
      if (mayLoadPairs(op))
        return createPairLoad(at, op, adaptor, type, array);
      TileAccess access = createAccess(at, op, adaptor, array, op.getType());
      if (access.getRun() == 1 && mayLoadWords(op))
        return createWordLoad(at, op, type, access, array,
                              adaptor.getOffsets());
      return createArrayLoad(at, type, access);
    };
    rewriter.replaceOp(op, op.getRows()
                               ? createInWarpsOf(b, *op.getRows(), type, load)
                               : load(b));
    return success();
  }
};

struct LowerArrayStore : ArrayPattern<ArrayStoreOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(ArrayStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto tile = cast<RankedTensorType>(op.getTile().getType());
    const Array &array = *kernels.lookup(op.getArray());
    if (op.getRows())
      enterWarpsOf(b, *op.getRows());
    // Several threads hold an element of these.
    if (isEncoded<RowsAttr>(tile) || isEncoded<ColumnsAttr>(tile))
      b.setInsertionPointToStart(
          scf::IfOp::create(b, createIsWriter(b, tile)).thenBlock());
    if (mayStoreRuns(op)) {
      auto isAligned = createHasAlignedRuns(b, array, adaptor.getOffsets(), op);
      auto branch = scf::IfOp::create(b, isAligned, /*withElseRegion=*/true);
      b.setInsertionPointToStart(branch.thenBlock());
      createRunStores(b, op, adaptor.getTile(), array, adaptor.getOffsets(),
                      adaptor.getEnd(), adaptor.getSumEnd());
      b.setInsertionPointToStart(branch.elseBlock());
    }
    createArrayStore(b, adaptor.getTile(),
                     createAccess(b, op, adaptor, array, tile),
                     adaptor.getSumEnd());
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateArrayPatterns(const TypeConverter &converter,
                                 const LoweredKernels &kernels,
                                 RewritePatternSet &patterns) {
  patterns.add<LowerArrayLoad, LowerArrayStore>(converter,
                                                patterns.getContext(), kernels);
}
