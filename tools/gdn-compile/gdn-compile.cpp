//===- gdn-compile.cpp - Compile layers to a level or an object -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "Flags.h"
#include "gdn/Tools/Explain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn::tools;
namespace cpu = mlir::gdn::cpu;

static constexpr llvm::StringLiteral overview =
    "Compiles layers of the gdn dialect, level by level\n\n"
    "  gdn-compile layer.mlir --emit=tile           # print the tile programs\n"
    "  gdn-compile layer.mlir --emit=obj -o layer.o # for this CPU\n"
    "  gdn-compile layer.mlir --target=sm_90a --emit=obj --dump-dir=levels\n"
    "  gdn-compile varlen.mlir --target=sm_90a --explain "
    "--lengths=28672,4096\n\n"
    "A file may stand at any level on the way, so what --dump-dir writes can "
    "be changed and compiled on.\nFor a GPU, --emit=obj writes layer.o, with "
    "the kernels inside, and layer.h, which says how to call it.\nptxas is the "
    "one that GDN_PTXAS names, or that of PATH. It is killed after "
    "GDN_PTXAS_TIMEOUT seconds (600). GDN_PTXAS_CACHE names a folder that "
    "keeps what it makes.\n";

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

llvm::Error mlir::gdn::tools::dump(const Flags &flags, unsigned number,
                                   llvm::StringRef name,
                                   llvm::StringRef bytes) {
  if (flags.dumpDir.empty())
    return llvm::Error::success();
  if (std::error_code failure =
          llvm::sys::fs::create_directories(flags.dumpDir))
    return llvm::createStringError(
        llvm::formatv("{0}: expected a directory that can be made, got '{1}'",
                      flags.dumpDir.getValue(), failure.message()));
  llvm::SmallString<128> path(flags.dumpDir);
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}", number, name).str());
  return writeFile(path, bytes);
}

llvm::Error mlir::gdn::tools::writeFingerprint(const Flags &flags,
                                               llvm::StringRef code,
                                               llvm::StringRef origin) {
  if (flags.fingerprint.empty())
    return llvm::Error::success();
  std::string text = flags.noCode ? "-" : fingerprint(code);
  if (!origin.empty())
    text += " " + fingerprint(origin);
  return writeFile(flags.fingerprint, text + "\n");
}

/// Where the output goes if the user does not say.
static std::string getPath(const Flags &flags, const Output &output) {
  if (!flags.path.empty())
    return flags.path;
  if (output.extension.empty())
    return "-";
  llvm::SmallString<128> path(
      flags.input == "-" ? "out" : llvm::sys::path::filename(flags.input));
  llvm::sys::path::replace_extension(path, output.extension);
  return std::string(path);
}

//===----------------------------------------------------------------------===//
// Outputs of a CPU
//===----------------------------------------------------------------------===//

static llvm::Error writeLLVM(const Flags &flags, ModuleOp module,
                             llvm::StringRef, llvm::raw_pwrite_stream &stream) {
  return cpu::emitLLVM(module, stream, flags.compile.get().target);
}

static llvm::Error writeObject(const Flags &flags, ModuleOp module,
                               llvm::StringRef,
                               llvm::raw_pwrite_stream &stream) {
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream object(bytes);
  if (llvm::Error error =
          cpu::emitObject(module, object, flags.compile.get().target))
    return error;
  stream << object.str();
  return writeFingerprint(flags, object.str());
}

static const Output cpuOutputs[] = {{"stages", Level::Stages, nullptr, ""},
                                    {"tile", Level::Tile, nullptr, ""},
                                    {"llvm", Level::LLVM, writeLLVM, ""},
                                    {"obj", Level::LLVM, writeObject, "o"}};

/// A target and its outputs from the top down. A new target is a new row.
struct Target {
  llvm::StringLiteral name;
  Device device;
  llvm::ArrayRef<Output> outputs;
};

static const Target targets[] = {
    {mlir::gdn::support::cpuTarget, Device::CPU, cpuOutputs},
    {mlir::gdn::support::gpuTarget, Device::GPU, getGPUOutputs()}};

