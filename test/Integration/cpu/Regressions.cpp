//===- Regressions.cpp - Inputs that once were, or easily go, wrong -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <functional>
#include <limits>

using namespace gdn::numerics;
using namespace mlir::gdn::tools;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// The index of a value of an axis. The names are our own: one that is not
/// there would be a mistake here, and shows as the axis' first value.
template <typename Axes>
static unsigned indexOf(const Axes &axes, unsigned axis,
                        llvm::StringRef value) {
  auto &values = axes[axis].values;
  auto found = llvm::find(values, value);
  return found == values.end() ? 0 : found - values.begin();
}

using Choice = std::pair<ProgramAxis, const char *>;

static Program makeProgram(llvm::ArrayRef<Choice> choices) {
  Program program = {};
  program[kChunk] = indexOf(programAxes(), kChunk, "32");
  for (auto [axis, value] : choices)
    program[axis] = indexOf(programAxes(), axis, value);
  return normalise(program);
}

static Setting makeSetting(const char *length, const char *meanGate) {
  return {indexOf(settingAxes(), kLength, length),
          indexOf(settingAxes(), kMeanGate, meanGate), 0};
}

namespace {
/// One way to spoil inputs.
struct Spoiler {
  const char *name;
  const char *gate;
  /// The new value of the argument's element, given its token and old value.
  std::function<double(int64_t token, double value)> change;
  Role role;
  /// Whether the backward has something to measure.
  bool hasGradients = true;
  /// A_log of all heads, beside a dt_bias of 0, if this is a number.
  double logRate = notANumber;
};
} // namespace

/// Applies a spoiler to the arguments of its role.
static void spoil(mlir::func::FuncOp entry, const Spoiler &spoiler,
                  std::vector<HostArray> &inputs) {
  auto arguments = getArguments(entry);
  if (!arguments) {
    llvm::consumeError(arguments.takeError());
    return;
  }
  for (const Argument &argument : *arguments) {
    HostArray &input = inputs[argument.index];
    bool isParameter =
        argument.role == Role::ALog || argument.role == Role::DtBias;
    if (isParameter && !std::isnan(spoiler.logRate))
      for (int64_t i = 0; i < input.size(); ++i)
        input.set(i, argument.role == Role::ALog ? spoiler.logRate : 0.0);
    if (argument.role != spoiler.role)
      continue;
    int64_t tokens = input.getShape()[1];
    int64_t perToken = 1;
    for (int64_t size : input.getShape().drop_front(2))
      perToken *= size;
    for (int64_t i = 0; i < input.size(); ++i)
      input.set(i, spoiler.change(i / perToken % tokens, input[i]));
  }
}

/// Strong, very strong and no decay side by side, as trained gates have them.
static double mixedGate(int64_t token, double value) {
  constexpr double gates[] = {0, -0.05, -1.6, -5, -40, -1e4, -infinity, -1e-3};
  return token % 16 < 8 ? gates[token % 8] : value;
}

/// A raw gate that is an ordinary one with an A_log of `logRate`, for which f32
/// has no room, beside others that forget all or nothing.
static double besideRate(double logRate, int64_t token, double value) {
  constexpr double gates[] = {0, -1e4, 20, 3e38, -95, infinity};
  return token % 16 < 6 ? gates[token % 16] : value - logRate;
}

