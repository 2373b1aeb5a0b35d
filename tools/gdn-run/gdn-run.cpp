//===- gdn-run.cpp - Run a layer and check it -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Tools/CommandLine.h"
#include "gdn/Tools/Error.h"
#include "gdn/Tools/Flop.h"
#include "gdn/Tools/GPU.h"
#include "gdn/Tools/Inputs.h"
#include "gdn/Tools/Progress.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <set>

using namespace mlir;
using namespace mlir::gdn::tools;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral toolName = "gdn-run";

static constexpr llvm::StringLiteral overview =
    "Compiles a function of layers, runs it on this CPU or GPU and compares it "
    "with float64\n\n"
    "  gdn-run layer.mlir --check                  # on seeded random inputs\n"
    "  gdn-run layer.mlir --arg 0=q.npy --out-dir results\n"
    "  gdn-run varlen.mlir --lengths=0,1,63,200 --check --json\n"
    "  gdn-run layer.mlir --target=sm_90a --repeat=20 --check\n\n"
    "Inputs are the function's arguments by position. An argument without a "
    "file is drawn to suit the\noperand it feeds. FLOP are those of the "
    "products of 64-token chunks: a token and value head\ncounts 256 (K + V) + "
    "6 K V forward (163,840 at K = V = 128), 704 (K + V) + 16 K V backward "
    "(442,368),\n8 K V recurrent.\n";

