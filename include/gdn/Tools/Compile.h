//===- Compile.h - Text in, a level or a running function out ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_COMPILE_H
#define GDN_TOOLS_COMPILE_H

#include "gdn/Target/CPU.h"
#include "gdn/Tools/HostArray.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"
#include <map>
#include <memory>

namespace mlir::gdn::tools {

/// What to compile for.
enum class Device { CPU, GPU };

/// The device that --target names, or an error that lists the names.
llvm::Expected<Device> parseTarget(llvm::StringRef target);

/// What is known of the sizes that a file leaves open: a schedule is chosen by
/// them, no result depends on them.
struct SizeHints {
  /// By the name of the dimension: B, T, N, Hq or H.
  std::map<std::string, int64_t> dims;
  /// Lengths of the packed sequences.
  std::optional<std::vector<int64_t>> lengths;
  /// Tokens of the longest of them.
  std::optional<int64_t> longest;

  /// A size if it is known: "N" and "T" are told by the lengths, too.
  std::optional<int64_t> get(llvm::StringRef name) const;
  std::optional<int64_t> getLongest() const;
};

/// How to compile: what gdn-compile and gdn-run have in common.
struct CompileOptions {
  Device device = Device::CPU;
  /// Kernels of a forward: fused or separate.
  std::string plan = "fused";
  /// Kernels of a backward: one, three or auto (three on a GPU).
  std::string backward = "auto";
  /// Tokens a chunk where the op does not say.
  int64_t chunkSize = 32;
  /// Bound of gates whose kernels run where all gates of a call are above it; 0
  /// for none.
  double gateBound = 0;
  /// Segments of a sequence that a forward computes side by side, or tokens of
  /// one; 0 and 0 are the whole sequence.
  int64_t segments = 0, segmentLength = 0;
  /// Segments of a sequence whose gates, by a sample on the device, do not call
  /// for those; 0 for as many.
  int64_t fewerSegments = 0;
  /// Norm of a segment's map below which it is zero.
  double decayTolerance = 6.1442123533282e-06; // exp(-12)
  /// Whether a segment recomputes the tail of a predecessor that forgets.
  bool ownStarts = false;
  /// Whether the recurrences of a backward run at the same time.
  bool sideBySide = false;
  /// Whether gradients of saved states begin while the adjoint runs.
  bool followAdjoint = false;
  /// Tokens between the states that gradients of three kernels read.
  int64_t stateInterval = 64;
  /// What product operands are rounded to: auto, bf16, f16 or f32.
  std::string operandType = "auto";
  /// Parts that the value channels of a head are split into.
  int64_t vTiles = 1;
  /// Parts of a head on a GPU: cta_per_head, cta_per_v_tile or auto.
  std::string schedule = "auto";
  /// A file of schedule templates, tried before the project's own.
  std::string scheduleFile;
  /// Every lane of a GPU kernel arrives at barriers for itself.
  bool lanesArrive = false;
  /// Each product of a GPU kernel begins and ends by itself.
  bool serialProducts = false;
  /// Whether the items of a grid run on all cores (OpenMP).
  bool parallel = true;
  /// Whether the solve is folded into keys and scores.
  bool twoProductChain = false;
  /// Whether every pass's output is verified, or that of a level alone.
  bool verifyEach = true;
  cpu::TargetOptions target;
  SizeHints sizes;
};

/// Refuses values that no pass takes, in the words of the command line.
llvm::Error checkOptions(const CompileOptions &options);

/// A context with all our dialects whose diagnostics go to stderr with file,
/// line and the text of the line.
class Session {
public:
  /// Errors have their op's name and place; with `printsOps` also the op
  /// itself, which may be a program of hundreds of lines.
  explicit Session(bool printsOps = false);
  ~Session();

  MLIRContext &getContext() { return context; }
  /// Parses a file ("-" is stdin); null after a diagnostic.
  OwningOpRef<ModuleOp> parseFile(llvm::StringRef path);
  /// Parses text that is called `name` in diagnostics.
  OwningOpRef<ModuleOp> parseText(llvm::StringRef text, llvm::StringRef name);

private:
  OwningOpRef<ModuleOp> parse(std::unique_ptr<llvm::MemoryBuffer> buffer);

  MLIRContext context;
  std::shared_ptr<llvm::SourceMgr> sources;
  std::unique_ptr<SourceMgrDiagnosticHandler> handler;
};

/// The levels that a module can be taken down to: from Tile on to LLVM for a
/// CPU, or to Warp and NVVM for a GPU.
enum class Level { Stages, Tile, LLVM, Warp, NVVM };

/// Makes the layer functions with variants entries of these (gdn-plan-calls);
/// failure after a diagnostic.
LogicalResult planCalls(ModuleOp module);

/// The level as a word: stages, tile, llvm, warp or nvvm.
llvm::StringRef name(Level level);

/// Takes a module down to `level`, from whatever level of the way it stands at.
/// `reached`, if given, sees it at each level.
LogicalResult
lower(ModuleOp module, Level level, const CompileOptions &options,
      llvm::function_ref<llvm::Error(Level, ModuleOp)> reached = {});

/// The function to run: `name`, or the only public one with a body.
llvm::Expected<func::FuncOp> findEntry(ModuleOp module, llvm::StringRef name);

/// Erases the symbols of the module that `entry` does not reach, so that they
/// are not compiled for a run of it; none if that cannot be known.
void eraseUnreached(func::FuncOp entry);

/// A function that can be called. It keeps no hold on the module it came from.
class Executable {
public:
  /// Compiles a module that is at the gdn level; lowers it in place.
  static llvm::Expected<Executable> compile(ModuleOp module, func::FuncOp entry,
                                            const CompileOptions &options);

  /// Calls the function. `seconds`, if not null, is the time of the call alone.
  /// What it updates in place is a copy of an input.
  llvm::Expected<std::vector<HostArray>>
  run(llvm::MutableArrayRef<HostArray> inputs, double *seconds = nullptr);

private:
  struct Result {
    Element element;
    int64_t rank;
  };
  struct Parameter {
    bool isScalar, isWritable;
  };

  Executable(cpu::Program program, std::string name,
             std::vector<Result> results, std::vector<Parameter> parameters)
      : program(std::move(program)), name(std::move(name)),
        results(std::move(results)), parameters(std::move(parameters)) {}

  cpu::Program program;
  std::string name;
  std::vector<Result> results;
  std::vector<Parameter> parameters;
};

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_COMPILE_H
