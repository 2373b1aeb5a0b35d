//===- WarpToNVVM.cpp - The explicit form becomes nvvm and llvm -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/RegionUtils.h"

#define DEBUG_TYPE "convert-gdn-warp-to-nvvm"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNWARPTONVVMPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// A register tile is the vector of this thread's elements; a view or barrier
/// is its address.
static void addConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([](RankedTensorType tensor) -> std::optional<Type> {
    int64_t count = getThreadElements(tensor);
    if (count == 0)
      return std::nullopt;
    return VectorType::get(count, tensor.getElementType());
  });
  auto toPointer = [](Type type) {
    return LLVM::LLVMPointerType::get(type.getContext(), kSharedSpace);
  };
  converter.addConversion([=](ViewType type) { return toPointer(type); });
  converter.addConversion([=](BarrierType type) { return toPointer(type); });
}

/// True for math functions that NVPTX has no instruction for.
static bool isExpanded(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op,
             math::Log1pOp, math::RsqrtOp>(op);
}

static void setLegality(ConversionTarget &target,
                        const TypeConverter &converter,
                        const LoweredKernels &kernels) {
  target.addIllegalDialect<WarpDialect>();
  target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect,
                                    tensor::TensorDialect, ub::UBDialect>(
      [&](Operation *op) { return converter.isLegal(op); });
  target.addDynamicallyLegalOp<linalg::BroadcastOp, linalg::ReduceOp,
                               tile::RebaseOp, tile::ScanOp>(
      [&](Operation *op) { return converter.isLegal(op); });
  target.addDynamicallyLegalOp<math::ExpOp, math::Exp2Op, math::LogOp,
                               math::Log2Op, math::Log1pOp, math::RsqrtOp>(
      [](Operation *op) { return !isExpanded(op); });
  target.addDynamicallyLegalOp<memref::LoadOp, memref::StoreOp, memref::DimOp>(
      [&](Operation *op) {
        return llvm::none_of(op->getOperands(), [&](Value value) {
          return kernels.lookup(value);
        });
      });
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
}

/// Dynamic shared memory begins at an external symbol of no size. Its alignment
/// is what swizzled tiles ask for.
static void createSharedSymbol(ModuleOp module) {
  if (module.lookupSymbol(kSharedSymbol))
    return;
  OpBuilder b(module.getBodyRegion());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedSymbol, Attribute(),
                         format::kSwizzleAlignment, kSharedSpace);
}

/// The values that stood for arrays have no use left.
static LogicalResult eraseArrays(const LoweredKernels &kernels) {
  for (const auto &[value, array] : kernels.arrays) {
    if (!value.use_empty())
      return value.getUsers().begin()->emitOpError(
          "expected an access to an array that a kernel may hold "
          "(gdn_warp, memref.load, memref.store, memref.dim)");
    value.getDefiningOp()->erase();
  }
  return success();
}

/// Whether one of the two ways holds a product itself, not in a loop or branch.
static bool holdsProduct(scf::IfOp branch) {
  return llvm::any_of(branch->getRegions(), [](Region &region) {
    return !region.getOps<WgmmaOp>().empty();
  });
}

/// What a condition usually is becomes a hint, so that the unusual branch's
/// code does not stand in the way of the instruction cache. Not around
/// products: the order of blocks that LLVM makes of it is slower there.
static void hintBranches(ModuleOp module) {
  module.walk([](scf::IfOp branch) {
    auto usual =
        branch->getAttrOfType<BoolAttr>(WarpDialect::getLikelyAttrName());
    if (!usual || holdsProduct(branch))
      return;
    OpBuilder b(branch);
    Value value = arith::ConstantOp::create(b, branch.getLoc(), usual);
    branch.getConditionMutable().assign(LLVM::ExpectOp::create(
        b, branch.getLoc(), branch.getCondition(), value));
  });
}

/// The threads of a warp go one way. ptxas does not see that of a condition of
/// what shared memory holds, and has no uniform registers behind such a branch:
/// descriptors take others. A vote says so, in roles that have none to spare.
static void voteOnBranches(ModuleOp module) {
  module.walk([](RoleOp role) {
    if (!role->hasAttr(WarpDialect::getLateAddressesAttrName()))
      return;
    role.walk([](scf::IfOp branch) {
      if (!branch->hasAttr(WarpDialect::getLikelyAttrName()))
        return;
      ImplicitLocOpBuilder b(branch.getLoc(), branch);
      branch.getConditionMutable().assign(NVVM::VoteSyncOp::create(
          b, b.getI1Type(), createI32(b, -1), branch.getCondition(),
          NVVM::VoteSyncKind::any));
    });
  });
}

/// In a branch with late addresses, replaces integers of the loops around it by
/// copies that LLVM does not see through. Without them LLVM computes what the
/// branch makes of the integers in front of the branch, in each iteration.
static void copyNumbers(ModuleOp module) {
  module.walk([](scf::IfOp branch) {
    if (!branch->hasAttr(WarpDialect::getLateAddressesAttrName()))
      return;
    scf::ForOp loop;
    for (auto around = branch->getParentOfType<scf::ForOp>(); around;
         around = around->getParentOfType<scf::ForOp>())
      loop = around;
    SetVector<Value> used;
    getUsedValuesDefinedAbove(branch.getThenRegion(), used);
    auto b =
        ImplicitLocOpBuilder::atBlockBegin(branch.getLoc(), branch.thenBlock());
    for (Value number : used) {
      if (!loop || loop.isDefinedOutsideOfLoop(number) ||
          !number.getType().isInteger(32) || matchPattern(number, m_Constant()))
        continue;
      Value copy =
          createAsm(b, number.getType(), number, "mov.b32 $0, $1;", "=r,r")
              .getResult(0);
      replaceAllUsesInRegionWith(number, copy, branch.getThenRegion());
      copy.getDefiningOp()->setOperand(0, number);
    }
  });
}

