//===- SimulateRoles.cpp - Do roles wait for each other? ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role's visits to slots wait at barriers and arrive at others, as
// gdn-warp-lower-channels will write it. Each role runs until it has to wait;
// if none can go on, none ever will.
//
//===----------------------------------------------------------------------===//

#include "SimulateRoles.h"

#include "ChannelVisits.h"
#include "RoleValues.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {
/// What a wait waits for, or an arrival is for: a barrier of each slot.
struct Event {
  unsigned channel;
  SlotDirection direction;
  Value iteration;
  int64_t arrivals;
};

/// The barriers of a channel's slots in one direction.
struct Barriers {
  int64_t expected = 0;
  SmallVector<int64_t> arrived, phases;
};

/// The simulation of a kernel.
class Simulation {
public:
  explicit Simulation(KernelOp kernel) : kernel(kernel) {}

  LogicalResult run();

private:
  /// A block that a role is in, and what it does next there.
  struct Frame {
    Block *block;
    Block::iterator next;
    /// Whether the waits before `next` are over.
    bool hasWaited = false;
    /// Of a loop: its number, and those where it ends and that it goes on by.
    int64_t number = 0, end = 0, step = 0;
  };
  /// A role, or a warp of one whose warps take turns.
  struct Agent {
    RoleOp role;
    RoleValues values;
    SmallVector<Frame> frames;
    /// What it waits for.
    const Event *waits = nullptr;
  };
  /// How far an agent got.
  enum class State { Ended, Waits, Unknown };

  LogicalResult collect();
  void addVisit(const ChannelVisits::Key &key, const Visit &visit,
                unsigned number);
  void findRelevant();
  std::optional<bool> isOver(Agent &agent, const Event &event);
  bool finish(Agent &agent, Operation *op);
  bool enter(Agent &agent, scf::ForOp loop);
  bool enter(Agent &agent, scf::IfOp branch);
  bool leave(Agent &agent);
  State advance(Agent &agent);
  LogicalResult report(ArrayRef<Agent> agents);

  KernelOp kernel;
  std::vector<ChannelOp> channels;
  /// For each channel the full and the empty barriers.
  std::vector<std::array<Barriers, 2>> barriers;
  DenseMap<Operation *, SmallVector<Event, 1>> waits, arrivals;
  /// Ops that matter: those that wait or arrive, and what they and the control
  /// flow around them follow from.
  DenseSet<Operation *> relevant;
  /// Steps that are left before the simulation is long enough.
  int64_t budget = 100000;
};
} // namespace

//===----------------------------------------------------------------------===//
// What waits and what arrives
//===----------------------------------------------------------------------===//

void Simulation::addVisit(const ChannelVisits::Key &key, const Visit &visit,
                          unsigned number) {
  auto [block, direction, iteration] = key;
  auto role = visit.first->getParentOfType<RoleOp>();
  int64_t count =
      role.countTogether() * (visit.byLane ? format::kWarpThreads : 1);
  if (visit.opens)
    waits[visit.first].push_back({number, direction, iteration, 0});
  if (visit.closes)
    arrivals[visit.last].push_back({number, direction, iteration, count});
}

LogicalResult Simulation::collect() {
  for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
    ChannelVisits uses(channel, /*lanesArrive=*/false);
    if (failed(uses.collect()))
      return failure();
    unsigned number = channels.size();
    for (auto &[key, visit] : uses.visits)
      addVisit(key, visit, number);
    auto &own = barriers.emplace_back();
    for (SlotDirection direction : {SlotDirection::Put, SlotDirection::Get}) {
      Barriers &of = own[static_cast<unsigned>(direction)];
      of.expected = uses.sumArrivals(direction);
      of.arrived.assign(channel.getDepth(), 0);
      of.phases.assign(channel.getDepth(), 0);
    }
    channels.push_back(channel);
  }
  return success();
}

