//===- Fragments.cpp - Register tiles to and from shared memory -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The thread that accesses shared memory, read there if its address is late;
/// else null.
static Value createThreadOf(ImplicitLocOpBuilder &b, Operation *access) {
  return access->hasAttr(WarpDialect::getLateAddressesAttrName())
             ? createThreadHere(b)
             : Value();
}

/// Columns that one ldmatrix or stmatrix of four 8 x 8 matrices moves.
static constexpr int64_t kMatrixColumns = 16;

//===----------------------------------------------------------------------===//
// Matrix instructions (PTX ISA, "ldmatrix", "stmatrix")
//===----------------------------------------------------------------------===//

/// Where this lane's row of the four matrices lies. Matrix i holds rows
/// 8 (i mod 2) and columns 8 (i / 2) of the warp's 16 x 16 block, which is the
/// order of a fragment's registers; lane l names row l mod 8 of matrix l / 8.
static ViewAddress createMatrixAddress(ImplicitLocOpBuilder &b, ViewType view,
                                       Value base, bool transpose,
                                       int64_t firstRow, Value thread) {
  Value lane = createLane(b, thread);
  auto bits = [&](int64_t shift, int64_t mask) -> Value {
    Value shifted = arith::ShRUIOp::create(b, lane, createI32(b, shift));
    return arith::AndIOp::create(b, shifted, createI32(b, mask));
  };
  auto scale = [&](Value value, int64_t factor) -> Value {
    return arith::MulIOp::create(b, value, createI32(b, factor));
  };
  Value warpRow = arith::SubIOp::create(
      b, scale(createGroupWarp(b, thread), 16), createI32(b, firstRow));
  if (!transpose) {
    // Row 16 w + l mod 16, chunk of 16 bytes l / 16.
    Value row = arith::AddIOp::create(b, warpRow, bits(0, 15));
    return ViewAddress(b, view, base, row, scale(bits(4, 1), 16));
  }
  // The view's rows are the fragment's columns: row 8 (l / 16) + l mod 8, and
  // of the 64 rows of the fragment those from 16 w + 8 (l / 8 mod 2).
  Value row = arith::AddIOp::create(b, scale(bits(4, 1), 8), bits(0, 7));
  Value chunk = arith::AddIOp::create(b, warpRow, scale(bits(3, 1), 8));
  return ViewAddress(b, view, base, row, scale(chunk, 2));
}

static Value getMatrixAddress(ViewAddress &address, bool transpose,
                              int64_t block) {
  constexpr int64_t kBytes = 2;
  return transpose ? address.get(block * kMatrixColumns, 0)
                   : address.get(0, block * kMatrixColumns * kBytes);
}

/// Four matrices of 8 x 8 elements of 16 bits.
static NVVM::LdStMatrixShapeAttr getMatrixShape(MLIRContext *context) {
  return NVVM::LdStMatrixShapeAttr::get(context, 8, 8);
}

static NVVM::MMALayout getLayout(bool transpose) {
  return transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row;
}

static Value createMatrixLoad(ImplicitLocOpBuilder &b, VectorType type,
                              ViewType view, Value base, bool transpose,
                              int64_t firstRow, Value thread) {
  ViewAddress address =
      createMatrixAddress(b, view, base, transpose, firstRow, thread);
  Type i32 = b.getI32Type();
  auto registers = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                    SmallVector<Type>(4, i32));
  SmallVector<Value> words;
  int64_t count = type.getNumElements() / 2;
  for (int64_t block = 0; block < count / 4; ++block) {
    Value loaded = NVVM::LdMatrixOp::create(
        b, registers, getMatrixAddress(address, transpose, block), 4u,
        getLayout(transpose), getMatrixShape(b.getContext()),
        NVVM::LdStMatrixEltType::B16);
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  }
  Value packed = pack(b, VectorType::get(count, i32), words);
  return vector::BitCastOp::create(b, type, packed);
}

