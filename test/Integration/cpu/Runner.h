//===- Runner.h - Compile a case, run it, compare it ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_CPU_RUNNER_H
#define GDN_TEST_INTEGRATION_CPU_RUNNER_H

#include "Matrix.h"

#include "gdn/Tools/Check.h"
#include "gdn/Tools/GPU.h"
#include <map>

namespace gdn::numerics {

/// A program that the compiler has no kernels for, in its own words.
class Refusal : public llvm::ErrorInfo<Refusal, llvm::StringError> {
public:
  static char ID;
  explicit Refusal(const llvm::Twine &words)
      : ErrorInfo(words, llvm::inconvertibleErrorCode()) {}
};

/// Results so far, and of what. Refused are settings of programs that the
/// device has no kernels for.
struct Totals {
  mlir::gdn::tools::Device device = mlir::gdn::tools::Device::CPU;
  /// How much LLVM optimises code for CPUs, 0 to 3.
  unsigned optLevel = mlir::gdn::cpu::TargetOptions().optLevel;
  unsigned passed = 0, failed = 0, refused = 0;
  /// The largest error of each output as a part of its tolerance, and where.
  std::map<std::string, std::pair<double, std::string>> worst;
};

/// A program that is compiled and can be run on any setting.
class CompiledProgram {
public:
  /// Compiles a program for the device of the totals, with static sizes for
  /// `setting` if it has any. An error says why not, a Refusal where the
  /// compiler says that it has no kernels for it; other diagnostics are on
  /// stderr.
  static llvm::Expected<CompiledProgram>
  make(const Program &program, const Setting &setting, const Totals &totals);

  /// The function before it was lowered.
  mlir::func::FuncOp getEntry() { return entry; }
  llvm::Expected<std::vector<mlir::gdn::tools::HostArray>>
  run(llvm::MutableArrayRef<mlir::gdn::tools::HostArray> inputs);
  /// Runs on `inputs` and compares with float64.
  llvm::Expected<std::vector<mlir::gdn::tools::OutputCheck>>
  check(llvm::MutableArrayRef<mlir::gdn::tools::HostArray> inputs);

private:
  std::unique_ptr<mlir::gdn::tools::Session> session;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  /// One of them, as the device is.
  std::unique_ptr<mlir::gdn::tools::Executable> onCPU;
  std::unique_ptr<mlir::gdn::tools::GPUExecutable> onGPU;
};

/// Runs a program on its settings and adds to the totals. Each failure is
/// printed with a command that repeats it, on a file in `directory`.
void runCase(const Case &testCase, llvm::StringRef directory, Totals &totals);

/// Records one comparison, and prints it if it failed. Returns whether it
/// passed.
bool record(const std::vector<mlir::gdn::tools::OutputCheck> &checks,
            const std::string &title, Totals &totals);

/// The inputs that need no matrix: huge, infinite and zero gates, beta of 0 and
/// 1, NaN in a neighbour, runs that must repeat bit by bit.
void runRegressions(Totals &totals);

} // namespace gdn::numerics

#endif // GDN_TEST_INTEGRATION_CPU_RUNNER_H
