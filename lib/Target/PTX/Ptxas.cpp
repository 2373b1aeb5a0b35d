//===- Ptxas.cpp - PTX to machine code by ptxas ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/PTX.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <thread>

using namespace mlir;
using namespace mlir::gdn;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Where ptxas is
//===----------------------------------------------------------------------===//

/// `root`/bin/ptxas if it can be run, else empty.
static std::string findBelow(StringRef root) {
  if (root.empty())
    return {};
  llvm::SmallString<128> path(root);
  llvm::sys::path::append(path, "bin", "ptxas");
  return llvm::sys::fs::can_execute(path) ? std::string(path) : std::string();
}

/// The ptxas of PyPI's nvidia-cuda-nvcc-cu12 in the virtual environment that
/// VIRTUAL_ENV names.
static std::string findInPython() {
  std::optional<std::string> root = llvm::sys::Process::GetEnv("VIRTUAL_ENV");
  if (!root)
    return {};
  llvm::SmallString<128> lib(*root);
  llvm::sys::path::append(lib, "lib");
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(lib, error), end;
       !error && it != end; it.increment(error)) {
    llvm::SmallString<128> package(it->path());
    llvm::sys::path::append(package, "site-packages", "nvidia", "cuda_nvcc");
    if (std::string found = findBelow(package); !found.empty())
      return found;
  }
  return {};
}

llvm::Expected<std::string> ptx::findPtxas(const Options &options) {
  std::string named = options.ptxas;
  if (named.empty())
    named = llvm::sys::Process::GetEnv("GDN_PTXAS").value_or("");
  if (!named.empty()) {
    if (llvm::sys::fs::can_execute(named))
      return named;
    return llvm::createStringError("expected a ptxas that can be run, got '" +
                                   named + "'");
  }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string found =
            findBelow(llvm::sys::Process::GetEnv(variable).value_or(""));
        !found.empty())
      return found;
  if (std::string found = findInPython(); !found.empty())
    return found;
  if (std::string found = findBelow("/usr/local/cuda"); !found.empty())
    return found;
  return llvm::createStringError(
      "expected ptxas of CUDA 12.8 or newer in GDN_PTXAS, PATH, CUDA_HOME or "
      "the Python environment (pip install nvidia-cuda-nvcc-cu12==12.8.93), "
      "got none");
}

//===----------------------------------------------------------------------===//
// What ptxas says
//===----------------------------------------------------------------------===//

/// The number in front of `what` in a line, or 0.
static unsigned getNumberBefore(StringRef line, StringRef what) {
  size_t end = line.find(what);
  if (end == StringRef::npos)
    return 0;
  StringRef word = line.take_front(end).rtrim();
  word = word.substr(word.find_last_of(' ') + 1);
  unsigned number = 0;
  (void)word.getAsInteger(10, number);
  return number;
}

std::vector<ptx::KernelUsage> ptx::parseUsage(StringRef log) {
  std::vector<KernelUsage> kernels;
  llvm::SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function")) {
      kernels.emplace_back();
      kernels.back().name = line.split('\'').second.split('\'').first.str();
    }
    if (kernels.empty())
      continue;
    KernelUsage &usage = kernels.back();
    if (line.contains("bytes stack frame")) {
      usage.stackBytes = getNumberBefore(line, "bytes stack frame");
      usage.spillStores = getNumberBefore(line, "bytes spill stores");
      usage.spillLoads = getNumberBefore(line, "bytes spill loads");
    }
    if (line.contains("registers"))
      usage.registers = getNumberBefore(line, "registers");
  }
  return kernels;
}

std::string ptx::describeSpills(ArrayRef<KernelUsage> kernels) {
  std::string lines;
  for (const KernelUsage &usage : kernels)
    if (usage.stackBytes || usage.spillStores || usage.spillLoads)
      lines += "\n  '" + usage.name + "' has " +
               std::to_string(usage.stackBytes) + " bytes of stack, " +
               std::to_string(usage.spillStores) + " of spill stores, " +
               std::to_string(usage.spillLoads) + " of spill loads";
  return lines;
}