static void createMatrixStore(ImplicitLocOpBuilder &b, Value fragment,
                              ViewType view, Value base, bool transpose,
                              int64_t firstRow, Value thread) {
  ViewAddress address =
      createMatrixAddress(b, view, base, transpose, firstRow, thread);
  auto type = cast<VectorType>(fragment.getType());
  int64_t count = type.getNumElements() / 2;
  SmallVector<Value> words =
      unpack(b, vector::BitCastOp::create(
                    b, VectorType::get(count, b.getI32Type()), fragment));
  for (int64_t block = 0; block < count / 4; ++block)
    NVVM::StMatrixOp::create(
        b, getMatrixAddress(address, transpose, block),
        ArrayRef(words).slice(4 * block, 4), getLayout(transpose),
        getMatrixShape(b.getContext()), NVVM::LdStMatrixEltType::B16);
}

//===----------------------------------------------------------------------===//
// Vectors of rows, columns and lanes
//===----------------------------------------------------------------------===//

namespace {
/// Where a thread's elements of a vector lie in a view that may be shorter and
/// repeat.
struct VectorPlace {
  /// With `firstRow` the view holds a vector of rows from that one on.
  VectorPlace(ImplicitLocOpBuilder &b, RankedTensorType vector, ViewType view,
              Value thread, std::optional<int64_t> firstRow = {});

  /// The address of access `i`.
  Value getAddress(ImplicitLocOpBuilder &b, Value base, int64_t i) const {
    return createAddress(b, base, first, i * step % size * bytes);
  }

  int64_t bytes, size;
  /// Elements of one access, and from access to access.
  int64_t run = 1, step = 8;
  /// Byte of the first element.
  Value first;
};
} // namespace

VectorPlace::VectorPlace(ImplicitLocOpBuilder &b, RankedTensorType vector,
                         ViewType view, Value thread,
                         std::optional<int64_t> firstRow)
    : bytes(view.getElementBytes()), size(view.getColumns()) {
  if (isEncoded<LanesAttr>(vector)) {
    step = format::kWarpThreads;
    first = createLanePlace(b, size);
  } else if (isEncoded<ColumnsAttr>(vector)) {
    run = 2;
    first = createFragmentColumn(b, thread);
  } else {
    first = createFragmentRow(b, thread);
    if (firstRow)
      first = arith::SubIOp::create(b, first, createI32(b, *firstRow));
    else if (size < vector.getDimSize(0))
      first = arith::RemUIOp::create(b, first, createI32(b, size));
  }
  first = arith::MulIOp::create(b, first, createI32(b, bytes));
}

static Value createVectorLoad(ImplicitLocOpBuilder &b, VectorType type,
                              RankedTensorType tensor, ViewType view,
                              Value base, Value thread) {
  VectorPlace place(b, tensor, view, thread);
  auto part = VectorType::get(place.run, type.getElementType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements() / place.run; ++i) {
    Value loaded = LLVM::LoadOp::create(b, part, place.getAddress(b, base, i),
                                        place.run * place.bytes);
    llvm::append_range(elements, unpack(b, loaded));
  }
  return pack(b, type, elements);
}

/// A row or a column of a matrix: `line` of the one, its elements along the
/// other. A pair of columns lies in one run of any view.
static Value createLineLoad(ImplicitLocOpBuilder &b, VectorType type,
                            VectorLoadOp op, Value base) {
  auto tensor = cast<RankedTensorType>(op.getType());
  ViewType view = op.getView().getType();
  bool isRow = op.getRow().has_value(), pairs = isEncoded<ColumnsAttr>(tensor);
  Value line = createI32(b, isRow ? *op.getRow() : *op.getColumn());
  Value first = isEncoded<LanesAttr>(tensor)
                    ? createLanePlace(b, tensor.getDimSize(0))
                : pairs ? createFragmentColumn(b)
                        : createFragmentRow(b);
  int64_t run = isRow && pairs ? 2 : 1;
  int64_t step = isEncoded<LanesAttr>(tensor) ? format::kWarpThreads : 8;
  auto part = VectorType::get(run, type.getElementType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < type.getNumElements(); i += run) {
    int64_t distance = pairs ? i / 2 * step + i % 2 : i * step;
    Value place = arith::AddIOp::create(b, first, createI32(b, distance));
    Value offset = createElementOffset(b, view, isRow ? line : place,
                                       isRow ? place : line);
    Value loaded =
        LLVM::LoadOp::create(b, part, createAddress(b, base, offset, 0),
                             run * view.getElementBytes());
    llvm::append_range(elements, unpack(b, loaded));
  }
  return pack(b, type, elements);
}