/// Notes on views and arrays that the loops of a role access that their
/// addresses are to be late.
static void markLateAddresses(ModuleOp module) {
  StringRef name = WarpDialect::getLateAddressesAttrName();
  module.walk([&](RoleOp role) {
    if (!role->hasAttr(name))
      return;
    role.walk([&](scf::ForOp loop) {
      loop.walk([&](Operation *op) {
        if (isa<ViewOp, FragmentLoadOp, FragmentStoreOp, VectorLoadOp,
                VectorStoreOp, ArrayLoadOp, ArrayStoreOp>(op))
          op->setAttr(name, UnitAttr::get(op->getContext()));
      });
    });
  });
}

/// Notes on stores of roles whose warps take turns how many of them run one.
static void markTurns(ModuleOp module) {
  StringRef name = WarpDialect::getRoundRobinAttrName();
  Builder b(module.getContext());
  module.walk([&](RoleOp role) {
    if (role->hasAttr(name))
      role.walk([&](ArrayStoreOp store) {
        store->setAttr(name, b.getI64IntegerAttr(role.countTogether()));
      });
  });
}

void warp::keepLoop(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
      {});
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(
                                       context, {}, {}, {}, unroll, {}, {}, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}));
}

/// Unrolls the loops that ask for it; the loops over the chunks of an iteration
/// and over the pieces of tiles stay loops.
static LogicalResult unrollLoops(ModuleOp module) {
  SmallVector<std::pair<scf::ForOp, int64_t>> loops;
  module.walk([&](scf::ForOp loop) {
    StringRef name = WarpDialect::getUnrollAttrName();
    if (auto factor = loop->getAttrOfType<IntegerAttr>(name))
      loops.push_back({loop, factor.getInt()});
    loop->removeAttr(name);
    bool isOfChunks = !!loop->removeAttr(WarpDialect::getChunksAttrName()),
         isOfPieces = !!loop->removeAttr(WarpDialect::getPiecesAttrName());
    if (isOfChunks || isOfPieces)
      keepLoop(loop);
  });
  for (auto [loop, factor] : loops) {
    // Upstream's code aborts for them.
    APInt step;
    if (matchPattern(loop.getStep(), m_ConstantInt(&step)) &&
        !step.isStrictlyPositive())
      return loop.emitOpError("expected a step of at least 1, got ")
             << step.getSExtValue();
    if (failed(loopUnrollByFactor(loop, factor)))
      return loop.emitOpError("expected a loop that can be unrolled");
  }
  return success();
}

namespace {
struct ConvertGDNWarpToNVVM
    : gdn::impl::ConvertGDNWarpToNVVMPassBase<ConvertGDNWarpToNVVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<KernelOp> all(module.getOps<KernelOp>());
    if (all.empty())
      return;
    if (failed(unrollLoops(module)))
      return signalPassFailure();
    LoweredKernels kernels;
    createSharedSymbol(module);
    voteOnBranches(module);
    hintBranches(module);
    copyNumbers(module);
    markLateAddresses(module);
    markTurns(module);
    for (KernelOp kernel : all)
      lowerKernel(kernel, kernels);

    TypeConverter converter;
    addConversions(converter);
    ConversionTarget target(getContext());
    setLegality(target, converter, kernels);
    RewritePatternSet patterns(&getContext());
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    populateArrayClearPattern(converter, kernels, patterns);
    populateMeetingPatterns(converter, kernels, patterns);
    populateArrayPatterns(converter, kernels, patterns);
    populateArrayElementPatterns(converter, kernels, patterns);
    populatePrefetchPattern(converter, kernels, patterns);
    populateSequenceByRankPattern(converter, kernels, patterns);
    populateCopyPatterns(converter, kernels, patterns);
    populateElementwisePatterns(converter, patterns);
    populateFragmentPatterns(converter, patterns);
    populateFragmentScanPatterns(converter, patterns);
    populateClusterSumPattern(converter, patterns);
    populateLanePatterns(converter, patterns);
    populateMathPatterns(converter, patterns);
    populateProductPatterns(converter, patterns);
    populateSharedPatterns(converter, patterns);
    populateTriInversePatterns(converter, patterns);
    populateSpreadArrayPatterns(converter, kernels, patterns);
    populateSpreadTilePatterns(converter, patterns);
    populateStridedLoadPattern(converter, kernels, patterns);
    populateSynchronisationPatterns(converter, patterns);
    populateTrianglePatterns(converter, patterns);
    populateWarpgroupPatterns(converter, patterns);
    if (failed(applyPartialConversion(module, target, std::move(patterns))) ||
        failed(eraseArrays(kernels)))
      signalPassFailure();
  }
};
} // namespace
