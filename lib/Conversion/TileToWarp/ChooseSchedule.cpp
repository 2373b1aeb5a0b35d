//===- ChooseSchedule.cpp - Who does what, by the program and its grid ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"
#include "gdn/Conversion/ScheduleTemplates.h"
#include "gdn/CostModel/CostModel.h"
#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#define DEBUG_TYPE "gdn-warp-choose-schedule"

namespace mlir::gdn {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;
namespace cost = ::gdn::cost;

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
  cost::Problem describe(tile::LaunchOp launch, int64_t vTiles);
};
} // namespace

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
  if (schedule != "auto" && !templates->knows(schedule))
    return getOperation().emitError("expected schedule auto, or one of: ")
           << templates->listNames() << "; got " << schedule;
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

/// What the cost model may know of a launch: what is constant, or else what
/// the options say.
cost::Problem ChooseSchedule::describe(tile::LaunchOp launch, int64_t vTiles) {
  auto know = [](Value value, int64_t option) -> std::optional<int64_t> {
    std::optional<int64_t> constant = getConstantIntValue(value);
    if (constant && *constant >= 0)
      return constant;
    return option > 0 ? std::optional(option) : std::nullopt;
  };
  cost::Problem problem;
  problem.packed = static_cast<bool>(launch.getCuSeqlens());
  problem.sequences = know(launch.getGrid()[0], sequences);
  problem.tokens = know(launch.getTokens(), tokens);
  if (longest > 0)
    problem.longest = longest;
  problem.heads = problem.keyHeads =
      know(launch.getGrid()[1], 0).value_or(kSm90a.multiprocessors);
  problem.vTiles = vTiles;
  problem.valueChannels = vTiles * cost::kVTileChannels;
  return problem;
}

/// The templates that may be taken for a program; says why others may not.
static LogicalResult
findCandidates(const ScheduleTemplates &templates, StringRef wanted,
               tile::ProgramOp program, const ProgramFacts &facts,
               SmallVectorImpl<ScheduleTemplateOp> &candidates) {
  SmallVector<std::string> reasons;
  for (ScheduleTemplateOp form : templates.getAll()) {
    if (wanted != "auto" && !isNamed(form, wanted))
      continue;
    std::string reason = whyNot(form, facts);
    if (reason.empty())
      candidates.push_back(form);
    else
      reasons.push_back((form.getSymName() + ": " + reason).str());
  }
  if (!candidates.empty())
    return success();
  InFlightDiagnostic diagnostic =
      program.emitOpError("expected a schedule template that fits the "
                          "program, got none among ")
      << reasons.size();
  for (const std::string &reason : reasons)
    diagnostic.attachNote(program.getLoc()) << reason;
  return diagnostic;
}

LogicalResult ChooseSchedule::choose(const ScheduleTemplates &templates,
                                     tile::ProgramOp program,
                                     tile::LaunchOp launch) {
  ProgramFacts facts = measureProgram(program, launch);
  SmallVector<ScheduleTemplateOp> candidates;
  if (failed(findCandidates(templates, schedule, program, facts, candidates)))
    return failure();
  cost::Choice choice =
      cost::choose(describe(launch, facts.vTiles), cost::getHopper(),
                   cost::findSchedule(schedule.getValue()));
  // The first of the schedule that is predicted to be faster, or else of any.
  auto *found = llvm::find_if(candidates, [&](ScheduleTemplateOp form) {
    return isNamed(form, cost::costsOf(choice.schedule).name);
  });
  ScheduleTemplateOp form =
      found == candidates.end() ? candidates.front() : *found;
  FailureOr<ScheduleAttr> fitted =
      fitSchedule(form, program, launch, facts,
                  form.getPersistent() && choice.chosen().inTurn);
  if (failed(fitted))
    return failure();
  program->setAttr(ScheduleAttr::kName, *fitted);
  return success();
}
