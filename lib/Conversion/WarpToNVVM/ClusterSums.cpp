//===- ClusterSums.cpp - Sums over the CTAs of a cluster ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Slices of columns of a fragment go from a thread to the same thread of
// another CTA, so they lie in the order of threads: 16 bytes of each, then the
// next 16 bytes of each.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// Elements of a thread that are sent by one instruction, and their bytes.
static constexpr int64_t kSent = 4, kSentBytes = kSent * sizeof(float);
static constexpr int64_t kThreads =
    format::kWarpThreads * format::kWarpgroupWarps;

/// Where element `first` of a slice of thread 0 lies.
static int64_t placeOfElement(int64_t first) {
  return first / kSent * kThreads * kSentBytes;
}

namespace {
class ClusterSum {
public:
  ClusterSum(ImplicitLocOpBuilder &b, ArrayRef<int64_t> place, Value number,
             int64_t items, int64_t sliceBytes);
  /// Sends what others keep of `elements`. Returns what this CTA keeps.
  SmallVector<Value> send(ArrayRef<Value> elements);
  /// Adds what others sent to `own`.
  void add(SmallVectorImpl<Value> &own);

private:
  SmallVector<Value> turn(ArrayRef<Value> elements);
  void waitForReaders();
  void send(int64_t distance, ArrayRef<Value> slice);
  void waitForSlices();
  void add(int64_t distance, SmallVectorImpl<Value> &own);
  void release();
  /// Where the slice from the CTA `distance` in front of this one lies.
  int64_t placeOf(int64_t distance) const {
    return place[0] + (distance - 1) * sliceBytes;
  }
  /// The CTA `distance` behind this one, in a circle.
  Value getRank(int64_t distance);
  Value createBarrier(bool isOfReaders) {
    int64_t offset = place[1] + (isOfReaders ? format::kBarrierBytes : 0);
    return BarrierOp::create(b, createIndex(b, offset));
  }

  ImplicitLocOpBuilder &b;
  ArrayRef<int64_t> place;
  int64_t items, sliceBytes;
  /// The thread of its warpgroup and its first byte of a slice, this CTA, and
  /// the parity of this use of the place.
  Value thread, offset, rank, parity;
};
} // namespace

ClusterSum::ClusterSum(ImplicitLocOpBuilder &b, ArrayRef<int64_t> place,
                       Value number, int64_t items, int64_t sliceBytes)
    : b(b), place(place), items(items), sliceBytes(sliceBytes) {
  thread =
      arith::AndIOp::create(b, createThreadHere(b), createI32(b, kThreads - 1));
  offset = arith::MulIOp::create(b, thread, createI32(b, kSentBytes));
  rank = createAsm(b, b.getI32Type(), {}, "mov.u32 $0, %cluster_ctarank;", "=r")
             .getResult(0);
  number = arith::IndexCastUIOp::create(b, b.getI32Type(), number);
  number = arith::AddIOp::create(
      b, arith::MulIOp::create(b, number, createI32(b, place[3])),
      createI32(b, place[2]));
  parity = arith::AndIOp::create(b, number, createI32(b, 1));
}

Value ClusterSum::getRank(int64_t distance) {
  return arith::AndIOp::create(
      b, arith::AddIOp::create(b, rank, createI32(b, distance)),
      createI32(b, items - 1));
}

/// The phase before the first one counts as over.
void ClusterSum::waitForReaders() {
  Value before = arith::XOrIOp::create(b, parity, createI32(b, 1));
  BarrierWaitOp::create(b, createBarrier(/*isOfReaders=*/true), before,
                        /*cluster=*/false);
}

/// Sends the slice of the CTA `distance` behind this one.
void ClusterSum::send(int64_t distance, ArrayRef<Value> slice) {
  Value there = getRank(distance);
  Value base = createSharedAddress(b, createIndex(b, placeOf(distance)));
  Value target = createRemote(b, createAddress(b, base, offset, 0), there);
  Value barrier =
      createRemote(b, createSharedAddress(b, createIndex(b, place[1])), there);
  for (size_t first = 0; first < slice.size(); first += kSent) {
    SmallVector<Value> operands = {
        createAddress(b, target, Value(), placeOfElement(first))};
    llvm::append_range(operands, slice.slice(first, kSent));
    operands.push_back(barrier);
    createAsm(b, {}, operands,
              "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4"
              ".b32 [$0], {$1, $2, $3, $4}, [$5];",
              "l,f,f,f,f,l,~{memory}");
  }
}

