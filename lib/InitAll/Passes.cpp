//===- Passes.cpp - The passes that our pipelines are made of -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"
#include "gdn/Pipelines/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void gdn::registerPasses() {
  registerPlanCallsPass();
  registerNameArgumentsPass();
  registerBoundGatesPass();
  registerPlanStagesPass();
  registerRaiseBuffersPass();
  registerSplitSequencesPass();
  registerFollowAdjointPass();
  registerVerifyStagesFormPass();
  registerConvertGDNToTilePass();
  registerConvertGDNTileToLinalgPass();
  tile::registerApproximateMathPass();
  registerConvertGDNWarpToNVVMPass();
  registerAttachTargetPass();
  registerChooseSchedulePass();
  registerOutlineLinalgPass();
  registerVerifyProgramPass();
  registerPartitionPass();
  registerInferLayoutsPass();
  tile::registerExpandCopiesPass();
  tile::registerExpandF64MathPass();
  tile::registerExpandMatrixVectorPass();
  tile::registerFuseElementwisePass();
  tile::registerHoistBuffersPass();
  tile::registerLaunchToParallelPass();
  tile::registerOrderConstantsPass();
  tile::registerPackProductsPass();
  tile::registerPrepareBufferizationPass();
  tile::registerScheduleWorkItemsPass();
  tile::registerSplitRowsPass();
  tile::registerGuardLaunchesPass();
  tile::registerStackProductsPass();
  tile::registerTransposeTilesPass();
  registerUnrollChunksPass();
  tile::registerVectorizePass();
  tile::registerVerifyTileFormPass();
  warp::registerAllocateSharedPass();
  warp::registerCarryQuotientsPass();
  warp::registerDelayConversionsPass();
  warp::registerGroupProductsPass();
  warp::registerHoistScalarsPass();
  warp::registerInsertFencesPass();
  warp::registerLowerPublishPass();
  warp::registerMergeBranchesPass();
  warp::registerMergeKernelsPass();
  warp::registerLoopPiecesPass();
  warp::registerMergeRolesPass();
  warp::registerLowerChannelsPass();
  warp::registerPrefetchLoadsPass();
  warp::registerSinkStoresPass();
  warp::registerVerifyChannelsPass();
  warp::registerVerifyExplicitFormPass();
  registerPipelines();
}

void gdn::registerAllPasses() {
  registerPasses();
  registerTransformsPasses();
  registerConversionPasses();
  affine::registerAffinePasses();
  arith::registerArithPasses();
  bufferization::registerBufferizationPasses();
  bufferization::registerBufferizationPipelines();
  LLVM::registerLLVMPasses();
  memref::registerMemRefPasses();
  registerLinalgPasses();
  registerSCFPasses();
  transform::registerInterpreterPass();
  vector::registerVectorPasses();
}
