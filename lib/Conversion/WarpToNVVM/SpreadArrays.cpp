//===- SpreadArrays.cpp - Accesses to arrays of tiles over lanes ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread accesses a run of elements at a time. An array may have any strides
// and begin anywhere, and a wide access must be aligned: so the kernel looks at
// both, and accesses single elements where they do not allow more.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Bits of the widest access of a thread.
static constexpr int64_t kAccessBits = 128;

namespace {
/// How a tile or vector of rank `axes.size()` lies: along which dimensions of
/// its spread tile its own dimensions run.
struct Place {
  SpreadAttr spread;
  SmallVector<int64_t> dims;
};

/// The elements of a spread tile, or of a vector along one, that this thread
/// holds, as elements of an array.
class SpreadAccess {
public:
  SpreadAccess(ImplicitLocOpBuilder &b, const Array &array, MemRefType type,
               RankedTensorType tile, ValueRange offsets,
               ArrayRef<int64_t> axes, Value end, std::optional<int64_t> dim);

  int64_t getRun() const { return run; }
  int64_t getCount() const { return count; }
  Value getAddress(ImplicitLocOpBuilder &b, int64_t i) const;
  /// Whether all runs lie at multiples of their bytes, and the whole tile lies
  /// before the end.
  Value createIsWhole(ImplicitLocOpBuilder &b) const;
  /// Whether element `i` lies before the end; null if all do.
  Value createIsInside(ImplicitLocOpBuilder &b, int64_t i) const;

private:
  int64_t getDistance(size_t axis, int64_t i) const;
  Value createIsAligned(ImplicitLocOpBuilder &b) const;

  const Array &array;
  RankedTensorType tile;
  Type element;
  Place place;
  SmallVector<Value> offsets;
  SmallVector<int64_t> axes;
  Value first, end, start;
  /// Number of the axis that has an end.
  size_t cut = 0;
  int64_t count, run = 1, contiguous = -1;
};
} // namespace

static Place getPlace(RankedTensorType tile) {
  if (auto slice = dyn_cast<SliceAttr>(tile.getEncoding()))
    return {slice.getOf(), {slice.getAxis()}};
  if (auto spread = dyn_cast<SpreadAttr>(tile.getEncoding()))
    return {spread, {0, 1}};
  return {};
}

SpreadAccess::SpreadAccess(ImplicitLocOpBuilder &b, const Array &array,
                           MemRefType type, RankedTensorType tile,
                           ValueRange offsets, ArrayRef<int64_t> axes,
                           Value end, std::optional<int64_t> dim)
    : array(array), tile(tile), element(type.getElementType()),
      place(getPlace(tile)), offsets(offsets), axes(axes), end(end),
      count(getThreadElements(tile)) {
  first = createArrayOffset(b, array, offsets);
  // Read at the access: what the threads add to the place of a token would
  // hold registers of each of them in the loop over tokens.
  Value thread = createThreadHere(b);
  if (end)
    cut = llvm::find(axes, *dim) - axes.begin();
  for (auto [number, axis] :
       llvm::enumerate(place.dims.empty() ? ArrayRef<int64_t>() : axes)) {
    Value at = arith::IndexCastUIOp::create(
        b, b.getIndexType(),
        createSpreadFirst(b, place.spread, place.dims[number], thread));
    first = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, at, array.strides[axis]));
    if (end && number == cut)
      start = arith::AddIOp::create(b, offsets[axis], at);
  }
  // Every thread has the whole of a uniform vector.
  if (end && place.dims.empty())
    start = offsets[axes[cut]];
  auto [strides, offset] = type.getStridesAndOffset();
  for (auto [dim, axis] : llvm::zip(place.dims, axes))
    if ((place.dims.size() == 1 || dim == place.spread.getAxis()) &&
        strides[axis] == 1) {
      run = std::min(place.spread.getRunAlong(dim),
                     kAccessBits / type.getElementTypeBitWidth());
      contiguous = axis;
    }
}

int64_t SpreadAccess::getDistance(size_t axis, int64_t i) const {
  // What every thread holds lies as in the array.
  if (!place.spread)
    return i;
  int64_t dim = place.dims[axis], along = place.spread.getRunAlong(dim);
  if (place.dims.size() == 1)
    return i / along * place.spread.getBlock(dim) + i % along;
  auto [patch, inside] = place.spread.locate(tile.getDimSize(1), dim, i);
  return patch * place.spread.getBlock(dim) + inside;
}

