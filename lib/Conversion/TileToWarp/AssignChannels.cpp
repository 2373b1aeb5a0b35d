//===- AssignChannels.cpp - Channels and fields of what crosses -----------===//
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

/// The fields of a value, whose numbers are open yet.
using Carriers = SmallVector<Field, 1>;

namespace {
class ChannelAssignment {
public:
  explicit ChannelAssignment(Partition &partition)
      : partition(partition), schedule(partition.schedule) {}

  LogicalResult run();

private:
  bool carries(ChannelSpecAttr channel, Value value, unsigned taker) const;
  FailureOr<Carriers> findCarriers(Value value) const;
  /// Values of each channel of the schedule and each chunk.
  using ChannelValues = SmallVector<SmallVector<SmallVector<Value>>>;
  LogicalResult sortCrossing(unsigned loop, ChannelValues &values);
  std::string describe(ArrayRef<SmallVector<Value>> chunks) const;
  LogicalResult assignFields(KernelChannel &channel,
                             ArrayRef<SmallVector<Value>> chunks);
  LogicalResult assignLoop(unsigned loop);
  LogicalResult assignOutside(Value value);
  std::string makeName(unsigned spec) const;
  void assignClocks();

  Partition &partition;
  ScheduleAttr schedule;
  /// What says of each channel of a loop whether another loop may use it.
  SmallVector<std::string> descriptions;
  /// The channels of the schedule that carry a value.
  DenseMap<Value, Carriers> carriers;
};
} // namespace

static bool isNamed(ArrayAttr names, StringRef name) {
  return llvm::is_contained(names.getAsValueRange<StringAttr>(), name);
}

/// Whether `channel` may carry `value` to a role.
bool ChannelAssignment::carries(ChannelSpecAttr channel, Value value,
                                unsigned taker) const {
  return isNamed(channel.getFrom(), partition.getMakingStep(value)) &&
         isNamed(channel.getTo(), partition.getRole(taker).getName());
}

/// Fields for `value`: one in the channel of the schedule that carries it to
/// all takers, or else in as many as it takes, in their order.
FailureOr<Carriers> ChannelAssignment::findCarriers(Value value) const {
  if (!isFieldType(value.getType()))
    return value.getDefiningOp()->emitOpError(
               "expected what crosses between roles to be of ")
           << kFieldTypes << ", got " << value.getType();
  const SetVector<unsigned> &takers = partition.crossing.find(value)->second;
  Carriers all;
  SetVector<unsigned> left = takers;
  for (auto [index, channel] : llvm::enumerate(schedule.getChannels())) {
    Field carrier = {static_cast<unsigned>(index), 0, {}};
    for (unsigned role : takers)
      if (carries(channel, value, role))
        carrier.takers.insert(role);
    if (carrier.takers.size() == takers.size())
      return Carriers{carrier};
    carrier.takers.remove_if(
        [&](unsigned role) { return !left.contains(role); });
    left.set_subtract(carrier.takers);
    if (!carrier.takers.empty())
      all.push_back(carrier);
  }
  if (left.empty())
    return all;
  InFlightDiagnostic diagnostic = value.getDefiningOp()->emitOpError(
      "expected a channel of the schedule from step ");
  diagnostic << partition.getMakingStep(value) << " to role";
  for (unsigned role : left)
    diagnostic << " " << partition.getRole(role).getName();
  for (auto &[op, role] : partition.roles)
    if (left.contains(role) && findSources(op).contains(value)) {
      diagnostic.attachNote(op->getLoc())
          << "role " << partition.getRole(role).getName() << " takes it here";
      break;
    }
  return diagnostic;
}

/// Of each channel and chunk the values that cross in a loop, in the order of
/// the program.
LogicalResult ChannelAssignment::sortCrossing(unsigned loop,
                                              ChannelValues &values) {
  values.assign(
      schedule.getChannels().size(),
      SmallVector<SmallVector<Value>>(schedule.getChunksPerIteration()));
  for (Operation &op : *partition.loops[loop].getBody())
    for (Value value : op.getResults()) {
      if (!partition.crossing.contains(value))
        continue;
      FailureOr<Carriers> found = findCarriers(value);
      if (failed(found))
        return failure();
      for (const Field &field : *found)
        values[field.channel][getChunk(&op)].push_back(value);
      carriers[value] = *found;
    }
  return success();
}

/// Adds what an op does, but for the number of its chunk.
static void describe(raw_ostream &os, Operation *op) {
  os << op->getName();
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != tile::TileDialect::getChunkAttrName())
      os << attribute.getName().getValue() << attribute.getValue();
}

/// Says what matters to a slot: types, who fills it and how, who takes it and
/// how. Loops with the same description use a channel in turn.
std::string
ChannelAssignment::describe(ArrayRef<SmallVector<Value>> chunks) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (ArrayRef<Value> values : chunks) {
    for (Value value : values) {
      os << value.getType() << partition.getMakingRole(value) << ":";
      ::describe(os, value.getDefiningOp());
      for (OpOperand &use : value.getUses()) {
        os << "," << use.getOperandNumber();
        ::describe(os, use.getOwner());
        if (isFree(use.getOwner()))
          for (Operation *user : use.getOwner()->getUsers())
            ::describe(os << "/", user);
      }
      for (unsigned taker : partition.crossing.find(value)->second)
        os << ">" << taker;
      os << ";";
    }
    os << "|";
  }
  return text;
}