namespace {
/// The command line of gdn-run.
struct Flags {
  cl::OptionCategory category{"gdn-run options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<file, - for stdin>"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::desc("Function to run, if the file has several"),
      cl::value_desc("name"), cl::cat(category)};
  cl::list<std::string> files{
      "arg", cl::desc("Read argument i from a .npy file, rounded to its type"),
      cl::value_desc("i=file"), cl::cat(category)};
  cl::list<std::string> shapes{"arg-shape",
                               cl::desc("Shape of a dynamic argument"),
                               cl::value_desc("i=2x64x4"), cl::cat(category)};
  cl::list<std::string> scalars{"scalar",
                                cl::desc("Value of a scalar argument"),
                                cl::value_desc("i=2048"), cl::cat(category)};
  cl::list<unsigned> absent{
      "absent", cl::desc("Call without argument i, which has gdn.optional"),
      cl::value_desc("i"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of the random inputs (0)"),
                         cl::init(0), cl::cat(category)};
  cl::opt<double> meanGate{
      "mean-gate", cl::desc("Mean of the random log gate (-0.05)"),
      cl::init(RandomOptions().meanGate), cl::cat(category)};
  cl::opt<std::string> keys{
      "keys",
      cl::desc("Random keys: random (the default), cosine:<c> or "
               "rank:<n>"),
      cl::value_desc("kind"), cl::init("random"), cl::cat(category)};
  cl::opt<std::string> outDir{
      "out-dir", cl::desc("Write the results to <dir>/0.npy, ... in f32"),
      cl::value_desc("dir"), cl::cat(category)};
  cl::opt<bool> check{
      "check", cl::desc("Compare with float64 at the tolerances of spec 9"),
      cl::cat(category)};
  cl::opt<int64_t> repeat{
      "repeat",
      cl::desc("Calls, of which the median is shown (1); a GPU makes one more "
               "first, and its own clock counts"),
      cl::init(1), cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::desc("Where to run: cpu (the default) or sm_90a"),
      cl::init(mlir::gdn::support::cpuTarget.str()), cl::cat(category)};
  cl::opt<std::string> object{
      "object",
      cl::desc("Take the function from what gdn-compile --target=sm_90a "
               "--emit=obj made of the file, and compile nothing"),
      cl::value_desc("file.o"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print one JSON object"),
                     cl::cat(category)};
  SizeFlags sizes{category};
  CompileFlags compile{category};

  bool onGPU() const { return target == mlir::gdn::support::gpuTarget; }
};
} // namespace

/// Notes that an option is of this argument; another one may not be.
static llvm::Error note(unsigned argument, std::set<unsigned> &noted) {
  if (noted.insert(argument).second)
    return llvm::Error::success();
  return fail("expected one of --arg, --arg-shape, --scalar and --absent for "
              "argument {0}, got two",
              argument);
}

/// "3=text" into the index, which is noted, and the text.
static llvm::Expected<std::pair<unsigned, llvm::StringRef>>
splitIndexed(llvm::StringRef option, llvm::StringRef text,
             std::set<unsigned> &noted) {
  auto [left, right] = text.split('=');
  std::optional<unsigned> index = parseInteger<unsigned>(left);
  if (!index || right.empty())
    return fail("expected --{0} <argument>=<value>, got '{1}'", option, text);
  if (llvm::Error error = note(*index, noted))
    return std::move(error);
  return std::make_pair(*index, right);
}

static llvm::Error readShapes(const Flags &flags, std::set<unsigned> &noted,
                              InputOptions &options) {
  for (llvm::StringRef text : flags.shapes) {
    auto indexed = splitIndexed("arg-shape", text, noted);
    if (!indexed)
      return indexed.takeError();
    llvm::SmallVector<int64_t> &shape = options.shapes[indexed->first];
    for (llvm::StringRef size : llvm::split(indexed->second, 'x')) {
      std::optional<int64_t> value = parseInteger<int64_t>(size);
      if (!value || *value < 0)
        return fail("expected --arg-shape <argument>=<size>x<size>x..., got "
                    "'{0}'",
                    text);
      shape.push_back(*value);
    }
  }
  return llvm::Error::success();
}

static llvm::Error readScalars(const Flags &flags, std::set<unsigned> &noted,
                               InputOptions &options) {
  for (llvm::StringRef text : flags.scalars) {
    auto indexed = splitIndexed("scalar", text, noted);
    if (!indexed)
      return indexed.takeError();
    if (indexed->second.getAsDouble(options.scalars[indexed->first]))
      return fail("expected --scalar <argument>=<number>, got '{0}'", text);
  }
  return llvm::Error::success();
}

static llvm::Error readRandom(const Flags &flags, RandomOptions &options) {
  options.seed = flags.seed;
  options.meanGate = flags.meanGate;
  if (!(options.meanGate <= 0))
    return fail("expected --mean-gate of at most 0, got {0}", options.meanGate);
  llvm::StringRef keys = flags.keys;
  if (keys == "random")
    return llvm::Error::success();
  if (keys.consume_front("cosine:") && !keys.getAsDouble(options.keyCosine) &&
      options.keyCosine >= 0 && options.keyCosine <= 1)
    return llvm::Error::success();
  if (keys.consume_front("rank:") && !keys.getAsInteger(10, options.keyRank) &&
      options.keyRank > 0)
    return llvm::Error::success();
  return fail("expected --keys of random, cosine:<0 to 1> or rank:<1 or more>, "
              "got '{0}'",
              flags.keys.getValue());
}

/// What the command line says about the inputs.
static llvm::Expected<InputOptions> readInputOptions(const Flags &flags) {
  InputOptions options;
  std::set<unsigned> noted;
  for (llvm::StringRef text : flags.files) {
    auto indexed = splitIndexed("arg", text, noted);
    if (!indexed)
      return indexed.takeError();
    options.files[indexed->first] = indexed->second.str();
  }
  if (llvm::Error error = readShapes(flags, noted, options))
    return std::move(error);
  if (llvm::Error error = readScalars(flags, noted, options))
    return std::move(error);
  for (unsigned index : flags.absent)
    if (llvm::Error error = note(index, noted))
      return std::move(error);
  options.absent.insert(flags.absent.begin(), flags.absent.end());
  llvm::Expected<SizeHints> sizes = flags.sizes.get();
  if (!sizes)
    return sizes.takeError();
  options.dims = std::move(sizes->dims);
  options.lengths = std::move(sizes->lengths);
  if (llvm::Error error = readRandom(flags, options.random))
    return std::move(error);
  return options;
}

/// What the command line says about the compilation, with no more segments of a
/// sequence than the longest one may have chunks: further ones would have no
/// token, but states.
static CompileOptions getCompileOptions(const Flags &flags,
                                        llvm::ArrayRef<HostArray> inputs) {
  CompileOptions options = flags.compile.get();
  // Was read before: the inputs are made by it.
  options.sizes = llvm::cantFail(flags.sizes.get());
  std::optional<int64_t> tokens = options.sizes.getLongest();
  if (!tokens)
    tokens = options.sizes.get("T");
  // Sizes of files or of --arg-shape: no sequence is longer than the arrays.
  if (!tokens)
    for (const HostArray &input : inputs)
      for (int64_t size : input.getShape())
        tokens = std::max(tokens.value_or(0), size);
  if (!tokens)
    return options;
  int64_t most = std::max<int64_t>(
      llvm::divideCeil(*tokens, mlir::gdn::support::chunkSizes[0]), 1);
  options.segments = std::min<int64_t>(options.segments, most);
  options.fewerSegments = std::min<int64_t>(options.fewerSegments, most);
  return options;
}

/// Compiles `module` in place and calls its function.
static llvm::Error compileAndRun(const Flags &flags, ModuleOp module,
                                 func::FuncOp entry,
                                 llvm::MutableArrayRef<HostArray> inputs,
                                 RunReport &report) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  auto executable = [&] {
    Progress progress(toolName, "compiling");
    return Executable::compile(module, entry, getCompileOptions(flags, inputs));
  }();
  if (!executable)
    return executable.takeError();
  report.compileSeconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  Progress progress(toolName, "running");
  for (int64_t i = 0; i < flags.repeat; ++i) {
    double seconds = 0;
    auto outputs = executable->run(inputs, &seconds);
    if (!outputs)
      return outputs.takeError();
    report.runSeconds.push_back(seconds);
    report.outputs = std::move(*outputs);
    progress.update(double(i + 1) / flags.repeat);
  }
  return llvm::Error::success();
}

/// The same on a GPU.
static llvm::Error compileAndRunOnGPU(const Flags &flags, ModuleOp module,
                                      llvm::ArrayRef<HostArray> inputs,
                                      RunReport &report) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  auto executable = [&] {
    Progress progress(toolName, "compiling");
    if (!flags.object.empty())
      return GPUExecutable::load(flags.object, report.entry);
    CompileOptions options = getCompileOptions(flags, inputs);
    options.device = Device::GPU;
    return GPUExecutable::compile(module, report.entry, options);
  }();
  if (!executable)
    return executable.takeError();
  report.compileSeconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  Progress progress(toolName, "running");
  auto result = executable->run(inputs, flags.repeat);
  if (!result)
    return result.takeError();
  report.runSeconds = std::move(result->seconds);
  report.outputs = std::move(result->outputs);
  report.device = std::move(result->device);
  report.workspaceBytes = result->workspaceBytes;
  report.repeatable = result->repeatable;
  return llvm::Error::success();
}

