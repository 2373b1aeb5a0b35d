//===- Matrix.cpp - The matrix of numerical tests -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matrix.h"

#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace gdn::numerics;

const std::array<Axis, kProgramAxes> &gdn::numerics::programAxes() {
  static const std::array<Axis, kProgramAxes> axes = {{
      {"op", {"chunk", "recurrent", "backward"}},
      {"gate",
       {"none", "gdn-log", "gdn-linear", "gdn-softplus", "gdn-bounded",
        "kda-log", "kda-linear", "kda-softplus", "kda-bounded"}},
      {"packed", {"no", "yes"}},
      {"group", {"1", "2", "4"}},
      {"states",
       {"none", "in-kv", "in-vk", "out-kv", "out-vk", "inout-kv", "inout-vk",
        "in-pool-kv", "in-pool-vk", "inout-pool-kv", "inout-pool-vk"}},
      {"data", {"bf16", "f16", "f32"}},
      {"state-type", {"f32", "bf16", "f16"}},
      {"parameter-type", {"f32", "bf16"}},
      {"beta", {"value", "logit", "doubled_logit"}},
      {"l2norm", {"no", "yes"}},
      {"dims", {"64x64", "128x128", "64x128", "128x64"}},
      {"chunk", {"16", "32", "64"}},
      {"plan", {"fused", "separate"}},
      {"v-tiles", {"1", "2"}},
      // Products of a chunk that its state waits for.
      {"chain", {"3", "2"}},
      {"sizes", {"dynamic", "static"}},
      {"boundaries", {"i32", "i64"}},
  }};
  return axes;
}

const std::array<Axis, kSettingAxes> &gdn::numerics::settingAxes() {
  static const std::array<Axis, kSettingAxes> axes = {{
      // Of a packed program the length picks one of three mixes.
      {"length", {"1", "63", "64", "65", "128", "1000"}},
      {"mean-gate", {"0", "-0.05", "-1", "-5"}},
      {"keys", {"random", "cosine:0.9"}},
  }};
  return axes;
}

llvm::StringRef gdn::numerics::valueOf(const Program &program,
                                       ProgramAxis axis) {
  return programAxes()[axis].values[program[axis]];
}

Program gdn::numerics::normalise(Program program) {
  llvm::StringRef op = valueOf(program, kOp);
  if (op != "chunk")
    program[kPlan] = program[kChain] = 0;
  if (op == "recurrent")
    program[kChunk] = 0;
  if (op == "backward")
    program[kVTiles] = 0;
  // No gradients of a pool.
  if (op == "backward" && valueOf(program, kStates).contains("pool"))
    program[kStates] = 0;
  llvm::StringRef states = valueOf(program, kStates);
  if (states == "none" || states.starts_with("out"))
    program[kStateType] = 0;
  if (valueOf(program, kPacked) == "no")
    program[kBoundaries] = 0;
  return program;
}

/// splitmix64 of a number: draws that depend on nothing but it.
static uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

unsigned gdn::numerics::countPrograms() {
  unsigned count = 1;
  for (unsigned axis = 0; axis < kCrossedAxes; ++axis)
    count *= programAxes()[axis].values.size();
  return count;
}

Program gdn::numerics::programOf(unsigned number) {
  Program program = {};
  unsigned rest = number;
  for (unsigned axis = 0; axis < kProgramAxes; ++axis) {
    unsigned size = programAxes()[axis].values.size();
    if (axis < kCrossedAxes) {
      program[axis] = rest % size;
      rest /= size;
    } else {
      program[axis] = mix(number * uint64_t(kProgramAxes) + axis) % size;
    }
  }
  // Static sizes would ask for a compilation a length.
  program[kSizes] = 0;
  return normalise(program);
}

/// How many values of a setting's axis mean something for a program.
static unsigned countValues(const Program &program, unsigned axis) {
  if (axis == kLength && valueOf(program, kPacked) == "yes")
    return 3;
  if (axis == kMeanGate && valueOf(program, kGate) == "none")
    return 1;
  return settingAxes()[axis].values.size();
}

std::vector<Setting> gdn::numerics::settingsOf(const Program &program) {
  std::vector<Setting> settings;
  for (unsigned length = 0; length < countValues(program, kLength); ++length)
    for (unsigned gate = 0; gate < countValues(program, kMeanGate); ++gate)
      for (unsigned keys = 0; keys < countValues(program, kKeys); ++keys)
        settings.push_back({length, gate, keys});
  return settings;
}

namespace {
/// Deals the values of an axis: all of them, shuffled, before one comes again.
class Deck {
public:
  Deck(unsigned size, uint64_t seed) : cards(size), state(seed) {
    std::iota(cards.begin(), cards.end(), 0);
  }

  unsigned draw() {
    if (next == 0)
      for (size_t i = cards.size(); i > 1; --i)
        std::swap(cards[i - 1], cards[(state = mix(state)) % i]);
    unsigned card = cards[next];
    next = (next + 1) % cards.size();
    return card;
  }

private:
  std::vector<unsigned> cards;
  uint64_t state;
  size_t next = 0;
};
} // namespace

std::vector<Case>
gdn::numerics::sample(unsigned count, unsigned settings, uint64_t seed,
                      const std::map<std::string, unsigned> &fixed) {
  std::vector<Deck> programDecks, settingDecks;
  for (unsigned axis = 0; axis < kProgramAxes; ++axis)
    programDecks.emplace_back(programAxes()[axis].values.size(),
                              mix(seed * 64 + axis));
  for (unsigned axis = 0; axis < kSettingAxes; ++axis)
    settingDecks.emplace_back(settingAxes()[axis].values.size(),
                              mix(seed * 64 + 32 + axis));
  auto drawAxis = [&](const Axis &axis, Deck &deck) {
    auto value = fixed.find(axis.name);
    return value == fixed.end() ? deck.draw() : value->second;
  };
  std::vector<Case> cases;
  for (unsigned i = 0; i < count; ++i) {
    Case drawn = {};
    for (unsigned axis = 0; axis < kProgramAxes; ++axis)
      drawn.program[axis] = drawAxis(programAxes()[axis], programDecks[axis]);
    drawn.program = normalise(drawn.program);
    bool isStatic = valueOf(drawn.program, kSizes) == "static";
    for (unsigned j = 0; j < (isStatic ? 1 : settings); ++j) {
      Setting setting;
      for (unsigned axis = 0; axis < kSettingAxes; ++axis)
        setting[axis] = drawAxis(settingAxes()[axis], settingDecks[axis]) %
                        countValues(drawn.program, axis);
      drawn.settings.push_back(setting);
    }
    cases.push_back(std::move(drawn));
  }
  return cases;
}

template <size_t size>
static std::string describeAxes(const std::array<Axis, size> &axes,
                                const std::array<unsigned, size> &values) {
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text += (i ? " " : "") + std::string(axes[i].name) + "=" +
            axes[i].values[values[i]];
  return text;
}

std::string gdn::numerics::describe(const Program &program) {
  return describeAxes(programAxes(), program);
}

std::string gdn::numerics::describe(const Setting &setting) {
  return describeAxes(settingAxes(), setting);
}
