//===- Explain.cpp - What a file's layers will run and cost ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Explain.h"

#include "gdn/Conversion/ScheduleTemplates.h"
#include "gdn/Tools/Error.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Tools/Arguments.h"
#include "gdn/Tools/Flop.h"

#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
namespace cost = ::gdn::cost;

//===----------------------------------------------------------------------===//
// What is known of a layer
//===----------------------------------------------------------------------===//

namespace {
/// Reads one layer.
class LayerReader {
public:
  LayerReader(DeltaRuleOpInterface op, const CompileOptions &options)
      : op(op), options(options) {
    layer.function = op->getParentOfType<func::FuncOp>().getSymName().str();
    layer.op = op->getName().getStringRef().str();
  }

  llvm::Expected<LayerChoice> read();

private:
  llvm::Error set(llvm::StringRef name, int64_t size, llvm::StringRef source);
  llvm::Error readSizes();
  llvm::Error requireSizes();
  int64_t chunkSize();
  void describe();

  DeltaRuleOpInterface op;
  const CompileOptions &options;
  LayerChoice layer;
};
} // namespace

/// Takes a size that must be the one that is known, if there is one.
llvm::Error LayerReader::set(llvm::StringRef name, int64_t size,
                             llvm::StringRef source) {
  auto [entry, isNew] = layer.sizes.try_emplace(name.str(), size);
  if (isNew || entry->second == size)
    return llvm::Error::success();
  return fail("expected {0} = {1} as {2} in @{3} has it, got {4} from {5}",
              name, entry->second, layer.op, layer.function, size, source);
}

llvm::Error LayerReader::readSizes() {
  for (auto [operand, role] : operandsOf(op)) {
    auto type =
        operand ? dyn_cast<ShapedType>(operand.getType()) : ShapedType();
    if (!type)
      continue;
    for (auto [name, size] :
         llvm::zip(dimNamesOf(op, role, type.getRank()), type.getShape()))
      if (!ShapedType::isDynamic(size))
        if (llvm::Error error = name == "N+1" ? set("N", size - 1, "its type")
                                              : set(name, size, "its type"))
          return error;
  }
  const SizeHints &hints = options.sizes;
  if (op.getCuSeqlens() && hints.lengths)
    for (llvm::StringRef name : {"N", "T"})
      if (llvm::Error error =
              set(name, hints.get(name).value_or(0), "--lengths"))
        return error;
  // What is settled may differ between layers: --dim only fills in.
  for (auto &[name, size] : hints.dims)
    layer.sizes.try_emplace(name, size);
  if (op.getCuSeqlens())
    return set("B", 1, "cu_seqlens");
  // A sequence a batch.
  for (auto [from, to] : {std::pair("B", "N"), std::pair("N", "B")})
    if (auto known = layer.sizes.find(from); known != layer.sizes.end())
      if (llvm::Error error = set(to, known->second, from))
        return error;
  return llvm::Error::success();
}

llvm::Error LayerReader::requireSizes() {
  for (llvm::StringRef name : {"B", "T", "N", "Hq", "H"}) {
    if (layer.sizes.count(name.str()))
      continue;
    bool isLength = op.getCuSeqlens() && (name == "T" || name == "N");
    return fail("expected --dim {0}=<size>{1} for {2} in @{3}, got none", name,
                isLength ? " or --lengths=<length>,<length>..." : "", layer.op,
                layer.function);
  }
  for (auto &[name, size] : layer.sizes)
    if (size > std::numeric_limits<int32_t>::max())
      return fail("expected {0} of at most 2147483647 for {1} in @{2}, got {3}",
                  name, layer.op, layer.function, size);
  int64_t queryHeads = layer.sizes["Hq"], heads = layer.sizes["H"];
  if (queryHeads < 1 || heads % queryHeads != 0)
    return fail("expected H to be a multiple of Hq = {0} in @{1}, got {2}",
                queryHeads, layer.function, heads);
  return llvm::Error::success();
}

/// Bytes of an element, 0 for what is not there.
static int64_t bytesOf(Value value) {
  if (!value)
    return 0;
  return cast<ShapedType>(value.getType()).getElementTypeBitWidth() / 8;
}