//===----------------------------------------------------------------------===//
// The tool
//===----------------------------------------------------------------------===//

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

/// Writes a module that was lowered for `output`.
static llvm::Error write(const Flags &flags, ModuleOp module,
                         const Output &output) {
  std::string path = getPath(flags, output);
  // Objects are patched after the fact, which stdout does not allow. And
  // nothing is written before it is known that all can be.
  llvm::SmallVector<char> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (!output.write)
    module->print(stream);
  else if (llvm::Error error = output.write(flags, module, path, stream))
    return error;
  return writeFile(path, stream.str());
}

/// What the command line says of the compilation.
static llvm::Expected<CompileOptions> readOptions(const Flags &flags,
                                                  const Target &target) {
  CompileOptions options = flags.compile.get();
  options.device = target.device;
  llvm::Expected<SizeHints> sizes = flags.sizes.get();
  if (!sizes)
    return sizes.takeError();
  options.sizes = std::move(*sizes);
  if (flags.maxSeqlen < 0)
    return llvm::createStringError(
        llvm::formatv("expected --max-seqlen of at least 0, got {0}",
                      flags.maxSeqlen.getValue()));
  if (flags.maxSeqlen > 0)
    options.sizes.longest = flags.maxSeqlen;
  if (flags.json && !flags.explain)
    return llvm::createStringError(
        "expected --json with --explain, got it alone");
  bool isWholeObject =
      flags.emit == "obj" && flags.dumpDir.empty() && flags.ptx.empty();
  if (flags.shareKernels && !isWholeObject)
    return llvm::createStringError(
        "expected --share-kernels with --emit=obj and without --dump-dir and "
        "--ptx, where all kernels have one image");
  if (flags.noCode && (!isWholeObject || target.device != Device::GPU))
    return llvm::createStringError(
        "expected --no-code with --emit=obj for a GPU and without --dump-dir "
        "and --ptx");
  if (llvm::Error error = checkOptions(options))
    return std::move(error);
  return options;
}

/// Writes what the layers would run.
static llvm::Error writeExplanation(const Flags &flags, ModuleOp module,
                                    const CompileOptions &options) {
  llvm::Expected<std::vector<LayerChoice>> layers = explain(module, options);
  if (!layers)
    return layers.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (flags.json)
    printJson(*layers, options, flags.input, stream);
  else
    printText(*layers, options, stream);
  return writeFile(flags.path.empty() ? "-" : flags.path.getValue(), text);
}

/// Compiles one file and returns the exit code.
static int compile(const Flags &flags, const Target &target,
                   const Output &output) {
  llvm::Expected<CompileOptions> read = readOptions(flags, target);
  if (!read)
    return reportError(toolName, read.takeError());
  const CompileOptions &options = *read;
  // Before the file is read: a wrong CPU name is wrong for every file.
  auto machine = cpu::createTargetMachine(options.target);
  if (!machine)
    return reportError(toolName, machine.takeError());
  Session session(flags.compile.printOps);
  OwningOpRef<ModuleOp> module = session.parseFile(flags.input);
  if (module && flags.explain) {
    if (llvm::Error error = writeExplanation(flags, *module, options))
      return reportError(toolName, std::move(error));
    return 0;
  }
  unsigned number = 0;
  auto reached = [&](Level level, ModuleOp lowered) -> llvm::Error {
    ++number;
    if (flags.dumpDir.empty())
      return llvm::Error::success();
    std::string text;
    llvm::raw_string_ostream(text) << lowered;
    return dump(flags, number, (name(level) + ".mlir").str(), text);
  };
  // Both print their diagnostics themselves.
  if (!module || failed(lower(*module, output.level, options, reached)))
    return 1;
  if (llvm::Error error = write(flags, *module, output))
    return reportError(toolName, std::move(error));
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Flags flags;
  parseCommandLine(argc, argv, flags.category, overview);
  auto target = find(llvm::ArrayRef(targets), "target", flags.target);
  if (!target)
    return reportError(toolName, target.takeError());
  auto output = find((*target)->outputs, "emit", flags.emit);
  if (!output)
    return reportError(toolName, output.takeError());
  return compile(flags, **target, **output);
}
