//===- Runner.cpp - Compile a case, run it, compare it --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace gdn::numerics;
using namespace mlir::gdn::tools;

char Refusal::ID;

/// Compiles for a GPU. An error of the compiler that says what was expected, as
/// all of ours do, is a refusal; one of the machinery below is none.
static llvm::Expected<GPUExecutable>
compileForGPU(mlir::ModuleOp module, const CompileOptions &options) {
  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler collector(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          errors.push_back(diagnostic.str());
        return mlir::failure();
      });
  auto executable = GPUExecutable::compile(module, "f", options);
  bool isRefused = !executable && !errors.empty() &&
                   llvm::all_of(errors, [](llvm::StringRef text) {
                     return text.contains("expected ");
                   });
  if (!isRefused)
    return executable;
  llvm::consumeError(executable.takeError());
  return llvm::make_error<Refusal>(errors.front());
}

llvm::Expected<CompiledProgram> CompiledProgram::make(const Program &program,
                                                      const Setting &setting,
                                                      const Totals &totals) {
  Module source = writeModule(program, setting);
  source.compile.device = totals.device;
  source.compile.target.optLevel = totals.optLevel;
  CompiledProgram compiled;
  compiled.session = std::make_unique<Session>();
  compiled.module = compiled.session->parseText(source.text, "case.mlir");
  if (!compiled.module)
    return llvm::createStringError("expected a case that parses");
  auto entry = findEntry(*compiled.module, "f");
  if (!entry)
    return entry.takeError();
  compiled.entry = *entry;
  mlir::OwningOpRef<mlir::ModuleOp> lowered = compiled.module->clone();
  if (totals.device == Device::GPU) {
    auto executable = compileForGPU(*lowered, source.compile);
    if (!executable)
      return executable.takeError();
    compiled.onGPU = std::make_unique<GPUExecutable>(std::move(*executable));
    return compiled;
  }
  auto loweredEntry = findEntry(*lowered, "f");
  if (!loweredEntry)
    return loweredEntry.takeError();
  auto executable =
      Executable::compile(*lowered, *loweredEntry, source.compile);
  if (!executable)
    return executable.takeError();
  compiled.onCPU = std::make_unique<Executable>(std::move(*executable));
  return compiled;
}

llvm::Expected<std::vector<HostArray>>
CompiledProgram::run(llvm::MutableArrayRef<HostArray> inputs) {
  if (onCPU)
    return onCPU->run(inputs);
  auto result = onGPU->run(inputs, /*repeat=*/1);
  if (!result)
    return result.takeError();
  if (!result->repeatable)
    return llvm::createStringError(
        "expected the same bits of two calls, got others");
  return std::move(result->outputs);
}

llvm::Expected<std::vector<OutputCheck>>
CompiledProgram::check(llvm::MutableArrayRef<HostArray> inputs) {
  auto outputs = run(inputs);
  if (!outputs)
    return outputs.takeError();
  auto expected = evaluate(entry, inputs);
  if (!expected)
    return expected.takeError();
  std::vector<OutputCheck> checks;
  for (auto [output, value] : llvm::zip_equal(*outputs, *expected))
    checks.push_back(checkOutput(output, value, "auto"));
  return checks;
}

bool gdn::numerics::record(const std::vector<OutputCheck> &checks,
                           const std::string &title, Totals &totals) {
  bool pass = true;
  for (const OutputCheck &check : checks) {
    double ratio = std::max(check.error.relRms / check.tolerance.relRms,
                            check.error.maxAbs == 0
                                ? 0
                                : check.error.maxAbs / check.error.maxRef /
                                      check.tolerance.maxNorm);
    auto &worst = totals.worst[check.name];
    if (ratio >= worst.first)
      worst = {ratio, title};
    if (check.pass)
      continue;
    pass = false;
    llvm::outs() << llvm::formatv(
        "FAIL {0}\n  {1}: rms error {2:E2} of {3:E0}, max error {4:E2} of "
        "{5:E0} x {6:E2}\n",
        title, check.name, check.error.relRms, check.tolerance.relRms,
        check.error.maxAbs, check.tolerance.maxNorm, check.error.maxRef);
  }
  ++(pass ? totals.passed : totals.failed);
  return pass;
}

