//===- Compile.cpp - Parse modules and take them down ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Compile.h"
#include "gdn/Tools/Error.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/InitAll.h"
#include "gdn/Pipelines/Pipelines.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

llvm::Expected<Device> tools::parseTarget(llvm::StringRef target) {
  if (target == support::cpuTarget)
    return Device::CPU;
  if (target == support::gpuTarget)
    return Device::GPU;
  return fail("expected --target of one of: {0}, {1}, got '{2}'",
              support::cpuTarget, support::gpuTarget, target);
}

std::optional<int64_t> SizeHints::get(llvm::StringRef name) const {
  if (lengths && name == "N")
    return lengths->size();
  if (lengths && name == "T")
    return std::accumulate(lengths->begin(), lengths->end(), int64_t(0));
  auto found = dims.find(name.str());
  return found == dims.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> SizeHints::getLongest() const {
  if (lengths && !lengths->empty())
    return *llvm::max_element(*lengths);
  return longest;
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  return registry;
}

Session::Session(bool printsOps)
    : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(printsOps);
}
Session::~Session() = default;

OwningOpRef<ModuleOp>
Session::parse(std::unique_ptr<llvm::MemoryBuffer> buffer) {
  sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), SMLoc());
  handler.reset();
  handler = std::make_unique<SourceMgrDiagnosticHandler>(*sources, &context);
  bool isReported = false;
  // Called before the handler that prints, which gets it all the same.
  ScopedDiagnosticHandler watcher(&context, [&](Diagnostic &diagnostic) {
    isReported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure();
  });
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (module || isReported)
    return module;
  // MLIR's reader of bytecode refuses some files without a diagnostic.
  llvm::StringRef name =
      sources->getMemoryBuffer(sources->getMainFileID())->getBufferIdentifier();
  emitError(FileLineColLoc::get(&context, name, 0, 0))
      << "expected MLIR's text or bytecode, got what its reader refuses "
         "without a diagnostic; bytecode with wrong bytes does this";
  return module;
}

OwningOpRef<ModuleOp> Session::parseFile(llvm::StringRef path) {
  std::string reason;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &reason);
  if (!file) {
    llvm::errs() << "error: " << reason << "\n";
    return nullptr;
  }
  return parse(std::move(file));
}

OwningOpRef<ModuleOp> Session::parseText(llvm::StringRef text,
                                         llvm::StringRef name) {
  return parse(llvm::MemoryBuffer::getMemBufferCopy(text, name));
}

LogicalResult tools::planCalls(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createPlanCallsPass());
  return manager.run(module);
}

llvm::StringRef tools::name(Level level) {
  switch (level) {
  case Level::Stages:
    return "stages";
  case Level::Tile:
    return "tile";
  case Level::LLVM:
    return "llvm";
  case Level::Warp:
    return "warp";
  case Level::NVVM:
    return "nvvm";
  }
  llvm_unreachable("covered switch");
}

/// The levels on the way to one, itself the last.
static llvm::ArrayRef<Level> getWay(Level level) {
  static constexpr Level cpu[] = {Level::Stages, Level::Tile, Level::LLVM};
  static constexpr Level gpu[] = {Level::Stages, Level::Tile, Level::Warp,
                                  Level::NVVM};
  bool isGPU = level == Level::Warp || level == Level::NVVM;
  llvm::ArrayRef<Level> way = isGPU ? llvm::ArrayRef(gpu) : cpu;
  return way.take_front(llvm::find(way, level) - way.begin() + 1);
}

/// Whether a module stands below the tile level: it holds kernels, whose ops
/// the passes of the levels above do not know.
static bool hasKernels(ModuleOp module) {
  return llvm::any_of(*module.getBody(), [](Operation &op) {
    StringRef dialect = op.getName().getDialectNamespace();
    return dialect == "gdn_warp" || dialect == "llvm";
  });
}

