//===- ScheduleTemplates.cpp - Which schedules a program may have ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/ScheduleTemplates.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::gdn;
using warp::ScheduleTemplateOp;

namespace {
/// A file of templates that is part of the program.
struct EmbeddedFile {
  const char *name, *text;
};
} // namespace

static constexpr EmbeddedFile kFiles[] = {
#include "Schedules.inc"
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Chunks of an iteration: one more than the greatest number of a chunk.
static void countChunks(Operation *op, ProgramFacts &facts) {
  // More than any schedule has, and few enough to compute with.
  constexpr int64_t kTooMany = 1 << 16;
  if (auto chunk =
          op->getAttrOfType<IntegerAttr>(tile::TileDialect::getChunkAttrName()))
    facts.chunks =
        std::max(facts.chunks, std::min(chunk.getInt(), kTooMany) + 1);
}

/// Whether the program has gates [B, T, H, K].
static bool hasChannelGates(tile::ProgramOp program) {
  std::optional<ArrayAttr> names = program.getArgNames();
  return names && llvm::any_of(llvm::zip(program.getArrays(), *names),
                               [](const auto &one) {
                                 auto [array, name] = one;
                                 auto type =
                                     dyn_cast<MemRefType>(array.getType());
                                 return cast<StringAttr>(name) == "gate" &&
                                        type && type.getRank() == 4;
                               });
}

static int64_t countBytes(RankedTensorType tile) {
  Type element = tile.getElementType();
  return element.isIntOrFloat()
             ? tile.getNumElements() * element.getIntOrFloatBitWidth() / 8
             : 0;
}

/// The tokens of a chunk of the loop whose iterations are least.
static int64_t countChunkTokens(tile::ProgramOp program, int64_t chunks) {
  int64_t least = 0;
  program.walk([&](scf::ForOp loop) {
    int64_t tokens = getConstantIntValue(loop.getStep()).value_or(0) /
                     std::max<int64_t>(chunks, 1);
    least = least ? std::min(least, tokens) : tokens;
  });
  return least;
}

ProgramFacts gdn::measureProgram(tile::ProgramOp program,
                                 tile::LaunchOp launch) {
  ProgramFacts facts;
  if (auto stage = program->getAttrOfType<StringAttr>(
          tile::TileDialect::getStageAttrName()))
    facts.stage = stage.getValue();
  facts.vTiles = getConstantIntValue(launch.getGrid()[2]).value_or(1);
  facts.gatesChannels = hasChannelGates(program);
  program.walk([&](Operation *op) {
    countChunks(op, facts);
    if (auto step =
            op->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName()))
      facts.steps.insert(step.getValue());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Type type : loop.getResultTypes())
        if (auto tile = dyn_cast<RankedTensorType>(type);
            tile && tile.getRank() == 2) {
          facts.stateColumns = std::max(facts.stateColumns, tile.getDimSize(1));
          facts.stateEntries =
              std::max(facts.stateEntries, tile.getNumElements());
        }
    if (auto sum = dyn_cast<tile::ClusterSumOp>(op))
      facts.cluster = sum.getItems();
    auto load = dyn_cast<tile::LoadOp>(op);
    bool isInLoop = op->getParentOfType<scf::ForOp>();
    if (load && load.getType().getRank() == 2 && !isInLoop)
      facts.stateBits = std::max<int64_t>(
          facts.stateBits, load.getType().getElementTypeBitWidth());
    if (load && load.getType().getRank() == 2 && isInLoop)
      facts.tileBytes = std::max(facts.tileBytes, countBytes(load.getType()));
    if (load && load.getType().getRank() == 1 && isInLoop &&
        load.getType().getNumElements() > 1)
      ++facts.vectors;
  });
  facts.chunkTokens = countChunkTokens(program, facts.chunks);
  return facts;
}

static bool contains(ArrayAttr list, StringRef name) {
  return list && llvm::is_contained(list.getAsValueRange<StringAttr>(), name);
}

static std::string join(ArrayAttr list) {
  return llvm::join(list.getAsValueRange<StringAttr>(), ", ");
}

static std::string whyNot(warp::ConditionAttr when, const ProgramFacts &facts) {
  auto strings = [](ArrayAttr list) { return list ? list : ArrayAttr(); };
  for (auto [list, wanted] : {std::pair(strings(when.getSteps()), true),
                              std::pair(strings(when.getNoSteps()), false)})
    for (Attribute name : list ? list.getValue() : ArrayRef<Attribute>())
      if (StringRef step = cast<StringAttr>(name).getValue();
          facts.steps.contains(step) != wanted)
        return llvm::formatv("expected {0} step {1}",
                             wanted ? "a program with" : "none with", step);
  int64_t least = std::max<int64_t>(when.getMinVTiles(), 1),
          most = when.getMaxVTiles();
  if (facts.vTiles < least || (most != 0 && facts.vTiles > most))
    return llvm::formatv("expected {0}{1} V tiles, got {2}", least,
                         most == least ? ""
                         : most == 0   ? " or more"
                                       : " to " + std::to_string(most),
                         facts.vTiles);
  int64_t bits = when.getMaxStateBits();
  if ((when.getInitialState() || bits != 0) && facts.stateBits == 0)
    return "expected a state that is loaded before the loop, got none";
  if (bits != 0 && facts.stateBits > bits)
    return llvm::formatv("expected a loaded state of at most {0} bits, got {1}",
                         bits, facts.stateBits);
  int64_t columns = when.getMaxStateColumns();
  if (columns != 0 && facts.stateColumns > columns)
    return llvm::formatv("expected a state of at most {0} columns, got {1}",
                         columns, facts.stateColumns);
  int64_t entries = when.getMaxStateEntries();
  if (entries != 0 && facts.stateEntries > entries)
    return llvm::formatv("expected a state of at most {0} entries, got {1}",
                         entries, facts.stateEntries);
  int64_t vectors = when.getMaxVectors();
  if (vectors != 0 && facts.vectors > vectors)
    return llvm::formatv("expected a loop that loads at most {0} vectors, got "
                         "{1}",
                         vectors, facts.vectors);
  int64_t bytes = when.getMaxTileBytes();
  if (bytes != 0 && facts.tileBytes > bytes)
    return llvm::formatv("expected a loop that loads tiles of at most {0} "
                         "bytes, got one of {1}",
                         bytes, facts.tileBytes);
  int64_t tokens = when.getMinChunkTokens();
  if (facts.chunkTokens < tokens)
    return llvm::formatv("expected chunks of at least {0} tokens, got {1}",
                         tokens, facts.chunkTokens);
  return "";
}

