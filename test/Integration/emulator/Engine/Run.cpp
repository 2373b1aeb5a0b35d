//===- Run.cpp - Runs a warp through the blocks of a kernel ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

using namespace gdn::emulator;

Status Warp::fail(int line, const char *format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  failure = line ? "line " + std::to_string(line) + ": " + text : text;
  return Status::Failed;
}

//===----------------------------------------------------------------------===//
// Operations on the run itself
//===----------------------------------------------------------------------===//

static Status effect(Warp &, const Instruction &) { return Status::Effect; }

/// The next instructions are for the lanes of the predicate `a`, or of its
/// negation.
static Status guard(Warp &w, const Instruction &x) {
  w.active = w.mask & (x.i ? ~w.predicate(x.a) : w.predicate(x.a));
  return Status::Running;
}

static Status endGuard(Warp &w, const Instruction &) {
  w.active = w.mask;
  return Status::Running;
}

/// The active lanes have written the register of number `d`.
static Status wrote(Warp &w, const Instruction &x) {
  w.wrote[size_t(x.d)] |= w.active;
  return Status::Running;
}

/// All active lanes must have written the register of number `d` and slot `a`.
static Status checkWritten(Warp &w, const Instruction &x) {
  return w.active & ~w.wrote[size_t(x.d)]
             ? w.fail(x.line, "%%r[%d] is not written on every way here", x.a)
             : Status::Running;
}

/// The `i` registers of the list `a`, slots and then flags, must have values.
static Status checkValues(Warp &w, const Instruction &x) {
  const int32_t *list = w.program->lists.data() + x.a;
  for (int i = 0; i < x.i; ++i) {
    const uint8_t flag = w.flags[size_t(list[x.i + i])];
    if (flag != Value)
      return w.fail(x.line,
                    flag == InFlight ? "%%r[%d] belongs to a wgmma in flight"
                                     : "%%r[%d] was never written",
                    list[i]);
  }
  return Status::Running;
}

/// The register of the flag `d` has a value.
static Status markValue(Warp &w, const Instruction &x) {
  w.flags[size_t(x.d)] = Value;
  return Status::Running;
}

/// The register of the flag `d` has what that of the flag `a` and the slot `b`
/// has, which may be nothing.
static Status moveFlag(Warp &w, const Instruction &x) {
  const uint8_t flag = w.flags[size_t(x.a)];
  if (flag == InFlight)
    return w.fail(x.line, "%%r[%d] belongs to a wgmma in flight", x.b);
  if (x.d >= 0)
    w.flags[size_t(x.d)] = w.active == allLanes ? flag : uint8_t(Value);
  return Status::Running;
}

static Status trap(Warp &w, const Instruction &x) {
  return w.fail(x.line, "trap");
}

void gdn::emulator::addControl(Operations &all) {
  const Operation table[] = {{"effect", effect},
                             {"guard", guard},
                             {"end_guard", endGuard},
                             {"wrote", wrote},
                             {"check_written", checkWritten},
                             {"check_values", checkValues},
                             {"mark_value", markValue},
                             {"move_flag", moveFlag},
                             {"trap", trap}};
  all.insert(all.end(), std::begin(table), std::end(table));
}

const Operations &gdn::emulator::operations() {
  static const Operations all = [] {
    Operations all;
    for (auto add : {addControl, addArithmetic, addConversions, addMemory,
                     addWarpWide, addTensorCores})
      add(all);
    return all;
  }();
  return all;
}

//===----------------------------------------------------------------------===//
// From block to block
//===----------------------------------------------------------------------===//

using Groups = std::vector<std::pair<int32_t, Mask>>;

static void join(Groups &groups, int32_t index, Mask mask) {
  for (auto &group : groups)
    if (group.first == index) {
      group.second |= mask;
      return;
    }
  groups.emplace_back(index, mask);
}

/// Moves lanes from the end of a block on.
static void leave(Warp &w) {
  const Block &b = w.program->blocks[size_t(w.block)];
  Groups &groups = w.paths.back().groups;
  if (b.target == noBranch) {
    join(groups, w.block + 1, w.mask);
    return;
  }
  Mask taken = w.mask;
  if (b.guard >= 0)
    taken &= b.negated ? ~w.predicate(b.guard) : w.predicate(b.guard);
  const Mask others = w.mask & ~taken;
  Groups *to = &groups;
  if (taken && others && b.meet != w.paths.back().meet) {
    w.paths.push_back({b.meet, {}});
    to = &w.paths.back().groups;
  }
  if (taken && b.target != endsLanes)
    join(*to, b.target, taken);
  if (others)
    join(*to, w.block + 1, others);
}

/// The lanes that go on: those furthest behind, but for those that want the
/// whole warp or have arrived; the group's index, or -1.
static int choose(const Warp &w, const Path &path) {
  int best = -1, rank = 0;
  for (size_t i = 0; i < path.groups.size(); ++i) {
    const int32_t block = path.groups[i].first;
    const bool whole = block < int32_t(w.program->blocks.size()) &&
                       w.program->blocks[size_t(block)].whole;
    const int here = block == path.meet ? 2 : whole;
    if (best < 0 || here < rank ||
        (here == rank && block < path.groups[size_t(best)].first))
      best = int(i), rank = here;
  }
  return best;
}

static Status failDivergence(Warp &w, const Block &b, Mask mask,
                             const Groups &others) {
  std::string text;
  for (const auto &group : others)
    text += (text.empty() ? "line " : ", line ") +
            std::to_string(w.program->blocks[size_t(group.first)].line);
  return w.fail(
      b.line, "expected all lanes of the warp, got %d; the others are at %s",
      __builtin_popcount(mask), text.empty() ? "the end" : text.c_str());
}

