//===- AssignRoles.cpp - Who runs which op, and what crosses --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// Finds what a partition is.
class RoleAssignment {
public:
  explicit RoleAssignment(Partition &partition)
      : partition(partition), program(partition.program) {}

  LogicalResult run();

private:
  FailureOr<unsigned> findRole(Operation *op);
  LogicalResult assign(Block &block);
  bool addPerVTile(Operation *op);
  void findPerVTile();
  LogicalResult checkBounds(scf::ForOp loop);
  LogicalResult checkReport(tile::ReportOp report);
  void carry(unsigned role, unsigned loop, unsigned index);
  void collectNeeds(Value value, unsigned role);
  void addResults();
  void findCrossing();

  Partition &partition;
  tile::ProgramOp program;
  /// For each role, the values that it is known to need.
  SmallVector<DenseSet<Value>> seen;
  /// Results of loops that roles take, which other roles carry.
  SmallVector<std::pair<unsigned, OpResult>> results;
};
} // namespace

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

FailureOr<unsigned> RoleAssignment::findRole(Operation *op) {
  StringAttr step = getStep(op);
  if (!step)
    return op->emitOpError("expected a step: what needs a role has one");
  unsigned role = 0;
  while (role < partition.countRoles() && !partition.getRole(role).runs(step))
    ++role;
  if (role == partition.countRoles())
    return op->emitOpError("expected a role for step ")
           << step << " in the schedule";
  RoleSpecAttr owner = partition.getRole(role);
  WalkResult one = op->walk([&](Operation *nested) {
    auto label =
        nested->getAttrOfType<StringAttr>(tile::TileDialect::getStepAttrName());
    if (isFree(nested) || !label ||
        (owner.runs(label) && owner.runsLate(label) == owner.runsLate(step)))
      return WalkResult::advance();
    InFlightDiagnostic diagnostic =
        op->emitOpError("expected ops of one role inside, got steps ")
        << step << " and " << label;
    diagnostic.attachNote(nested->getLoc()) << "the op of step " << label;
    return WalkResult::interrupt();
  });
  if (one.wasInterrupted())
    return failure();
  return role;
}

LogicalResult RoleAssignment::assign(Block &block) {
  for (Operation &op : block.without_terminator()) {
    // What each CTA does before its roles begin, or behind them.
    if (isFree(&op) ||
        isa<tile::LeaveOp, tile::AwaitOp, tile::AwaitReportOp,
            tile::CountDownOp, tile::HoldBackOp, tile::ClearOp>(op))
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (op.getParentOp() != program) {
        InFlightDiagnostic diagnostic =
            op.emitOpError("expected no loop inside of another one, over the "
                           "work item's chunks");
        diagnostic.attachNote(op.getParentOp()->getLoc()) << "the other loop";
        return diagnostic;
      }
      partition.loops.push_back(loop);
      if (failed(assign(*loop.getBody())))
        return failure();
      continue;
    }
    FailureOr<unsigned> role = findRole(&op);
    if (failed(role))
      return failure();
    partition.roles[&op] = *role;
  }
  return success();
}

/// Each role counts the iterations of the loops by itself.
LogicalResult RoleAssignment::checkBounds(scf::ForOp loop) {
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}) {
    if (Operation *maker = partition.findMaker(bound)) {
      InFlightDiagnostic diagnostic = loop.emitOpError(
          "expected bounds that follow from the work item, so that each role "
          "knows them, got one that a step makes");
      diagnostic.attachNote(maker->getLoc()) << "made here";
      return diagnostic;
    }
    if (partition.perVTile.contains(bound))
      return loop.emitOpError("expected the same bounds for all V tiles of a "
                              "CTA, got one that depends on the V tile");
  }
  return success();
}