Value SpreadAccess::getAddress(ImplicitLocOpBuilder &b, int64_t i) const {
  Value offset = first;
  for (auto [number, axis] : llvm::enumerate(axes))
    offset = arith::AddIOp::create(
        b, offset,
        arith::MulIOp::create(b, array.strides[axis],
                              createIndex(b, getDistance(number, i))));
  return createOffsetAddress(b, array, element, offset);
}

Value SpreadAccess::createIsInside(ImplicitLocOpBuilder &b, int64_t i) const {
  if (!end)
    return {};
  Value at =
      arith::AddIOp::create(b, start, createIndex(b, getDistance(cut, i)));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, end);
}

Value SpreadAccess::createIsWhole(ImplicitLocOpBuilder &b) const {
  Value isAligned = createIsAligned(b);
  if (!end)
    return isAligned;
  Value last = arith::AddIOp::create(b, offsets[axes[cut]],
                                     createIndex(b, tile.getDimSize(cut)));
  Value isInside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sle, last, end);
  return arith::AndIOp::create(b, isAligned, isInside);
}

Value SpreadAccess::createIsAligned(ImplicitLocOpBuilder &b) const {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Type i64 = b.getI64Type();
  Value all = LLVM::PtrToIntOp::create(b, i64, array.pointer);
  auto add = [&](Value elements) {
    Value wide = arith::IndexCastOp::create(b, i64, elements);
    Value size = arith::ConstantOp::create(b, b.getI64IntegerAttr(bytes));
    all = arith::OrIOp::create(b, all, arith::MulIOp::create(b, wide, size));
  };
  for (auto [dim, stride] : llvm::enumerate(array.strides))
    add(static_cast<int64_t>(dim) == contiguous ? offsets[dim] : stride);
  Value mask =
      arith::ConstantOp::create(b, b.getI64IntegerAttr(run * bytes - 1));
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               arith::AndIOp::create(b, all, mask), zero);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Zero where `isInside` does not hold, if there is such a condition.
static Value createLoad(ImplicitLocOpBuilder &b, VectorType part,
                        const SpreadAccess &access, int64_t i, Value isInside) {
  unsigned alignment =
      part.getNumElements() * part.getElementTypeBitWidth() / 8;
  if (!isInside)
    return LLVM::LoadOp::create(b, part, access.getAddress(b, i), alignment);
  auto branch = scf::IfOp::create(b, TypeRange(part), isInside,
                                  /*withElseRegion=*/true);
  auto then =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.thenBlock());
  scf::YieldOp::create(
      then,
      LLVM::LoadOp::create(then, part, access.getAddress(then, i), alignment)
          ->getResults());
  auto otherwise =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.elseBlock());
  scf::YieldOp::create(otherwise, arith::ConstantOp::create(
                                      otherwise, otherwise.getZeroAttr(part))
                                      ->getResults());
  return branch.getResult(0);
}

/// A run at a time of what lies before the end, or of all elements.
static Value createLoads(ImplicitLocOpBuilder &b, VectorType type,
                         const SpreadAccess &access, int64_t run,
                         bool isWhole) {
  auto part = VectorType::get(run, type.getElementType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < access.getCount(); i += run) {
    Value isInside = isWhole ? Value() : access.createIsInside(b, i);
    llvm::append_range(elements,
                       unpack(b, createLoad(b, part, access, i, isInside)));
  }
  return pack(b, type, elements);
}

static void createStores(ImplicitLocOpBuilder &b, Value tile,
                         const SpreadAccess &access, int64_t run,
                         bool isWhole) {
  auto type = cast<VectorType>(tile.getType());
  auto part = VectorType::get(run, type.getElementType());
  unsigned alignment = run * type.getElementTypeBitWidth() / 8;
  SmallVector<Value> elements = unpack(b, tile);
  for (int64_t i = 0; i < access.getCount(); i += run) {
    OpBuilder::InsertionGuard guard(b);
    if (Value isInside = isWhole ? Value() : access.createIsInside(b, i))
      b.setInsertionPointToStart(scf::IfOp::create(b, isInside).thenBlock());
    LLVM::StoreOp::create(b, pack(b, part, ArrayRef(elements).slice(i, run)),
                          access.getAddress(b, i), alignment);
  }
}

