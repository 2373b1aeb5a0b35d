//===- GPU.h - Functions on a GPU -------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GPU_H
#define GDN_TOOLS_GPU_H

#include "gdn/Tools/Compile.h"

struct GdnFunctionDesc;

namespace mlir::gdn::tools {
class Object;

/// What runs on a GPU have to tell.
struct GPUResult {
  std::vector<HostArray> outputs;
  /// Seconds of each call on the device, between events around it.
  std::vector<double> seconds;
  std::string device;
  uint64_t workspaceBytes = 0;
  /// Whether the first and the last call gave the same bits.
  bool repeatable = true;
};

/// A function that can be called on the first GPU.
class GPUExecutable {
public:
  /// Fails where there is no GPU, and says what is missing.
  static llvm::Error checkDevice();

  /// Compiles a module of any level on the way; lowers it in place.
  static llvm::Expected<GPUExecutable> compile(ModuleOp module,
                                               llvm::StringRef entry,
                                               const CompileOptions &options);

  /// Takes the function out of an object that gdn-compile made.
  static llvm::Expected<GPUExecutable> load(llvm::StringRef path,
                                            llvm::StringRef entry);

  /// Calls the function once to warm up and `repeat` times on the clock.
  llvm::Expected<GPUResult> run(llvm::ArrayRef<HostArray> inputs,
                                int64_t repeat);

  GPUExecutable(GPUExecutable &&) noexcept;
  GPUExecutable &operator=(GPUExecutable &&) noexcept;
  ~GPUExecutable();

private:
  GPUExecutable(std::unique_ptr<Object> object,
                const GdnFunctionDesc *function);

  static llvm::Expected<GPUExecutable>
  create(std::unique_ptr<llvm::MemoryBuffer> file, llvm::StringRef entry);

  std::unique_ptr<Object> object;
  /// Its kernels are known to the runtime by the address of the object, which
  /// the next one may have.
  struct Unload {
    void operator()(const GdnFunctionDesc *function) const;
  };
  std::unique_ptr<const GdnFunctionDesc, Unload> function;
};

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_GPU_H