void ClusterSum::waitForSlices() {
  Value full = createBarrier(/*isOfReaders=*/false);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                                        createI32(b, 0));
  {
    OpBuilder::InsertionGuard guard(b);
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    BarrierExpectOp::create(b, full, (items - 1) * sliceBytes,
                            /*rank=*/Value());
  }
  // At CTA scope: the bytes arrive with the barrier, as those of a copy do.
  BarrierWaitOp::create(b, full, parity, /*cluster=*/false);
}

void ClusterSum::add(int64_t distance, SmallVectorImpl<Value> &own) {
  auto type = VectorType::get(kSent, b.getF32Type());
  Value base = createSharedAddress(b, createIndex(b, placeOf(distance)));
  base = createAddress(b, base, offset, 0);
  for (size_t first = 0; first < own.size(); first += kSent) {
    Value address = createAddress(b, base, Value(), placeOfElement(first));
    Value sent = LLVM::LoadOp::create(b, type, address, kSentBytes);
    for (auto [i, value] : llvm::enumerate(unpack(b, sent)))
      own[first + i] = arith::AddFOp::create(b, own[first + i], value);
  }
}

/// Tells the CTAs in front that what they sent has been read.
void ClusterSum::release() {
  SyncOp::create(b, SyncKind::Warp);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        createLane(b), createI32(b, 0));
  OpBuilder::InsertionGuard guard(b);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  for (int64_t distance = 1; distance < items; ++distance)
    BarrierArriveOp::create(b, createBarrier(/*isOfReaders=*/true),
                            getRank(distance));
}

/// `elements` from slice `rank` on, in a circle.
SmallVector<Value> ClusterSum::turn(ArrayRef<Value> elements) {
  SmallVector<Value> turned(elements);
  size_t slice = elements.size() / items;
  for (int64_t bit = 1; bit < items; bit *= 2) {
    Value isSet = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, rank, createI32(b, bit)), createI32(b, 0));
    SmallVector<Value> before = turned;
    for (size_t i = 0; i < turned.size(); ++i)
      turned[i] = arith::SelectOp::create(
          b, isSet, before[(i + bit * slice) % turned.size()], before[i]);
  }
  return turned;
}

SmallVector<Value> ClusterSum::send(ArrayRef<Value> elements) {
  SmallVector<Value> slices = turn(elements);
  size_t size = slices.size() / items;
  waitForReaders();
  for (int64_t distance = 1; distance < items; ++distance)
    send(distance, ArrayRef(slices).slice(distance * size, size));
  slices.resize(size);
  return slices;
}

void ClusterSum::add(SmallVectorImpl<Value> &own) {
  waitForSlices();
  for (int64_t distance = items - 1; distance > 0; --distance)
    add(distance, own);
  release();
}

static LogicalResult verifyPlace(Operation *op,
                                 std::optional<ArrayRef<int64_t>> place) {
  if (place)
    return success();
  return op->emitOpError("expected a place in shared memory "
                         "(gdn-warp-allocate-shared)");
}

namespace {
struct LowerClusterSend : OpConversionPattern<ClusterSendOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClusterSendOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyPlace(op, op.getPlace())))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> elements = unpack(b, adaptor.getSource());
    SmallVector<Value> own = ClusterSum(b, *op.getPlace(), adaptor.getNumber(),
                                        op.getItems(), op.getSliceBytes())
                                 .send(elements);
    auto type = cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    rewriter.replaceOp(op, pack(b, type, own));
    return success();
  }
};

struct LowerClusterAdd : OpConversionPattern<ClusterAddOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClusterAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyPlace(op, op.getPlace())))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> own = unpack(b, adaptor.getSource());
    RankedTensorType slice = op.getType();
    ClusterSum(b, *op.getPlace(), adaptor.getNumber(), op.getItems(),
               slice.getNumElements() * static_cast<int64_t>(sizeof(float)))
        .add(own);
    auto type = cast<VectorType>(adaptor.getSource().getType());
    rewriter.replaceOp(op, pack(b, type, own));
    return success();
  }
};
} // namespace

void warp::populateClusterSumPattern(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerClusterSend, LowerClusterAdd>(converter,
                                                  patterns.getContext());
}