/// The number of the thread, of those that run the op at a time.
static Value createOwnThread(ImplicitLocOpBuilder &b, Operation *op) {
  Value thread = createThread(b);
  auto warps =
      op->getAttrOfType<IntegerAttr>(WarpDialect::getRoundRobinAttrName());
  if (!warps)
    return thread;
  return arith::RemUIOp::create(
      b, thread, createI32(b, warps.getInt() * format::kWarpThreads));
}

/// True in one of the threads that hold an element of a vector; null where no
/// two threads hold the same.
static Value createIsOwner(ImplicitLocOpBuilder &b, Operation *op,
                           RankedTensorType tile) {
  Value place;
  if (auto slice = dyn_cast<SliceAttr>(tile.getEncoding())) {
    // The first of those along the other dimension.
    place = createSpreadFirst(b, slice.getOf(), 1 - slice.getAxis(),
                              createOwnThread(b, op));
  } else if (isEncoded<UniformAttr>(tile)) {
    place = createOwnThread(b, op);
  } else {
    return {};
  }
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place,
                               createI32(b, 0));
}

static bool isSpread(Type type) {
  return isEncoded<SpreadAttr>(type) || isEncoded<SliceAttr>(type) ||
         isEncoded<UniformAttr>(type);
}

namespace {
template <typename Op> struct SpreadPattern : OpConversionPattern<Op> {
  SpreadPattern(const TypeConverter &converter, MLIRContext *context,
                const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context, /*benefit=*/2),
        kernels(kernels) {}

  SpreadAccess createAccess(ImplicitLocOpBuilder &b, Op op,
                            typename Op::Adaptor adaptor, Type tile) const {
    return SpreadAccess(b, *kernels.lookup(op.getArray()),
                        cast<MemRefType>(op.getArray().getType()),
                        cast<RankedTensorType>(tile), adaptor.getOffsets(),
                        op.getAxes(), adaptor.getEnd(), op.getDim());
  }

  const LoweredKernels &kernels;
};

struct LowerSpreadLoad : SpreadPattern<ArrayLoadOp> {
  using SpreadPattern::SpreadPattern;

  LogicalResult
  matchAndRewrite(ArrayLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isSpread(op.getType()))
      return rewriter.notifyMatchFailure(op, "not spread over lanes");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    SpreadAccess access = createAccess(b, op, adaptor, op.getType());
    if (access.getRun() == 1) {
      rewriter.replaceOp(op, createLoads(b, type, access, 1,
                                         /*isWhole=*/false));
      return success();
    }
    auto branch = scf::IfOp::create(b, TypeRange(type), access.createIsWhole(b),
                                    /*withElseRegion=*/true);
    for (auto [block, run] : {std::pair(branch.thenBlock(), access.getRun()),
                              std::pair(branch.elseBlock(), int64_t(1))}) {
      auto inner = ImplicitLocOpBuilder::atBlockBegin(op.getLoc(), block);
      scf::YieldOp::create(inner, createLoads(inner, type, access, run,
                                              /*isWhole=*/run != 1));
    }
    rewriter.replaceOp(op, branch.getResults());
    return success();
  }
};

struct LowerSpreadStore : SpreadPattern<ArrayStoreOp> {
  using SpreadPattern::SpreadPattern;

  LogicalResult
  matchAndRewrite(ArrayStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto tile = cast<RankedTensorType>(op.getTile().getType());
    if (!isSpread(tile))
      return rewriter.notifyMatchFailure(op, "not spread over lanes");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (Value owner = createIsOwner(b, op, tile))
      b.setInsertionPointToStart(scf::IfOp::create(b, owner).thenBlock());
    SpreadAccess access = createAccess(b, op, adaptor, tile);
    if (access.getRun() == 1) {
      createStores(b, adaptor.getTile(), access, 1, /*isWhole=*/false);
    } else {
      auto branch = scf::IfOp::create(b, access.createIsWhole(b),
                                      /*withElseRegion=*/true);
      for (auto [block, run] : {std::pair(branch.thenBlock(), access.getRun()),
                                std::pair(branch.elseBlock(), int64_t(1))}) {
        auto inner = ImplicitLocOpBuilder::atBlockBegin(op.getLoc(), block);
        createStores(inner, adaptor.getTile(), access, run,
                     /*isWhole=*/run != 1);
      }
    }
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateSpreadArrayPatterns(const TypeConverter &converter,
                                       const LoweredKernels &kernels,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerSpreadLoad, LowerSpreadStore>(
      converter, patterns.getContext(), kernels);
}
