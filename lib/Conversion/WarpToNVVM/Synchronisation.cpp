//===- Synchronisation.cpp - Thread numbers, barriers, fences -------------===//
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

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

static Value createId(ImplicitLocOpBuilder &b, IdKind kind) {
  Type i32 = b.getI32Type();
  switch (kind) {
  case IdKind::Thread:
    return createThread(b);
  case IdKind::Lane:
    return createLane(b);
  case IdKind::Warp:
    // Read from one lane, the number is known to be uniform: roles branch on
    // it, and wgmma needs warps that are known to be whole.
    return createShuffle(
        b, ShuffleKind::Index,
        arith::DivUIOp::create(b, createThread(b),
                               createI32(b, format::kWarpThreads)),
        createI32(b, 0));
  case IdKind::CTA:
    return NVVM::BlockIdXOp::create(b, i32);
  case IdKind::CTACount:
    return NVVM::GridDimXOp::create(b, i32);
  case IdKind::ClusterRank:
    return NVVM::ClusterId::create(b, i32);
  }
  llvm_unreachable("an IdKind has no other value");
}

static void createSync(ImplicitLocOpBuilder &b, SyncKind kind) {
  if (kind == SyncKind::Warp)
    return createWarpSync(b);
  createCompilerFence(b);
  if (kind == SyncKind::CTA) {
    NVVM::BarrierOp::create(b);
  } else {
    NVVM::ClusterArriveOp::create(b, b.getUnitAttr());
    NVVM::ClusterWaitOp::create(b, b.getUnitAttr());
  }
  createCompilerFence(b);
}

void warp::createGroupSync(ImplicitLocOpBuilder &b, Value id, int64_t threads) {
  createCompilerFence(b);
  NVVM::BarrierOp::create(b, Type(), id, createI32(b, threads),
                          NVVM::BarrierReductionAttr(), Value());
  createCompilerFence(b);
}

static Value createTryWait(ImplicitLocOpBuilder &b, Value barrier, Value parity,
                           bool cluster) {
  return NVVM::MBarrierTryWaitOp::create(
      b, b.getI1Type(), barrier, parity, /*ticks=*/Value(),
      cluster ? NVVM::MemScopeKind::CLUSTER : NVVM::MemScopeKind::CTA);
}

/// Spins on try_wait, which suspends the thread for a while each time.
static void createWait(ImplicitLocOpBuilder &b, Value barrier, Value parity,
                       bool cluster) {
  scf::WhileOp::create(
      b, TypeRange(), ValueRange(),
      [&](OpBuilder &builder, Location loc, ValueRange) {
        ImplicitLocOpBuilder inner(loc, builder);
        Value done = createTryWait(inner, barrier, parity, cluster);
        Value one = arith::ConstantOp::create(inner, inner.getBoolAttr(true));
        Value again = arith::XOrIOp::create(inner, done, one);
        scf::ConditionOp::create(inner, again, ValueRange());
      },
      [&](OpBuilder &builder, Location loc, ValueRange) {
        scf::YieldOp::create(builder, loc);
      });
}

Value warp::createRemote(ImplicitLocOpBuilder &b, Value address, Value rank) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kClusterSpace);
  return NVVM::MapaOp::create(b, type, address, rank);
}

namespace {
/// Where a thread arrives: at a barrier of this CTA, or at one of the cluster,
/// without order of its memory accesses.
struct Arrival {
  Arrival(ImplicitLocOpBuilder &b, Value barrier, Value rank)
      : barrier(rank ? createRemote(b, barrier, rank) : barrier),
        scope(rank ? NVVM::MemScopeKind::CLUSTER : NVVM::MemScopeKind::CTA),
        relaxed(static_cast<bool>(rank)) {}

  Value barrier;
  NVVM::MemScopeKind scope;
  bool relaxed;
};
} // namespace

namespace {
/// One op whose code `emit(op, adaptor, builder)` makes and whose results it
/// returns.
template <typename Op> struct Lower : OpConversionPattern<Op> {
  using Emit = SmallVector<Value> (*)(Op, typename Op::Adaptor,
                                      ImplicitLocOpBuilder &);

  Lower(const TypeConverter &converter, MLIRContext *context, Emit emit)
      : OpConversionPattern<Op>(converter, context), emit(emit) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, emit(op, adaptor, b));
    return success();
  }

  Emit emit;
};
} // namespace

template <typename Op>
static void add(const TypeConverter &converter, RewritePatternSet &patterns,
                typename Lower<Op>::Emit emit) {
  patterns.add<Lower<Op>>(converter, patterns.getContext(), emit);
}

