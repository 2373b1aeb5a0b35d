//===- ChooseSchedule.cpp - Who does what, by the program and its grid ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Conversion/ScheduleTemplates.h"
#include "gdn/CostModel/CostModel.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "gdn-warp-choose-schedule"

namespace mlir::gdn {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;
namespace cost = ::gdn::cost;
using remark::metric;

namespace {
struct ChooseSchedule
    : mlir::gdn::impl::ChooseSchedulePassBase<ChooseSchedule> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  void runOnOperation() override {
    if (failed(chooseAll()))
      return signalPassFailure();
    // What nobody launches has no grid to choose by, and needs no kernel.
    for (auto program :
         llvm::make_early_inc_range(getOperation().getOps<tile::ProgramOp>()))
      if (!program->hasAttr(ScheduleAttr::kName))
        program.erase();
  }

  LogicalResult chooseAll();
  LogicalResult choose(const ScheduleTemplates &templates,
                       tile::ProgramOp program, tile::LaunchOp launch);
  StringRef readChoice(Operation *function, StringRef stage);
  cost::Workload describe(tile::LaunchOp launch, const ProgramFacts &facts);
};
} // namespace

/// The stages that a function launches.
static SmallVector<StringRef> findStages(FunctionOpInterface function,
                                         ModuleOp module) {
  SmallVector<StringRef> stages;
  function.walk([&](tile::LaunchOp launch) {
    auto program = module.lookupSymbol<tile::ProgramOp>(launch.getProgram());
    auto stage = program ? program->getAttrOfType<StringAttr>(
                               tile::TileDialect::getStageAttrName())
                         : StringAttr();
    if (stage && !llvm::is_contained(stages, stage.getValue()))
      stages.push_back(stage.getValue());
  });
  return stages;
}

/// Checks what a function says of the schedules of its stages.
static LogicalResult
checkChoices(FunctionOpInterface function, ModuleOp module,
             llvm::function_ref<LogicalResult(Operation *, StringRef)> check) {
  auto choices = function->getAttrOfType<DictionaryAttr>(
      WarpDialect::getSchedulesAttrName());
  if (!choices)
    return success();
  SmallVector<StringRef> stages = findStages(function, module);
  for (NamedAttribute choice : choices) {
    if (!llvm::is_contained(stages, choice.getName().getValue()))
      return function->emitOpError("expected ")
             << WarpDialect::getSchedulesAttrName()
             << " of stages that it launches (" << llvm::join(stages, ", ")
             << "), got " << choice.getName().getValue();
    if (failed(check(function, cast<StringAttr>(choice.getValue()).getValue())))
      return failure();
  }
  return success();
}

