//===- CPU.h - From the LLVM dialect to code for this or another CPU ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TARGET_CPU_H
#define GDN_TARGET_CPU_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
class raw_ostream;
class raw_pwrite_stream;
} // namespace llvm

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace mlir::gdn::cpu {

class SectionMemory;

/// What to generate code for.
struct TargetOptions {
  /// LLVM's name of the CPU; empty is the host with its features.
  std::string cpu;
  /// LLVM's feature string (`+avx2,-avx512f`), added to those of `cpu`.
  std::string features;
  /// Optimisation level of LLVM, 0 to 3.
  unsigned optLevel = 3;
};

/// Registers the translations to LLVM IR that the functions below need.
void registerTranslations(DialectRegistry &registry);

/// The machine that `options` describe, or an error that says what is unknown.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetOptions &options);

/// Width of the vector registers of the target in bits, which the lowering
/// wants to know (`vector-bits`); the narrowest where the options name no known
/// target.
int64_t getVectorBits(const TargetOptions &options);

/// Whether products of bf16 are best made of pairs (AVX512_BF16), which the
/// lowering wants to know (`bf16-dot`): on AMD's CPUs, where the features that
/// are added name the instruction, and where there is AMX.
bool hasBF16Dot(const TargetOptions &options);

/// Whether to multiply by the target's tile registers (AMX_BF16), which the
/// lowering wants to know (`amx`): on the host, if the system lets this process
/// use them; for another CPU, if the features that are added name them. The
/// code asks the system for them when it is loaded, and dies in its first call
/// where they are refused.
bool hasAMX(const TargetOptions &options);

/// Whether an instruction of the target rounds to bf16 (AVX512_BF16), which the
/// lowering wants to know (`bf16-rounding`).
bool hasBF16Rounding(const TargetOptions &options);

/// Optimises LLVM IR for `machine` at one of LLVM's levels, 0 to 3.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned optLevel);

/// Translates a module in the LLVM dialect (with `omp` where its loops run in
/// parallel) to LLVM IR and optimises it.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVM(ModuleOp module, llvm::LLVMContext &context,
                const TargetOptions &options = {});

/// Writes the optimised LLVM IR of a module as text.
llvm::Error emitLLVM(ModuleOp module, llvm::raw_ostream &stream,
                     const TargetOptions &options = {});

/// Writes a module as a relocatable object file. What it links against: libm,
/// libc and, where a loop is parallel, LLVM's OpenMP runtime (`-lomp`).
llvm::Error emitObject(ModuleOp module, llvm::raw_pwrite_stream &stream,
                       const TargetOptions &options = {});

/// Memory for an array that a program reads or returns; freed by `free`. If
/// there is none, the process ends with an error: compiled code does not ask. A
/// token's row of a head lies thousands of bytes from the next token's, on a
/// page of its own, so that large arrays ask for large pages: with 4 KiB the
/// processor spends its time looking up addresses.
void *allocateArray(size_t bytes);

/// A module compiled for this process. Arrays that its functions return come
/// from `allocateArray`.
class Program {
public:
  /// Compiles a module in the LLVM dialect. LLVM's OpenMP runtime is loaded if
  /// the module has parallel loops.
  static llvm::Expected<Program> compile(ModuleOp module,
                                         const TargetOptions &options = {});

  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  /// Generates the code of a function now, and not in its first call.
  llvm::Error materialize(StringRef function);

  /// Calls a function through its C interface (Pipelines.h says what it looks
  /// like): each element of `arguments` points to one argument of
  /// `_mlir_ciface_<function>`, a pointer to a memref descriptor being such an
  /// argument.
  llvm::Error invoke(StringRef function, MutableArrayRef<void *> arguments);

private:
  Program(std::unique_ptr<SectionMemory> memory,
          std::unique_ptr<ExecutionEngine> engine);

  std::unique_ptr<SectionMemory> memory;
  std::unique_ptr<ExecutionEngine> engine;
};

} // namespace mlir::gdn::cpu

#endif // GDN_TARGET_CPU_H
