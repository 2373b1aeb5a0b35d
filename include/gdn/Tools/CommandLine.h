//===- CommandLine.h - Options that the tools share -------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_COMMANDLINE_H
#define GDN_TOOLS_COMMANDLINE_H

#include "gdn/Tools/Compile.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::gdn::tools {

/// The options of compilation. Made on the stack of main before the command
/// line is parsed.
struct CompileFlags {
  explicit CompileFlags(llvm::cl::OptionCategory &category);

  CompileOptions get() const;

  llvm::cl::opt<std::string> plan;
  llvm::cl::opt<std::string> backward;
  llvm::cl::opt<int64_t> chunkSize;
  llvm::cl::opt<double> gateBound;
  llvm::cl::opt<int64_t> segments;
  llvm::cl::opt<int64_t> segmentLength;
  llvm::cl::opt<int64_t> fewerSegments;
  llvm::cl::opt<double> decayTolerance;
  llvm::cl::opt<bool> ownStarts;
  llvm::cl::opt<bool> sideBySide;
  llvm::cl::opt<bool> followAdjoint;
  llvm::cl::opt<int64_t> stateInterval;
  llvm::cl::opt<std::string> operandType;
  llvm::cl::opt<int64_t> vTiles;
  llvm::cl::opt<std::string> schedule;
  llvm::cl::opt<std::string> scheduleFile;
  llvm::cl::opt<bool> lanesArrive;
  llvm::cl::opt<bool> serialProducts;
  llvm::cl::opt<bool> parallel;
  llvm::cl::opt<bool> twoProductChain;
  /// The name that it has in gdn-opt.
  llvm::cl::opt<bool> verifyEach;
  /// MLIR's own name for it, but off unless it is given.
  llvm::cl::opt<bool> printOps;
  llvm::cl::opt<std::string> cpu;
  llvm::cl::opt<std::string> features;
  llvm::cl::opt<llvm::CodeGenOptLevel> optLevel;
};

/// The sizes that a file leaves open, made as CompileFlags are.
struct SizeFlags {
  explicit SizeFlags(llvm::cl::OptionCategory &category);

  /// What they say, or an error in their words.
  llvm::Expected<SizeHints> get() const;

  llvm::cl::list<std::string> dims;
  llvm::cl::list<std::string> lengths;
};

/// Parses the command line with --version, showing only `category` in --help.
void parseCommandLine(int argc, char **argv, llvm::cl::OptionCategory &category,
                      llvm::StringRef overview);

/// Prints "<tool>: error: <text>" for each error and returns the exit code of a
/// tool that failed.
int reportError(llvm::StringRef tool, llvm::Error error);

/// The whole of `text` as a decimal integer.
template <typename T> std::optional<T> parseInteger(llvm::StringRef text) {
  T value;
  if (text.trim().getAsInteger(10, value))
    return std::nullopt;
  return value;
}

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_COMMANDLINE_H
