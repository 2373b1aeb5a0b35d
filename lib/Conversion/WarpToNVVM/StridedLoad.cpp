//===- StridedLoad.cpp - Lowers gdn_warp.strided_load ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By rows, lane l has row l of 32, and stores 16 bytes of it at once: in the
// swizzle eight rows have them at different banks. By columns, lane l has
// column l of 32, and stores one element. In both, the loads of a warp are of
// elements next to each other, and many are in flight before the first store.
//
// A tile that reaches out of the array has code of its own, a loop of few
// loads.
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

/// Loads of a thread that are begun before the first is waited for; fewer where
/// each is checked.
static constexpr int64_t kLoads = 32, kCheckedLoads = 8;

/// The first index along an axis that lies outside.
static Value createEnd(ImplicitLocOpBuilder &b, StridedLoadOp op,
                       const Array &array, Value end, size_t axis) {
  int64_t dim = op.getAxes()[axis];
  Value size = array.sizes[dim];
  if (!end || static_cast<int64_t>(*op.getDim()) != dim)
    return size;
  return arith::MinSIOp::create(b, end, size);
}

namespace {
/// Writes the copy of one tile. The lanes have its `laneAxis` between them, and
/// each walks along the other one.
class TileCopy {
public:
  /// `isChecked`: the tile may reach out of the array.
  TileCopy(ImplicitLocOpBuilder b, StridedLoadOp op, const Array &array,
           Value base, ValueRange offsets, Value end, bool isChecked)
      : b(b), op(op), array(array), view(op.getView().getType()), base(base),
        offsets(offsets), end(end), isChecked(isChecked),
        laneAxis(op.isByRows() ? 0 : 1), walkAxis(1 - laneAxis) {
    lane = createLane(this->b);
  }

  void write();

private:
  void forEachPart(int64_t size, int64_t step, function_ref<void(Value)> body);
  void writePart(Value first, Value begin);
  SmallVector<Value> load(Value first, Value begin);
  SmallVector<Value> loadChecked(Value first, Value begin);
  void store(Value first, Value begin, ArrayRef<Value> elements);
  Value place(size_t axis, Value index) {
    return arith::AddIOp::create(b, offsets[op.getAxes()[axis]], index);
  }
  Value stride(size_t axis) { return array.strides[op.getAxes()[axis]]; }
  int64_t countLoads() const {
    return std::min(isChecked ? kCheckedLoads : kLoads,
                    view.getShape()[walkAxis]);
  }

  ImplicitLocOpBuilder b;
  StridedLoadOp op;
  const Array &array;
  ViewType view;
  Value base, lane;
  ValueRange offsets;
  Value end;
  bool isChecked;
  size_t laneAxis, walkAxis;
};
} // namespace