/// The last CTA waits for the kernel before this one. The next kernel waits for
/// this one to end, with that CTA, so what the one before it wrote is visible
/// there without a wait of the other CTAs.
static void createWaitOfLast(ImplicitLocOpBuilder &b) {
  // Read here: LLVM would merge it with the read at an earlier exit, and keep
  // the number in a register of every role.
  Value count = createAsm(b, b.getI32Type(), {}, "mov.u32 $0, %nctaid.x;", "=r")
                    .getResult(0);
  Value last = arith::SubIOp::create(b, count, createI32(b, 1));
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       createId(b, IdKind::CTA), last);
  auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  createCompilerFence(b);
}

static void addThreadPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns) {
  using Values = SmallVector<Value>;
  add<IdOp>(converter, patterns, [](auto op, auto, auto &b) -> Values {
    return {arith::IndexCastUIOp::create(b, b.getIndexType(),
                                         createId(b, op.getKind()))};
  });
  add<ElectOp>(converter, patterns, [](auto, auto, auto &b) -> Values {
    return {NVVM::ElectSyncOp::create(b, b.getI1Type(), Value())};
  });
  add<ShuffleOp>(converter, patterns, [](auto op, auto a, auto &b) -> Values {
    return {createShuffle(b, op.getKind(), a.getValue(), a.getLane())};
  });
  add<SyncOp>(converter, patterns, [](auto op, auto, auto &b) -> Values {
    createSync(b, op.getKind());
    return {};
  });
  add<SyncGroupOp>(converter, patterns, [](auto op, auto a, auto &b) -> Values {
    createGroupSync(b, a.getId(), op.getThreads());
    return {};
  });
  add<GridDependencyWaitOp>(
      converter, patterns, [](auto op, auto, auto &b) -> Values {
        using Kind = NVVM::GridDepActionKind;
        if (op.getLastCta()) {
          createWaitOfLast(b);
          return {};
        }
        if (!op.getThenLaunch() && !op.getLaunchLater())
          NVVM::GriddepcontrolOp::create(b, Kind::launch_dependents);
        NVVM::GriddepcontrolOp::create(b, Kind::wait);
        if (op.getThenLaunch())
          NVVM::GriddepcontrolOp::create(b, Kind::launch_dependents);
        createCompilerFence(b);
        return {};
      });
  add<LaunchDependentsOp>(converter, patterns,
                          [](auto, auto, auto &b) -> Values {
                            NVVM::GriddepcontrolOp::create(
                                b, NVVM::GridDepActionKind::launch_dependents);
                            return {};
                          });
  add<FenceOp>(converter, patterns, [](auto op, auto, auto &b) -> Values {
    createCompilerFence(b);
    if (op.getKind() == FenceKind::Async)
      NVVM::FenceProxyOp::create(
          b, NVVM::ProxyKind::async_shared,
          NVVM::SharedSpaceAttr::get(b.getContext(),
                                     NVVM::SharedSpace::shared_cta));
    else
      NVVM::FenceMbarrierInitOp::create(b);
    createCompilerFence(b);
    return {};
  });
}

static void addBarrierPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  using Values = SmallVector<Value>;
  add<BarrierInitOp>(
      converter, patterns, [](auto op, auto a, auto &b) -> Values {
        NVVM::MBarrierInitOp::create(b, a.getBarrier(),
                                     createI32(b, op.getCount()), Value());
        return {};
      });
  add<BarrierArriveOp>(
      converter, patterns, [](auto op, auto a, auto &b) -> Values {
        createCompilerFence(b);
        Arrival at(b, a.getBarrier(), a.getRank());
        Value count =
            op.getCount() == 1 ? Value() : createI32(b, op.getCount());
        // At CTA scope in another CTA, too: loads from this one's shared
        // memory stay in front of it, and it waits for nothing else.
        NVVM::MBarrierArriveOp::create(b, Type(), at.barrier, count,
                                       NVVM::MemScopeKind::CTA,
                                       /*relaxed=*/false);
        return {};
      });
  add<BarrierExpectOp>(
      converter, patterns, [](auto op, auto a, auto &b) -> Values {
        createCompilerFence(b);
        Arrival at(b, a.getBarrier(), a.getRank());
        NVVM::MBarrierArriveExpectTxOp::create(b, Type(), at.barrier,
                                               createI32(b, op.getBytes()),
                                               at.scope, at.relaxed, Value());
        return {};
      });
  add<BarrierWaitOp>(
      converter, patterns, [](auto op, auto a, auto &b) -> Values {
        createWait(b, a.getBarrier(), a.getParity(), op.getCluster());
        createCompilerFence(b);
        return {};
      });
  add<BarrierTestOp>(converter, patterns, [](auto, auto a, auto &b) -> Values {
    Value done = createTryWait(b, a.getBarrier(), a.getParity(), false);
    createCompilerFence(b);
    return {done};
  });
}

void warp::populateSynchronisationPatterns(const TypeConverter &converter,
                                           RewritePatternSet &patterns) {
  addThreadPatterns(converter, patterns);
  addBarrierPatterns(converter, patterns);
}
