//===- FitSchedule.cpp - Depths and registers of a template ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template leaves to the fit what depends on sizes: how many slots fit into
// shared memory, and how many registers are left for whom. What crosses between
// roles, and how it lies in a slot, is read off a kernel that
// gdn-warp-partition would write: a trial, on a copy.
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/ScheduleTemplates.h"

#include "FieldLayouts.h"
#include "Partition.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/SharedMemory.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "gdn-warp-choose-schedule"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

namespace {
/// A template and what is known of its program so far.
class Fit {
public:
  Fit(ScheduleTemplateOp form, tile::ProgramOp program, tile::LaunchOp launch,
      const ProgramFacts &facts, bool persistent)
      : form(form), program(program), launch(launch), facts(facts),
        persistent(persistent),
        chunks(facts.chunks ? facts.chunks : form.getChunksPerIteration()),
        roles(llvm::to_vector(form.getRoles().getAsRange<RoleTemplateAttr>())),
        channels(llvm::to_vector(
            form.getChannels().getAsRange<ChannelTemplateAttr>())) {}

  FailureOr<ScheduleAttr> run();

private:
  ScheduleAttr makeSchedule(int64_t chunks, int64_t cluster, bool persistent,
                            ArrayRef<RoleSpecAttr> specs,
                            ArrayRef<ChannelSpecAttr> carriers);
  int64_t getVTiles() { return form.getFoldVTiles() ? facts.vTiles : 1; }
  /// An amount in iterations or, for slots that hold a chunk, in chunks.
  int64_t resolve(AmountAttr amount, bool perChunk) const;
  ScheduleAttr makeTrial();
  LogicalResult measureSlots();
  int64_t countShared() const;
  void fitDepths();
  void fitRegisters();
  ScheduleAttr build();

  ScheduleTemplateOp form;
  tile::ProgramOp program;
  tile::LaunchOp launch;
  const ProgramFacts &facts;
  bool persistent;
  int64_t chunks;
  SmallVector<RoleTemplateAttr> roles;
  SmallVector<ChannelTemplateAttr> channels;
  /// Of each channel, in its order.
  SmallVector<SlotLayout> slots;
  SmallVector<int64_t> depths;
  /// Of channels for values that are made outside of loops.
  SmallVector<ChannelSlots> outside;
  /// Bytes of what roles hand to their own products.
  int64_t published = 0;
  /// Of each role, in its order.
  SmallVector<int64_t> registers;
};
} // namespace

ScheduleAttr Fit::makeSchedule(int64_t chunks, int64_t cluster, bool persistent,
                               ArrayRef<RoleSpecAttr> specs,
                               ArrayRef<ChannelSpecAttr> carriers) {
  auto emitError = [&] {
    InFlightDiagnostic diagnostic = program.emitOpError();
    diagnostic.attachNote(program.getLoc())
        << "the schedule is of template @" << form.getSymName();
    return diagnostic;
  };
  return ScheduleAttr::getChecked(
      function_ref<InFlightDiagnostic()>(emitError), form.getContext(), chunks,
      getVTiles(), cluster, persistent, static_cast<int64_t>(form.getMinCtas()),
      form.getInOrder(), specs, carriers);
}

//===----------------------------------------------------------------------===//
// Depths
//===----------------------------------------------------------------------===//

int64_t Fit::resolve(AmountAttr amount, bool perChunk) const {
  if (!amount)
    return 0;
  int64_t value = amount.getValue();
  switch (amount.getUnit()) {
  case AmountUnit::Chunks:
  case AmountUnit::Fill:
    return perChunk ? value : llvm::divideCeil(value, chunks);
  case AmountUnit::Iterations:
    return perChunk ? value * chunks : value;
  case AmountUnit::Channel:
    break;
  }
  for (auto [channel, depth] : llvm::zip(channels, depths))
    if (channel.getName() == amount.getChannel()) {
      int64_t held =
          channel.getSlotPerChunk() ? llvm::divideCeil(depth, chunks) : depth;
      return (held + value) * (perChunk ? chunks : 1);
    }
  return value;
}

