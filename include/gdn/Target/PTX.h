//===- PTX.h - From the LLVM dialect to code for an NVIDIA GPU --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TARGET_PTX_H
#define GDN_TARGET_PTX_H

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::gdn::ptx {

/// What to generate code for.
struct Options {
  /// The chip, which that of the kernels must be (`gdn_warp.target`). PTX for
  /// sm_90a runs on no other.
  std::string chip = std::string(warp::getDefaultArch().chip);
  /// LLVM's features: the version of the PTX ISA. 8.7 is that of CUDA 12.8.
  std::string features = "+ptx87";
  /// Where ptxas is; empty: GDN_PTXAS, PATH, CUDA_HOME, the Python package
  /// nvidia-cuda-nvcc-cu12, /usr/local/cuda.
  std::string ptxas;
  /// Seconds after which ptxas is ended; GDN_PTXAS_TIMEOUT goes before it.
  unsigned ptxasTimeout = 600;
  /// Takes kernels with a stack and spills: ones for tools, which need not be
  /// fast.
  bool allowSpills = false;
  /// Whether a kernel by itself is called after its stage and its contents, so
  /// that equal ones of several modules are one.
  bool sharesKernels = false;
  /// Whether kernels become PTX. If not, a text with a hash of each one stands
  /// in its place: for tests of all else, as LLVM is most of the time.
  bool generates = true;
};

/// What ptxas says about a kernel.
struct KernelUsage {
  std::string name;
  unsigned registers = 0, stackBytes = 0, spillStores = 0, spillLoads = 0;
};

/// Machine code and what ptxas says about it.
struct Assembled {
  std::string cubin;
  /// All that ptxas printed with -v.
  std::string log;
  std::vector<KernelUsage> kernels;
};

/// Registers the translations to LLVM IR that the functions below need.
void registerTranslations(DialectRegistry &registry);

/// The PTX of the kernels of a module in the LLVM and nvvm dialects, optimised.
/// func.func ops around them are left out.
llvm::Expected<std::string> emitPTX(ModuleOp module,
                                    const Options &options = {});

/// The code of one kernel, by itself.
struct KernelCode {
  /// The kernel's name in the module.
  std::string kernel;
  /// Its name in `ptx`.
  std::string symbol;
  std::string ptx;
  /// A hash of the kernel in the llvm and nvvm dialects, without its name.
  std::string hash;
};

/// The same kernels, each by itself.
llvm::Expected<std::vector<KernelCode>>
emitKernels(ModuleOp module, const Options &options = {});

/// The ptxas that `options` leads to.
llvm::Expected<std::string> findPtxas(const Options &options = {});

/// What the output of `ptxas -v` says about each kernel.
std::vector<KernelUsage> parseUsage(llvm::StringRef log);

/// A line for each kernel with a stack or spills.
std::string describeSpills(llvm::ArrayRef<KernelUsage> kernels);

/// Fails if the output of `ptxas -v` speaks of wgmma that it had to serialise
/// or of setmaxnreg that it ignored (C75xx), of a stack or of spills unless
/// they are allowed.
llvm::Error checkLog(llvm::StringRef log, bool allowSpills = false);

/// Runs ptxas and checks what it prints and writes. An error holds the command
/// that repeats the run and leaves its input in place. With GDN_PTXAS_CACHE in
/// the environment results are kept in that folder, and looked for first.
llvm::Expected<Assembled> assemble(llvm::StringRef ptx,
                                   const Options &options = {});

/// How to launch the kernels of a module, as JSON: for each its name, threads,
/// shared_bytes, cluster, arguments (arrays with their sizes and strides, null
/// if dynamic; scalars) and tensor_maps (#gdn_warp.tensor_map).
llvm::Expected<std::string> describeKernels(ModuleOp module);

} // namespace mlir::gdn::ptx

#endif // GDN_TARGET_PTX_H