static void createVectorStore(ImplicitLocOpBuilder &b, Value vector,
                              RankedTensorType tensor, ViewType view,
                              Value base, Value thread,
                              std::optional<int64_t> firstRow) {
  auto type = cast<VectorType>(vector.getType());
  OpBuilder::InsertionGuard guard(b);
  if (Value isWriter = createIsWriter(b, tensor))
    b.setInsertionPointToStart(scf::IfOp::create(b, isWriter).thenBlock());
  VectorPlace place(b, tensor, view, thread, firstRow);
  auto part = VectorType::get(place.run, type.getElementType());
  SmallVector<Value> elements = unpack(b, vector);
  for (int64_t i = 0; i < type.getNumElements() / place.run; ++i)
    LLVM::StoreOp::create(
        b, pack(b, part, ArrayRef(elements).slice(i * place.run, place.run)),
        place.getAddress(b, base, i), place.run * place.bytes);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
struct LowerFragmentLoad : OpConversionPattern<FragmentLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    ViewType view = op.getView().getType();
    Value base = adaptor.getView();
    int64_t first = op.getRows() ? (*op.getRows())[0] : 0;
    if (op.getRow()) {
      rewriter.replaceOp(op, createRepeatedLoad(b, type, view, base,
                                                adaptor.getRow(),
                                                createThreadOf(b, op)));
      return success();
    }
    auto load = [&](ImplicitLocOpBuilder &at) {
      if (view.getElementBytes() == 2)
        return createMatrixLoad(at, type, view, base, op.getTranspose(), first,
                                createThreadOf(at, op));
      if (op.getTranspose())
        return createTurnedLoad(at, type, view, base, first);
      return createPlainLoad(at, type, view, base, first,
                             createThreadOf(at, op));
    };
    rewriter.replaceOp(op, op.getRows()
                               ? createInWarpsOf(b, *op.getRows(), type, load)
                               : load(b));
    return success();
  }
};

struct LowerFragmentStore : OpConversionPattern<FragmentStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FragmentStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    ViewType view = op.getView().getType();
    int64_t first = 0;
    std::optional<ArrayRef<int64_t>> rows = op.getRows();
    if (rows)
      first = (*rows)[0];
    if (rows && !op.getGuarded())
      enterWarpsOf(b, *rows);
    if (view.getElementBytes() == 2)
      createMatrixStore(b, adaptor.getFragment(), view, adaptor.getView(),
                        op.getTranspose(), first, createThreadOf(b, op));
    else if (op.getTranspose())
      createTurnedStore(b, adaptor.getFragment(), view, adaptor.getView(),
                        first);
    else
      createPlainStore(b, adaptor.getFragment(), view, adaptor.getView(), first,
                       createThreadOf(b, op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerVectorLoad : OpConversionPattern<VectorLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(VectorLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(
        op,
        op.getRow() || op.getColumn()
            ? createLineLoad(b, type, op, adaptor.getView())
            : createVectorLoad(b, type, cast<RankedTensorType>(op.getType()),
                               op.getView().getType(), adaptor.getView(),
                               createThreadOf(b, op)));
    return success();
  }
};

struct LowerVectorStore : OpConversionPattern<VectorStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(VectorStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    std::optional<int64_t> firstRow;
    if (std::optional<ArrayRef<int64_t>> rows = op.getRows()) {
      firstRow = (*rows)[0];
      enterWarpsOf(b, *rows);
    }
    createVectorStore(b, adaptor.getVector(),
                      cast<RankedTensorType>(op.getVector().getType()),
                      op.getView().getType(), adaptor.getView(),
                      createThreadOf(b, op), firstRow);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateFragmentPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LowerFragmentLoad, LowerFragmentStore, LowerVectorLoad,
               LowerVectorStore>(converter, patterns.getContext());
}