/// Adds the passes from the level above to `level`.
static void addStep(PassManager &manager, Level level, Device device,
                    const LoweringOptions &lowering) {
  switch (level) {
  case Level::Stages:
    if (device == Device::GPU)
      buildCallsPipeline(manager);
    return buildGDNToStagesPipeline(manager, lowering);
  case Level::Tile:
    return buildStagesToTilePipeline(manager, lowering);
  case Level::LLVM:
    return buildTileToLLVMPipeline(manager, lowering);
  case Level::Warp:
    return buildTileToWarpPipeline(manager, lowering);
  case Level::NVVM:
    return buildWarpToLLVMPipeline(manager);
  }
}

/// Takes the options over one by one.
static void read(const CompileOptions &options, LoweringOptions &lowering) {
  lowering.plan = options.plan;
  lowering.backward = options.backward;
  if (options.device == Device::GPU && options.backward == "auto")
    lowering.backward = "three";
  lowering.chunkSize = options.chunkSize;
  lowering.gateBound = options.gateBound;
  lowering.segments = options.segments;
  lowering.segmentLength = options.segmentLength;
  lowering.decayTolerance = options.decayTolerance;
  lowering.ownStarts = options.ownStarts;
  lowering.fewerSegments = options.fewerSegments;
  lowering.sideBySide = options.sideBySide;
  lowering.followAdjoint = options.followAdjoint;
  lowering.stateInterval = options.stateInterval;
  lowering.clusterHeads = options.device == Device::GPU;
  const warp::Arch *arch = warp::findArch(lowering.chip);
  lowering.workItems =
      options.device == Device::GPU && arch ? arch->multiprocessors : 0;
  lowering.operandType = options.operandType;
  // A GPU's V tiles are those of a product's rows unless somebody says
  // otherwise.
  bool chooses = options.device == Device::GPU && options.vTiles == 1;
  lowering.vTiles = chooses ? 0 : options.vTiles;
  lowering.schedule = options.schedule;
  lowering.scheduleFile = options.scheduleFile;
  lowering.lanesArrive = options.lanesArrive;
  lowering.serialProducts = options.serialProducts;
  const SizeHints &sizes = options.sizes;
  std::optional<int64_t> count = sizes.get("N");
  lowering.sequences = count ? *count : sizes.get("B").value_or(0);
  lowering.tokens = sizes.get("T").value_or(0);
  lowering.longest = sizes.getLongest().value_or(0);
  lowering.parallel = options.parallel;
  lowering.twoProductChain = options.twoProductChain;
  lowering.vectorBits = cpu::getVectorBits(options.target);
  lowering.bf16Dot = cpu::hasBF16Dot(options.target);
  lowering.amx = cpu::hasAMX(options.target);
  lowering.bf16Rounding = cpu::hasBF16Rounding(options.target);
}

llvm::Error tools::checkOptions(const CompileOptions &options) {
  // 0 leaves the number to a pass, which the tools ask for by 1.
  if (options.vTiles < 1)
    return fail("expected --v-tiles of at least 1, got {0}", options.vTiles);
  LoweringOptions lowering;
  read(options, lowering);
  std::string wrong = findWrongOption(lowering, "--");
  return wrong.empty() ? llvm::Error::success() : fail("{0}", wrong);
}

LogicalResult
tools::lower(ModuleOp module, Level level, const CompileOptions &options,
             llvm::function_ref<llvm::Error(Level, ModuleOp)> reached) {
  LoweringOptions lowering;
  read(options, lowering);
  for (Level step : getWay(level)) {
    PassManager manager(module.getContext());
    manager.enableVerifier(options.verifyEach);
    if (step == Level::NVVM || !hasKernels(module))
      addStep(manager, step, options.device, lowering);
    if (failed(manager.run(module)))
      return failure();
    if (!options.verifyEach && failed(verify(module)))
      return failure();
    if (!reached)
      continue;
    if (llvm::Error error = reached(step, module))
      return module.emitError(llvm::toString(std::move(error)));
  }
  return success();
}
