//===- Arrays.cpp - Plain accesses to arrays in global memory -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The address of an element, by its offset in elements (index).
static Value createElementAddress(ImplicitLocOpBuilder &b, Value pointer,
                                  Type element, Value offset) {
  Value wide = arith::IndexCastOp::create(b, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, pointer.getType(), element, pointer,
                             ArrayRef<LLVM::GEPArg>{wide});
}

/// The sum of indices times strides.
static Value createOffset(ImplicitLocOpBuilder &b, const Array &array,
                          ValueRange indices) {
  Value sum = createIndex(b, 0);
  for (auto [index, stride] : llvm::zip(indices, array.strides))
    sum =
        arith::AddIOp::create(b, sum, arith::MulIOp::create(b, index, stride));
  return sum;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

namespace {
/// The elements of a fragment that this thread holds, as elements of an array.
class FragmentAccess {
public:
  FragmentAccess(ImplicitLocOpBuilder &b, const Array &array, MemRefType type,
                 ValueRange offsets, ArrayRef<int64_t> axes, Value end,
                 std::optional<int64_t> dim, int64_t count);

  /// Elements that one access moves: 2 where a row's neighbours are so in
  /// memory and at an address that allows it.
  int64_t getRun() const { return run; }
  int64_t getCount() const { return count; }
  /// The address of element `i`.
  Value getAddress(ImplicitLocOpBuilder &b, int64_t i) const;
  /// True if element `i` and the rest of its run lie before the end; null if
  /// there is none.
  Value getInside(ImplicitLocOpBuilder &b, int64_t i) const;

private:
  static int64_t getRow(int64_t i) { return i / 2 % 2 * 8; }
  static int64_t getColumn(int64_t i) { return i / 4 * 8 + i % 2; }

  const Array &array;
  Type element;
  ArrayRef<int64_t> axes;
  Value end, first, start;
  std::optional<int64_t> dim;
  int64_t count, run = 1;
};
} // namespace

/// True if all pairs of neighbours along `axis` that begin at an even column
/// are aligned: every other stride is even, and so is the offset.
static bool hasAlignedPairs(MemRefType type, ValueRange offsets, int64_t axis) {
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides[axis] != 1)
    return false;
  for (auto [dim, stride] : llvm::enumerate(strides))
    if (static_cast<int64_t>(dim) != axis &&
        (ShapedType::isDynamic(stride) || stride % 2 != 0))
      return false;
  APInt value;
  return matchPattern(offsets[axis], m_ConstantInt(&value)) && !value[0];
}

FragmentAccess::FragmentAccess(ImplicitLocOpBuilder &b, const Array &array,
                               MemRefType type, ValueRange offsets,
                               ArrayRef<int64_t> axes, Value end,
                               std::optional<int64_t> dim, int64_t count)
    : array(array), element(type.getElementType()), axes(axes), end(end),
      dim(dim), count(count) {
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
  };
  Value row = toIndex(createFragmentRow(b)),
        column = toIndex(createFragmentColumn(b));
  first = createOffset(b, array, offsets);
  for (auto [place, axis] : llvm::zip(ValueRange{row, column}, axes))
    first = arith::AddIOp::create(
        b, first, arith::MulIOp::create(b, place, array.strides[axis]));
  if (end)
    start =
        arith::AddIOp::create(b, offsets[*dim], *dim == axes[0] ? row : column);
  bool cutsColumns = end && *dim == axes[1];
  if (!cutsColumns && hasAlignedPairs(type, offsets, axes[1]))
    run = 2;
}

Value FragmentAccess::getAddress(ImplicitLocOpBuilder &b, int64_t i) const {
  auto along = [&](int64_t axis, int64_t distance) -> Value {
    return arith::MulIOp::create(b, array.strides[axis],
                                 createIndex(b, distance));
  };
  Value offset = arith::AddIOp::create(b, first, along(axes[0], getRow(i)));
  offset = arith::AddIOp::create(b, offset, along(axes[1], getColumn(i)));
  return createElementAddress(b, array.pointer, element, offset);
}