llvm::Error ptx::checkLog(StringRef log, bool allowSpills) {
  std::string problems;
  llvm::SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines)
    // ptxas repairs what it finds wrong with wgmma and setmaxnreg, at a price,
    // and says so in a remark of this family; it does not fail.
    if (line.contains("C75"))
      problems += "\n  " + line.trim().str();
  if (!allowSpills)
    problems += describeSpills(parseUsage(log));
  if (problems.empty())
    return llvm::Error::success();
  StringRef hint =
      log.contains("(C75")
          ? "\n  with --serial-products each product begins and ends by "
            "itself, "
            "which is slower"
          : "\n  give the roles that spill more registers, or less to do; "
            "with --allow-spills gdn-compile takes them as they are";
  return llvm::createStringError(
      "expected no remark of ptxas, no stack and no spills, got" + problems +
      hint);
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

static std::string readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// A temporary file's path; it is created empty.
static llvm::Expected<std::string> createTemporary(StringRef suffix) {
  llvm::SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("gdn", suffix, path))
    return llvm::createStringError(error, "cannot create a temporary file");
  return std::string(path);
}

/// Seconds that ptxas may take.
static llvm::Expected<unsigned> getTimeLimit(const ptx::Options &options) {
  std::optional<std::string> given =
      llvm::sys::Process::GetEnv("GDN_PTXAS_TIMEOUT");
  if (!given)
    return options.ptxasTimeout;
  unsigned seconds = 0;
  if (StringRef(*given).getAsInteger(10, seconds) || seconds == 0)
    return llvm::createStringError(
        "expected GDN_PTXAS_TIMEOUT to be a positive number of seconds, got '" +
        *given + "'");
  return seconds;
}

/// Runs a program for at most `limit` seconds and returns its exit code. LLVM's
/// own limit is an alarm, which reaches any thread of the process.
static llvm::Expected<int>
runFor(unsigned limit, StringRef program, ArrayRef<StringRef> arguments,
       ArrayRef<std::optional<StringRef>> redirects) {
  using Clock = std::chrono::steady_clock;
  std::string reason;
  bool notStarted = false;
  llvm::sys::ProcessInfo child = llvm::sys::ExecuteNoWait(
      program, arguments, std::nullopt, redirects, 0, &reason, &notStarted);
  if (notStarted)
    return llvm::createStringError("cannot start " + program + ": " + reason);
  auto end = Clock::now() + std::chrono::seconds(limit);
  while (true) {
    llvm::sys::ProcessInfo state =
        llvm::sys::Wait(child, /*SecondsToWait=*/0, &reason, nullptr,
                        /*Polling=*/true);
    if (state.Pid != 0)
      return state.ReturnCode;
    if (Clock::now() >= end)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill(child.Pid, SIGKILL);
  (void)llvm::sys::Wait(child, std::nullopt, &reason);
  return llvm::createStringError(
      "expected " + program + " to end within " + llvm::Twine(limit) +
      " s, got no end and killed it; GDN_PTXAS_TIMEOUT=<seconds> sets another "
      "limit");
}

/// An ELF file for CUDA, as its header says.
static llvm::Error checkCubin(StringRef cubin) {
  constexpr size_t kMachine = 18, kHeader = 64;
  if (cubin.size() >= kHeader &&
      cubin.starts_with("\x7f"
                        "ELF") &&
      llvm::support::endian::read16le(cubin.data() + kMachine) ==
          llvm::ELF::EM_CUDA)
    return llvm::Error::success();
  return llvm::createStringError(
      "expected ptxas to write an ELF file for CUDA, got " +
      llvm::Twine(cubin.size()) + " bytes that are none");
}

//===----------------------------------------------------------------------===//
// What it has written before
//===----------------------------------------------------------------------===//

/// Where GDN_PTXAS_CACHE has what a ptxas makes of a text; empty without it.
static std::string findCached(StringRef program, StringRef chip,
                              StringRef ptx) {
  std::optional<std::string> folder =
      llvm::sys::Process::GetEnv("GDN_PTXAS_CACHE");
  llvm::sys::fs::file_status status;
  if (!folder || folder->empty() || llvm::sys::fs::status(program, status))
    return {};
  llvm::SHA256 hash;
  std::string stamp =
      std::to_string(status.getSize()) + " " +
      std::to_string(
          status.getLastModificationTime().time_since_epoch().count());
  for (StringRef part : {program, StringRef(stamp), chip, ptx}) {
    hash.update(part);
    hash.update(StringRef("", 1));
  }
  llvm::SmallString<128> path(*folder);
  llvm::sys::path::append(path, llvm::toHex(hash.final(), /*LowerCase=*/true));
  return std::string(path);
}

/// Puts a file there whole or not at all: others may look for it meanwhile. A
/// cache without room is no error; whether it had any is returned.
static bool keep(StringRef path, StringRef bytes) {
  (void)llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path));
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
    stream << bytes;
    return llvm::Error::success();
  });
  bool isKept = !error;
  llvm::consumeError(std::move(error));
  return isKept;
}