/// What a layer returns, or the buffers of it.
static ValueRange resultsOf(Operation *op) {
  if (auto rule = dyn_cast<ChunkGatedDeltaRuleOp>(op);
      rule && !rule.getOuts().empty())
    return rule.getOuts();
  if (auto rule = dyn_cast<RecurrentGatedDeltaRuleOp>(op);
      rule && !rule.getOuts().empty())
    return rule.getOuts();
  return op->getResults();
}

/// The final state of a layer, which is there with what is saved or alone.
static Value finalStateOf(Operation *op) {
  ValueRange results = resultsOf(op);
  if (isa<StatePassStageOp>(op))
    return results[0];
  return results.size() % 2 == 0 ? results[1] : Value();
}

static bool isRecurrent(Operation *op) {
  return isa<RecurrentGatedDeltaRuleOp, RecurrentStageOp>(op);
}

int64_t LayerReader::chunkSize() {
  if (isRecurrent(op))
    return 1;
  auto wish = op->getAttrOfType<IntegerAttr>("chunk_size");
  return wish ? wish.getInt() : options.chunkSize;
}

/// The layer as the cost model sees it.
void LayerReader::describe() {
  std::map<std::string, int64_t> &sizes = layer.sizes;
  cost::Workload &workload = layer.workload;
  if (isa<StatePassStageOp>(op))
    workload.stage = "state_pass";
  workload.packed = static_cast<bool>(op.getCuSeqlens());
  workload.sequences = sizes["N"];
  workload.tokens = sizes["T"];
  workload.longest = options.sizes.getLongest();
  workload.keyHeads = sizes["Hq"];
  workload.heads = sizes["H"];
  workload.keyChannels = sizes["K"];
  workload.valueChannels = sizes["V"];
  workload.vTiles =
      options.vTiles == 1
          ? std::max<int64_t>(sizes["V"] / cost::kVTileChannels, 1)
          : options.vTiles;
  workload.chunkTokens = layer.chunkSize;
  workload.dataBytes = bytesOf(op.getV());
  auto gate = op.getGate();
  bool byChannel = gate && cast<ShapedType>(gate.getType()).getRank() == 4;
  workload.gateBytes =
      bytesOf(gate) * (byChannel ? sizes["K"] : 1) + bytesOf(op.getBeta());
  workload.gatesChannels = byChannel;
  workload.stateBytes =
      bytesOf(op.getInitialState()) + bytesOf(finalStateOf(op));
  if (auto interval = op->getAttrOfType<IntegerAttr>("state_interval"))
    workload.stateInterval = interval.getInt();
}

llvm::Expected<LayerChoice> LayerReader::read() {
  if (!isa<ChunkGatedDeltaRuleOp, FusedStageOp, StatePassStageOp>(op) &&
      !isRecurrent(op))
    return fail("expected forward layers to explain, got {0} in @{1}", layer.op,
                layer.function);
  if (llvm::Error error = readSizes())
    return std::move(error);
  if (llvm::Error error = requireSizes())
    return std::move(error);
  layer.chunkSize = chunkSize();
  describe();
  return std::move(layer);
}

//===----------------------------------------------------------------------===//
// What it costs
//===----------------------------------------------------------------------===//

static void chooseForGPU(LayerChoice &layer, const CompileOptions &options) {
  layer.choice = cost::choose(layer.workload, cost::getDefaultChip(),
                              cost::findSchedule(options.schedule));
}

/// The type that operands of products are rounded to.
static cost::CoreOperand operandOf(DeltaRuleOpInterface op,
                                   const CompileOptions &options) {
  Type data = cast<ShapedType>(op.getV().getType()).getElementType();
  if (options.operandType == "bf16" ||
      (options.operandType == "auto" && data.isBF16()))
    return cost::CoreOperand::BF16;
  if (options.operandType == "f16" ||
      (options.operandType == "auto" && data.isF16()))
    return cost::CoreOperand::F16;
  return cost::CoreOperand::F32;
}