/// Fields lie chunk by chunk; in a channel whose slots are for one chunk, each
/// chunk's are the same.
LogicalResult
ChannelAssignment::assignFields(KernelChannel &channel,
                                ArrayRef<SmallVector<Value>> chunks) {
  ChannelSpecAttr spec = schedule.getChannels()[channel.spec];
  bool isByChunk = !channel.loops.empty() && spec.getSlotPerChunk();
  unsigned number = &channel - partition.channels.begin();
  channel.fields.clear();
  channel.alike = chunks.size();
  SmallVector<Type> first;
  for (auto [chunk, list] : llvm::enumerate(chunks)) {
    SmallVector<Type> own;
    unsigned begin = isByChunk ? 0 : channel.fields.size();
    for (Value value : list) {
      for (const Field &field : carriers[value])
        if (field.channel == channel.spec)
          partition.fields[value].push_back(
              {number, begin + static_cast<unsigned>(own.size()),
               field.takers});
      own.append(partition.perVTile.contains(value) ? schedule.getVTiles() : 1,
                 value.getType());
    }
    if (chunk == 0)
      first = own;
    else if (own != first)
      channel.alike = 1;
    if (chunk == 0 || !isByChunk)
      llvm::append_range(channel.fields, own);
  }
  if (isByChunk && channel.alike != static_cast<int64_t>(chunks.size()))
    return partition.program.emitOpError("expected the same values of each "
                                         "chunk in channel ")
           << spec.getName() << ", whose slots are for one";
  return success();
}

/// The schedule's name; the second channel of that name and others have numbers
/// too.
std::string ChannelAssignment::makeName(unsigned spec) const {
  std::string name = schedule.getChannels()[spec].getName().str();
  size_t same =
      llvm::count_if(partition.channels, [&](const KernelChannel &channel) {
        return channel.spec == spec;
      });
  return same == 0 ? name : name + "_" + std::to_string(same);
}

LogicalResult ChannelAssignment::assignLoop(unsigned loop) {
  ChannelValues values;
  if (failed(sortCrossing(loop, values)))
    return failure();
  for (auto [spec, chunks] : llvm::enumerate(values)) {
    if (llvm::all_of(chunks, [](ArrayRef<Value> list) { return list.empty(); }))
      continue;
    std::string description = describe(chunks);
    auto isSame = [&, spec = spec](const KernelChannel &channel) {
      return channel.spec == spec && !channel.loops.empty() &&
             descriptions[&channel - partition.channels.begin()] == description;
    };
    KernelChannel *channel = llvm::find_if(partition.channels, isSame);
    if (channel == partition.channels.end()) {
      KernelChannel added;
      added.spec = spec;
      added.name = makeName(spec);
      partition.channels.push_back(added);
      descriptions.push_back(description);
      channel = &partition.channels.back();
    }
    channel->loops.push_back(loop);
    if (failed(assignFields(*channel, chunks)))
      return failure();
  }
  return success();
}

/// A value that is made once a work item has slots and barriers of its own:
/// nothing else waits until its takers are through with it.
LogicalResult ChannelAssignment::assignOutside(Value value) {
  if (!partition.crossing.contains(value))
    return success();
  FailureOr<Carriers> found = findCarriers(value);
  if (failed(found))
    return failure();
  carriers[value] = *found;
  for (const Field &field : *found) {
    KernelChannel channel;
    channel.spec = field.channel;
    channel.name = makeName(field.channel);
    partition.channels.push_back(channel);
    descriptions.emplace_back();
    if (failed(assignFields(partition.channels.back(), {{value}})))
      return failure();
  }
  return success();
}

/// Channels of the same loops share a clock. A loop without channels has one
/// too.
void ChannelAssignment::assignClocks() {
  auto &clocks = partition.clocks;
  for (KernelChannel &channel : partition.channels) {
    if (channel.loops.empty())
      continue;
    auto found = llvm::find(clocks, channel.loops);
    channel.clock = found - clocks.begin();
    if (found == clocks.end())
      clocks.push_back(channel.loops);
  }
  for (unsigned loop = 0; loop < partition.loops.size(); ++loop)
    if (llvm::none_of(clocks, [&](ArrayRef<unsigned> clock) {
          return llvm::is_contained(clock, loop);
        }))
      clocks.push_back({loop});
}

LogicalResult ChannelAssignment::run() {
  unsigned loop = 0;
  for (Operation &op : partition.program.getBody().front()) {
    if (llvm::is_contained(partition.loops, &op) && failed(assignLoop(loop++)))
      return failure();
    for (Value value : op.getResults())
      if (failed(assignOutside(value)))
        return failure();
  }
  assignClocks();
  return success();
}

LogicalResult gdn::assignChannels(Partition &partition) {
  return ChannelAssignment(partition).run();
}