static llvm::Error writeOutputs(llvm::StringRef directory, RunReport &report) {
  if (std::error_code failure = llvm::sys::fs::create_directories(directory))
    return fail("{0}: expected a directory that can be made, got '{1}'",
                directory, failure.message());
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    llvm::SmallString<128> path(directory);
    llvm::sys::path::append(path, std::to_string(i) + ".npy");
    if (llvm::Error error = writeNpy(path, report.outputs[i]))
      return error;
    report.paths.push_back(std::string(path));
  }
  return llvm::Error::success();
}

static llvm::Error check(const Flags &flags, func::FuncOp entry,
                         llvm::ArrayRef<HostArray> inputs, RunReport &report) {
  Progress progress(toolName, "float64 reference");
  auto expected =
      evaluate(entry, inputs, [&](double done) { progress.update(done); });
  if (!expected)
    return expected.takeError();
  for (auto [output, value] : llvm::zip(report.outputs, *expected))
    report.checks.push_back(
        checkOutput(output, value, flags.compile.operandType));
  return llvm::Error::success();
}

/// Fills the report; diagnostics of the file are already printed.
static llvm::Error run(const Flags &flags, ModuleOp module, RunReport &report) {
  auto inputOptions = readInputOptions(flags);
  if (!inputOptions)
    return inputOptions.takeError();
  auto entry = findEntry(module, flags.entry);
  if (!entry)
    return entry.takeError();
  auto inputs = [&] {
    Progress progress(toolName, "making inputs");
    return makeInputs(*entry, *inputOptions);
  }();
  if (!inputs)
    return inputs.takeError();
  if (entry->getNumResults() == 0)
    return fail("expected @{0} to return what it computes, got a function "
                "without results, of which nothing would run",
                entry->getSymName());
  report.file = flags.input;
  report.entry = entry->getSymName().str();
  report.flop = countFlop(*entry, *inputs);

  // The original stays for the evaluation in float64.
  OwningOpRef<ModuleOp> lowered = module.clone();
  auto loweredEntry = findEntry(*lowered, report.entry);
  if (!loweredEntry)
    return loweredEntry.takeError();
  eraseUnreached(*loweredEntry);
  if (llvm::Error error =
          flags.onGPU()
              ? compileAndRunOnGPU(flags, *lowered, *inputs, report)
              : compileAndRun(flags, *lowered, *loweredEntry, *inputs, report))
    return error;
  if (!flags.outDir.empty())
    if (llvm::Error error = writeOutputs(flags.outDir, report))
      return error;
  if (flags.check)
    return check(flags, *entry, *inputs, report);
  return llvm::Error::success();
}

/// Where there is no GPU, it is said before any work is done for one.
static llvm::Error checkTarget(const Flags &flags) {
  llvm::Expected<Device> device = parseTarget(flags.target);
  if (!device)
    return device.takeError();
  if (*device == Device::GPU)
    return GPUExecutable::checkDevice();
  if (!flags.object.empty())
    return fail("expected --object with --target={0}, got target '{1}'",
                mlir::gdn::support::gpuTarget, flags.target.getValue());
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Flags flags;
  parseCommandLine(argc, argv, flags.category, overview);
  if (flags.repeat < 1)
    return reportError(toolName,
                       fail("expected --repeat of at least 1, got {0}",
                            flags.repeat.getValue()));
  if (llvm::Error error = checkTarget(flags))
    return reportError(toolName, std::move(error));
  if (llvm::Error error = checkOptions(flags.compile.get()))
    return reportError(toolName, std::move(error));
  Session session(flags.compile.printOps);
  OwningOpRef<ModuleOp> module = session.parseFile(flags.input);
  // Each variant of a layer function is a function to run.
  if (!module || failed(planCalls(*module)))
    return 1;
  RunReport report;
  if (llvm::Error error = run(flags, *module, report))
    return reportError(toolName, std::move(error));
  if (llvm::Error error = print(report, flags.json))
    return reportError(toolName, std::move(error));
  return report.pass() ? 0 : 1;
}