/// A report follows what the work item has stored before it, in this iteration
/// or in an earlier one: one role does both, and keeps the program's order.
LogicalResult RoleAssignment::checkReport(tile::ReportOp report) {
  auto holderOf = [&](Operation *op) {
    while (!partition.roles.contains(op))
      op = op->getParentOp();
    return op;
  };
  Operation *holder = holderOf(report);
  Block *body = &program.getBody().front();
  Operation *last = body->findAncestorOpInBlock(*report);
  WalkResult result = program.walk([&](tile::StoreOp store) {
    Operation *own = holderOf(store);
    if (last->isBeforeInBlock(body->findAncestorOpInBlock(*store)) ||
        (partition.roles[own] == partition.roles[holder] &&
         partition.isLate(own) == partition.isLate(holder)))
      return WalkResult::advance();
    InFlightDiagnostic diagnostic = report.emitOpError(
        "expected its role to store what is stored before it, and as late, got "
        "step ");
    diagnostic << getStep(own);
    diagnostic.attachNote(store.getLoc()) << "the store";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// What depends on the V tile
//===----------------------------------------------------------------------===//

/// Adds what `op` makes of such values. Returns whether there is any new.
bool RoleAssignment::addPerVTile(Operation *op) {
  DenseSet<Value> &found = partition.perVTile;
  bool changed = false;
  auto add = [&](Value value) { changed |= found.insert(value).second; };
  if (llvm::is_contained(partition.loops, op)) {
    auto loop = cast<scf::ForOp>(op);
    for (auto [init, arg, yielded, result] :
         llvm::zip(loop.getInits(), loop.getRegionIterArgs(),
                   loop.getYieldedValues(), loop.getResults()))
      if (found.contains(init) || found.contains(yielded))
        add(arg), add(result);
    return changed;
  }
  if (op != program && partition.dependsOnVTile(op))
    for (Value result : op->getResults())
      add(result);
  return changed;
}

void RoleAssignment::findPerVTile() {
  if (partition.schedule.getVTiles() == 1)
    return;
  partition.perVTile.insert(program.getVTile());
  bool changed = true;
  while (changed) {
    changed = false;
    program.walk([&](Operation *op) { changed |= addPerVTile(op); });
  }
}

//===----------------------------------------------------------------------===//
// What crosses
//===----------------------------------------------------------------------===//

/// `role` carries value `index` of a loop.
void RoleAssignment::carry(unsigned role, unsigned loop, unsigned index) {
  partition.needs[role][loop].carried.insert(index);
  scf::ForOp op = partition.loops[loop];
  collectNeeds(op.getRegionIterArgs()[index], role);
  collectNeeds(op.getInits()[index], role);
  collectNeeds(op.getYieldedValues()[index], role);
}

/// Follows what `role` needs back to what other roles make.
void RoleAssignment::collectNeeds(Value value, unsigned role) {
  if (!seen[role].insert(value).second)
    return;
  auto numberOf = [&](Operation *loop) {
    return llvm::find(partition.loops, loop) - partition.loops.begin();
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument.getArgNumber() >= loop.getNumInductionVars())
      carry(role, numberOf(loop),
            argument.getArgNumber() - loop.getNumInductionVars());
    return;
  }
  Operation *op = value.getDefiningOp();
  if (llvm::is_contained(partition.loops, op)) {
    auto result = cast<OpResult>(value);
    Operation *maker = partition.findMaker(value);
    if (!maker || partition.roles.lookup(maker) == role)
      carry(role, numberOf(op), result.getResultNumber());
    else
      results.push_back({role, result});
    return;
  }
  if (isFree(op)) {
    for (Value operand : getTakenValues(op))
      collectNeeds(operand, role);
    return;
  }
  if (partition.roles.lookup(op) != role)
    partition.crossing[value].insert(role);
}

/// Of what a loop carried, roles that do not carry it themselves take the
/// result from the role that makes it.
void RoleAssignment::addResults() {
  for (size_t next = 0; next < results.size(); ++next) {
    auto [role, result] = results[next];
    auto loop = cast<scf::ForOp>(result.getOwner());
    unsigned number =
                 llvm::find(partition.loops, loop) - partition.loops.begin(),
             index = result.getResultNumber();
    if (partition.needs[role][number].carried.contains(index))
      continue;
    partition.crossing[result].insert(role);
    carry(partition.getMakingRole(result), number, index);
  }
}

void RoleAssignment::findCrossing() {
  unsigned count = partition.countRoles();
  partition.needs.resize(count);
  seen.resize(count);
  for (unsigned role = 0; role < count; ++role) {
    partition.needs[role].resize(partition.loops.size());
    for (auto &[op, owner] : partition.roles) {
      if (owner != role)
        continue;
      if (std::optional<unsigned> loop = partition.findLoop(op))
        partition.needs[role][*loop].runs = true;
      for (Value value : getTakenValues(op))
        collectNeeds(value, role);
    }
  }
  addResults();
  for (SmallVector<Partition::Needs> &loops : partition.needs)
    for (Partition::Needs &needs : loops)
      needs.runs |= !needs.carried.empty();
}

LogicalResult RoleAssignment::run() {
  if (failed(verifyTypes(program)) || failed(assign(program.getBody().front())))
    return failure();
  WalkResult reports = program.walk(
      [&](tile::ReportOp report) { return WalkResult(checkReport(report)); });
  if (reports.wasInterrupted())
    return failure();
  findPerVTile();
  for (scf::ForOp loop : partition.loops)
    if (failed(checkBounds(loop)))
      return failure();
  findCrossing();
  return success();
}

LogicalResult gdn::assignRoles(Partition &partition) {
  return RoleAssignment(partition).run();
}