void Simulation::findRelevant() {
  SmallVector<Operation *> open;
  for (auto *events : {&waits, &arrivals})
    for (auto &[op, list] : *events) {
      open.push_back(op);
      for (const Event &event : list)
        if (Operation *maker = event.iteration.getDefiningOp())
          open.push_back(maker);
    }
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!relevant.insert(op).second)
      continue;
    if (isa<scf::ForOp, scf::IfOp>(op) || op->getNumRegions() == 0)
      for (Value operand : op->getOperands())
        if (operand.getType().isIntOrIndex() && operand.getDefiningOp())
          open.push_back(operand.getDefiningOp());
    if (isa<scf::ForOp, scf::IfOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (Operation *terminator = block.getTerminator())
            for (Value operand : terminator->getOperands())
              if (operand.getType().isIntOrIndex() && operand.getDefiningOp())
                open.push_back(operand.getDefiningOp());
    if (!isa<RoleOp, KernelOp>(op->getParentOp()))
      open.push_back(op->getParentOp());
  }
}

//===----------------------------------------------------------------------===//
// Steps of a role
//===----------------------------------------------------------------------===//

/// Whether a wait is over: for the slot's n-th use the barrier has been
/// completed so often. None if nobody knows.
std::optional<bool> Simulation::isOver(Agent &agent, const Event &event) {
  std::optional<int64_t> number = agent.values.getNumber(event.iteration);
  if (!number || *number < 0)
    return std::nullopt;
  int64_t depth = channels[event.channel].getDepth();
  bool fills = event.direction == SlotDirection::Put;
  // Who fills waits until it is empty.
  SlotDirection others = fills ? SlotDirection::Get : SlotDirection::Put;
  const Barriers &of = barriers[event.channel][static_cast<unsigned>(others)];
  return of.phases[*number % depth] >= *number / depth + (fills ? 0 : 1);
}

/// Arrives for what ends with `op`, and goes on behind it.
bool Simulation::finish(Agent &agent, Operation *op) {
  auto found = arrivals.find(op);
  Frame &frame = agent.frames.back();
  bool isLast =
      !findPieceLoop(frame.block) || frame.number + frame.step >= frame.end;
  if (found != arrivals.end() && isLast)
    for (const Event &event : found->second) {
      std::optional<int64_t> number = agent.values.getNumber(event.iteration);
      if (!number || *number < 0)
        return false;
      Barriers &of =
          barriers[event.channel][static_cast<unsigned>(event.direction)];
      int64_t slot = *number % channels[event.channel].getDepth();
      of.arrived[slot] += event.arrivals;
      if (of.arrived[slot] >= of.expected) {
        of.arrived[slot] -= of.expected;
        ++of.phases[slot];
      }
    }
  ++frame.next;
  frame.hasWaited = false;
  return true;
}

bool Simulation::enter(Agent &agent, scf::ForOp loop) {
  std::optional<int64_t> lower = agent.values.getNumber(loop.getLowerBound()),
                         upper = agent.values.getNumber(loop.getUpperBound()),
                         step = agent.values.getNumber(loop.getStep());
  if (!lower || !upper || !step || *step < 1)
    return false;
  if (*lower >= *upper) {
    agent.values.assign(loop.getResults(), loop.getInits());
    return finish(agent, loop);
  }
  agent.values.assign(loop.getRegionIterArgs(), loop.getInits());
  agent.values.set(loop.getInductionVar(), *lower);
  agent.frames.push_back({loop.getBody(), loop.getBody()->begin(),
                          /*hasWaited=*/false, *lower, *upper, *step});
  return true;
}

/// Both sides of a branch do the same with slots (gdn-warp-verify-channels), so
/// one whose condition nobody knows may take either.
bool Simulation::enter(Agent &agent, scf::IfOp branch) {
  std::optional<int64_t> condition =
      agent.values.getNumber(branch.getCondition());
  if (!condition && !branch.elseBlock())
    return false;
  Block *block =
      condition.value_or(1) ? branch.thenBlock() : branch.elseBlock();
  if (!block)
    return finish(agent, branch);
  agent.frames.push_back({block, block->begin()});
  return true;
}