/// Goes to the next block.
static Status enter(Warp &w) {
  while (true) {
    Path &path = w.paths.back();
    const int chosen = choose(w, path);
    const bool arrived =
        chosen >= 0 && path.groups[size_t(chosen)].first == path.meet;
    if (chosen < 0 || arrived) {
      if (w.paths.size() == 1)
        return arrived ? w.fail(0, "a warp runs past the end of the kernel")
                       : Status::Ended;
      const auto [meet, groups] = std::move(path);
      w.paths.pop_back();
      if (arrived)
        join(w.paths.back().groups, meet, groups[size_t(chosen)].second);
      continue;
    }
    const auto [index, mask] = path.groups[size_t(chosen)];
    if (index >= int32_t(w.program->blocks.size()))
      return w.fail(0, "some lanes run past the end of the kernel");
    path.groups.erase(path.groups.begin() + chosen);
    const Block &b = w.program->blocks[size_t(index)];
    if (b.whole && mask != allLanes) {
      if (w.paths.size() == 1)
        return failDivergence(w, b, mask, path.groups);
      // The others may come here without the way that all must go.
      const Groups groups = std::move(path.groups);
      w.paths.pop_back();
      join(w.paths.back().groups, index, mask);
      for (const auto &group : groups)
        join(w.paths.back().groups, group.first, group.second);
      continue;
    }
    w.block = index, w.at = b.begin, w.mask = w.active = mask;
    return Status::Running;
  }
}

static Status run(Warp &w) {
  const Operations &all = operations();
  while (true) {
    if (w.block < 0) {
      const Status status = enter(w);
      if (status != Status::Running)
        return status;
    }
    const Instruction *code = w.program->code.data();
    const int32_t end = w.program->blocks[size_t(w.block)].end;
    while (w.at < end) {
      const Instruction &x = code[w.at++];
      const Status status = all[size_t(x.operation)].run(w, x);
      if (status != Status::Running)
        return status;
    }
    leave(w);
    w.block = -1;
    if (w.mode == 2 && w.draw() % 20 == 0)
      return Status::Preempted;
  }
}

//===----------------------------------------------------------------------===//
// What Python calls
//===----------------------------------------------------------------------===//

// The build hides all else.
#pragma GCC visibility push(default)
extern "C" {
/// The number of an operation, or -1.
int32_t gdnEmulatorOperation(const char *name) {
  const Operations &all = operations();
  for (size_t i = 0; i < all.size(); ++i)
    if (!strcmp(all[i].name, name))
      return int32_t(i);
  return -1;
}

Program *gdnEmulatorProgram(const Instruction *code, size_t size,
                            const Block *blocks, size_t blockCount,
                            const int32_t *lists, size_t listSize) {
  return new Program{{code, code + size},
                     {blocks, blocks + blockCount},
                     {lists, lists + listSize},
                     {}};
}
void gdnEmulatorFreeProgram(Program *program) { delete program; }

std::vector<int32_t> *gdnEmulatorLog() { return new std::vector<int32_t>; }
void gdnEmulatorFreeLog(std::vector<int32_t> *log) { delete log; }

/// A warp at the start of a kernel. `flags` has a state for each flagged
/// register, and `tracked` registers may be unwritten in some lanes.
Warp *gdnEmulatorWarp(Program *program, Global *global, Shared *shared,
                      std::vector<int32_t> *log, uint8_t *frame, int32_t *clock,
                      const uint8_t *params, int32_t thread, int32_t index,
                      int32_t mode, uint64_t seed, size_t tracked,
                      const uint8_t *flags, size_t flagCount) {
  auto *w = new Warp;
  w->program = program, w->global = global, w->shared = shared, w->log = log;
  w->frame = frame, w->clock = clock, w->params = params;
  w->thread = thread, w->index = index, w->mode = mode, w->random = seed | 1;
  w->wrote.resize(tracked);
  w->flags.assign(flags, flags + flagCount);
  w->paths.push_back({int32_t(program->blocks.size()), {{0, allLanes}}});
  return w;
}
void gdnEmulatorFreeWarp(Warp *w) { delete w; }

/// Runs a warp until it stops: a Status. `stop` gets the instruction that
/// Python executes now, and its lanes.
int32_t gdnEmulatorRun(Warp *w, int32_t *stop) {
  const Status status = run(*w);
  stop[0] = w->at - 1;
  stop[1] = int32_t(w->active);
  return int32_t(status);
}
const char *gdnEmulatorFailure(const Warp *w) { return w->failure.c_str(); }
bool gdnEmulatorHasProducts(const Warp *w) {
  return !w->open.empty() || !w->groups.empty();
}

bool gdnEmulatorBeginAsyncRead(Warp *w, const int32_t *words, size_t count,
                               int32_t line, bool unwritten) {
  return beginAsyncRead(*w, words, count, line, unwritten);
}
void gdnEmulatorEndAsyncRead(Warp *w, const int32_t *words, size_t count) {
  endAsyncRead(*w, words, count);
}
bool gdnEmulatorBeginCopy(Warp *w, Shared *into, const int32_t *words,
                          size_t count, int32_t line, const int32_t *clock,
                          int32_t thread, bool ordinary) {
  return beginCopy(*w, *into, words, count, line, clock, thread, ordinary);
}
}
#pragma GCC visibility pop