Value FragmentAccess::getInside(ImplicitLocOpBuilder &b, int64_t i) const {
  if (!end)
    return {};
  int64_t distance = *dim == axes[0] ? getRow(i) : getColumn(i);
  Value place = arith::AddIOp::create(b, start, createIndex(b, distance));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, place, end);
}

/// A builder at the start of a block.
static ImplicitLocOpBuilder inside(ImplicitLocOpBuilder &b, Block *block) {
  return ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), block);
}

static Value createArrayLoad(ImplicitLocOpBuilder &b, VectorType type,
                             const FragmentAccess &access) {
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

static void createArrayStore(ImplicitLocOpBuilder &b, Value fragment,
                             const FragmentAccess &access) {
  auto type = cast<VectorType>(fragment.getType());
  int64_t run = access.getRun();
  auto part = VectorType::get(run, type.getElementType());
  unsigned alignment = run * type.getElementTypeBitWidth() / 8;
  SmallVector<Value> elements = unpack(b, fragment);
  for (int64_t i = 0; i < access.getCount(); i += run) {
    auto emit = [&](ImplicitLocOpBuilder &at) {
      LLVM::StoreOp::create(at,
                            pack(at, part, ArrayRef(elements).slice(i, run)),
                            access.getAddress(at, i), alignment);
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

namespace {
template <typename Op> struct ArrayPattern : OpConversionPattern<Op> {
  ArrayPattern(const TypeConverter &converter, MLIRContext *context,
               const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  const LoweredKernels &kernels;
};

struct LowerArrayLoad : ArrayPattern<ArrayLoadOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(ArrayLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    FragmentAccess access(b, *kernels.lookup(op.getArray()),
                          cast<MemRefType>(op.getArray().getType()),
                          adaptor.getOffsets(), op.getAxes(), adaptor.getEnd(),
                          op.getDim(), type.getNumElements());
    rewriter.replaceOp(op, createArrayLoad(b, type, access));
    return success();
  }
};

struct LowerArrayStore : ArrayPattern<ArrayStoreOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(ArrayStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(adaptor.getFragment().getType());
    FragmentAccess access(b, *kernels.lookup(op.getArray()),
                          cast<MemRefType>(op.getArray().getType()),
                          adaptor.getOffsets(), op.getAxes(), adaptor.getEnd(),
                          op.getDim(), type.getNumElements());
    createArrayStore(b, adaptor.getFragment(), access);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerMemRefLoad : ArrayPattern<memref::LoadOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array *array = kernels.lookup(op.getMemRef());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Value address =
        createElementAddress(b, array->pointer, op.getType(),
                             createOffset(b, *array, adaptor.getIndices()));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address);
    return success();
  }
};

struct LowerMemRefStore : ArrayPattern<memref::StoreOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array *array = kernels.lookup(op.getMemRef());
    if (!array)
      return rewriter.notifyMatchFailure(op, "not an array of the kernel");
    Value address = createElementAddress(
        b, array->pointer, op.getMemRefType().getElementType(),
        createOffset(b, *array, adaptor.getIndices()));
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, adaptor.getValue(), address);
    return success();
  }
};

struct LowerDim : ArrayPattern<memref::DimOp> {
  using ArrayPattern::ArrayPattern;

  LogicalResult
  matchAndRewrite(memref::DimOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Array *array = kernels.lookup(op.getSource());
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!array || !dim || *dim < 0 ||
        *dim >= static_cast<int64_t>(array->sizes.size()))
      return op.emitOpError("expected a constant dimension of an array");
    rewriter.replaceOp(op, array->sizes[*dim]);
    return success();
  }
};
} // namespace

void warp::populateArrayPatterns(const TypeConverter &converter,
                                 const LoweredKernels &kernels,
                                 RewritePatternSet &patterns) {
  patterns.add<LowerArrayLoad, LowerArrayStore, LowerMemRefLoad,
               LowerMemRefStore, LowerDim>(converter, patterns.getContext(),
                                           kernels);
}