/// The template with one slot a channel, where nothing is late or ahead: what
/// crosses does not depend on it.
ScheduleAttr Fit::makeTrial() {
  MLIRContext *context = form.getContext();
  SmallVector<RoleSpecAttr> specs;
  for (RoleTemplateAttr role : roles) {
    SmallVector<Attribute> steps(role.getSteps().getValue());
    if (role.getDelayedSteps())
      llvm::append_range(steps, role.getDelayedSteps());
    specs.push_back(RoleSpecAttr::get(
        context, role.getName(), role.getWarps(), format::kMinSetRegisters,
        ArrayAttr::get(context, steps), /*delayedSteps=*/ArrayAttr(),
        /*delay=*/0, /*prefetchDistance=*/0, role.getRoundRobin(),
        role.getWarpsPerTurn(), role.getWarpgroupPerVTile(),
        role.getLoopChunks(),
        /*alternateCtas=*/false, /*interleaveChunks=*/false,
        /*shareCode=*/false, /*lateAddresses=*/false,
        /*loopPieces=*/false, /*handOnEarly=*/false, role.getLanesPerRow()));
  }
  SmallVector<ChannelSpecAttr> carriers;
  for (ChannelTemplateAttr channel : channels)
    carriers.push_back(ChannelSpecAttr::get(
        context, channel.getName(), /*depth=*/1, channel.getFrom(),
        channel.getTo(), channel.getSlotPerChunk()));
  return makeSchedule(std::max<int64_t>(facts.chunks, 1), /*cluster=*/1,
                      /*persistent=*/false, specs, carriers);
}

/// The fields of a slot of a channel, in a kernel written for one chunk an
/// iteration or for those that the program has.
static SmallVector<Type> getFields(ChannelOp channel, bool perChunk,
                                   int64_t times) {
  SmallVector<Type> fields;
  for (int64_t time = 0; time < (perChunk ? 1 : times); ++time)
    llvm::append_range(fields, channel.getType().getFields());
  return fields;
}