static bool isOfStage(ScheduleTemplateOp form, const ProgramFacts &facts) {
  return !form.getStages() || facts.stage.empty() ||
         contains(*form.getStages(), facts.stage);
}

static std::string whyNot(ScheduleTemplateOp form, const ProgramFacts &facts) {
  if (!isOfStage(form, facts))
    return llvm::formatv("expected stage {0}, got {1}", join(*form.getStages()),
                         facts.stage);
  for (StringRef step : facts.steps)
    if (llvm::none_of(form.getRoles().getAsRange<warp::RoleTemplateAttr>(),
                      [&](warp::RoleTemplateAttr role) {
                        return contains(role.getSteps(), step) ||
                               contains(role.getDelayedSteps(), step);
                      }))
      return llvm::formatv("expected steps that it has roles for, got {0}",
                           step);
  return form.getWhenAttr() ? whyNot(form.getWhenAttr(), facts) : "";
}

//===----------------------------------------------------------------------===//
// Templates
//===----------------------------------------------------------------------===//

LogicalResult ScheduleTemplates::add(OwningOpRef<ModuleOp> module) {
  if (!module)
    return failure();
  for (Operation &op : *module->getBody()) {
    auto form = dyn_cast<ScheduleTemplateOp>(op);
    if (!form)
      return op.emitOpError("expected only schedule templates in their file");
    templates.push_back(form);
  }
  modules.push_back(std::move(module));
  return success();
}

FailureOr<ScheduleTemplates>
ScheduleTemplates::load(MLIRContext *context, StringRef file,
                        function_ref<InFlightDiagnostic()> emitError) {
  ScheduleTemplates all;
  if (!file.empty()) {
    std::string reason;
    std::unique_ptr<llvm::MemoryBuffer> text = openInputFile(file, &reason);
    if (!text)
      return emitError() << "expected a readable schedule-file, got " << reason;
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(std::move(text), SMLoc());
    if (failed(all.add(parseSourceFile<ModuleOp>(sources, context))))
      return failure();
  }
  for (const EmbeddedFile &embedded : kFiles)
    if (failed(all.add(parseSourceString<ModuleOp>(
            embedded.text, ParserConfig(context), embedded.name))))
      return failure();
  return all;
}

/// Whether `form` is called `name` or is of the schedule of that name.
static bool isNamed(ScheduleTemplateOp form, StringRef name) {
  return form.getSymName() == name || contains(form.getSchedules(), name);
}

SmallVector<ConsideredTemplate>
ScheduleTemplates::consider(const ProgramFacts &facts, StringRef wanted) const {
  // A template's own name is for the programs of its stages alone.
  bool isOfOthers = llvm::any_of(templates, [&](ScheduleTemplateOp form) {
    return form.getSymName() == wanted && !isOfStage(form, facts);
  });
  SmallVector<ConsideredTemplate> considered;
  for (ScheduleTemplateOp form : templates)
    if (wanted == "auto" || isOfOthers || isNamed(form, wanted))
      considered.push_back({form, whyNot(form, facts), isOfStage(form, facts)});
  return considered;
}

ScheduleTemplateOp gdn::pickTemplate(ArrayRef<ConsideredTemplate> considered,
                                     StringRef schedule) {
  ScheduleTemplateOp any;
  for (const ConsideredTemplate &one : considered) {
    if (!one.reason.empty())
      continue;
    if (isNamed(one.form, schedule))
      return one.form;
    if (!any)
      any = one.form;
  }
  return any;
}

bool ScheduleTemplates::knows(StringRef name) const {
  return llvm::any_of(
      templates, [&](ScheduleTemplateOp form) { return isNamed(form, name); });
}

std::string ScheduleTemplates::listNames() const {
  llvm::SetVector<StringRef> names;
  for (ScheduleTemplateOp form : templates)
    for (StringRef name : form.getSchedules().getAsValueRange<StringAttr>())
      names.insert(name);
  for (ScheduleTemplateOp form : templates)
    names.insert(const_cast<ScheduleTemplateOp &>(form).getSymName());
  return llvm::join(names, ", ");
}
