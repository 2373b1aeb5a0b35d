//===- gdn-compile.cpp - Compile layers to a level or an object -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Target/Host.h"
#include "gdn/Target/PTX.h"
#include "gdn/Tools/CommandLine.h"
#include "gdn/Tools/Explain.h"
#include "gdn/Tools/Progress.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn::tools;
namespace cl = llvm::cl;
namespace cpu = mlir::gdn::cpu;
namespace host = mlir::gdn::host;
namespace ptx = mlir::gdn::ptx;

static constexpr llvm::StringLiteral toolName = "gdn-compile";

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
    "GDN_PTXAS_TIMEOUT seconds (600).\n";

namespace {
struct Flags;

/// Something that can be written for a target.
struct Output {
  llvm::StringLiteral name;
  /// How far down the module goes first.
  Level level;
  /// Writes it, and what goes beside the file at `path`; null for the module's
  /// own text.
  llvm::Error (*write)(const Flags &, ModuleOp, llvm::StringRef path,
                       llvm::raw_pwrite_stream &);
  /// Ending of the file that it is written to by default; empty for stdout.
  llvm::StringLiteral extension;
};

/// A target and its outputs from the top down. A new target is a new row.
struct Target {
  llvm::StringLiteral name;
  Device device;
  llvm::ArrayRef<Output> outputs;
};

/// The command line of gdn-compile.
struct Flags {
  cl::OptionCategory category{"gdn-compile options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<file, - for stdin>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> path{"o", cl::desc("Output file, - for stdout"),
                            cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::desc("What to compile for: cpu (the default) or sm_90a"),
      cl::init(mlir::gdn::support::cpuTarget.str()), cl::cat(category)};
  cl::opt<std::string> emit{
      "emit",
      cl::desc("What to write: stages (the default), tile, llvm or obj for a "
               "CPU; stages, tile, warp, nvvm, ptx, cubin or obj for a GPU"),
      cl::init("stages"), cl::cat(category)};
  cl::opt<std::string> dumpDir{
      "dump-dir",
      cl::desc("Write every level on the way to <dir>/1-stages.mlir, ..."),
      cl::value_desc("dir"), cl::cat(category)};
  cl::opt<std::string> fingerprint{
      "fingerprint",
      cl::desc("Write a hash of the PTX without names, or of a CPU's object"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> ptx{
      "ptx", cl::desc("PTX to take instead of what the kernels become"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> allowSpills{
      "allow-spills",
      cl::desc("Take kernels whose registers ptxas spills, with a warning: "
               "for a newer ptxas than the kernels' schedules are made for"),
      cl::cat(category)};
  cl::opt<bool> explain{
      "explain",
      cl::desc("Write what the layers would run instead: schedule, FLOP, "
               "bytes, predicted time, and why not another way"),
      cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("With --explain: as one JSON object"),
                     cl::cat(category)};
  SizeFlags sizes{category};
  cl::opt<int64_t> maxSeqlen{
      "max-seqlen",
      cl::desc("Tokens of the longest packed sequence; with --dim and "
               "--lengths a hint by which a schedule is chosen"),
      cl::value_desc("tokens"), cl::init(0), cl::cat(category)};
  CompileFlags compile{category};
};
} // namespace

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Writes a step of the way below --dump-dir, if there is one. Steps are
/// numbered by their place on the way, so that runs can be compared.
static llvm::Error dump(const Flags &flags, unsigned number,
                        llvm::StringRef name, llvm::StringRef bytes) {
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

/// Writes the hash that --fingerprint asks for.
static llvm::Error writeFingerprint(const Flags &flags, llvm::StringRef code) {
  if (flags.fingerprint.empty())
    return llvm::Error::success();
  return writeFile(flags.fingerprint, fingerprint(code) + "\n");
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

//===----------------------------------------------------------------------===//
// Outputs of a GPU
//===----------------------------------------------------------------------===//

static llvm::Expected<std::string> makePTX(const Flags &flags,
                                           ModuleOp module) {
  llvm::Expected<std::string> text = std::string();
  if (flags.ptx.empty()) {
    text = ptx::emitPTX(module);
  } else {
    auto file = llvm::MemoryBuffer::getFile(flags.ptx, /*IsText=*/true);
    if (!file)
      return llvm::createStringError(
          llvm::formatv("{0}: expected a readable file, got '{1}'",
                        flags.ptx.getValue(), file.getError().message()));
    text = (*file)->getBuffer().str();
  }
  if (!text)
    return text;
  if (llvm::Error error = dump(flags, 5, "kernels.ptx", *text))
    return std::move(error);
  if (llvm::Error error = writeFingerprint(flags, *text))
    return std::move(error);
  return text;
}

static llvm::Expected<std::string> makeCubin(const Flags &flags,
                                             ModuleOp module) {
  llvm::Expected<std::string> text = makePTX(flags, module);
  if (!text)
    return text;
  ptx::Options options;
  options.allowSpills = flags.allowSpills || flags.compile.get().lanesArrive;
  Progress progress(toolName, "ptxas");
  llvm::Expected<ptx::Assembled> assembled = ptx::assemble(*text, options);
  if (!assembled)
    return assembled.takeError();
  if (std::string spills = ptx::describeSpills(assembled->kernels);
      flags.allowSpills && !spills.empty())
    llvm::WithColor::warning(llvm::errs(), toolName)
        << "expected no stack and no spills, got" << spills << '\n';
  if (llvm::Error error = dump(flags, 6, "kernels.cubin", assembled->cubin))
    return std::move(error);
  return std::move(assembled->cubin);
}

/// Writes what a function made.
static llvm::Error writeMade(llvm::Expected<std::string> made,
                             llvm::raw_ostream &stream) {
  if (!made)
    return made.takeError();
  stream << *made;
  return llvm::Error::success();
}

static llvm::Error writePTX(const Flags &flags, ModuleOp module,
                            llvm::StringRef, llvm::raw_pwrite_stream &stream) {
  return writeMade(makePTX(flags, module), stream);
}

static llvm::Error writeCubin(const Flags &flags, ModuleOp module,
                              llvm::StringRef,
                              llvm::raw_pwrite_stream &stream) {
  return writeMade(makeCubin(flags, module), stream);
}

/// The object, and its header beside it.
static llvm::Error writeHostObject(const Flags &flags, ModuleOp module,
                                   llvm::StringRef path,
                                   llvm::raw_pwrite_stream &stream) {
  std::string header;
  llvm::raw_string_ostream text(header);
  // Before ptxas: what it refuses, it refuses at once.
  if (llvm::Error error =
          host::emitHeader(module, llvm::sys::path::stem(path), text))
    return error;
  llvm::Expected<std::string> image = makeCubin(flags, module);
  if (!image)
    return image.takeError();
  if (llvm::Error error = host::emitObject(module, *image, stream))
    return error;
  // There is no place beside these.
  if (path == "-" || path == "/dev/null")
    return llvm::Error::success();
  llvm::SmallString<128> headerPath(path);
  llvm::sys::path::replace_extension(headerPath, "h");
  return writeFile(headerPath, header);
}

static const Output gpuOutputs[] = {{"stages", Level::Stages, nullptr, ""},
                                    {"tile", Level::Tile, nullptr, ""},
                                    {"warp", Level::Warp, nullptr, ""},
                                    {"nvvm", Level::NVVM, nullptr, ""},
                                    {"ptx", Level::NVVM, writePTX, ""},
                                    {"cubin", Level::NVVM, writeCubin, "cubin"},
                                    {"obj", Level::NVVM, writeHostObject, "o"}};

static const Target targets[] = {
    {mlir::gdn::support::cpuTarget, Device::CPU, cpuOutputs},
    {mlir::gdn::support::gpuTarget, Device::GPU, gpuOutputs}};

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
  if (llvm::Error error = checkOptions(options))
    return std::move(error);
  return options;
}

/// Writes what the layers would run.
static llvm::Error writeExplanation(const Flags &flags, ModuleOp module,
                                    const CompileOptions &options) {
  llvm::Expected<std::vector<KernelChoice>> layers = explain(module, options);
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