/// Writes the kernel on a copy of the program and of the function that launches
/// it, and looks at its channels.
LogicalResult Fit::measureSlots() {
  ScheduleAttr trial = makeTrial();
  if (!trial)
    return failure();
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(program.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(scratch->getBody());
  IRMapping copies;
  auto copy = cast<tile::ProgramOp>(b.clone(*program));
  b.clone(*launch->getParentOfType<FunctionOpInterface>(), copies);
  auto launched = cast<tile::LaunchOp>(copies.lookup(launch.getOperation()));
  Partition partition;
  partition.program = copy;
  partition.schedule = trial;
  if (failed(assignRoles(partition)) || failed(assignChannels(partition)) ||
      failed(writeKernel(partition, b, launched)))
    return failure();
  KernelOp kernel = *scratch->getOps<KernelOp>().begin();
  published = countPublished(kernel);
  FieldLayouts(kernel).apply();
  int64_t times = facts.chunks ? 1 : chunks;
  slots.assign(channels.size(), {});
  for (auto [known, op] : llvm::zip_equal(
           partition.channels, kernel.getBody().getOps<ChannelOp>())) {
    bool inLoop = !known.loops.empty();
    SlotLayout slot = layOutSlot(getFields(
        op, !inLoop || channels[known.spec].getSlotPerChunk(), times));
    if (!inLoop)
      outside.push_back({slot, /*depth=*/1});
    else if (slots[known.spec].bytes < slot.bytes)
      slots[known.spec] = slot;
  }
  return success();
}

/// Bytes of all channels that carry something.
int64_t Fit::countShared() const {
  SmallVector<ChannelSlots> used = outside;
  for (auto [slot, depth] : llvm::zip(slots, depths))
    if (slot.bytes != 0)
      used.push_back({slot, depth});
  return llvm::alignTo(layOutShared(used).end, format::kSwizzleAlignment) +
         published;
}

/// Numbers first, then what fills, then what is as deep as another channel.
/// What fills grows by turns for as long as all fit.
void Fit::fitDepths() {
  depths.assign(channels.size(), 1);
  auto resolveAll = [&](AmountUnit unit) {
    for (auto [channel, depth] : llvm::zip(channels, depths))
      if (channel.getDepth().getUnit() == unit)
        depth = resolve(channel.getDepth(), channel.getSlotPerChunk());
  };
  for (AmountUnit unit : {AmountUnit::Chunks, AmountUnit::Iterations,
                          AmountUnit::Fill, AmountUnit::Channel})
    resolveAll(unit);
  for (bool grows = true; grows;) {
    grows = false;
    for (auto [channel, depth] : llvm::zip(channels, depths)) {
      AmountAttr amount = channel.getDepth();
      bool perChunk = channel.getSlotPerChunk();
      if (amount.getUnit() != AmountUnit::Fill ||
          (depth + 1) * (perChunk ? 1 : chunks) > amount.getMost())
        continue;
      ++depth;
      resolveAll(AmountUnit::Channel);
      if (countShared() <= getArch(program).sharedBytes) {
        grows = true;
        continue;
      }
      --depth;
      resolveAll(AmountUnit::Channel);
    }
  }
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

namespace {
/// Roles of the same warpgroups, which have one number of registers.
struct RegisterShare {
  SmallVector<unsigned> roles;
  int64_t warps = 0, count = 0, least = 0, weight = 0;
  bool isFixed = false;
  int64_t groups() const {
    return llvm::divideCeil(warps, format::kWarpgroupWarps);
  }
};
} // namespace

static SmallVector<RegisterShare>
shareRegisters(ArrayRef<RoleTemplateAttr> roles) {
  SmallVector<RegisterShare> shares;
  for (auto [index, role] : llvm::enumerate(roles)) {
    if (shares.empty() || shares.back().warps % format::kWarpgroupWarps == 0)
      shares.emplace_back();
    RegisterShare &share = shares.back();
    share.roles.push_back(index);
    share.warps += role.getWarps();
    share.isFixed |= role.getRegisters() != 0;
    share.least = std::max({share.least, role.getRegisters(),
                            role.getMinRegisters(), format::kMinSetRegisters});
    share.weight = std::max(share.weight, role.getRegisterWeight());
  }
  for (RegisterShare &share : shares)
    share.count = share.isFixed
                      ? share.least
                      : llvm::alignTo(share.least, format::kRegisterUnit);
  return shares;
}

/// What is left of the registers at launch goes to roles without a number, unit
/// by unit to the one that has the least for its weight.
void Fit::fitRegisters() {
  SmallVector<RegisterShare> shares = shareRegisters(roles);
  int64_t groups = 0, used = 0, warps = 0;
  for (const RegisterShare &share : shares) {
    groups += share.groups();
    warps += share.warps;
    used += share.count * share.groups();
  }
  int64_t left = getArch(program).launchRegisters(warps * format::kWarpThreads,
                                                  form.getMinCtas()) *
                     groups -
                 used;
  int64_t unit = format::kRegisterUnit;
  int64_t most = llvm::alignDown(getArch(program).maxThreadRegisters, unit);
  while (true) {
    RegisterShare *next = nullptr;
    for (RegisterShare &share : shares) {
      if (share.isFixed || share.weight == 0 || share.count + unit > most ||
          share.groups() * unit > left)
        continue;
      if (!next || (share.count - share.least) * next->weight <
                       (next->count - next->least) * share.weight)
        next = &share;
    }
    if (!next)
      break;
    next->count += unit;
    left -= next->groups() * unit;
  }
  registers.assign(roles.size(), 0);
  for (const RegisterShare &share : shares)
    for (unsigned role : share.roles)
      registers[role] =
          roles[role].getRegisters() ? roles[role].getRegisters() : share.count;
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

ScheduleAttr Fit::build() {
  MLIRContext *context = form.getContext();
  SmallVector<RoleSpecAttr> specs;
  for (auto [role, count] : llvm::zip(roles, registers)) {
    auto iterations = [&](AmountAttr amount) {
      return std::max<int64_t>(resolve(amount, /*perChunk=*/false), 0);
    };
    specs.push_back(RoleSpecAttr::get(
        context, role.getName(), role.getWarps(), count, role.getSteps(),
        role.getDelayedSteps(), iterations(role.getDelay()),
        iterations(role.getPrefetchDistance()), role.getRoundRobin(),
        role.getWarpsPerTurn(), role.getWarpgroupPerVTile(),
        role.getLoopChunks(), role.getAlternateCtas(),
        role.getInterleaveChunks(), role.getShareCode(),
        role.getLateAddresses(), role.getLoopPieces(), role.getHandOnEarly(),
        role.getLanesPerRow()));
  }
  SmallVector<ChannelSpecAttr> carriers;
  for (auto [channel, depth] : llvm::zip(channels, depths))
    carriers.push_back(ChannelSpecAttr::get(context, channel.getName(), depth,
                                            channel.getFrom(), channel.getTo(),
                                            channel.getSlotPerChunk()));
  int64_t cluster = std::max<int64_t>(form.getCluster(), facts.cluster);
  return makeSchedule(chunks, cluster, persistent, specs, carriers);
}

FailureOr<ScheduleAttr> Fit::run() {
  if (failed(measureSlots()))
    return failure();
  fitDepths();
  LLVM_DEBUG({
    for (auto [channel, slot, depth] : llvm::zip(channels, slots, depths))
      llvm::dbgs() << "  channel " << channel.getName() << ": " << depth
                   << " slots of " << slot.bytes << " bytes\n";
    llvm::dbgs() << "  shared memory: " << countShared() << " of "
                 << getArch(program).sharedBytes << " bytes\n";
  });
  fitRegisters();
  ScheduleAttr schedule = build();
  if (!schedule)
    return failure();
  return schedule;
}

FailureOr<ScheduleAttr> gdn::fitSchedule(ScheduleTemplateOp form,
                                         tile::ProgramOp program,
                                         tile::LaunchOp launch,
                                         const ProgramFacts &facts,
                                         bool persistent) {
  return Fit(form, program, launch, facts, persistent).run();
}