static void chooseForCPU(LayerChoice &layer, DeltaRuleOpInterface op,
                         const CompileOptions &options) {
  cost::CoreLevel level =
      cpu::hasBF16Dot(options.target)             ? cost::CoreLevel::V4BF16
      : cpu::getVectorBits(options.target) >= 512 ? cost::CoreLevel::V4
                                                  : cost::CoreLevel::V3;
  const cost::Core &core = cost::coreOf(level, operandOf(op, options));
  const cost::Workload &workload = layer.workload;
  auto secondsOf = [&](int64_t tokens) {
    return isRecurrent(op)
               ? cost::recurrentSeconds(core, tokens, workload.keyChannels,
                                        workload.valueChannels,
                                        workload.gatesChannels)
               : cost::chunkedSeconds(
                     core, tokens, workload.keyChannels, workload.valueChannels,
                     workload.chunkTokens, workload.gatesChannels);
  };
  double seconds = 0;
  int64_t count = layer.sizes["N"], tokens = layer.sizes["T"];
  if (workload.packed && options.sizes.lengths)
    for (int64_t length : *options.sizes.lengths)
      seconds += secondsOf(length);
  else if (count > 0)
    seconds = static_cast<double>(count) *
              secondsOf(workload.packed ? tokens / count : tokens);
  layer.coreSeconds = seconds * static_cast<double>(workload.heads);
  layer.choice.flop =
      flopPerToken(op, static_cast<double>(workload.keyChannels),
                   static_cast<double>(workload.valueChannels)) *
      static_cast<double>(layer.sizes["B"]) * static_cast<double>(tokens) *
      static_cast<double>(workload.heads);
  layer.choice.bytes = cost::countBytes(workload);
}

/// Notes the templates that the program of each layer may have. A layer is one
/// launch, in the order of the file.
static void considerTemplates(ModuleOp module, const CompileOptions &options,
                              std::vector<LayerChoice> &layers) {
  FailureOr<ScheduleTemplates> templates =
      ScheduleTemplates::load(module.getContext(), options.scheduleFile,
                              [&] { return module.emitError(); });
  llvm::SmallVector<tile::LaunchOp> launches;
  module.walk([&](tile::LaunchOp launch) { launches.push_back(launch); });
  if (failed(templates) || launches.size() != layers.size())
    return;
  for (auto [layer, launch] : llvm::zip(layers, launches)) {
    auto program = module.lookupSymbol<tile::ProgramOp>(launch.getProgram());
    if (!program)
      continue;
    ProgramFacts facts = measureProgram(program, launch);
    llvm::SmallVector<ConsideredTemplate> considered =
        templates->consider(facts, options.schedule);
    auto taken = pickTemplate(considered, layer.choice.schedule.name);
    if (taken)
      layer.scheduleTemplate = taken.getSymName().str();
    for (ConsideredTemplate &one : considered)
      if (one.form != taken && one.isOfStage)
        layer.otherTemplates.emplace_back(
            one.form.getSymName().str(),
            one.reason.empty()
                ? "another one comes first or is predicted to be "
                  "faster"
                : one.reason);
  }
}

llvm::Expected<std::vector<LayerChoice>>
tools::explain(ModuleOp module, const CompileOptions &options) {
  std::vector<LayerChoice> layers;
  llvm::Error error = llvm::Error::success();
  module.walk([&](DeltaRuleOpInterface op) {
    llvm::Expected<LayerChoice> layer = LayerReader(op, options).read();
    if (!layer) {
      error = llvm::joinErrors(std::move(error), layer.takeError());
      return WalkResult::interrupt();
    }
    if (options.device == Device::GPU)
      chooseForGPU(*layer, options);
    else
      chooseForCPU(*layer, op, options);
    layers.push_back(std::move(*layer));
    return WalkResult::advance();
  });
  if (error)
    return std::move(error);
  if (layers.empty())
    return fail("expected a file with layers of the gdn dialect to explain, "
                "got none");
  // What cannot be compiled has no schedule.
  if (options.device == Device::GPU) {
    OwningOpRef<ModuleOp> lowered = module.clone();
    auto consider = [&](Level level, ModuleOp reached) {
      if (level == Level::Tile)
        considerTemplates(reached, options, layers);
      return llvm::Error::success();
    };
    if (failed(lower(*lowered, Level::Warp, options, consider)))
      return fail("expected layers that can be compiled, got the above");
  }
  return layers;
}
