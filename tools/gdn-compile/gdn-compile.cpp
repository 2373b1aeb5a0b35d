//===- gdn-compile.cpp - Compile layers to a level or an object -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Tools/CommandLine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn::tools;
namespace cl = llvm::cl;
namespace cpu = mlir::gdn::cpu;

static constexpr llvm::StringLiteral toolName = "gdn-compile";

static constexpr llvm::StringLiteral overview =
    "Compiles layers of the gdn dialect, level by level\n\n"
    "  gdn-compile layer.mlir --emit=tile           # print the tile programs\n"
    "  gdn-compile layer.mlir --emit=obj -o layer.o # for this CPU\n";

namespace {
/// Something that can be written for a target.
struct Output {
  llvm::StringLiteral name;
  /// How far down the module goes first.
  Level level;
  /// Writes it; null for the module's own text.
  llvm::Error (*write)(ModuleOp, llvm::raw_pwrite_stream &,
                       const cpu::TargetOptions &);
  /// Ending of the file that it is written to by default; empty for stdout.
  llvm::StringLiteral extension;
};

/// A target and its outputs from the top down. A new target is a new row.
struct Target {
  llvm::StringLiteral name;
  llvm::ArrayRef<Output> outputs;
};
} // namespace

static llvm::Error writeLLVM(ModuleOp module, llvm::raw_pwrite_stream &stream,
                             const cpu::TargetOptions &options) {
  return cpu::emitLLVM(module, stream, options);
}

static const Output cpuOutputs[] = {{"stages", Level::Stages, nullptr, ""},
                                    {"tile", Level::Tile, nullptr, ""},
                                    {"llvm", Level::LLVM, writeLLVM, ""},
                                    {"obj", Level::LLVM, cpu::emitObject, "o"}};
static const Target targets[] = {{gdn::support::cpuTarget, cpuOutputs}};

/// The entry of a table that is called `name`, or an error that lists them.
template <typename T>
static llvm::Expected<const T *>
find(llvm::ArrayRef<T> table, llvm::StringRef option, llvm::StringRef name) {
  std::string names;
  for (const T &entry : table) {
    if (entry.name == name)
      return &entry;
    names += (names.empty() ? "" : ", ") + entry.name.str();
  }
  return llvm::createStringError(llvm::formatv(
      "expected --{0} of one of: {1}, got '{2}'", option, names, name));
}

/// Where the output goes if the user does not say.
static std::string defaultPath(const Output &output, llvm::StringRef input) {
  if (output.extension.empty())
    return "-";
  llvm::SmallString<128> path(input == "-" ? "out"
                                           : llvm::sys::path::filename(input));
  llvm::sys::path::replace_extension(path, output.extension);
  return std::string(path);
}

/// Writes a module that was lowered for `output`.
static llvm::Error write(ModuleOp module, llvm::StringRef path,
                         const Output &output,
                         const cpu::TargetOptions &options) {
  // Objects are patched after the fact, which stdout does not allow. And
  // nothing is written before it is known that all can be.
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (!output.write)
    module->print(stream);
  else if (llvm::Error error = output.write(module, stream, options))
    return error;
  std::error_code failure;
  llvm::ToolOutputFile file(path, failure, llvm::sys::fs::OpenFlags());
  if (!failure) {
    file.os() << stream.str();
    file.os().flush();
    failure = file.os().error();
    file.os().clear_error();
  }
  if (failure)
    return llvm::createStringError(llvm::formatv(
        "{0}: expected a writable file, got '{1}'", path, failure.message()));
  file.keep();
  return llvm::Error::success();
}

/// Compiles one file and returns the exit code.
static int compile(llvm::StringRef input, llvm::StringRef path,
                   const Output &output, const CompileOptions &options) {
  if (llvm::Error error = checkOptions(options))
    return reportError(toolName, std::move(error));
  // Before the file is read: a wrong CPU name is wrong for every file.
  auto machine = cpu::createTargetMachine(options.target);
  if (!machine)
    return reportError(toolName, machine.takeError());
  Session session;
  OwningOpRef<ModuleOp> module = session.parseFile(input);
  // Both print their diagnostics themselves.
  if (!module || failed(lower(*module, output.level, options)))
    return 1;
  if (llvm::Error error =
          write(*module, path.empty() ? defaultPath(output, input) : path.str(),
                output, options.target))
    return reportError(toolName, std::move(error));
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("gdn-compile options");
  cl::opt<std::string> input(cl::Positional, cl::desc("<file, - for stdin>"),
                             cl::init("-"), cl::cat(category));
  cl::opt<std::string> path("o", cl::desc("Output file, - for stdout"),
                            cl::value_desc("file"), cl::cat(category));
  cl::opt<std::string> targetName(
      "target", cl::desc("What to compile for: cpu"),
      cl::init(gdn::support::cpuTarget.str()), cl::cat(category));
  cl::opt<std::string> emit(
      "emit", cl::desc("What to write: stages (the default), tile, llvm, obj"),
      cl::init("stages"), cl::cat(category));
  CompileFlags flags(category);
  parseCommandLine(argc, argv, category, overview);

  auto target = find(llvm::ArrayRef(targets), "target", targetName);
  if (!target)
    return reportError(toolName, target.takeError());
  auto output = find((*target)->outputs, "emit", emit);
  if (!output)
    return reportError(toolName, output.takeError());
  return compile(input, path, **output, flags.get());
}
