//===- GPU.cpp - From the tile level to the LLVM dialect for a GPU --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void gdn::buildTileToWarpPipeline(OpPassManager &manager,
                                  const LoweringOptions &options) {
  {
    OpPassManager &programs = manager.nest<tile::ProgramOp>();
    // math.exp, math.log, ... of f64 --> arith
    programs.addPass(tile::createExpandF64MathPass());
    // products of a tensor core's rows
    programs.addPass(tile::createExpandMatrixVectorPass());
    programs.addPass(tile::createTransposeTilesPass());
    programs.addPass(tile::createStackProductsPass());
    // tiles of a fragment's rows
    programs.addPass(tile::createSplitRowsPass());
    programs.addPass(createVerifyProgramPass());
  }
  // linalg around launches --> programs of their own. Behind the check above,
  // which says more of a layer that there is no kernel for.
  manager.addPass(createOutlineLinalgPass());
  // scf.if around launches --> work items that leave
  manager.addPass(tile::createGuardLaunchesPass());
  // for which chip
  manager.addPass(createAttachTargetPass({options.chip}));
  // who does what
  ChooseSchedulePassOptions choice;
  choice.schedule = options.schedule;
  choice.scheduleFile = options.scheduleFile;
  choice.sequences = options.sequences;
  choice.tokens = options.tokens;
  choice.longest = options.longest;
  manager.addPass(createChooseSchedulePass(choice));
  {
    // one wait for what the chunks of an iteration need
    OpPassManager &programs = manager.nest<tile::ProgramOp>();
    programs.addPass(createUnrollChunksPass());
    programs.addPass(createCSEPass());
  }
  // gdn_tile programs --> gdn_warp kernels: roles, channels of values
  manager.addPass(createPartitionPass());
  // one kernel of those that several functions launch; most are equal already,
  // and the passes between need not see them all
  manager.addPass(warp::createMergeKernelsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(warp::createMergeKernelsPass());
  {
    // values of tiles --> fragments, vectors, views of slots
    OpPassManager &kernels = manager.nest<warp::KernelOp>();
    kernels.addPass(createInferLayoutsPass());
    kernels.addPass(createCSEPass());
    kernels.addPass(warp::createPrefetchLoadsPass());
    kernels.addPass(warp::createDelayConversionsPass());
    kernels.addPass(warp::createHoistScalarsPass());
    kernels.addPass(warp::createSinkStoresPass());
    kernels.addPass(createCanonicalizerPass());
    kernels.addPass(createLoopInvariantCodeMotionPass());
    // one copy of the code of alike pieces of tiles
    kernels.addPass(warp::createLoopPiecesPass());
    // slots --> places in shared memory, barriers
    kernels.addPass(warp::createGroupProductsPass({options.serialProducts}));
    kernels.addPass(warp::createInsertFencesPass());
    kernels.addPass(warp::createVerifyChannelsPass());
    kernels.addPass(warp::createAllocateSharedPass());
    kernels.addPass(warp::createLowerPublishPass());
    kernels.addPass(warp::createLowerChannelsPass({options.lanesArrive}));
    // divisions of iterations --> counters
    kernels.addPass(warp::createCarryQuotientsPass());
    kernels.addPass(createCanonicalizerPass());
    kernels.addPass(createCSEPass());
    kernels.addPass(warp::createMergeBranchesPass());
    // one copy of the code of alike roles
    kernels.addPass(warp::createMergeRolesPass());
  }
  manager.addPass(warp::createVerifyExplicitFormPass());
}

void gdn::buildCallsPipeline(OpPassManager &manager) {
  // functions of calls --> one for each way to compute them
  manager.addPass(createPlanCallsPass());
  // names of arguments, while there are ops that know them
  manager.addPass(createNameArgumentsPass());
}

void gdn::buildGDNToWarpPipeline(OpPassManager &manager,
                                 const LoweringOptions &options) {
  buildCallsPipeline(manager);
  // A GPU's V tiles are those of a product's rows unless somebody says
  // otherwise.
  LoweringOptions lowering;
  lowering.copyOptionValuesFrom(options);
  if (options.vTiles == 1)
    lowering.vTiles = 0;
  if (options.backward == "auto")
    lowering.backward = "three";
  lowering.clusterHeads = true;
  if (const warp::Arch *arch = warp::findArch(options.chip))
    lowering.workItems = arch->multiprocessors;
  buildGDNToTilePipeline(manager, lowering);
  buildTileToWarpPipeline(manager, options);
}

void gdn::buildWarpToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(warp::createVerifyExplicitFormPass());
  // gdn_warp kernels --> llvm.func of nvvm, scf, arith, vector
  manager.addPass(createConvertGDNWarpToNVVMPass());
  // Kernel by kernel: what changes in one does not bring another round to all.
  // Kernels only: the functions that launch them are read by the host's side.
  OpPassManager &kernels = manager.nest<LLVM::LLVMFuncOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(warp::createMergeBranchesPass());
  kernels.addPass(createSCFToControlFlowPass());
  // arith, cf, math, vector --> llvm
  kernels.addPass(createConvertToLLVMPass());
  // nvvm ops without an intrinsic --> inline assembly
  kernels.addPass(createConvertNVVMToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

void gdn::buildGDNToNVVMPipeline(OpPassManager &manager,
                                 const LoweringOptions &options) {
  buildGDNToWarpPipeline(manager, options);
  buildWarpToLLVMPipeline(manager);
}