LogicalResult ChooseSchedule::chooseAll() {
  for (auto [name, value] : {std::pair("sequences", sequences.getValue()),
                             std::pair("tokens", tokens.getValue()),
                             std::pair("longest", longest.getValue())})
    if (value < 0)
      return getOperation().emitError("expected ")
             << name << " of at least 0, got " << value;
  FailureOr<ScheduleTemplates> templates = ScheduleTemplates::load(
      &getContext(), scheduleFile, [&] { return getOperation().emitError(); });
  if (failed(templates))
    return failure();
  auto check = [&](Operation *op, StringRef name) -> LogicalResult {
    if (name == "auto" || templates->knows(name))
      return success();
    return op->emitError("expected schedule auto, or one of: ")
           << templates->listNames() << "; got " << name;
  };
  if (failed(check(getOperation(), schedule)))
    return failure();
  for (auto function : getOperation().getOps<FunctionOpInterface>())
    if (failed(checkChoices(function, getOperation(), check)))
      return failure();
  WalkResult walked = getOperation().walk([&](tile::LaunchOp launch) {
    auto program =
        getOperation().lookupSymbol<tile::ProgramOp>(launch.getProgram());
    bool isOpen = program && !program->hasAttr(ScheduleAttr::kName);
    return isOpen && failed(choose(*templates, program, launch))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// What a function says of the schedule of a stage, or else the option.
StringRef ChooseSchedule::readChoice(Operation *function, StringRef stage) {
  auto own = function ? function->getAttrOfType<DictionaryAttr>(
                            WarpDialect::getSchedulesAttrName())
                      : DictionaryAttr();
  auto choice = own ? own.getAs<StringAttr>(stage) : StringAttr();
  return choice ? choice.getValue() : StringRef(schedule);
}

/// What the cost model may know of a launch: what is constant, or else what
/// the options say.
cost::Workload ChooseSchedule::describe(tile::LaunchOp launch,
                                        const ProgramFacts &facts) {
  auto know = [](Value value, int64_t option) -> std::optional<int64_t> {
    std::optional<int64_t> constant = getConstantIntValue(value);
    if (constant && *constant >= 0)
      return constant;
    return option > 0 ? std::optional(option) : std::nullopt;
  };
  cost::Workload workload;
  if (!facts.stage.empty())
    workload.stage = facts.stage;
  workload.packed = static_cast<bool>(launch.getCuSeqlens());
  workload.sequences = know(launch.getGrid()[0], sequences);
  workload.tokens = know(launch.getTokens(), tokens);
  if (longest > 0)
    workload.longest = longest;
  workload.heads = workload.keyHeads =
      know(launch.getGrid()[1], 0).value_or(getArch(launch).multiprocessors);
  workload.vTiles = facts.vTiles;
  workload.gatesChannels = facts.gatesChannels;
  workload.valueChannels = facts.vTiles * cost::kVTileChannels;
  return workload;
}

/// Says of each template why it is not for the program.
static LogicalResult refuse(tile::ProgramOp program,
                            ArrayRef<ConsideredTemplate> considered) {
  InFlightDiagnostic diagnostic =
      program.emitOpError("expected a schedule template that fits the "
                          "program, got none among ")
      << considered.size();
  for (const ConsideredTemplate &one : considered) {
    ScheduleTemplateOp form = one.form;
    diagnostic.attachNote(program.getLoc())
        << form.getSymName() << ": " << one.reason;
  }
  return diagnostic;
}

/// Reports the estimate of every schedule, and the roles and channels of the
/// one that `program` gets from template `form`.
static void report(tile::ProgramOp program, ScheduleTemplateOp form,
                   ScheduleAttr schedule, const cost::Choice &choice) {
  LLVM_DEBUG(llvm::dbgs() << "@" << program.getSymName() << ": template @"
                          << form.getSymName() << ", " << schedule << "\n");
  analyse(program, DEBUG_TYPE, "Template")
      << metric("Template", form.getSymName());
  for (const cost::Estimate &estimate : choice.estimates)
    analyse(program, DEBUG_TYPE, "Estimate")
        << metric("Schedule", estimate.schedule.name)
        << metric("CTAs", estimate.ctas)
        << metric("Microseconds",
                  llvm::formatv("{0:f1}", estimate.seconds * 1e6).str());
  for (RoleSpecAttr role : schedule.getRoles())
    analyse(program, DEBUG_TYPE, "Role")
        << metric("Role", role.getName()) << metric("Warps", role.getWarps())
        << metric("Registers", role.getRegisters());
  for (ChannelSpecAttr channel : schedule.getChannels())
    analyse(program, DEBUG_TYPE, "Channel")
        << metric("Channel", channel.getName())
        << metric("Slots", channel.getDepth());
}

LogicalResult ChooseSchedule::choose(const ScheduleTemplates &templates,
                                     tile::ProgramOp program,
                                     tile::LaunchOp launch) {
  ProgramFacts facts = measureProgram(program, launch);
  StringRef wanted =
      readChoice(launch->getParentOfType<FunctionOpInterface>(), facts.stage);
  cost::Choice choice =
      cost::choose(describe(launch, facts), cost::getChip(getArch(program)),
                   cost::findSchedule(wanted));
  SmallVector<ConsideredTemplate> considered =
      templates.consider(facts, wanted);
  ScheduleTemplateOp form = pickTemplate(considered, choice.schedule.name);
  if (!form)
    return refuse(program, considered);
  bool inTurn = llvm::any_of(choice.estimates, [&](const cost::Estimate &one) {
    return one.inTurn &&
           llvm::is_contained(form.getSchedules().getAsValueRange<StringAttr>(),
                              StringRef(one.schedule.name));
  });
  // A CTA writes zeros before its roles begin, once.
  bool clears = !program.getBody().getOps<tile::ClearOp>().empty();
  bool persistent =
      form.getAlwaysPersistent() || (form.getPersistent() && inTurn);
  FailureOr<ScheduleAttr> fitted =
      fitSchedule(form, program, launch, facts, persistent && !clears);
  if (failed(fitted))
    return failure();
  program->setAttr(ScheduleAttr::kName, *fitted);
  ++numFitted;
  report(program, form, *fitted, choice);
  return success();
}