/// Parts of a tile: one behind the other, or in a loop.
void TileCopy::forEachPart(int64_t size, int64_t step,
                           function_ref<void(Value)> body) {
  if (!isChecked) {
    for (int64_t first = 0; first < size; first += step)
      body(createIndex(b, first));
    return;
  }
  auto loop = scf::ForOp::create(b, createIndex(b, 0), createIndex(b, size),
                                 createIndex(b, step));
  keepLoop(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void TileCopy::write() {
  // The lanes' parts inside: they read the same lines of the array.
  ArrayRef<int64_t> shape = view.getShape();
  forEachPart(shape[walkAxis], countLoads(), [&](Value begin) {
    forEachPart(shape[laneAxis], format::kWarpThreads,
                [&](Value first) { writePart(first, begin); });
  });
}

/// The part from `first` along the lanes' axis and from `begin` along the
/// other.
void TileCopy::writePart(Value first, Value begin) {
  Value own = arith::AddIOp::create(
      b, first, arith::IndexCastUIOp::create(b, b.getIndexType(), lane));
  store(own, begin, isChecked ? loadChecked(own, begin) : load(own, begin));
}

/// The distance from load to load is read here: LLVM would compute all
/// multiples of it before the loop over tiles, and hold them in registers.
SmallVector<Value> TileCopy::load(Value own, Value begin) {
  Type element = view.getElementType(), i64 = b.getI64Type();
  Value wide = arith::IndexCastOp::create(b, i64, stride(walkAxis));
  wide = createAsm(b, i64, wide, "mov.b64 $0, $1;", "=l,l").getResult(0);
  SmallVector<Value> indices(offsets);
  indices[op.getAxes()[laneAxis]] = place(laneAxis, own);
  indices[op.getAxes()[walkAxis]] = place(walkAxis, begin);
  Value address = createElementAddress(b, array, element, indices);
  SmallVector<Value> elements;
  for (int64_t i = 0; i < countLoads(); ++i) {
    if (i != 0)
      address = LLVM::GEPOp::create(b, array.pointer.getType(), element,
                                    address, ArrayRef<LLVM::GEPArg>{wide});
    elements.push_back(
        LLVM::LoadOp::create(b, element, address, view.getElementBytes()));
  }
  return elements;
}

/// For elements outside, others are read that are inside, and zeros taken.
SmallVector<Value> TileCopy::loadChecked(Value own, Value begin) {
  Type element = view.getElementType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
  SmallVector<Value> indices(offsets), elements;
  auto check = [&](size_t axis, Value index) -> Value {
    Value at = place(axis, index), size = array.sizes[op.getAxes()[axis]];
    Value last = arith::SubIOp::create(b, size, createIndex(b, 1));
    indices[op.getAxes()[axis]] = arith::MinSIOp::create(b, at, last);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at,
                                 createEnd(b, op, array, end, axis));
  };
  Value isOwnInside = check(laneAxis, own);
  for (int64_t i = 0; i < countLoads(); ++i) {
    Value isInside =
        check(walkAxis, arith::AddIOp::create(b, begin, createIndex(b, i)));
    Value loaded = LLVM::LoadOp::create(
        b, element, createElementAddress(b, array, element, indices),
        view.getElementBytes());
    elements.push_back(arith::SelectOp::create(
        b, arith::AndIOp::create(b, isOwnInside, isInside), loaded, zero));
  }
  return elements;
}

void TileCopy::store(Value own, Value begin, ArrayRef<Value> elements) {
  int64_t bytes = view.getElementBytes();
  int64_t run = laneAxis == 0 ? kRunBytes / bytes : 1;
  auto toI32 = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(b, b.getI32Type(), index);
  };
  for (int64_t i = 0; i < countLoads(); i += run) {
    Value along = arith::AddIOp::create(b, begin, createIndex(b, i));
    Value row = laneAxis == 0 ? own : along,
          column = laneAxis == 0 ? along : own;
    Value address = createAddress(
        b, base, createElementOffset(b, view, toI32(row), toI32(column)), 0);
    Value value = elements[i];
    if (run != 1) {
      auto type = VectorType::get(run, view.getElementType());
      auto words = VectorType::get(kRunBytes / 4, b.getI32Type());
      value = vector::BitCastOp::create(b, words,
                                        pack(b, type, elements.slice(i, run)));
    }
    LLVM::StoreOp::create(b, value, address, run * bytes);
  }
}

namespace {
/// A tile that lies inside needs no checks.
struct LowerStridedLoad : OpConversionPattern<StridedLoadOp> {
  LowerStridedLoad(const TypeConverter &converter, MLIRContext *context,
                   const LoweredKernels &kernels)
      : OpConversionPattern(converter, context), kernels(kernels) {}

  LogicalResult
  matchAndRewrite(StridedLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    const Array &array = *kernels.lookup(op.getArray());
    Value isInside;
    for (auto [axis, size] :
         llvm::enumerate(op.getView().getType().getShape())) {
      Value behind = arith::AddIOp::create(
          b, adaptor.getOffsets()[op.getAxes()[axis]], createIndex(b, size));
      Value fits = arith::CmpIOp::create(
          b, arith::CmpIPredicate::sle, behind,
          createEnd(b, op, array, adaptor.getEnd(), axis));
      isInside = isInside ? arith::AndIOp::create(b, isInside, fits).getResult()
                          : fits;
    }
    auto branch = scf::IfOp::create(b, isInside, /*withElseRegion=*/true);
    for (bool isChecked : {false, true}) {
      Block *block = isChecked ? branch.elseBlock() : branch.thenBlock();
      TileCopy(ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), block), op, array,
               adaptor.getView(), adaptor.getOffsets(), adaptor.getEnd(),
               isChecked)
          .write();
    }
    rewriter.eraseOp(op);
    return success();
  }

  const LoweredKernels &kernels;
};
} // namespace

void warp::populateStridedLoadPattern(const TypeConverter &converter,
                                      const LoweredKernels &kernels,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerStridedLoad>(converter, patterns.getContext(), kernels);
}
