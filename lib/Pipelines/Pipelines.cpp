//===- Pipelines.cpp - The ways down, and their names ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::gdn;

void gdn::buildGDNToStagesPipeline(OpPassManager &manager,
                                   const LoweringOptions &options) {
  // gdn layer ops on memrefs --> gdn layer ops on tensors
  manager.addPass(createRaiseBuffersPass());
  BoundGatesPassOptions bound;
  bound.bound = options.gateBound;
  // layer ops with a bound of gates to look for --> branches of two
  manager.addPass(createBoundGatesPass(bound));
  PlanStagesPassOptions plan;
  plan.plan = options.plan;
  if (options.backward != "auto")
    plan.backward = options.backward;
  plan.chunkSize = options.chunkSize;
  plan.sideBySide = options.sideBySide;
  plan.stateInterval = options.stateInterval;
  // gdn layer ops --> gdn stage ops, linalg on whole tensors
  manager.addPass(createPlanStagesPass(plan));
  SplitSequencesPassOptions split;
  split.segments = options.segments;
  split.segmentLength = options.segmentLength;
  split.tolerance = options.decayTolerance;
  split.ownStarts = options.ownStarts;
  split.fewerSegments = options.fewerSegments;
  // long sequences --> segments
  manager.addPass(createSplitSequencesPass(split));
  if (options.followAdjoint)
    manager.addPass(createFollowAdjointPass());
  manager.addPass(createVerifyStagesFormPass());
}

void gdn::buildStagesToTilePipeline(OpPassManager &manager,
                                    const LoweringOptions &options) {
  ConvertGDNToTilePassOptions tile;
  tile.operandType = options.operandType;
  tile.vTiles = options.vTiles;
  tile.clusterHeads = options.clusterHeads;
  tile.workItems = options.workItems;
  tile.twoProductChain = options.twoProductChain;
  // gdn stage ops --> gdn_tile programs and launches
  manager.addPass(createConvertGDNToTilePass(tile));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(tile::createVerifyTileFormPass());
}

void gdn::buildGDNToTilePipeline(OpPassManager &manager,
                                 const LoweringOptions &options) {
  buildGDNToStagesPipeline(manager, options);
  buildStagesToTilePipeline(manager, options);
}

void gdn::buildGDNToLLVMPipeline(OpPassManager &manager,
                                 const LoweringOptions &options) {
  buildGDNToTilePipeline(manager, options);
  buildTileToLLVMPipeline(manager, options);
}

namespace {
/// PassPipelineRegistration<LoweringOptions>, but with a look at all values.
struct Registration {
  using Builder = void (*)(OpPassManager &, const LoweringOptions &);

  Registration(StringRef name, StringRef description, Builder build) {
    registerPassPipeline(
        name, description,
        [build](OpPassManager &manager, StringRef text,
                function_ref<LogicalResult(const Twine &)> emitError) {
          LoweringOptions options;
          if (failed(options.parseFromString(text)))
            return failure();
          if (std::string wrong = findWrongOption(options); !wrong.empty())
            return emitError(wrong);
          build(manager, options);
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)> visit) {
          visit(LoweringOptions());
        });
  }
};
} // namespace

void gdn::registerPipelines() {
  Registration("gdn-to-stages", "Lower layer ops to stage ops",
               buildGDNToStagesPipeline);
  Registration("gdn-to-tile", "Lower layer ops to tile programs",
               buildGDNToTilePipeline);
  Registration("gdn-tile-to-llvm",
               "Lower tile programs and their launches to the LLVM dialect for "
               "a CPU",
               buildTileToLLVMPipeline);
  Registration("gdn-to-llvm", "Lower layer ops to the LLVM dialect for a CPU",
               buildGDNToLLVMPipeline);
  Registration("gdn-to-warp",
               "Lower layer ops to kernels of the explicit form for a GPU",
               buildGDNToWarpPipeline);
  Registration("gdn-tile-to-warp",
               "Lower tile programs to kernels of the explicit form for a GPU",
               buildTileToWarpPipeline);
  PassPipelineRegistration<>(
      "gdn-warp-to-llvm",
      "Lower kernels of the explicit form to the LLVM and nvvm dialects",
      buildWarpToLLVMPipeline);
  Registration("gdn-to-nvvm",
               "Lower layer ops to kernels in the LLVM and nvvm dialects",
               buildGDNToNVVMPipeline);
}
