//===- Flags.h - The command line of gdn-compile ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_COMPILE_FLAGS_H
#define GDN_TOOLS_GDN_COMPILE_FLAGS_H

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Tools/CommandLine.h"

namespace mlir::gdn::tools {
namespace cl = llvm::cl;

inline constexpr llvm::StringLiteral toolName = "gdn-compile";

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
      cl::desc("Write a hash of the PTX without names, or of a CPU's object, "
               "and with --emit=obj for a GPU one of the kernels before LLVM"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> ptx{
      "ptx", cl::desc("PTX to take instead of what the kernels become"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> allowSpills{
      "allow-spills",
      cl::desc("Take kernels whose registers ptxas spills, with a warning: "
               "for a newer ptxas than the kernels' schedules are made for"),
      cl::cat(category)};
  cl::opt<bool> shareKernels{
      "share-kernels",
      cl::desc("Call the kernels of an object after what they do: a linker "
               "then keeps one of equal ones of several objects"),
      cl::cat(category)};
  cl::opt<bool> noCode{
      "no-code",
      cl::desc("With --emit=obj for a GPU: write hashes in the place of PTX, "
               "for tests without a GPU and ptxas; --fingerprint then writes "
               "- for that of the PTX"),
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

/// Writes a step of the way below --dump-dir, if there is one. Steps are
/// numbered by their place on the way, so that runs can be compared.
llvm::Error dump(const Flags &flags, unsigned number, llvm::StringRef name,
                 llvm::StringRef bytes);

/// Writes the hash that --fingerprint asks for, and behind it that of what the
/// code was made from if it is known.
llvm::Error writeFingerprint(const Flags &flags, llvm::StringRef code,
                             llvm::StringRef origin = "");

/// What can be written for a GPU.
llvm::ArrayRef<Output> getGPUOutputs();

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_GDN_COMPILE_FLAGS_H
