//===- gdn-numerics.cpp - The numerical tests of the CPU path -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Tools/CommandLine.h"
#include "gdn/Tools/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace gdn::numerics;
using namespace mlir::gdn::tools;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral toolName = "gdn-numerics";

static constexpr llvm::StringLiteral overview =
    "Compares compiled layers with float64 over the test matrix\n\n"
    "  gdn-numerics --regressions\n"
    "  gdn-numerics --sample=20 --seed=1 --only op=backward\n"
    "  gdn-numerics --all --range=0:500          # resumes where it is told\n"
    "  gdn-numerics --target=sm_90a --sample=50 --only op=chunk\n";

namespace {
struct Flags {
  cl::OptionCategory category{"gdn-numerics options"};
  cl::opt<bool> all{"all", cl::desc("Run the whole matrix"), cl::cat(category)};
  cl::opt<std::string> range{
      "range", cl::desc("Programs of the whole matrix to run: first:end"),
      cl::cat(category)};
  cl::opt<unsigned> sample{"sample", cl::desc("Programs to draw"),
                           cl::cat(category)};
  cl::opt<unsigned> settings{"settings",
                             cl::desc("Settings a drawn program (3)"),
                             cl::init(3), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of the sample (0)"),
                         cl::init(0), cl::cat(category)};
  cl::list<std::string> only{
      "only", cl::desc("Only programs and settings with this value of an axis"),
      cl::value_desc("axis=value"), cl::cat(category)};
  cl::opt<bool> regressions{"regressions",
                            cl::desc("Run the cases outside the matrix"),
                            cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::desc("Where to run: cpu (the default) or sm_90a"),
      cl::init(mlir::gdn::support::cpuTarget.str()), cl::cat(category)};
  cl::opt<unsigned> optLevel{
      "opt-level",
      cl::desc("How much LLVM optimises code for CPUs, 0 to 3 (3)"),
      cl::init(mlir::gdn::cpu::TargetOptions().optLevel), cl::cat(category)};
  cl::opt<bool> list{"list", cl::desc("Print the cases, run nothing"),
                     cl::cat(category)};
  cl::opt<std::string> directory{
      "save-dir", cl::desc("Where programs that fail are written (.)"),
      cl::init("."), cl::cat(category)};
};
} // namespace

/// Adds "axis=value" to `fixed` if the axis is one of `axes`. Returns whether
/// it is; an unknown value is an error.
template <typename Axes>
static llvm::Expected<bool> fix(const Axes &axes, llvm::StringRef text,
                                std::map<std::string, unsigned> &fixed) {
  auto [name, value] = text.split('=');
  for (const Axis &axis : axes) {
    if (axis.name != name)
      continue;
    auto found = llvm::find(axis.values, value);
    if (found == axis.values.end())
      return fail("expected --only {0} of {1}, got '{2}'", name,
                  llvm::join(axis.values, ", "), value);
    fixed[axis.name] = found - axis.values.begin();
    return true;
  }
  return false;
}

/// The axis values that the user fixed.
static llvm::Expected<std::map<std::string, unsigned>>
readOnly(const Flags &flags) {
  std::map<std::string, unsigned> fixed;
  for (llvm::StringRef text : flags.only) {
    auto isProgram = fix(programAxes(), text, fixed);
    if (!isProgram)
      return isProgram.takeError();
    auto isSetting = fix(settingAxes(), text, fixed);
    if (!isSetting)
      return isSetting.takeError();
    if (!*isProgram && !*isSetting)
      return fail("expected --only <axis>=<value>, got '{0}'", text);
  }
  return fixed;
}

template <typename Axes, typename Values>
static bool matches(const Axes &axes, const Values &values,
                    const std::map<std::string, unsigned> &fixed) {
  for (size_t i = 0; i < axes.size(); ++i) {
    auto value = fixed.find(axes[i].name);
    if (value != fixed.end() && value->second != values[i])
      return false;
  }
  return true;
}

/// "first:end" within the matrix.
static llvm::Expected<std::pair<unsigned, unsigned>>
readRange(llvm::StringRef text) {
  if (text.empty())
    return std::make_pair(0u, countPrograms());
  auto [left, right] = text.split(':');
  auto first = parseInteger<unsigned>(left),
       end = parseInteger<unsigned>(right);
  if (!first || !end || *first > *end || *end > countPrograms())
    return fail("expected --range <first>:<end> within 0:{0}, got '{1}'",
                countPrograms(), text);
  return std::make_pair(*first, *end);
}

/// Runs or lists one case of `total`, with progress on stderr.
static void handle(const Flags &flags, const Case &testCase, unsigned number,
                   unsigned end, Totals &totals) {
  if (flags.list) {
    for (const Setting &setting : testCase.settings)
      llvm::outs() << number << ": " << describe(testCase.program) << " "
                   << describe(setting) << "\n";
    return;
  }
  runCase(testCase, flags.directory, totals);
  llvm::errs() << llvm::formatv("{0}: program {1} of {2}, {3} passed, {4} "
                                "failed\n",
                                toolName, number + 1, end, totals.passed,
                                totals.failed);
}

static llvm::Error run(const Flags &flags, Totals &totals) {
  auto fixed = readOnly(flags);
  if (!fixed)
    return fixed.takeError();
  auto range = readRange(flags.range);
  if (!range)
    return range.takeError();
  if (flags.regressions)
    runRegressions(totals);
  std::vector<Case> drawn =
      sample(flags.sample, flags.settings, flags.seed, *fixed);
  for (size_t i = 0; i < drawn.size(); ++i)
    handle(flags, drawn[i], i, drawn.size(), totals);
  if (!flags.all)
    return llvm::Error::success();
  for (unsigned number = range->first; number < range->second; ++number) {
    Case testCase = {programOf(number), {}};
    if (!matches(programAxes(), testCase.program, *fixed))
      continue;
    for (const Setting &setting : settingsOf(testCase.program))
      if (matches(settingAxes(), setting, *fixed))
        testCase.settings.push_back(setting);
    if (!testCase.settings.empty())
      handle(flags, testCase, number, range->second, totals);
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Flags flags;
  parseCommandLine(argc, argv, flags.category, overview);
  Totals totals;
  auto device = parseTarget(flags.target);
  if (!device)
    return reportError(toolName, device.takeError());
  totals.device = *device;
  totals.optLevel = flags.optLevel;
  if (*device == Device::GPU && !flags.list)
    if (llvm::Error error = GPUExecutable::checkDevice())
      return reportError(toolName, std::move(error));
  if (llvm::Error error = run(flags, totals))
    return reportError(toolName, std::move(error));
  if (flags.list)
    return 0;
  for (auto &[name, worst] : totals.worst)
    llvm::outs() << llvm::formatv("{0,-15} worst error is {1:F2} of its "
                                  "tolerance\n  in {2}\n",
                                  name, worst.first, worst.second);
  llvm::outs() << totals.passed << " passed, " << totals.failed << " failed";
  // A CPU has code for all programs.
  if (totals.device == Device::GPU)
    llvm::outs() << ", " << totals.refused << " refused";
  llvm::outs() << "\n";
  // A command line that selects nothing must not look like a success, nor one
  // that selects what is refused.
  return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
