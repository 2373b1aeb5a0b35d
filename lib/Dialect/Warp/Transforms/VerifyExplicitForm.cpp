//===- VerifyExplicitForm.cpp - Do kernels fit the chip? ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

#define DEBUG_TYPE "gdn-warp-verify-explicit-form"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_VERIFYEXPLICITFORMPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

/// PTX can have the kernel's name.
static LogicalResult verifyName(KernelOp kernel) {
  if (format::isName(kernel.getSymName()))
    return success();
  return kernel.emitOpError("expected a name that PTX can have (")
         << format::kNames << "), got '" << kernel.getSymName() << "'";
}

/// What lies at a known place of shared memory lies inside the kernel's.
static LogicalResult verifyPlace(Operation *op, Value offset, int64_t bytes,
                                 KernelOp kernel) {
  APInt value;
  if (!matchPattern(offset, m_ConstantInt(&value)))
    return success();
  int64_t begin = value.getSExtValue(), shared = kernel.getSharedBytes();
  if (begin < 0)
    return op->emitOpError("expected an offset of at least 0, got ") << begin;
  if (begin <= shared - bytes)
    return success();
  InFlightDiagnostic diagnostic =
      op->emitOpError("expected the end at or below byte ")
      << shared << " of shared memory, got "
      << static_cast<uint64_t>(begin) + bytes;
  diagnostic.attachNote(kernel.getLoc()) << "the kernel's shared memory";
  return diagnostic;
}

/// A barrier at a known place lies as the hardware takes it.
static LogicalResult verifyBarrier(BarrierOp barrier, KernelOp kernel) {
  APInt offset;
  if (matchPattern(barrier.getOffset(), m_ConstantInt(&offset)) &&
      offset.getSExtValue() % format::kBarrierBytes != 0)
    return barrier.emitOpError("expected an offset that is a multiple of ")
           << format::kBarrierBytes << ", got " << offset.getSExtValue();
  return verifyPlace(barrier, barrier.getOffset(), format::kBarrierBytes,
                     kernel);
}

static LogicalResult verifyCount(BarrierInitOp init) {
  int64_t count = init.getCount();
  if (count >= 1 && count <= format::kMaxArrivals)
    return success();
  return init.emitOpError("expected 1 to ")
         << format::kMaxArrivals << " arrivals a phase, got " << count;
}

static LogicalResult verifyShared(KernelOp kernel) {
  uint64_t bytes = kernel.getSharedBytes();
  uint64_t all = llvm::SaturatingMultiply(bytes, kernel.getMinCtas());
  auto most = static_cast<uint64_t>(getArch(kernel).sharedBytes);
  if (all > most)
    return kernel.emitOpError("expected at most ")
           << most << " bytes of shared memory in " << kernel.getMinCtas()
           << " CTAs, got " << bytes << " each, " << all - most << " too many";
  WalkResult result = kernel.walk([&](Operation *op) {
    LogicalResult inside = success();
    if (auto view = dyn_cast<ViewOp>(op))
      inside =
          verifyPlace(op, view.getOffset(), view.getType().getSpan(), kernel);
    else if (auto barrier = dyn_cast<BarrierOp>(op))
      inside = verifyBarrier(barrier, kernel);
    else if (auto init = dyn_cast<BarrierInitOp>(op))
      inside = verifyCount(init);
    return succeeded(inside) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// No warp has two roles, and warps of one warpgroup one register number.
static LogicalResult verifyRoles(KernelOp kernel) {
  int64_t warps = kernel.getThreads() / format::kWarpThreads;
  SmallVector<RoleOp> owner(warps);
  for (auto role : kernel.getBody().getOps<RoleOp>()) {
    for (int64_t warp = role.getFirst();
         warp < static_cast<int64_t>(role.getFirst() + role.getCount());
         ++warp) {
      if (owner[warp]) {
        InFlightDiagnostic diagnostic =
            role.emitOpError("expected roles that share no warp, got warp ")
            << warp << " in two";
        diagnostic.attachNote(owner[warp].getLoc()) << "the other role";
        return diagnostic;
      }
      owner[warp] = role;
    }
  }
  // Of each warpgroup the first warp that has a role.
  SmallVector<RoleOp> firsts(llvm::divideCeil(warps, format::kWarpgroupWarps));
  for (int64_t warp = 0; warp < warps; ++warp) {
    RoleOp role = owner[warp], &first = firsts[warp / format::kWarpgroupWarps];
    if (!first)
      first = role;
    if (!role || role.getRegisters() == first.getRegisters())
      continue;
    InFlightDiagnostic diagnostic = role.emitOpError(
        "expected the register number of the other role of its warpgroup, "
        "got ");
    if (std::optional<uint64_t> registers = role.getRegisters())
      diagnostic << *registers;
    else
      diagnostic << "none";
    diagnostic.attachNote(first.getLoc()) << "the other role";
    return diagnostic;
  }
  return success();
}

/// What the roles ask for is what the launch gave the CTA. Otherwise a role
/// waits in setmaxnreg for ever.
static LogicalResult verifyRegisters(KernelOp kernel) {
  int64_t threads = kernel.getThreads(),
          group = format::kWarpThreads * format::kWarpgroupWarps;
  int64_t launch = getArch(kernel).launchRegisters(
      threads, static_cast<int64_t>(kernel.getMinCtas()));
  SmallVector<int64_t> registers(llvm::divideCeil(threads, group), launch);
  for (auto role : kernel.getBody().getOps<RoleOp>())
    if (std::optional<uint64_t> count = role.getRegisters())
      for (uint64_t warp = role.getFirst();
           warp < role.getFirst() + role.getCount(); ++warp)
        registers[warp / format::kWarpgroupWarps] = *count;
  int64_t sum = 0;
  for (int64_t count : registers)
    sum += count * std::min(group, threads);
  if (sum <= launch * threads)
    return success();
  return kernel.emitOpError("expected roles with at most ")
         << launch * threads << " registers together (" << launch << " of "
         << threads << " threads at launch), got " << sum;
}

namespace {
struct VerifyExplicitForm
    : gdn::warp::impl::VerifyExplicitFormPassBase<VerifyExplicitForm> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>())
      if (failed(verifyName(kernel)) || failed(verifyShared(kernel)) ||
          failed(verifyRoles(kernel)) || failed(verifyRegisters(kernel)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