/// Goes on behind the end of a block.
bool Simulation::leave(Agent &agent) {
  Frame &frame = agent.frames.back();
  Operation *parent = frame.block->getParentOp();
  if (isa<RoleOp>(parent)) {
    agent.frames.pop_back();
    return true;
  }
  ValueRange yielded = frame.block->getTerminator()->getOperands();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    frame.number += frame.step;
    if (frame.number < frame.end) {
      agent.values.assign(loop.getRegionIterArgs(), yielded);
      agent.values.set(loop.getInductionVar(), frame.number);
      frame.next = frame.block->begin();
      return true;
    }
  }
  agent.values.assign(parent->getResults(), yielded);
  agent.frames.pop_back();
  return finish(agent, parent);
}

Simulation::State Simulation::advance(Agent &agent) {
  while (!agent.frames.empty()) {
    Frame &frame = agent.frames.back();
    bool isAtEnd = frame.next == frame.block->end() ||
                   frame.next->hasTrait<OpTrait::IsTerminator>();
    if (isAtEnd) {
      if (!leave(agent))
        return State::Unknown;
      continue;
    }
    Operation *op = &*frame.next;
    if (!relevant.contains(op)) {
      ++frame.next;
      continue;
    }
    auto found = waits.find(op);
    if (!frame.hasWaited && found != waits.end())
      for (const Event &event : found->second) {
        std::optional<bool> over = isOver(agent, event);
        if (!over)
          return State::Unknown;
        agent.waits = *over ? nullptr : &event;
        if (!*over)
          return State::Waits;
      }
    frame.hasWaited = true;
    if (--budget < 0)
      return State::Unknown;
    bool isKnown = true;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      isKnown = enter(agent, loop);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      isKnown = enter(agent, branch);
    } else {
      agent.values.evaluate(op);
      isKnown = finish(agent, op);
    }
    if (!isKnown)
      return State::Unknown;
  }
  return State::Ended;
}

//===----------------------------------------------------------------------===//
// All roles
//===----------------------------------------------------------------------===//

LogicalResult Simulation::report(ArrayRef<Agent> agents) {
  InFlightDiagnostic diagnostic =
      kernel.emitOpError("expected roles of which one can always go on, got "
                         "roles that wait for each other: ");
  bool isFirst = true;
  for (const Agent &agent : agents) {
    if (!agent.waits)
      continue;
    ChannelOp channel = channels[agent.waits->channel];
    RoleOp role = agent.role;
    diagnostic << (isFirst ? "" : ", ") << role.getName() << " until a slot of "
               << channel.getNameAttr() << " is "
               << (agent.waits->direction == SlotDirection::Put ? "empty"
                                                                : "full");
    isFirst = false;
  }
  diagnostic << "; let values that depend on each other cross in different "
                "channels, or give channels more slots";
  for (const Agent &agent : agents)
    if (agent.waits)
      diagnostic.attachNote(agent.frames.back().next->getLoc())
          << RoleOp(agent.role).getName() << " waits here";
  return diagnostic;
}

LogicalResult Simulation::run() {
  if (kernel.getCluster() > 1)
    return success();
  if (failed(collect()))
    return failure();
  findRelevant();
  std::vector<Agent> agents;
  for (auto role : kernel.getBody().getOps<RoleOp>()) {
    Block *body = &role.getBody().front();
    // Of warps that run together one stands for all.
    for (int64_t warp = 0, count = role.getCount(); warp < count;
         warp += role.countTogether()) {
      Agent agent = {role, RoleValues(role.getFirst() + warp), {}, nullptr};
      agent.frames.push_back({body, body->begin()});
      agents.push_back(std::move(agent));
    }
  }
  while (true) {
    int64_t before = budget;
    bool waits = false;
    for (Agent &agent : agents) {
      State state = advance(agent);
      if (state == State::Unknown)
        return success();
      waits |= state == State::Waits;
    }
    if (!waits)
      return success();
    if (budget == before)
      return report(agents);
  }
}

LogicalResult gdn::warp::simulateRoles(KernelOp kernel) {
  return Simulation(kernel).run();
}