static const Spoiler spoilers[] = {
    {"single huge gate", "gdn-log",
     [](int64_t t, double g) { return t == 40 ? -1e4 : g; }, Role::Gate},
    {"single huge gate", "kda-log",
     [](int64_t t, double g) { return t == 40 ? -1e4 : g; }, Role::Gate},
    {"infinite gates", "gdn-log",
     [](int64_t t, double g) {
       return t == 1 || t == 31 || t == 32 || t == 64 ? -infinity : g;
     },
     Role::Gate},
    {"infinite gates", "kda-log",
     [](int64_t t, double g) {
       return t == 1 || t == 31 || t == 32 || t == 64 ? -infinity : g;
     },
     Role::Gate},
    // The initial state's gradient is exactly 0 then, and every error of it
    // infinitely many times its size.
    {"infinite first gate", "gdn-log",
     [](int64_t t, double g) { return t == 0 ? -infinity : g; }, Role::Gate,
     /*hasGradients=*/false},
    {"infinite first gate", "kda-log",
     [](int64_t t, double g) { return t == 0 ? -infinity : g; }, Role::Gate,
     /*hasGradients=*/false},
    {"zero decays", "gdn-linear",
     [](int64_t t, double a) { return t % 7 == 3 ? 0 : a; }, Role::Gate},
    {"zero decays", "kda-linear",
     [](int64_t t, double a) { return t % 7 == 3 ? 0 : a; }, Role::Gate},
    // Nothing may divide by a decay.
    {"small decays", "gdn-linear",
     [](int64_t t, double a) { return t % 5 == 2 ? std::pow(10, -t) : a; },
     Role::Gate},
    {"small decays", "kda-linear",
     [](int64_t t, double a) { return t % 5 == 2 ? std::pow(10, -t) : a; },
     Role::Gate},
    {"mean gate -1.6", "gdn-log", [](int64_t, double g) { return 32 * g; },
     Role::Gate},
    {"mean gate -1.6", "kda-log", [](int64_t, double g) { return 32 * g; },
     Role::Gate},
    // Several resets in one chunk: the cumulated gate is some -1000 in log2
    // units, and f32 would keep 2^-14 of its differences.
    {"mixed gates", "gdn-log", mixedGate, Role::Gate},
    {"mixed gates", "kda-log", mixedGate, Role::Gate},
    {"infinite rate", "gdn-softplus",
     [](int64_t t, double x) { return besideRate(100, t, x); }, Role::Gate,
     /*hasGradients=*/true, /*logRate=*/100},
    {"infinite rate", "kda-softplus",
     [](int64_t t, double x) { return besideRate(100, t, x); }, Role::Gate,
     /*hasGradients=*/true, /*logRate=*/100},
    {"rate of 0", "gdn-softplus",
     [](int64_t t, double x) { return t % 16 == 3 ? 3e38 : 2 * x + 88; },
     Role::Gate, /*hasGradients=*/true, /*logRate=*/-88},
    // The other gates are at one of their bounds. f32 has no room for the
    // gradient of the middle.
    {"infinite rate", "gdn-bounded",
     [](int64_t t, double x) { return t % 3 ? x : 0; }, Role::Gate,
     /*hasGradients=*/false, /*logRate=*/100},
    {"infinite rate of a slope", "gdn-bounded",
     [](int64_t t, double x) { return t % 3   ? x
                                      : x > 0 ? 1.5e-38
                                              : -1.5e-38; },
     Role::Gate, /*hasGradients=*/true, /*logRate=*/88.9},
    {"beta 0", "gdn-log", [](int64_t, double) { return 0; }, Role::Beta},
    {"beta 1", "gdn-log", [](int64_t, double) { return 1; }, Role::Beta},
    {"beta 0 and 1", "kda-log",
     [](int64_t t, double b) { return t % 3 == 2 ? b : t % 3; }, Role::Beta},
};

static bool reportFailure(const std::string &title, llvm::Error error,
                          Totals &totals) {
  ++totals.failed;
  llvm::outs() << "FAIL " << title << "\n  " << llvm::toString(std::move(error))
               << "\n";
  return false;
}

/// Runs every spoiler of a program's gate through it.
static void runSpoilers(const Program &program, Totals &totals) {
  Setting setting = makeSetting("128", "-0.05");
  auto compiled = CompiledProgram::make(program, setting, totals);
  if (!compiled) {
    reportFailure(describe(program), compiled.takeError(), totals);
    return;
  }
  for (const Spoiler &spoiler : spoilers) {
    if (valueOf(program, kGate) != spoiler.gate ||
        (valueOf(program, kOp) == "backward" && !spoiler.hasGradients))
      continue;
    std::string title = std::string(spoiler.name) + ": " + describe(program);
    auto inputs = makeInputs(compiled->getEntry(), inputsOf(program, setting));
    if (!inputs) {
      reportFailure(title, inputs.takeError(), totals);
      continue;
    }
    spoil(compiled->getEntry(), spoiler, *inputs);
    auto checks = compiled->check(*inputs);
    if (!checks) {
      reportFailure(title, checks.takeError(), totals);
      continue;
    }
    record(*checks, title, totals);
  }
}

/// Whether the tokens of sequence `index` of N equal in both arrays, bit by bit
/// but for NaN, of which there must be none.
static bool sequenceIsEqual(const HostArray &left, const HostArray &right,
                            llvm::ArrayRef<int64_t> starts, size_t index) {
  int64_t tokens = starts.back();
  int64_t perToken = tokens ? left.size() / tokens : 0;
  for (int64_t i = starts[index] * perToken; i < starts[index + 1] * perToken;
       ++i)
    if (!(left[i] == right[i]))
      return false;
  return true;
}

