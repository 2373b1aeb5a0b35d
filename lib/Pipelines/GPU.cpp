//===- GPU.cpp - From the explicit form to the LLVM dialect ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void gdn::buildWarpToLLVMPipeline(OpPassManager &manager) {
  manager.addPass(warp::createVerifyExplicitFormPass());
  // gdn_warp kernels --> llvm.func of nvvm, scf, arith, vector
  manager.addPass(createConvertGDNWarpToNVVMPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  // arith, cf, math, vector --> llvm
  manager.addPass(createConvertToLLVMPass());
  // nvvm ops without an intrinsic --> inline assembly
  manager.addPass(createConvertNVVMToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}
