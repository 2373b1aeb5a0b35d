//===- CPU.cpp - From the tile level to the LLVM dialect for a CPU --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

/// Work on tensors --> few linalg ops, in the form that vectorises.
static void addTensorOptimization(OpPassManager &manager,
                                  const LoweringOptions &options) {
  // products --> products of f32 tiles, transposes
  tile::PackProductsPassOptions pack;
  pack.bf16Dot = options.bf16Dot;
  manager.addNestedPass<func::FuncOp>(tile::createPackProductsPass(pack));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // arith, math on tensors --> linalg.generic
  manager.addNestedPass<func::FuncOp>(tile::createFuseElementwisePass());
}

/// Tensors --> memrefs, programs and the functions around them alike.
static void addBufferization(OpPassManager &manager) {
  manager.addPass(tile::createPrepareBufferizationPass());
  // A launch whose result goes to a buffer of the caller writes it there.
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  // tensor.empty --> bufferization.alloc_tensor, whose buffer has no strides
  // and offset to find out: what a branch yields vectorises.
  manager.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  // A loop around a layer carries what the layer makes.
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  // tensor --> memref
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));
  // memref.global in an order that no address decides
  manager.addPass(tile::createOrderConstantsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // memref.alloc in loops --> memref.alloc before them
  manager.addNestedPass<func::FuncOp>(tile::createHoistBuffersPass());
  // memref.alloc --> memref.alloc, memref.dealloc
  bufferization::buildBufferDeallocationPipeline(manager);
  // bufferization.clone --> memref.alloc, memref.copy
  manager.addPass(createConvertBufferizationToMemRefPass());
}

/// scf, vector, memref, arith, math, func --> llvm, omp.
static void addToLLVM(OpPassManager &manager, const LoweringOptions &options) {
  // math.exp, math.log, ... --> arith
  manager.addPass(tile::createApproximateMathPass());
  // vector.transfer of rank above 1 --> loops
  manager.addNestedPass<func::FuncOp>(createConvertVectorToSCFPass());
  // subview, collapse_shape, ... --> reinterpret_cast and arithmetic
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  // bf16 conversions, min and max --> arith that LLVM has everywhere
  arith::ArithExpandOpsPassOptions expand;
  // AVX512_BF16 rounds to bf16 in one instruction.
  expand.includeBf16 = !options.bf16Rounding;
  manager.addPass(arith::createArithExpandOpsPass(expand));
  // scf.parallel --> omp.parallel, omp.wsloop
  if (options.parallel) {
    manager.addPass(createConvertSCFToOpenMPPass());
    manager.addPass(tile::createScheduleWorkItemsPass());
  }
  // scf --> cf
  manager.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectors;
  // A reduction's order is fixed by the compiled code, not by the source.
  vectors.reassociateFPReductions = true;
  vectors.x86Vector = options.bf16Dot;
  vectors.amx = options.amx;
  // vector --> llvm
  manager.addPass(createConvertVectorToLLVMPass(vectors));
  // arith, cf, func, index, math, memref, ub, omp's regions --> llvm
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void gdn::buildTileToLLVMPipeline(OpPassManager &manager,
                                  const LoweringOptions &options) {
  // math.exp, math.log, ... of f64 --> arith
  manager.addNestedPass<tile::ProgramOp>(tile::createExpandF64MathPass());
  // gdn_tile --> linalg, vector, scf (but for gdn_tile.launch)
  manager.addPass(createConvertGDNTileToLinalgPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  addTensorOptimization(manager, options);
  addBufferization(manager);
  // gdn_tile.launch --> scf.parallel, func.call
  manager.addPass(tile::createLaunchToParallelPass());
  // memref.copy --> linalg
  manager.addPass(tile::createExpandCopiesPass());
  // linalg in programs --> scf, vector
  tile::VectorizePassOptions vectorize;
  vectorize.vectorBits = options.vectorBits;
  vectorize.amx = options.amx;
  manager.addNestedPass<func::FuncOp>(tile::createVectorizePass(vectorize));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  // linalg --> scf
  manager.addPass(createConvertLinalgToLoopsPass());
  addToLLVM(manager, options);
}