/// NaN in every operand of one sequence of a packed batch, whose neighbours end
/// and begin in the middle of a chunk: they must not notice.
static void runNeighbours(const Program &program, Totals &totals) {
  Setting setting = {0, 1, 0};
  std::string title = "NaN in a neighbour: " + describe(program);
  auto compiled = CompiledProgram::make(program, setting, totals);
  if (!compiled) {
    reportFailure(title, compiled.takeError(), totals);
    return;
  }
  InputOptions options = inputsOf(program, setting);
  // Sequence 2 of lengths 0, 1, 63, 64, 65, 200.
  const size_t poisoned = 2;
  std::vector<int64_t> starts = {0};
  for (int64_t length : *options.lengths)
    starts.push_back(starts.back() + length);
  auto inputs = makeInputs(compiled->getEntry(), options);
  if (!inputs) {
    reportFailure(title, inputs.takeError(), totals);
    return;
  }
  auto clean = compiled->run(*inputs);
  for (Role role : {Role::Q, Role::K, Role::V, Role::Beta, Role::Gate})
    spoil(compiled->getEntry(),
          {"", "",
           [&](int64_t token, double value) {
             return token >= starts[poisoned] && token < starts[poisoned + 1]
                        ? notANumber
                        : value;
           },
           role},
          *inputs);
  auto spoiled = compiled->run(*inputs);
  if (!clean || !spoiled) {
    reportFailure(title,
                  llvm::joinErrors(clean.takeError(), spoiled.takeError()),
                  totals);
    return;
  }
  bool pass = true;
  for (size_t n = 0; n + 1 < starts.size(); ++n)
    if (n != poisoned)
      pass &= sequenceIsEqual((*clean)[0], (*spoiled)[0], starts, n);
  ++(pass ? totals.passed : totals.failed);
  if (!pass)
    llvm::outs() << "FAIL " << title
                 << "\n  expected other sequences unchanged\n";
}

/// Two runs must agree in every bit, whatever the threads did.
static void runTwice(const Program &program, Totals &totals) {
  Setting setting = makeSetting("1000", "-0.05");
  std::string title = "repeated run: " + describe(program);
  auto compiled = CompiledProgram::make(program, setting, totals);
  auto inputs =
      compiled ? makeInputs(compiled->getEntry(), inputsOf(program, setting))
               : compiled.takeError();
  if (!inputs) {
    reportFailure(title, inputs.takeError(), totals);
    return;
  }
  auto first = compiled->run(*inputs);
  auto second = compiled->run(*inputs);
  if (!first || !second) {
    reportFailure(
        title, llvm::joinErrors(first.takeError(), second.takeError()), totals);
    return;
  }
  bool pass = *first == *second;
  ++(pass ? totals.passed : totals.failed);
  if (!pass)
    llvm::outs() << "FAIL " << title << "\n  expected equal bits\n";
}

void gdn::numerics::runRegressions(Totals &totals) {
  for (const char *gate : {"gdn-log", "gdn-linear", "kda-log", "kda-linear"})
    for (const char *op : {"chunk", "recurrent", "backward"})
      runSpoilers(makeProgram({{kOp, op},
                               {kGate, gate},
                               {kData, "bf16"},
                               {kStates, "inout-kv"}}),
                  totals);
  for (auto [gate, chunk] :
       {std::pair{"gdn-linear", "16"}, {"kda-linear", "64"}})
    runSpoilers(makeProgram({{kOp, "backward"},
                             {kGate, gate},
                             {kData, "f32"},
                             {kStates, "inout-kv"},
                             {kChunk, chunk}}),
                totals);
  // Programs and chain rules share one formula each.
  for (auto [op, gate] : {std::pair{"chunk", "gdn-softplus"},
                          {"chunk", "kda-softplus"},
                          {"chunk", "gdn-bounded"},
                          {"backward", "gdn-softplus"},
                          {"backward", "gdn-bounded"}})
    runSpoilers(makeProgram({{kOp, op}, {kGate, gate}}), totals);
  // The same with f32 products and with the solve in a kernel of its own.
  for (const char *gate : {"gdn-log", "kda-log"}) {
    for (auto [chunk, plan] : {std::pair{"32", "separate"}, {"64", "fused"}})
      runSpoilers(
          makeProgram(
              {{kGate, gate}, {kData, "f32"}, {kPlan, plan}, {kChunk, chunk}}),
          totals);
    runSpoilers(makeProgram({{kOp, "backward"},
                             {kGate, gate},
                             {kData, "f32"},
                             {kStates, "inout-kv"}}),
                totals);
    runSpoilers(makeProgram({{kGate, gate}, {kPlan, "separate"}}), totals);
  }
  for (const char *gate : {"gdn-log", "kda-log"})
    for (const char *op : {"chunk", "recurrent", "backward"})
      runNeighbours(makeProgram({{kOp, op}, {kGate, gate}, {kPacked, "yes"}}),
                    totals);
  for (const char *op : {"chunk", "backward"})
    runTwice(makeProgram({{kOp, op}, {kGate, "gdn-log"}, {kGroup, "4"}}),
             totals);
}