/// What is there, if it is whole.
static std::optional<ptx::Assembled> recall(const std::string &path) {
  if (path.empty())
    return std::nullopt;
  ptx::Assembled result{readFile(path + ".cubin"), readFile(path + ".log"), {}};
  result.kernels = ptx::parseUsage(result.log);
  if (llvm::Error error = checkCubin(result.cubin)) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  // Without what ptxas says of its kernels nobody knows what is wrong with
  // them.
  if (result.kernels.empty())
    return std::nullopt;
  return result;
}

llvm::Expected<ptx::Assembled> ptx::assemble(StringRef ptx,
                                             const Options &options) {
  auto program = findPtxas(options);
  if (!program)
    return program.takeError();
  std::string cached = findCached(*program, options.chip, ptx);
  if (auto known = recall(cached)) {
    if (llvm::Error error = checkLog(known->log, options.allowSpills))
      return std::move(error);
    return std::move(*known);
  }
  auto limit = getTimeLimit(options);
  if (!limit)
    return limit.takeError();
  llvm::SmallVector<std::string, 3> paths;
  for (StringRef suffix : {"ptx", "cubin", "log"}) {
    auto created = createTemporary(suffix);
    if (!created)
      return created.takeError();
    paths.push_back(*created);
  }
  StringRef input = paths[0], output = paths[1], log = paths[2];
  llvm::FileRemover removeInput(input), removeOutput(output), removeLog(log);
  std::error_code error;
  llvm::raw_fd_ostream stream(input, error);
  stream << ptx;
  stream.close();
  if (error || stream.has_error())
    return llvm::createStringError("cannot write " + input.str());

  std::string arch = "-arch=" + options.chip;
  StringRef arguments[] = {*program, "-v", arch, input, "-o", output};
  std::optional<StringRef> redirects[] = {std::nullopt, log, log};
  auto status = runFor(*limit, *program, arguments, redirects);
  Assembled result{readFile(output), readFile(log), {}};
  llvm::Error failure =
      !status ? status.takeError()
      : *status != 0
          ? llvm::createStringError("ptxas failed:\n" + result.log)
          : llvm::joinErrors(checkCubin(result.cubin),
                             checkLog(result.log, options.allowSpills));
  if (failure) {
    removeInput.releaseFile();
    return llvm::createStringError(
        llvm::toString(std::move(failure)) + "\nto repeat: " +
        llvm::join(std::begin(arguments), std::end(arguments), " "));
  }
  // The second one says that both are there.
  if (!cached.empty() && keep(cached + ".log", result.log))
    (void)keep(cached + ".cubin", result.cubin);
  result.kernels = parseUsage(result.log);
  return std::move(result);
}