/// Judges again with tolerances that are `slack` times as wide.
static void allow(OutputCheck &check, double slack) {
  check.tolerance.relRms *= slack;
  check.tolerance.maxNorm *= slack;
  check.pass = gdn::reference::accepts(check.tolerance, check.error);
}

/// How much wider than spec 9 the tolerance of an output is.
/// - Where all keys of a head point one way and q does not, outputs are small
///   differences of large states: the very roundings of spec 8, emulated in
///   numpy without decay, give relative rms errors of up to 1e-2 for the
///   outputs and the state of short sequences (K = 64, C = 64), of 7e-3 at K =
///   V = 128.
/// - The gradient of a channel's gate is a sum over the later tokens of its
///   chunk. What is rounded there counts up to C times in the sum over all
///   tokens that da_log is: relative rms errors of up to 1.5e-5 in f32.
static double slackOf(const Program &program, const Setting &setting,
                      llvm::StringRef output) {
  bool isF32 = valueOf(program, kData) == "f32";
  bool isChannelGate = valueOf(program, kGate).starts_with("kda");
  if (isF32 && isChannelGate && output == "da_log")
    return 3;
  llvm::StringRef keys = settingAxes()[kKeys].values[setting[kKeys]];
  return keys != "random" && !isF32 && valueOf(program, kChain) == "3" ? 2 : 1;
}

/// Writes the program to a file and prints how to repeat a failure with it.
static void printCommand(const Program &program, const Setting &setting,
                         llvm::StringRef directory) {
  Module source = writeModule(program, setting);
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(
      path,
      llvm::formatv("case-{0:x}.mlir", llvm::xxh3_64bits(source.text)).str());
  std::error_code failure = llvm::sys::fs::create_directories(directory);
  llvm::raw_fd_ostream os(path, failure);
  if (failure) {
    llvm::outs() << "  (" << path << ": " << failure.message() << ")\n";
    return;
  }
  os << "// " << describe(program) << "\n" << source.text;
  llvm::outs() << "  " << commandOf(program, setting, path) << "\n";
}

/// Makes the inputs of a setting and compares; false if it failed.
static bool runSetting(CompiledProgram &compiled, const Program &program,
                       const Setting &setting, Totals &totals) {
  std::string title = describe(program) + " " + describe(setting);
  auto inputs = makeInputs(compiled.getEntry(), inputsOf(program, setting));
  auto checks = inputs ? compiled.check(*inputs) : inputs.takeError();
  if (checks) {
    for (OutputCheck &check : *checks)
      allow(check, slackOf(program, setting, check.name));
    return record(*checks, title, totals);
  }
  ++totals.failed;
  llvm::outs() << "FAIL " << title << "\n  "
               << llvm::toString(checks.takeError()) << "\n";
  return false;
}

void gdn::numerics::runCase(const Case &testCase, llvm::StringRef directory,
                            Totals &totals) {
  const Program &program = testCase.program;
  auto compiled =
      CompiledProgram::make(program, testCase.settings.front(), totals);
  if (!compiled) {
    llvm::Error error = compiled.takeError();
    bool isRefused = error.isA<Refusal>();
    (isRefused ? totals.refused : totals.failed) += testCase.settings.size();
    llvm::outs() << (isRefused ? "refused " : "FAIL ") << describe(program)
                 << "\n  " << llvm::toString(std::move(error)) << "\n";
    if (!isRefused)
      printCommand(program, testCase.settings.front(), directory);
    return;
  }
  for (const Setting &setting : testCase.settings)
    if (!runSetting(*compiled, program, setting, totals))
      printCommand(program, setting, directory);
  llvm::outs().flush();
}
